internal import LatchkeyEncoding
internal import LatchkeyHTTP
internal import LatchkeyStorage
internal import Synchronization

/// A session with the service: signs requests, each attempt anew, and corrects its clock and keys once each.
final class S3Connection: Sendable {
  let configuration: S3Configuration
  private let client: HTTPClient
  private let source: S3CredentialSource
  private let now: @Sendable () -> Int
  private let state: Mutex<State>

  private struct State {
    var credentials: S3Credentials
    /// The server's clock less ours, in seconds, once a signature was refused for it.
    var clockOffset = 0
    /// The last `Server` field.
    var server = ""
  }

  /// One request, before it is signed.
  struct Call: Sendable {
    var method: String
    /// Nil for the bucket itself.
    var key: String?
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    /// Most bytes of an answer, errors included.
    var maximumBody = 64 << 10
    /// Whether a body of a success is the object's.
    var wantsObject: Bool { method == "GET" && key != nil }
    var changes: Bool { method == "PUT" || method == "DELETE" }
  }

  /// What came back.
  enum Reply {
    case yes(HTTPResponse)
    case no(S3Failure)
  }

  init(
    _ configuration: S3Configuration, _ source: @escaping S3CredentialSource, now: @escaping @Sendable () -> Int
  ) throws(StorageError) {
    self.configuration = configuration
    self.source = source
    self.now = now
    do { client = try HTTPClient(configuration.http) } catch { throw error.storageError(.open, nil) }
    state = Mutex(State(credentials: try source()))
  }

  /// The beginning of what the service calls itself, if it does.
  func isServer(_ names: [String]) -> Bool {
    let server = state.withLock { $0.server }
    return names.contains { server.hasPrefix($0) }
  }

  /// Sends a request. A signature that was refused for the clock or for keys that have expired is made again once, with
  /// the server's time or with new keys: everything else is for who asked.
  func send(_ call: Call) async throws(HTTPError) -> Reply {
    var (mayCorrectClock, mayRenewKeys) = (true, true)
    while true {
      let response = try await client.send(signed(call))
      if let server = response.headers["Server"] { state.withLock { $0.server = server } }
      guard let failure = S3Failure(response, isObject: call.wantsObject, now: now()) else { return .yes(response) }
      if mayCorrectClock, correctClock(failure) {
        mayCorrectClock = false
      } else if mayRenewKeys, S3Quirks.expiredCodes.contains(failure.code), renewKeys() {
        mayRenewKeys = false
      } else {
        return .no(failure)
      }
    }
  }

  /// - Returns: whether the clock was the reason, and is corrected now.
  private func correctClock(_ failure: S3Failure) -> Bool {
    guard let date = failure.date else { return false }
    return state.withLock { state in
      let skew = date - (now() + state.clockOffset)
      guard failure.cause == .clockSkew || [400, 401, 403].contains(failure.status),
        abs(skew) > S3Quirks.suspiciousSkew
      else { return false }
      state.clockOffset += skew
      return true
    }
  }

  /// - Returns: whether there are others now.
  private func renewKeys() -> Bool {
    guard let fresh = try? source() else { return false }
    return state.withLock { state in
      guard fresh != state.credentials else { return false }
      state.credentials = fresh
      return true
    }
  }

  private func signed(_ call: Call) -> HTTPRequest {
    let (credentials, offset) = state.withLock { ($0.credentials, $0.clockOffset) }
    let time = CivilTime(now() + offset)
    var url = configuration.url(call.key)
    let query = Signature.query(call.query)
    url.query = query.isEmpty ? nil : query
    // Sent in any case: services other than Amazon's refuse a request without it (Ceph, Swift).
    let payload =
      call.body != nil && !configuration.signsPayload ? Signature.unsignedPayload : SHA256.hex(call.body ?? [])
    var fields = call.headers
    fields.append(("host", url.hostHeader))
    fields.append(("x-amz-content-sha256", payload))
    fields.append(("x-amz-date", time.compact))
    if let token = credentials.sessionToken { fields.append(("x-amz-security-token", token)) }
    let authorization = Signature(credentials: credentials, region: configuration.region).authorization(
      call.method, path: url.path, query: query, headers: fields, payload: payload, at: time)
    var request = HTTPRequest(call.method, url, body: call.body)
    for (name, value) in fields { request.headers.add(name, value) }
    request.headers["Authorization"] = authorization
    request.maximumBody = call.maximumBody
    return request
  }
}
