public import LatchkeyEncoding
internal import LatchkeyHTTP
public import LatchkeyStorage
internal import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A store in a folder of a WebDAV server: Nextcloud, a storage box, Apache, nginx.
///
/// Every object is a file under its own name below the folder, its directories made as they are needed; the tree is the
/// same as that of `folder:`. An object is uploaded under a staging name, looked at, and moved to its own: many servers
/// leave half a file where an upload breaks off, or show it while it grows. The move refuses to overwrite
/// (`Overwrite: F`), which is the condition that servers keep best, though not against others at the same moment
/// (Apache, sabre). What a lost reply has left open is settled by reading the object.
///
/// Nothing rests on locks, entity tags, times of change, or listings deeper than one directory: servers differ in all of
/// them.
///
/// Source: RFC 4918; docs/format.md §3 for the names.
public struct WebDAVStore: ObjectStore {
  let connection: WebDAVConnection
  let memory = Memory()
  /// Names staging files; random, so that no two devices meet.
  let token: @Sendable () -> UInt64

  /// What a session has learned.
  final class Memory: Sendable {
    struct Habits {
      /// Directories that are there, as prefixes of names.
      var directories: Set<String> = []
      /// Whether moving onto a name that exists is refused; nil until it was seen.
      var refusesOverwriting: Bool?
      /// Names that were looked at because that is not known.
      var looks = 0
      /// `Destination` as a path, since the server refuses it as an address.
      var takesPaths = false
    }
    let habits = Mutex(Habits())
  }

  /// Opens a folder, and finds out whether it is there and may be read.
  ///
  /// - Parameters:
  ///   - credential: asked now, and again if the server refuses it.
  ///   - mode: `.create` makes the folder, and those above it, if there is none.
  ///   - now: seconds since 1970; tests pass another.
  ///   - token: random numbers for staging names.
  /// - Throws: ``StorageError``; each cause with what to correct in its detail.
  public static func open(
    _ configuration: WebDAVConfiguration, credential: @escaping WebDAVCredentialSource,
    _ mode: OpenMode = .existing, now: @escaping @Sendable () -> Int = WebDAVStore.systemTime,
    token: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
  ) async throws(StorageError) -> WebDAVStore {
    if configuration.root.host == "dav.box.com" {
      throw StorageError(.unsupported, .open, detail: "Box ended WebDAV in 2023")
    }
    let store = WebDAVStore(connection: try WebDAVConnection(configuration, credential, now: now), token: token)
    do { try await store.checkRoot(.open) } catch {
      guard error.cause == .storeMissing, mode == .create else { throw error }
      try await store.makeDirectory(store.rootPath, .open, nil)
      try await store.checkRoot(.open)
    }
    return store
  }

  private init(connection: WebDAVConnection, token: @escaping @Sendable () -> UInt64) {
    self.connection = connection
    self.token = token
  }

  /// Seconds since 1970 by this device's clock.
  public static func systemTime() -> Int { time(nil) }

  // MARK: Asking

  /// The folder's path; ends with a slash.
  var rootPath: String { connection.configuration.root.path }

  /// The path of an object or, with a slash at its end, of a directory.
  func path(_ name: String) -> String { rootPath + name }

  func send(
    _ call: WebDAVConnection.Call, _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = "",
    changes: Bool = false
  ) async throws(StorageError) -> WebDAVConnection.Reply {
    do { return try await connection.send(call) } catch {
      throw error.storageError(operation, name, prefix: prefix, changes: changes)
    }
  }

  /// Asks for the properties of a resource, and with depth 1 of what is in it.
  ///
  /// - Returns: nil if it is not there.
  func properties(
    _ path: String, depth: Int, _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = ""
  ) async throws(StorageError) -> (answer: Multistatus, reply: WebDAVConnection.Reply)? {
    let call = WebDAVConnection.Call(
      method: "PROPFIND", path: path, headers: [("Depth", "\(depth)"), ("Content-Type", "application/xml")],
      body: Multistatus.question, maximumBody: Multistatus.maximumBytes)
    let reply = try await send(call, operation, name, prefix: prefix)
    if [404, 410].contains(reply.response.status) { return nil }
    guard reply.response.status == 207 else {
      // A success of another kind is a page for people.
      throw WebDAVFailure(reply, isForeign: reply.response.isSuccess).error(operation, name, prefix: prefix)
    }
    let answer: Multistatus?
    do { answer = try Multistatus(reply.response.body) } catch {
      let cause: StorageError.Cause = error == .truncated ? .truncated : .protocolViolation
      if let name { throw StorageError(cause, operation, name, detail: "PROPFIND: \(error)") }
      throw StorageError(cause, operation, prefix: prefix, detail: "PROPFIND: \(error)")
    }
    guard let answer else { throw WebDAVFailure(reply, isForeign: true).error(operation, name, prefix: prefix) }
    // nginx says of an answer with several parts that its only part is not there.
    if answer.resources.count == 1, let status = answer.resources[0].status, status == 404 || status == 410 {
      return nil
    }
    return (answer, reply)
  }

  /// What is at a path; nil if nothing.
  func lookUp(
    _ path: String, _ operation: StorageError.Operation, _ name: ObjectName?
  ) async throws(StorageError) -> Multistatus.Resource? {
    guard let (answer, reply) = try await properties(path, depth: 0, operation, name) else { return nil }
    guard let resource = answer.resources.first else {
      throw WebDAVFailure(reply, isForeign: true).error(operation, name)
    }
    guard let status = resource.status, !resource.isThere else { return resource }
    throw WebDAVFailure(reply, status: status).error(operation, name)
  }

  /// Throws `.storeMissing` unless the folder is there: whatever is not found is only then really absent.
  func checkRoot(_ operation: StorageError.Operation, _ name: ObjectName? = nil) async throws(StorageError) {
    guard let root = try await lookUp(rootPath, operation, name) else {
      throw StorageError(
        .storeMissing, operation, name,
        detail: "there is no folder \(rootPath) on \(connection.configuration.root.host)",
        advice: "Check the path of the store's URL, or make the folder; nothing is taken for deleted.")
    }
    guard root.isCollection else {
      throw StorageError(.config, operation, name, detail: "\(rootPath) is a file and not a folder")
    }
  }

  // MARK: Reading

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    var call = getCall(name, maximumBody: StorageLimits.maximumObjectSize)
    if let range {
      guard !range.isEmpty, range.lowerBound >= 0 else { throw StorageError(.invalidRange, .get, name) }
      call.headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
    }
    let reply = try await send(call, .get, name)
    if reply.response.isSuccess { return try reply.response.object(range, name) }
    let failure = WebDAVFailure(reply)
    if failure.cause == .notFound || isDirectory(reply, name) {
      try await checkRoot(.get, name)
      throw StorageError(.notFound, .get, name)
    }
    throw failure.error(.get, name)
  }

  func getCall(_ name: ObjectName, maximumBody: Int) -> WebDAVConnection.Call {
    // Without this, IIS runs what it takes for programs, and has no files of unknown kinds.
    WebDAVConnection.Call(method: "GET", path: path(name.text), headers: [("Translate", "f")], maximumBody: maximumBody)
  }

  /// Whether an answer points to the same name with a slash: a directory has it, and no object.
  func isDirectory(_ reply: WebDAVConnection.Reply, _ name: ObjectName) -> Bool {
    guard (300...399).contains(reply.response.status), let location = reply.response.headers["Location"] else {
      return false
    }
    return location.hasSuffix("/") && Multistatus.path(location) == Multistatus.path(path(name.text))
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    guard let resource = try await lookUp(path(name.text), .head, name), !resource.isCollection else {
      try await checkRoot(.head, name)
      throw StorageError(.notFound, .head, name)
    }
    if let size = resource.size { return size }
    return try await sizeByHead(path(name.text), .head, name)
  }

  /// The size of a file of which PROPFIND does not tell it.
  func sizeByHead(
    _ path: String, _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = ""
  ) async throws(StorageError) -> Int {
    let call = WebDAVConnection.Call(method: "HEAD", path: path, headers: [("Translate", "f")])
    let reply = try await send(call, operation, name, prefix: prefix)
    guard reply.isSuccess else { throw WebDAVFailure(reply).error(operation, name, prefix: prefix) }
    guard let size = reply.response.contentLength else {
      let detail = "the server does not say how long it is"
      if let name { throw StorageError(.protocolViolation, operation, name, detail: detail) }
      throw StorageError(.protocolViolation, operation, prefix: prefix, detail: detail)
    }
    return size
  }

  // MARK: Deleting

  public func delete(_ name: ObjectName) async throws(StorageError) {
    // The name of a directory would take everything below it along.
    guard let resource = try await lookUp(path(name.text), .delete, name) else {
      try await checkRoot(.delete, name)
      return
    }
    if resource.isCollection { return }
    try await remove(path(name.text), .delete, name)
  }

  /// Deletes a file; one that is not there counts as deleted.
  func remove(
    _ path: String, _ operation: StorageError.Operation, _ name: ObjectName?
  ) async throws(StorageError) {
    let call = WebDAVConnection.Call(method: "DELETE", path: path)
    let reply = try await send(call, operation, name, changes: true)
    guard let failure = failure(reply), failure.cause != .notFound else { return }
    throw failure.error(operation, name, changes: true)
  }

  /// Nil for an answer that says yes. A 207 says so only if everything inside it does.
  func failure(_ reply: WebDAVConnection.Reply) -> WebDAVFailure? {
    if reply.isSuccess { return nil }
    guard reply.response.status == 207 else { return WebDAVFailure(reply) }
    guard let answer = try? Multistatus(reply.response.body) else { return WebDAVFailure(reply, isForeign: true) }
    guard let bad = answer.resources.first(where: { !$0.isThere }) else { return nil }
    return WebDAVFailure(reply, status: bad.status)
  }
}
