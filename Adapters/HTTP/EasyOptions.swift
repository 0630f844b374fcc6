internal import CLatchkeyCurl

/// Sets options of an easy handle, and keeps the first that libcurl refuses.
struct EasyOptions {
  let handle: UnsafeMutableRawPointer
  private var code = CURLE_OK

  init(_ handle: UnsafeMutableRawPointer) { self.handle = handle }

  mutating func set(_ option: CURLoption, _ value: Int) { note(lk_curl_set_long(handle, option, value)) }

  mutating func set(_ option: CURLoption, _ value: String?) { note(lk_curl_set_text(handle, option, value)) }

  /// What it points to must outlive the transfer.
  mutating func set(_ option: CURLoption, pointer: UnsafeRawPointer?) {
    note(lk_curl_set_pointer(handle, option, pointer))
  }

  mutating func note(_ code: CURLcode) { if self.code == CURLE_OK { self.code = code } }

  /// Nil if everything was taken.
  var failure: HTTPError? {
    code == CURLE_OK ? nil : HTTPError(.configuration, detail: String(cString: curl_easy_strerror(code)))
  }

  /// Sets what holds for all requests of a client, once for a handle.
  mutating func set(_ configuration: HTTPConfiguration) {
    // Sent and signed are the same bytes: libcurl resolves no dots.
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_HTTP_VERSION, lk_curl_http_1_1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_NETRC, 0)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    // A cancelled request does not wait for its host's name to be resolved.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1000)
    // Empty, not NULL: NULL would look at the environment.
    set(CURLOPT_PROXY, configuration.proxy.map { String($0.origin.text.dropLast()) } ?? "")
    set(CURLOPT_NOPROXY, "")

    set(CURLOPT_SSL_VERIFYPEER, 1)
    set(CURLOPT_SSL_VERIFYHOST, 2)
    set(CURLOPT_SSLVERSION, lk_curl_tls_1_2)
    if let file = configuration.caFile {
      set(CURLOPT_CAINFO, file)
      set(CURLOPT_CAPATH, nil)
    }
    if let file = configuration.clientCertificateFile {
      set(CURLOPT_SSLCERT, file)
      set(CURLOPT_SSLKEY, configuration.clientKeyFile ?? file)
    }
    set(CURLOPT_CONNECTTIMEOUT_MS, max(1, configuration.connectTimeout.milliseconds))
    set(CURLOPT_LOW_SPEED_LIMIT, 1)
    set(CURLOPT_LOW_SPEED_TIME, max(1, (configuration.stallTimeout.milliseconds + 999) / 1000))
  }
}

extension Duration {
  /// Whole milliseconds, at most what libcurl takes.
  var milliseconds: Int {
    let (seconds, attoseconds) = components
    guard seconds < 2_000_000 else { return 2_000_000_000 }
    return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  }
}
