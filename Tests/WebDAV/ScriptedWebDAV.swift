import Foundation
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Synchronization

@testable import LatchkeyWebDAV

/// A WebDAV server that keeps a tree in memory and behaves like whichever server a test names.
final class ScriptedWebDAV: Sendable {
  /// What servers do differently.
  struct Manner: Sendable {
    enum References: Sendable {
      case path
      /// In full, as the server knows itself behind a proxy.
      case foreign
      /// More escaped than need be.
      case escaped
      /// Under another path, as behind a proxy that changes it.
      case moved
    }

    enum Namespace: Sendable {
      case prefixed, standard, repeated, undeclared
    }

    enum Destination: Sendable {
      case any
      /// 400 for an address (a server behind a proxy that does the encryption).
      case pathOnly
      /// 400 for a path (Apache).
      case addressOnly
    }

    enum Authentication: Sendable {
      case none, basic, digest
    }

    var references = References.path
    var namespace = Namespace.prefixed
    /// A missing resource is a 207 with a 404 inside (nginx).
    var hidesAbsence = false
    /// For MKCOL of a directory that is there.
    var madeAlready = 405
    /// 409 for MKCOL without a slash (nginx).
    var needsSlash = false
    /// For whatever lacks the directory it would be in.
    var lacksDirectory = 409
    /// For a MOVE without leave to overwrite onto a name that exists; nil overwrites.
    var exists: Int? = 412
    var destination = Destination.any
    var authentication = Authentication.basic
    var ignoresRange = false
    /// No `getcontentlength`.
    var hidesSize = false
    /// Properties that are not there have a part of their own (Seafile).
    var namesAbsentProperties = false
    /// Most members of a directory that are listed.
    var cap: Int?
    /// Depth 1 lists everything below.
    var answersDeeply = false
    /// Keeps no more than so many bytes of an upload.
    var keeps: Int?
    /// DELETE and MOVE answer 207.
    var answersInParts = false
    /// A GET of a directory points to the same name with a slash.
    var redirectsDirectories = true
  }

  struct Fault: Sendable {
    let method: String
    /// Reply like this instead.
    let reply: ScriptedServer.Reply
    /// Do what was asked all the same.
    let isDone: Bool
    /// How many requests of the method go through first.
    var skips: Int
  }

  enum Node: Equatable, Sendable {
    case directory
    case file([UInt8], modified: Int)
  }

  struct State: Sendable {
    var manner: Manner
    /// By decoded path, without slashes at the ends; the empty one is the root.
    var nodes: [String: Node] = ["": .directory]
    var faults: [Fault] = []
  }

  static let user = "ana"
  static let password = "hunter2/ofthetest"
  /// The moment at which tests take place: 24 May 2013.
  static let time = 1_369_353_600
  static let folder = "dav/pre fix/household"

  private let state: Mutex<State>
  let server: ScriptedServer

  /// - Parameter hasFolder: whether the store's folder is there.
  init(_ manner: Manner = Manner(), hasFolder: Bool = true) throws {
    let box = Box()
    server = try ScriptedServer { request in box.answer(request) }
    var state = State(manner: manner)
    let parts = Self.folder.split(separator: "/")
    for count in 1...(hasFolder ? parts.count : 1) {
      state.nodes[parts.prefix(count).joined(separator: "/")] = .directory
    }
    self.state = Mutex(state)
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
    weak var service: ScriptedWebDAV?
  }

  var nodes: [String: Node] { state.withLock { $0.nodes } }
  func change(_ body: (inout Manner) -> Void) { state.withLock { body(&$0.manner) } }

  /// Files of the store, by name below the folder.
  var files: [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for case (let path, .file(let bytes, _)) in nodes where path.hasPrefix(Self.folder + "/") {
      files[String(path.dropFirst(Self.folder.count + 1))] = bytes
    }
    return files
  }

  /// Puts something below the folder, with its directories.
  func place(_ name: String, _ bytes: [UInt8]?, modified: Int = time) {
    state.withLock { state in
      let parts = name.split(separator: "/")
      for count in 0..<parts.count {
        state.nodes[([Self.folder] + parts.prefix(count).map(String.init)).joined(separator: "/")] = .directory
      }
      state.nodes["\(Self.folder)/\(name)"] = bytes.map { .file($0, modified: modified) } ?? .directory
    }
  }

  func remove(_ path: String) {
    state.withLock { $0.nodes = $0.nodes.filter { $0.key != path && !$0.key.hasPrefix(path + "/") } }
  }

  /// A request of a method goes wrong like this: the next, or a later one.
  func fail(
    _ method: String, _ reply: ScriptedServer.Reply, isDone: Bool = false, skipping: Int = 0, times: Int = 1
  ) {
    state.withLock { state in
      for _ in 0..<times {
        state.faults.append(Fault(method: method, reply: reply, isDone: isDone, skips: skipping))
      }
    }
  }

  /// How many requests of a method there were.
  func count(_ method: String) -> Int { server.requests.count { $0.method == method } }

  // MARK: Clients

  var configuration: WebDAVConfiguration {
    WebDAVConfiguration(
      root: HTTPURL(isSecure: false, host: "127.0.0.1", port: server.port, path: "/dav/pre%20fix/household"))
  }

  /// A client that tries again without waiting.
  func openRetrying(attempts: Int = 4) async throws(StorageError) -> RetryingStore<ContinuousClock> {
    RetryingStore(try await open(), policy: RetryPolicy(maximumAttempts: attempts, base: .zero, cap: .zero))
  }

  func open(
    _ configuration: WebDAVConfiguration? = nil, credential: HTTPCredential? = credential, _ mode: OpenMode = .existing
  ) async throws(StorageError) -> WebDAVStore {
    try await WebDAVStore.open(
      configuration ?? self.configuration, credential: { () throws(StorageError) in credential }, mode,
      now: { Self.time })
  }

  static let credential: HTTPCredential? = HTTPCredential(user: user, password: password)

  // MARK: The server

  private func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
    state.withLock { state in
      let index = state.faults.firstIndex { $0.method == request.method }
      if let index, state.faults[index].skips > 0 {
        state.faults[index].skips -= 1
        return state.answer(request)
      }
      let fault = index.map { state.faults.remove(at: $0) }
      if let fault, !fault.isDone { return fault.reply }
      let reply = state.answer(request)
      return fault?.reply ?? reply
    }
  }
}

extension ScriptedWebDAV.State {
  fileprivate var base: [(String, String)] { [("Server", "Scripted"), ("Date", HTTPDate.format(ScriptedWebDAV.time))] }

  fileprivate mutating func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Reply {
    guard isLetIn(request) else {
      let challenge =
        manner.authentication == .digest
        ? "Digest realm=\"dav\", nonce=\"abc123\", qop=\"auth\", algorithm=MD5" : "Basic realm=\"dav\""
      return .answer(401, base + [("WWW-Authenticate", challenge)], body: Array("who are you?".utf8))
    }
    let path = Self.plain(request.path)
    switch request.method {
    case "PROPFIND": return properties(request, path)
    case "GET", "HEAD": return read(request, path)
    case "PUT": return put(request, path)
    case "MKCOL": return makeDirectory(request, path)
    case "DELETE": return delete(path)
    case "MOVE": return move(request, path)
    default: return .answer(405, base)
    }
  }

  private func isLetIn(_ request: ScriptedServer.Request) -> Bool {
    let given = request.header("Authorization") ?? ""
    switch manner.authentication {
    case .none: return true
    case .basic:
      let pair = Data("\(ScriptedWebDAV.user):\(ScriptedWebDAV.password)".utf8).base64EncodedString()
      return given == "Basic \(pair)"
    // That the answer to the challenge is right is tested on real servers.
    case .digest: return given.hasPrefix("Digest ") && given.contains("username=\"\(ScriptedWebDAV.user)\"")
    }
  }

  private static func plain(_ path: String) -> String {
    path.split(separator: "/").map { $0.removingPercentEncoding ?? "" }.joined(separator: "/")
  }

  private static func parent(_ path: String) -> String {
    path.split(separator: "/").dropLast().joined(separator: "/")
  }

  private func hasParent(_ path: String) -> Bool { nodes[Self.parent(path)] == .directory }

  private func properties(_ request: ScriptedServer.Request, _ path: String) -> ScriptedServer.Reply {
    guard nodes[path] != nil else {
      guard manner.hidesAbsence else { return .answer(404, base) }
      return multistatus(
        "<D:response><D:href>\(href(path, false))</D:href><D:status>HTTP/1.1 404 Not Found</D:status></D:response>")
    }
    // Every server but one refuses it, and also a request that does not say.
    guard let depth = request.header("Depth"), depth != "infinity" else { return .answer(403, base) }
    var members: [String] = []
    if depth == "1" {
      let prefix = path.isEmpty ? "" : path + "/"
      members = nodes.keys.filter {
        $0 != path && $0.hasPrefix(prefix) && (manner.answersDeeply || !$0.dropFirst(prefix.count).contains("/"))
      }
      // In no order.
      members.sort { $0.hashValue < $1.hashValue }
      if let cap = manner.cap { members = Array(members.prefix(cap)) }
    }
    return multistatus(([path] + members).map(response).joined())
  }

  private func response(_ path: String) -> String {
    let size: Int? = if case .file(let bytes, _) = nodes[path] { bytes.count } else { nil }
    var found = ""
    if let size {
      found += "<D:resourcetype/>" + (manner.hidesSize ? "" : "<D:getcontentlength>\(size)</D:getcontentlength>")
      if case .file(_, let modified) = nodes[path] {
        found += "<D:getlastmodified>\(HTTPDate.format(modified))</D:getlastmodified>"
      }
    } else {
      found += "<D:resourcetype><D:collection/></D:resourcetype>"
    }
    var parts = "<D:propstat><D:prop>\(found)</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>"
    if manner.namesAbsentProperties {
      parts =
        "<D:propstat><D:prop><D:getcontentlength/><D:resourcetype/></D:prop>"
        + "<D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>" + parts
    }
    return "<D:response><D:href>\n \(href(path, size == nil)) </D:href>\(parts)</D:response>"
  }

  private func href(_ path: String, _ isDirectory: Bool) -> String {
    let allowed = CharacterSet.urlPathAllowed
    let plain = "/" + (path.addingPercentEncoding(withAllowedCharacters: allowed) ?? "") + (isDirectory ? "/" : "")
    let shown =
      switch manner.references {
      case .path: plain
      case .foreign: "http://backend.internal:8080" + plain
      case .escaped: plain.replacingOccurrences(of: "a", with: "%61").replacingOccurrences(of: "-", with: "%2D")
      case .moved: plain.replacingOccurrences(of: "/dav/", with: "/backend/")
      }
    return shown.replacingOccurrences(of: "&", with: "&amp;")
  }

  private func multistatus(_ responses: String) -> ScriptedServer.Reply {
    var text = "<D:multistatus xmlns:D=\"DAV:\">\(responses)</D:multistatus>"
    switch manner.namespace {
    case .prefixed: break
    case .standard:
      text = text.replacingOccurrences(of: "xmlns:D=", with: "xmlns=").replacingOccurrences(of: "D:", with: "")
    case .repeated:
      text = text.replacingOccurrences(of: "<D:prop>", with: "<D:prop xmlns:lp1=\"DAV:\" xmlns:x=\"urn:x\">")
        .replacingOccurrences(of: "<D:resourcetype", with: "<lp1:resourcetype")
        .replacingOccurrences(of: "</D:resourcetype", with: "</lp1:resourcetype")
        .replacingOccurrences(of: "</D:prop>", with: "<x:getcontentlength>77</x:getcontentlength></D:prop>")
    case .undeclared: text = text.replacingOccurrences(of: " xmlns:D=\"DAV:\"", with: "")
    }
    return .answer(
      207, base + [("Content-Type", "application/xml; charset=utf-8")],
      body: Array("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\(text)".utf8))
  }

  private func read(_ request: ScriptedServer.Request, _ path: String) -> ScriptedServer.Reply {
    switch nodes[path] {
    case nil: return .answer(404, base, body: Array("<html>no such file</html>".utf8))
    case .directory:
      return manner.redirectsDirectories
        ? .answer(301, base + [("Location", "http://127.0.0.1\(request.path)/")])
        : .answer(200, base, body: Array("<html>a listing</html>".utf8))
    case .file(let bytes, _):
      guard let range = request.header("Range"), !manner.ignoresRange else { return .answer(200, base, body: bytes) }
      let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
      guard ends.count == 2, ends[0] < bytes.count else { return .answer(416, base) }
      let last = min(ends[1], bytes.count - 1)
      return .answer(
        206, base + [("Content-Range", "bytes \(ends[0])-\(last)/\(bytes.count)")], body: Array(bytes[ends[0]...last]))
    }
  }

  private mutating func put(_ request: ScriptedServer.Request, _ path: String) -> ScriptedServer.Reply {
    guard hasParent(path) else { return .answer(manner.lacksDirectory, base) }
    guard nodes[path] != .directory else { return .answer(405, base) }
    let isNew = nodes[path] == nil
    nodes[path] = .file(Array(request.body.prefix(manner.keeps ?? .max)), modified: ScriptedWebDAV.time)
    return .answer(isNew ? 201 : 204, base)
  }

  private mutating func makeDirectory(_ request: ScriptedServer.Request, _ path: String) -> ScriptedServer.Reply {
    if manner.needsSlash, !request.path.hasSuffix("/") { return .answer(409, base) }
    if nodes[path] != nil { return .answer(manner.madeAlready, base) }
    guard hasParent(path) else { return .answer(manner.lacksDirectory, base) }
    nodes[path] = .directory
    return .answer(201, base)
  }

  private mutating func delete(_ path: String) -> ScriptedServer.Reply {
    guard nodes[path] != nil else { return .answer(404, base) }
    nodes = nodes.filter { $0.key != path && !$0.key.hasPrefix(path + "/") }
    return manner.answersInParts ? multistatus("") : .answer(204, base)
  }

  private mutating func move(_ request: ScriptedServer.Request, _ path: String) -> ScriptedServer.Reply {
    guard let node = nodes[path] else { return .answer(404, base) }
    let wanted = request.header("Destination") ?? ""
    if request.header("Depth") != nil { return .answer(400, base) }
    let isPath = wanted.hasPrefix("/")
    if isPath ? manner.destination == .addressOnly : manner.destination == .pathOnly { return .answer(400, base) }
    let target = Self.plain(isPath ? wanted : String(wanted.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" }))
    guard hasParent(target) else { return .answer(manner.lacksDirectory, base) }
    if nodes[target] != nil, request.header("Overwrite") == "F", let exists = manner.exists {
      return .answer(exists, base)
    }
    let isNew = nodes[target] == nil
    nodes[path] = nil
    nodes[target] = node
    return manner.answersInParts ? multistatus("") : .answer(isNew ? 201 : 204, base)
  }
}
