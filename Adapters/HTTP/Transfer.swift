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
  private let caFile: String?
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
    caFile = configuration.caFile
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

  /// Makes a handle ready for the requests of a client.
  static func setUp(_ handle: UnsafeMutableRawPointer, _ configuration: HTTPConfiguration) -> HTTPError? {
    var options = EasyOptions(handle)
    options.set(configuration)
    options.note(
      lk_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION) { data, size, count, context in
        Transfer.from(context)?.takeBody(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
      })
    options.note(
      lk_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION) { data, size, count, context in
        Transfer.from(context)?.takeHeader(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
      })
    options.note(
      lk_curl_set_data_callback(handle, CURLOPT_READFUNCTION) { data, size, count, context in
        Transfer.from(context)?.give(to: UnsafeMutableRawBufferPointer(start: data, count: size * count))
          ?? Int(CURL_READFUNC_ABORT)
      })
    options.note(
      lk_curl_set_seek_callback(handle) { context, offset, origin in
        let isDone = origin == SEEK_SET && Transfer.from(context)?.rewind(to: Int(offset)) == true
        return isDone ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK
      })
    return options.failure
  }

  /// Sets every option in which requests differ, since the handle may have served another.
  func prepare(_ configuration: HTTPConfiguration) -> HTTPError? {
    var options = EasyOptions(handle)
    options.set(CURLOPT_URL, request.url.text)
    options.set(CURLOPT_FORBID_REUSE, 0)
    options.set(CURLOPT_FRESH_CONNECT, 0)
    setMethod(&options)
    setAuthentication(&options)
    setHeaders(&options, configuration)
    // Unretained: `Transfers` keeps the transfer for as long as libcurl works on the handle.
    let context = Unmanaged.passUnretained(self).toOpaque()
    for option in [CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA] {
      options.set(option, pointer: context)
    }
    options.set(CURLOPT_ERRORBUFFER, pointer: message)
    return options.failure
  }

  private func setMethod(_ options: inout EasyOptions) {
    // libcurl takes its buffers for each request anew: large ones are worth it only where much may come or go.
    options.set(CURLOPT_BUFFERSIZE, request.maximumBody > 1 << 20 ? Self.longBuffer : Self.shortBuffer)
    // Sets back a HEAD, or a request with a body.
    options.set(CURLOPT_HTTPGET, 1)
    options.set(CURLOPT_CUSTOMREQUEST, request.method == "GET" ? nil : request.method)
    if request.method == "HEAD" {
      options.set(CURLOPT_NOBODY, 1)
      options.set(CURLOPT_CUSTOMREQUEST, nil)
    } else if let body = request.body {
      options.set(CURLOPT_UPLOAD, 1)
      options.set(CURLOPT_CUSTOMREQUEST, request.method)
      options.note(lk_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count)))
      options.set(CURLOPT_UPLOAD_BUFFERSIZE, body.count > Self.shortBuffer ? Self.longBuffer : Self.shortBuffer)
    }
  }

  /// Bytes that libcurl moves at a time, at most.
  private static let longBuffer = 256 << 10
  private static let shortBuffer = 16 << 10

  private func setAuthentication(_ options: inout EasyOptions) {
    let (credential, methods): (HTTPCredential?, UInt) =
      switch request.authentication {
      case .none: (nil, lk_curl_auth_basic)
      case .basic(let credential): (credential, lk_curl_auth_basic)
      case .digest(let credential): (credential, lk_curl_auth_digest)
      case .challenged(let credential): (credential, lk_curl_auth_digest | lk_curl_auth_basic)
      }
    options.set(CURLOPT_HTTPAUTH, Int(bitPattern: methods))
    options.set(CURLOPT_USERNAME, credential?.user)
    options.set(CURLOPT_PASSWORD, credential?.password)
  }

  private func setHeaders(_ options: inout EasyOptions, _ configuration: HTTPConfiguration) {
    func add(_ line: String) { headerList = curl_slist_append(headerList, line) ?? headerList }
    func add(_ name: String, _ value: String) { add(value.isEmpty ? "\(name);" : "\(name): \(value)") }
    for (name, value) in request.headers.fields { add(name, value) }
    if request.headers["Host"] == nil { add("Host", request.url.hostHeader) }
    if request.headers["User-Agent"] == nil { add("User-Agent", configuration.userAgent) }
    // A proxy that compresses would change what was written (Google's does unless told not to).
    if request.headers["Accept-Encoding"] == nil { add("Accept-Encoding", "identity") }
    // libcurl asks for leave before every PUT, and a server that does not answer that costs a second. For large bodies
    // it is worth it: a refusal then costs no transfer.
    if (request.body?.count ?? 0) <= 1 << 20 { add("Expect:") }
    options.set(CURLOPT_HTTPHEADER, pointer: headerList)
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
    if line.starts(with: "HTTP/".utf8) {
      // The next answer: the one before was interim, or asked for the user.
      (headers, isInBody) = (HTTPHeaders(), false)
      // Whoever spreads the load ties a connection to one machine, and that one has just had enough: the next try goes
      // elsewhere on a connection of its own (Backblaze B2 asks for this).
      if line.drop(while: { $0 != 32 }).drop(while: { $0 == 32 }).prefix(while: { $0 > 32 }).elementsEqual("503".utf8) {
        _ = lk_curl_set_long(handle, CURLOPT_FORBID_REUSE, 1)
      }
    } else if line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8) {
      isInBody = true
    } else if !isInBody, let colon = line.firstIndex(of: UInt8(ascii: ":")) {
      headers.add(
        String(decoding: UnsafeRawBufferPointer(rebasing: line[..<colon]), as: UTF8.self),
        Self.trimmed(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])))
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

  private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> String {
    let isSpace: (UInt8) -> Bool = { $0 == 32 || $0 == 9 || $0 == 13 || $0 == 10 }
    guard let first = bytes.firstIndex(where: { !isSpace($0) }), let last = bytes.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[first...last]), as: UTF8.self)
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

  /// What is wrong with a certificate: libcurl has one code for all of it, and OpenSSL's words.
  static func distrust(_ said: String, _ caFile: String?) -> HTTPError.Distrust {
    if said.contains("does not match") || said.contains("no alternative certificate subject name") { return .otherHost }
    if said.contains("has expired") || said.contains("not yet valid") { return .outOfDate }
    if ["issuer", "self-signed", "self signed", "unable to verify"].contains(where: said.contains) {
      return caFile.map { .otherAuthority(file: $0) } ?? .unknownAuthority
    }
    return .other
  }

  private func cause(_ code: CURLcode, _ said: String) -> HTTPError.Cause {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolvedHost
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: .unreachable
    case CURLE_OPERATION_TIMEDOUT: .stalled
    case CURLE_PARTIAL_FILE: .truncated
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
      .untrustedCertificate(Self.distrust(said, caFile))
    // TLS 1.3: a server that wants a certificate says so after the handshake.
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
      said.contains("alert") && (said.contains("certificate") || said.contains("unknown ca")) ? .tls : .connectionLost
    case CURLE_SSL_CONNECT_ERROR: Self.isRefusal(said) ? .tls : .connectionLost
    case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE: .unusableFile
    case CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_NOT_BUILT_IN, CURLE_FAILED_INIT: .configuration
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
