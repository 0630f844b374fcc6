import Foundation
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Synchronization

@testable import LatchkeyS3

/// A service that keeps one bucket in memory, checks signatures, and behaves like whichever service a test names.
final class ScriptedS3: Sendable {
  /// What services do differently.
  struct Manner: Sendable {
    enum Condition: Sendable {
      /// 412 for a name that exists.
      case honoured
      case ignored
      /// 412 for a name that is new.
      case inverted
      case notImplemented
      /// 304 instead of 412.
      case notModified
    }

    enum Listing: Sendable {
      case version2
      /// Takes every request for one of version 1.
      case version1Only
      case version2Refused
      /// Truncated, and nothing to go on with.
      case withoutToken
      /// Begins anew whatever the request says.
      case endless
    }

    var ifNoneMatch = Condition.honoured
    var listing = Listing.version2
    /// `/` sorts before everything else.
    var isSlashFirst = false
    var ignoresRange = false
    /// 403 for every HEAD.
    var refusesHead = false
    /// A HEAD finds nothing.
    var hasLateHead = false
    /// 501 for this header, whatever its value.
    var refusedHeaderPrefix: String?
    var server = "Scripted"
    var region = "us-east-1"
    /// Added to the service's clock, in seconds.
    var clockOffset = 0
    var hasBucket = true
    var sessionToken: String?
    var pageSize = 1000
    /// 429 for a write of a key while another of the same key is under way.
    var refusesConcurrentWrites = false
  }

  /// One thing that goes wrong.
  struct Fault: Sendable {
    let method: String
    /// Reply like this instead.
    let reply: ScriptedServer.Reply
    /// Do what was asked all the same.
    let isDone: Bool
  }

  static let accessKey = "AKIDSCRIPTED"
  static let secretKey = "hunter2/secret+key=ofthetest"
  /// The moment at which tests take place: 24 May 2013.
  static let time = 1_369_353_600

  private let state: Mutex<State>
  let server: ScriptedServer

  struct State: Sendable {
    var manner: Manner
    var objects: [String: [UInt8]] = [:]
    var faults: [Fault] = []
    /// Signatures that did not hold.
    var refused: [String] = []
    /// Paths that are being written.
    var writes: Set<String> = []
  }

  init(_ manner: Manner = Manner()) throws {
    let box = Box()
    server = try ScriptedServer { request in box.answer(request) }
    state = Mutex(State(manner: manner))
    box.service.withLock { $0 = Weak(service: self) }
  }

  /// Breaks the ring of server and service.
  private final class Box: Sendable {
    let service = Mutex(Weak(service: nil))
    func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
      service.withLock { $0.service }?.answer(request) ?? .nothing(.close)
    }
  }

  private struct Weak {
    weak var service: ScriptedS3?
  }

  var objects: [String: [UInt8]] { state.withLock { $0.objects } }
  var refused: [String] { state.withLock { $0.refused } }
  func place(_ key: String, _ bytes: [UInt8]) { state.withLock { $0.objects[key] = bytes } }
  func change(_ body: (inout Manner) -> Void) { state.withLock { body(&$0.manner) } }

  /// The next request of a method goes wrong like this.
  func fail(_ method: String, _ reply: ScriptedServer.Reply, isDone: Bool = false, times: Int = 1) {
    state.withLock { state in
      for _ in 0..<times { state.faults.append(Fault(method: method, reply: reply, isDone: isDone)) }
    }
  }

  /// The error of the protocol, as a reply.
  static func error(_ status: Int, _ code: String, _ more: String = "", headers: [(String, String)] = [])
    -> ScriptedServer.Reply
  {
    let text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>\(code)</Code><Message>said \(secretKey)</Message>"
      + "\(more)<RequestId>REQUEST1</RequestId></Error>"
    return .answer(status, headers, body: Array(text.utf8))
  }

  /// How many requests of a method there were.
  func count(_ method: String) -> Int { server.requests.count { $0.method == method } }

  // MARK: Clients

  var configuration: S3Configuration {
    S3Configuration(
      endpoint: HTTPURL(isSecure: false, host: "127.0.0.1", port: server.port), bucket: "bucket", prefix: "pre fix/+x")
  }

  /// A client that tries again without waiting.
  func openRetrying() async throws(StorageError) -> RetryingStore<ContinuousClock> {
    RetryingStore(try await open(), policy: RetryPolicy(maximumAttempts: 4, base: .zero, cap: .zero))
  }

  func open(
    _ configuration: S3Configuration? = nil, credentials: S3Credentials? = nil, _ mode: OpenMode = .existing
  ) async throws(StorageError) -> S3Store {
    let credentials = credentials ?? S3Credentials(accessKey: Self.accessKey, secretKey: Self.secretKey)
    return try await S3Store.open(
      configuration ?? self.configuration, credentials: { () throws(StorageError) in credentials }, mode,
      now: { Self.time })
  }

  // MARK: The service

  private func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
    guard request.method == "PUT", state.withLock({ $0.manner.refusesConcurrentWrites }) else { return done(request) }
    guard state.withLock({ $0.writes.insert(request.path).inserted }) else { return Self.error(429, "TooManyRequests") }
    defer { state.withLock { _ = $0.writes.remove(request.path) } }
    // Long enough for another to arrive.
    usleep(20_000)
    return done(request)
  }

  private func done(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
    state.withLock { state in
      let fault = state.faults.firstIndex { $0.method == request.method }.map { state.faults.remove(at: $0) }
      if let fault, !fault.isDone { return fault.reply }
      let reply = state.answer(request)
      return fault?.reply ?? reply
    }
  }
}

extension ScriptedS3.State {
  fileprivate mutating func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
    var base = [("Server", manner.server), ("x-amz-request-id", "REQUEST1")]
    base.append(("Date", HTTPDate.format(ScriptedS3.time + manner.clockOffset)))
    if let refusal = refusal(request) {
      refused.append(refusal.code)
      return ScriptedS3.error(refusal.status, refusal.code, refusal.more, headers: base)
    }
    let path = request.path.removingPercentEncoding ?? ""
    let parts = path.dropFirst().split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count < 2 || parts[1].isEmpty {
      if request.method == "PUT" {
        manner.hasBucket = true
        return .answer(200, base)
      }
      guard manner.hasBucket else { return ScriptedS3.error(404, "NoSuchBucket", headers: base) }
      return list(request, base)
    }
    guard manner.hasBucket else {
      return request.method == "HEAD" ? .answer(404, base) : ScriptedS3.error(404, "NoSuchBucket", headers: base)
    }
    let key = String(parts[1])
    switch request.method {
    case "PUT": return put(request, key, base)
    case "DELETE":
      objects[key] = nil
      return .answer(204, base)
    case "GET", "HEAD": return read(request, key, base)
    default: return ScriptedS3.error(405, "MethodNotAllowed", headers: base)
    }
  }

  /// Why a request is not let in.
  private func refusal(_ request: ScriptedServer.Request) -> (status: Int, code: String, more: String)? {
    guard let authorization = request.header("Authorization"), let date = request.header("x-amz-date"),
      let payload = request.header("x-amz-content-sha256")
    else { return (403, "AccessDenied", "") }
    if let prefix = manner.refusedHeaderPrefix,
      request.headers.contains(where: { $0.name.lowercased().hasPrefix(prefix) })
    {
      return (501, "NotImplemented", "")
    }
    let clock = CivilTime(ScriptedS3.time + manner.clockOffset)
    if date.prefix(8) != clock.compactDay || date.dropFirst(9).prefix(2) != clock.compact.dropFirst(9).prefix(2) {
      return (403, "RequestTimeTooSkewed", "")
    }
    let region = authorization.split(separator: "/")[2]
    if region != manner.region {
      return (400, "AuthorizationHeaderMalformed", "<Region>\(manner.region)</Region>")
    }
    if !authorization.contains("Credential=\(ScriptedS3.accessKey)/") { return (403, "InvalidAccessKeyId", "") }
    if let token = manner.sessionToken, request.header("x-amz-security-token") != token {
      return (400, "ExpiredToken", "")
    }
    if payload != Signature.unsignedPayload, payload != SHA256.hex(request.body) {
      return (400, "XAmzContentSHA256Mismatch", "")
    }
    let signed = authorization.split(separator: ",")[1].dropFirst("SignedHeaders=".count).split(separator: ";")
    guard
      request.headers.allSatisfy({ field in
        let name = field.name.lowercased()
        return !(name.hasPrefix("x-amz-") || name.hasPrefix("if-") || name == "host" || name == "range")
          || signed.contains(Substring(name))
      })
    else { return (403, "AccessDenied", "") }
    // Made from what arrived: encoding, order or values that changed on the way show.
    let query = request.query.split(separator: "&").map(String.init).sorted().joined(separator: "&")
    let expected = Signature(
      credentials: S3Credentials(accessKey: ScriptedS3.accessKey, secretKey: ScriptedS3.secretKey),
      region: manner.region
    ).authorization(
      request.method, path: request.path, query: query,
      headers: signed.map { (String($0), request.header(String($0)) ?? "") }, payload: payload, at: time(date))
    return expected == authorization ? nil : (403, "SignatureDoesNotMatch", "<StringToSign>x</StringToSign>")
  }

  private func time(_ compact: String) -> CivilTime {
    let digits = compact.filter(\.isNumber).compactMap(\.wholeNumberValue)
    let seconds =
      (digits[8] * 10 + digits[9]) * 3600 + (digits[10] * 10 + digits[11]) * 60 + digits[12] * 10 + digits[13]
    return CivilTime((ScriptedS3.time + manner.clockOffset) / 86_400 * 86_400 + seconds)
  }

  private mutating func put(_ request: ScriptedServer.Request, _ key: String, _ base: [(String, String)])
    -> ScriptedServer.Reply
  {
    if request.header("If-None-Match") != nil {
      let exists = objects[key] != nil
      switch manner.ifNoneMatch {
      case .honoured: if exists { return ScriptedS3.error(412, "PreconditionFailed", headers: base) }
      case .notModified: if exists { return .answer(304, base) }
      case .inverted: if !exists { return ScriptedS3.error(412, "PreconditionFailed", headers: base) }
      case .notImplemented: return ScriptedS3.error(501, "NotImplemented", headers: base)
      case .ignored: break
      }
    }
    objects[key] = request.body
    return .answer(200, base + [("ETag", "\"00\"")])
  }

  private func read(_ request: ScriptedServer.Request, _ key: String, _ base: [(String, String)])
    -> ScriptedServer.Reply
  {
    let isHead = request.method == "HEAD"
    if isHead, manner.refusesHead { return .answer(403, base) }
    guard let object = objects[key], !(isHead && manner.hasLateHead) else {
      return isHead ? .answer(404, base) : ScriptedS3.error(404, "NoSuchKey", headers: base)
    }
    guard let range = request.header("Range"), !manner.ignoresRange else { return .answer(200, base, body: object) }
    let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
    guard ends.count == 2, ends[0] < object.count else {
      return ScriptedS3.error(416, "InvalidRange", headers: base + [("Content-Range", "bytes */\(object.count)")])
    }
    let last = min(ends[1], object.count - 1)
    return .answer(
      206, base + [("Content-Range", "bytes \(ends[0])-\(last)/\(object.count)")], body: Array(object[ends[0]...last]))
  }

  private func list(_ request: ScriptedServer.Request, _ base: [(String, String)]) -> ScriptedServer.Reply {
    var isVersion2 = request.parameter("list-type") == "2"
    if isVersion2, manner.listing == .version2Refused { return ScriptedS3.error(501, "NotImplemented", headers: base) }
    if manner.listing == .version1Only { isVersion2 = false }
    func order(_ key: String) -> String {
      manner.isSlashFirst ? key.replacingOccurrences(of: "/", with: "\u{1}") : key
    }
    let prefix = request.parameter("prefix") ?? ""
    // Swift's order of ASCII strings is that of their bytes.
    let keys = objects.keys.filter { $0.hasPrefix(prefix) }.map { (order($0), $0) }.sorted { $0.0 < $1.0 }
    let from: String? =
      isVersion2
      ? request.parameter("continuation-token").map { String($0.dropFirst(6)) } ?? request.parameter("start-after")
      : request.parameter("marker")
    let bound = manner.listing == .endless ? "" : order(from ?? "")
    let rest = keys.filter { $0.0 > bound }.map(\.1)
    let count = min(manner.pageSize, Int(request.parameter("max-keys") ?? "1000") ?? 1000)
    let page = rest.prefix(count)
    let isTruncated = page.count < rest.count || manner.listing == .endless
    var text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    text += "<Name>bucket</Name><IsTruncated>\(isTruncated)</IsTruncated>"
    text += isVersion2 ? "<KeyCount>\(page.count)</KeyCount>" : "<Marker>\(escaped(from ?? ""))</Marker>"
    if isTruncated, isVersion2, manner.listing != .withoutToken {
      text += "<NextContinuationToken>token-\(escaped(page.last ?? ""))</NextContinuationToken>"
    }
    for key in page {
      text += "<Contents><Key>\(escaped(key))</Key><Size>\(objects[key]?.count ?? 0)</Size></Contents>"
    }
    return .answer(200, base, body: Array((text + "</ListBucketResult>").utf8))
  }

  private func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
  }
}
