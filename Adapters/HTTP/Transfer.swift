internal import CLatchkeyCurl

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// One request on one easy handle, from its options to its answer. Used by the loop's thread only.
final class Transfer {
  let id: UInt64
  let handle: UnsafeMutableRawPointer
  let reply: CheckedContinuation<TransferLoop.Reply, Never>

  let request: HTTPRequest
  private let maximumHeaderBytes: Int
  /// Bytes of the request's body that libcurl has taken.
  private var sent = 0
  private var headers = HTTPHeaders()
  private var headerBytes = 0
  /// The header is complete: further fields are trailers, which nobody asked for.
  private var isInBody = false
  private var body: [UInt8] = []
  private var wasRestarted = false
  /// Why a callback stopped the transfer.
  private var refusal: HTTPError.Cause?
  private var headerList: UnsafeMutablePointer<curl_slist>?
  /// Where libcurl writes what went wrong.
  private let message: UnsafeMutablePointer<CChar>

  init(_ start: TransferLoop.Start, _ handle: UnsafeMutableRawPointer, _ configuration: HTTPConfiguration) {
    id = start.id
    request = start.request
    reply = start.reply
    maximumHeaderBytes = configuration.maximumHeaderBytes
    self.handle = handle
    message = .allocate(capacity: Int(CURL_ERROR_SIZE))
    message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_slist_free_all(headerList)
    message.deallocate()
  }

  /// Whether any byte of the request has left.
  var hasSent: Bool { wasRestarted || lk_curl_get_long(handle, CURLINFO_REQUEST_SIZE) > 0 }

  /// Sets every option that any request sets, since the handle may have served another.
  func prepare(_ configuration: HTTPConfiguration) -> HTTPError? {
    var codes: [CURLcode] = []
    func set(_ option: CURLoption, _ value: Int) { codes.append(lk_curl_set_long(handle, option, value)) }
    func set(_ option: CURLoption, _ value: String?) { codes.append(lk_curl_set_text(handle, option, value)) }

    set(CURLOPT_URL, request.url.text)
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
    set(CURLOPT_BUFFERSIZE, 128 << 10)
    set(CURLOPT_FORBID_REUSE, 0)
    set(CURLOPT_FRESH_CONNECT, 0)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
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

    setMethod(set, set)
    setAuthentication(set, set)
    codes.append(setHeaders(configuration))
    codes += setCallbacks()
    if codes.allSatisfy({ $0 == CURLE_OK }) { return nil }
    let failure = codes.first { $0 != CURLE_OK }.map { String(cString: curl_easy_strerror($0)) } ?? ""
    return HTTPError(.configuration, detail: failure)
  }

  private func setMethod(_ long: (CURLoption, Int) -> Void, _ text: (CURLoption, String?) -> Void) {
    // Sets back a HEAD, or a request with a body.
    long(CURLOPT_HTTPGET, 1)
    text(CURLOPT_CUSTOMREQUEST, request.method == "GET" ? nil : request.method)
    if request.method == "HEAD" {
      long(CURLOPT_NOBODY, 1)
      text(CURLOPT_CUSTOMREQUEST, nil)
    } else if let body = request.body {
      long(CURLOPT_UPLOAD, 1)
      text(CURLOPT_CUSTOMREQUEST, request.method)
      _ = lk_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count))
      long(CURLOPT_EXPECT_100_TIMEOUT_MS, 1000)
    }
  }

  private func setAuthentication(_ long: (CURLoption, Int) -> Void, _ text: (CURLoption, String?) -> Void) {
    let (credential, methods): (HTTPCredential?, UInt) =
      switch request.authentication {
      case .none: (nil, lk_curl_auth_basic)
      case .basic(let credential): (credential, lk_curl_auth_basic)
      case .digest(let credential): (credential, lk_curl_auth_digest)
      case .challenged(let credential): (credential, lk_curl_auth_digest | lk_curl_auth_basic)
      }
    long(CURLOPT_HTTPAUTH, Int(bitPattern: methods))
    text(CURLOPT_USERNAME, credential?.user)
    text(CURLOPT_PASSWORD, credential?.password)
  }

  private func setHeaders(_ configuration: HTTPConfiguration) -> CURLcode {
    var fields = request.headers.fields
    func addUnlessGiven(_ name: String, _ value: String) {
      if request.headers[name] == nil { fields.append((name, value)) }
    }
    addUnlessGiven("Host", request.url.hostHeader)
    addUnlessGiven("User-Agent", configuration.userAgent)
    // A proxy that compresses would change what was written (Google's does unless told not to).
    addUnlessGiven("Accept-Encoding", "identity")
    var lines = fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
    // libcurl asks for leave before every PUT, and a server that does not answer that costs a second. For large bodies
    // it is worth it: a refusal then costs no transfer.
    if (request.body?.count ?? 0) <= 1 << 20 { lines.append("Expect:") }
    for line in lines { headerList = curl_slist_append(headerList, line) ?? headerList }
    return lk_curl_set_pointer(handle, CURLOPT_HTTPHEADER, headerList)
  }

  private func setCallbacks() -> [CURLcode] {
    // Unretained: `Transfers` keeps the transfer for as long as libcurl works on the handle.
    let context = Unmanaged.passUnretained(self).toOpaque()
    return [
      lk_curl_set_pointer(handle, CURLOPT_PRIVATE, context),
      lk_curl_set_pointer(handle, CURLOPT_WRITEDATA, context),
      lk_curl_set_pointer(handle, CURLOPT_HEADERDATA, context),
      lk_curl_set_pointer(handle, CURLOPT_READDATA, context),
      lk_curl_set_pointer(handle, CURLOPT_SEEKDATA, context),
      lk_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, message),
      lk_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION) { data, size, count, context in
        Transfer.from(context)?.takeBody(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
      },
      lk_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION) { data, size, count, context in
        Transfer.from(context)?.takeHeader(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
      },
      lk_curl_set_data_callback(handle, CURLOPT_READFUNCTION) { data, size, count, context in
        Transfer.from(context)?.give(to: UnsafeMutableRawBufferPointer(start: data, count: size * count))
          ?? Int(CURL_READFUNC_ABORT)
      },
      lk_curl_set_seek_callback(handle) { context, offset, origin in
        let isDone = origin == SEEK_SET && Transfer.from(context)?.rewind(to: Int(offset)) == true
        return isDone ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK
      },
    ]
  }

  private static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Takes away from the handle what ends with this transfer.
  func detach() {
    _ = lk_curl_set_pointer(handle, CURLOPT_PRIVATE, nil)
    _ = lk_curl_set_pointer(handle, CURLOPT_HTTPHEADER, nil)
    _ = lk_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, nil)
  }

  // MARK: What libcurl calls

  /// - Returns: how many bytes were taken; another number than came ends the transfer.
  private func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
    headerBytes += line.count
    guard headerBytes <= maximumHeaderBytes else { return refuse(.headersTooLarge) }
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") {
      // The next answer: the one before was interim, or asked for the user.
      (headers, isInBody) = (HTTPHeaders(), false)
      // Whoever spreads the load ties a connection to one machine, and that one has just had enough: the next try goes
      // elsewhere on a connection of its own (Backblaze B2 asks for this).
      if text.split(separator: " ").dropFirst().first == "503" { _ = lk_curl_set_long(handle, CURLOPT_FORBID_REUSE, 1) }
    } else if text == "\r\n" || text == "\n" {
      isInBody = true
    } else if !isInBody, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
      let value = text.utf8[text.utf8.index(after: colon)...]
      headers.add(String(text[..<colon]), Self.trimmed(value))
    }
    return line.count
  }

  private func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard body.count + bytes.count <= request.maximumBody else {
      return refuse(.bodyTooLarge(limit: request.maximumBody))
    }
    if body.isEmpty {
      let announced = Int(lk_curl_get_size(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T))
      guard announced <= request.maximumBody else { return refuse(.bodyTooLarge(limit: request.maximumBody)) }
      if announced > 0 { body.reserveCapacity(announced) }
    }
    body.append(contentsOf: bytes)
    return bytes.count
  }

  /// The next piece of the request's body.
  private func give(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let body = request.body else { return 0 }
    let count = min(buffer.count, body.count - sent)
    body.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[sent..<sent + count])) }
    sent += count
    return count
  }

  /// libcurl sends the body again, after a challenge or on another connection.
  private func rewind(to offset: Int) -> Bool {
    guard let body = request.body, (0...body.count).contains(offset) else { return false }
    sent = offset
    return true
  }

  private func refuse(_ cause: HTTPError.Cause) -> Int {
    refusal = cause
    return 0
  }

  private static func trimmed(_ bytes: Substring.UTF8View) -> String {
    let isSpace: (UInt8) -> Bool = { $0 == 32 || $0 == 9 || $0 == 13 || $0 == 10 }
    var rest = bytes.drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return String(Substring(rest))
  }

  // MARK: The end

  /// Makes the transfer ready to be sent once more if a kept connection turned out to be closed: nothing of an answer
  /// came. libcurl does so itself, but not where it finds out while it sends.
  func restart(after code: CURLcode) -> Bool {
    let isLost = code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING
    guard isLost, !wasRestarted, headerBytes == 0, lk_curl_get_long(handle, CURLINFO_NUM_CONNECTS) == 0 else {
      return false
    }
    (wasRestarted, sent) = (true, 0)
    return lk_curl_set_long(handle, CURLOPT_FRESH_CONNECT, 1) == CURLE_OK
  }

  /// What came of it.
  func finish(_ code: CURLcode) -> TransferLoop.Reply {
    if code == CURLE_OK {
      // A connection that ends in the middle of the header is no error to libcurl. To a write it would be a success.
      guard isInBody else {
        return .failure(HTTPError(.connectionLost, mayHaveArrived: hasSent, detail: "the header breaks off"))
      }
      let status = lk_curl_get_long(handle, CURLINFO_RESPONSE_CODE)
      return .success(HTTPResponse(status: status, headers: headers, body: body))
    }
    if let refusal { return .failure(HTTPError(refusal, mayHaveArrived: hasSent)) }
    let said = String(cString: message)
    let detail = said.isEmpty ? String(cString: curl_easy_strerror(code)) : said
    return .failure(HTTPError(cause(code, said), mayHaveArrived: hasSent, detail: detail))
  }

  /// Whether a failed handshake is one that the peers could not agree on. libcurl has the same code for a line that broke
  /// meanwhile, which is worth another try: only its words tell.
  static func isRefusal(_ said: String) -> Bool {
    if said.contains("unexpected eof") || said.contains("SYSCALL") { return false }
    // Said of a connection that stood: what was under way when it broke.
    if said.contains("SSL_write()") || said.contains("SSL_read()") { return false }
    return ["SSL routines", "alert", "version", "cipher", "certificate", "protocol"].contains { said.contains($0) }
  }

  private func cause(_ code: CURLcode, _ said: String) -> HTTPError.Cause {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolvedHost
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: .unreachable
    case CURLE_OPERATION_TIMEDOUT: .stalled
    case CURLE_PARTIAL_FILE: .truncated
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS: .untrustedCertificate
    // TLS 1.3: a server that wants a certificate says so after the handshake.
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
      said.contains("alert") && (said.contains("certificate") || said.contains("unknown ca")) ? .tls : .connectionLost
    case CURLE_SSL_CONNECT_ERROR: Self.isRefusal(said) ? .tls : .connectionLost
    case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_URL_MALFORMAT,
      CURLE_BAD_FUNCTION_ARGUMENT, CURLE_NOT_BUILT_IN, CURLE_FAILED_INIT:
      .configuration
    case CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_USE_SSL_FAILED,
      CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_SHUTDOWN_FAILED:
      .tls
    // Once something was sent it is the answer that is another protocol (HTTP/0.9).
    case CURLE_UNSUPPORTED_PROTOCOL: hasSent ? .malformedReply : .configuration
    case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING, CURLE_TOO_MANY_REDIRECTS: .malformedReply
    // A single header line over libcurl's own bound.
    case CURLE_OUT_OF_MEMORY: hasSent ? .headersTooLarge : .unreachable
    default: .connectionLost
    }
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
