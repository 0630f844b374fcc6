internal import LatchkeyHTTP
internal import LatchkeyStorage
internal import Synchronization

/// A session with the server: makes the user known, and remembers how the server has answered so far.
final class WebDAVConnection: Sendable {
  let configuration: WebDAVConfiguration
  private let client: HTTPClient
  private let source: WebDAVCredentialSource
  private let now: @Sendable () -> Int
  private let state: Mutex<State>

  private struct State {
    var credential: HTTPCredential?
    /// The server has asked for Digest.
    var wantsChallenge: Bool
    /// Something was answered with anything but a refusal of the user.
    var hasWorked = false
    var hasWritten = false
    /// Refusals in a row, of the user and of writes.
    var refusedUsers = 0
    var refusedWrites = 0
  }

  /// One request.
  struct Call: Sendable {
    var method: String
    /// Absolute and percent-encoded.
    var path: String
    var headers: [(name: String, value: String)] = []
    var body: [UInt8]?
    /// Most bytes of an answer, errors included.
    var maximumBody = 64 << 10
    /// Whether it says something about the right to write.
    var isWrite: Bool { ["PUT", "MOVE", "DELETE"].contains(method) }
  }

  /// What came back.
  struct Reply: Sendable {
    let response: HTTPResponse
    let method: String
    /// A refusal that servers also give for a moment: of a user that was let in before (pCloud), of a write while
    /// somebody holds a lock (ownCloud).
    let isPassing: Bool
    let hadCredential: Bool
    /// By our clock, in seconds since 1970.
    let time: Int

    var isSuccess: Bool { response.isSuccess && response.status != 207 }
  }

  /// How often in a row a refusal is taken for a passing one.
  private static let patience = 2

  init(
    _ configuration: WebDAVConfiguration, _ source: @escaping WebDAVCredentialSource,
    now: @escaping @Sendable () -> Int
  ) throws(StorageError) {
    self.configuration = configuration
    self.source = source
    self.now = now
    do { client = try HTTPClient(configuration.http) } catch { throw error.storageError(.open, nil) }
    // Basic shows the password to whoever is on the line: without TLS the server is asked first what it takes.
    let isPrivate = configuration.root.isSecure || configuration.root.isLoopback
    state = Mutex(State(credential: try source(), wantsChallenge: !isPrivate))
  }

  /// Sends a request; a second time where the server asks for Digest, or the password has changed meanwhile.
  func send(_ call: Call) async throws(HTTPError) -> Reply {
    var mayRenew = true
    while true {
      let (credential, wantsChallenge) = state.withLock { ($0.credential, $0.wantsChallenge) }
      let response = try await client.send(request(call, credential, wantsChallenge))
      if response.status == 401, let credential {
        if !wantsChallenge, Self.offersDigest(response) {
          state.withLock { $0.wantsChallenge = true }
          continue
        }
        if mayRenew, let fresh = try? source(), fresh != credential {
          mayRenew = false
          state.withLock { $0.credential = fresh }
          continue
        }
      }
      return Reply(
        response: response, method: call.method, isPassing: note(response.status, isWrite: call.isWrite),
        hadCredential: credential != nil, time: now())
    }
  }

  private func request(_ call: Call, _ credential: HTTPCredential?, _ wantsChallenge: Bool) -> HTTPRequest {
    var url = configuration.root
    url.path = call.path
    var request = HTTPRequest(call.method, url, body: call.body)
    for (name, value) in call.headers { request.headers.add(name, value) }
    request.maximumBody = call.maximumBody
    if let credential { request.authentication = wantsChallenge ? .challenged(credential) : .basic(credential) }
    return request
  }

  private static func offersDigest(_ response: HTTPResponse) -> Bool {
    response.headers.all("WWW-Authenticate").contains { $0.lowercased().contains("digest") }
  }

  /// - Returns: whether the answer is a refusal that may pass.
  private func note(_ status: Int, isWrite: Bool) -> Bool {
    state.withLock { state in
      if status == 401 {
        state.refusedUsers += 1
        return state.hasWorked && state.refusedUsers <= Self.patience
      }
      // A server in trouble may not have looked at the user.
      if status < 500 { (state.hasWorked, state.refusedUsers) = (true, 0) }
      guard isWrite else { return false }
      if status == 403 {
        state.refusedWrites += 1
        return state.hasWritten && state.refusedWrites <= Self.patience
      }
      if (200...299).contains(status) { (state.hasWritten, state.refusedWrites) = (true, 0) }
      return false
    }
  }
}
