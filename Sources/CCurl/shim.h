#ifndef LATCHKEY_CURL_SHIM_H
#define LATCHKEY_CURL_SHIM_H

// libcurl's setopt and getinfo are variadic, which Swift cannot call: one typed function for each kind of argument.
// The options themselves are the enumerators of <curl/curl.h>.

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stddef.h>

typedef size_t (*lk_curl_data_callback)(char *_Nonnull data, size_t size, size_t count, void *_Nullable context);

static inline CURLcode lk_curl_set_long(CURL *_Nonnull handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode lk_curl_set_size(CURL *_Nonnull handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}

/// For options whose text libcurl copies; NULL sets the option back.
static inline CURLcode lk_curl_set_text(CURL *_Nonnull handle, CURLoption option, const char *_Nullable value) {
  return curl_easy_setopt(handle, option, value);
}

/// For options that keep the pointer: what it points to must outlive the transfer.
static inline CURLcode lk_curl_set_pointer(CURL *_Nonnull handle, CURLoption option, const void *_Nullable value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode lk_curl_set_data_callback(
    CURL *_Nonnull handle, CURLoption option, lk_curl_data_callback _Nonnull callback) {
  return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode lk_curl_set_seek_callback(CURL *_Nonnull handle, curl_seek_callback _Nonnull callback) {
  return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLMcode lk_curl_multi_set_long(CURLM *_Nonnull handle, CURLMoption option, long value) {
  return curl_multi_setopt(handle, option, value);
}

static inline long lk_curl_get_long(CURL *_Nonnull handle, CURLINFO info) {
  long value = 0;
  return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

static inline curl_off_t lk_curl_get_size(CURL *_Nonnull handle, CURLINFO info) {
  curl_off_t value = 0;
  return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

/// The context that was set with CURLOPT_PRIVATE.
static inline void *_Nullable lk_curl_get_private(CURL *_Nonnull handle) {
  char *value = NULL;
  return curl_easy_getinfo(handle, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

/// Macros that Swift does not import.
static const unsigned long lk_curl_auth_basic = CURLAUTH_BASIC;
static const unsigned long lk_curl_auth_digest = CURLAUTH_DIGEST;
static const unsigned long lk_curl_auth_none = CURLAUTH_NONE;
static const long lk_curl_http_1_1 = CURL_HTTP_VERSION_1_1;
static const long lk_curl_tls_1_2 = CURL_SSLVERSION_TLSv1_2;

#endif
