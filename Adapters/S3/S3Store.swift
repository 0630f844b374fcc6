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

/// A store in a bucket of Amazon S3, or of anything that speaks its protocol.
///
/// Every object is one under its own name, below the prefix. Creation uses `If-None-Match: *` where the service was found
/// to heed it, and a look beforehand where not; what a lost reply has left open is settled by reading the object.
///
/// Requests are signed with Signature Version 4 for each attempt. What is never sent: checksum fields (R2 and Backblaze
/// refuse them), bodies in chunks, anything to another origin.
///
/// Source: Amazon S3 API Reference; docs/format.md §3 for the names.
public struct S3Store: ObjectStore {
  private let connection: S3Connection
  private let turns = Turns()
  private let memory: Memory

  /// What a session has learned.
  private final class Memory: Sendable {
    let habits = Mutex(S3Lister.Habits())
    /// Whether creating a name that exists is refused; nil until it was tried.
    let refusesOverwriting = Mutex<Bool?>(nil)
  }

  /// Opens a bucket, and finds out whether it is there and may be listed.
  ///
  /// - Parameters:
  ///   - credentials: asked now, and again if the service says that they have expired.
  ///   - mode: `.create` makes the bucket if there is none.
  ///   - now: seconds since 1970; tests pass another.
  /// - Throws: ``StorageError``; each cause with what to correct in its detail.
  public static func open(
    _ configuration: S3Configuration, credentials: @escaping S3CredentialSource, _ mode: OpenMode = .existing,
    now: @escaping @Sendable () -> Int = S3Store.systemTime
  ) async throws(StorageError) -> S3Store {
    let store = S3Store(connection: try S3Connection(configuration, credentials, now: now), memory: Memory())
    do { try await store.check() } catch {
      guard error.cause == .storeMissing, mode == .create else { throw error }
      try await store.makeBucket()
      try await store.check()
    }
    return store
  }

  /// Seconds since 1970 by this device's clock.
  public static func systemTime() -> Int { time(nil) }

  /// Lists at most one object: the request whose failures say most about what is wrong.
  private func check() async throws(StorageError) {
    do { _ = try await list(prefix: "", after: nil, limit: 1) } catch {
      throw error.during(.open)
    }
    if connection.isServer(S3Quirks.unorderedServers) { memory.habits.withLock { $0.isUnordered = true } }
  }

  private func makeBucket() async throws(StorageError) {
    var call = S3Connection.Call(method: "PUT")
    let region = connection.configuration.region
    // The one region that must not be named.
    if region != "us-east-1" {
      call.body = Array(
        """
        <CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\
        <LocationConstraint>\(region)</LocationConstraint></CreateBucketConfiguration>
        """.utf8)
    }
    switch try await send(call, .open, nil) {
    case .yes: return
    case .no(let failure):
      // Made by somebody else meanwhile.
      if failure.code == "BucketAlreadyOwnedByYou" { return }
      let error = failure.error(.open, nil)
      throw StorageError(
        error.cause, .open, detail: "the bucket is not there and could not be made: \(error.detail)",
        advice: error.advice)
    }
  }

  private func send(
    _ call: S3Connection.Call, _ operation: StorageError.Operation, _ name: ObjectName?
  ) async throws(StorageError) -> S3Connection.Reply {
    do { return try await connection.send(call) } catch {
      throw error.storageError(operation, name, changes: call.changes)
    }
  }

  private func key(_ name: ObjectName) -> String { connection.configuration.key(name.text) }

  // MARK: Writing

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    guard bytes.count <= StorageLimits.maximumObjectSize else { throw StorageError(.tooLarge, .put, name) }
    // Some services take one write of a key at a time, and answer 429 to another (Cloudflare R2).
    guard await turns.take(name.text) else { throw StorageError(.cancelled, .put, name) }
    let result: Result<Void, StorageError>
    do { result = .success(try await create(name, bytes)) } catch { result = .failure(error) }
    await turns.giveBack(name.text)
    try result.get()
  }

  private func create(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    if try await refusesOverwriting(for: name), try await createConditionally(name, bytes) { return }
    // The service would overwrite: look first.
    if try await isThere(name, bytes) { return }
    switch try await sendPut(name, bytes, isConditional: false) {
    case .written: return
    case .refused, .unsupported: throw StorageError(.protocolViolation, .put, name)
    case .open(let failure): try await settle(name, bytes, failure)
    }
  }

  /// - Returns: false if the service does not know the condition after all.
  private func createConditionally(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) -> Bool {
    // Again where the object that was in the way is gone by the time it is read.
    for _ in 0..<3 {
      switch try await sendPut(name, bytes, isConditional: true) {
      case .written: return true
      case .refused: if try await isThere(name, bytes) { return true }
      case .open(let failure):
        try await settle(name, bytes, failure)
        return true
      case .unsupported:
        memory.refusesOverwriting.withLock { $0 = false }
        return false
      }
    }
    throw StorageError(
      .protocolViolation, .put, name, detail: "the service says that the object exists, and that it does not")
  }

  private enum Outcome {
    case written
    /// Something has that name.
    case refused
    /// The condition is not known to the service.
    case unsupported
    /// It may be there.
    case open(StorageError)
  }

  private func sendPut(_ name: ObjectName, _ bytes: [UInt8], isConditional: Bool) async throws(StorageError) -> Outcome
  {
    var call = S3Connection.Call(method: "PUT", key: key(name), body: bytes)
    if isConditional { call.headers = [("if-none-match", "*")] }
    let reply: S3Connection.Reply
    do { reply = try await connection.send(call) } catch {
      let failure = error.storageError(.put, name, changes: true)
      guard failure.effect == .unknown else { throw failure }
      return .open(failure)
    }
    guard case .no(let failure) = reply else { return .written }
    if isConditional {
      switch failure.cause {
      case .alreadyExists: return .refused
      case .unsupported: return .unsupported
      default: break
      }
      if failure.code == "PreconditionFailed" { return .refused }
    }
    let error = failure.error(.put, name, changes: true)
    guard error.effect == .unknown else { throw error }
    return .open(error)
  }

  /// After a lost reply: the object tells whether it arrived.
  private func settle(_ name: ObjectName, _ bytes: [UInt8], _ failure: StorageError) async throws(StorageError) {
    if failure.cause == .cancelled || Task.isCancelled { throw failure }
    let isThere: Bool
    do { isThere = try await self.isThere(name, bytes) } catch {
      throw error.cause == .alreadyExists ? error : failure
    }
    // Not there yet: it may still arrive.
    if !isThere { throw failure }
  }

  /// Whether these bytes are there; throws `.alreadyExists` if others are.
  private func isThere(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) -> Bool {
    let different = StorageError(.alreadyExists, .put, name)
    // Room for an error's text, too.
    let call = S3Connection.Call(method: "GET", key: key(name), maximumBody: max(bytes.count, 64 << 10))
    let reply: S3Connection.Reply
    do { reply = try await connection.send(call) } catch {
      if case .bodyTooLarge = error.cause { throw different }
      throw error.storageError(.put, name)
    }
    switch reply {
    case .yes(let response):
      guard response.body == bytes else { throw different }
      return true
    case .no(let failure):
      if failure.cause == .notFound { return false }
      throw failure.error(.put, name)
    }
  }

  // MARK: Reading

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    var call = S3Connection.Call(method: "GET", key: key(name), maximumBody: StorageLimits.maximumObjectSize)
    if let range {
      guard !range.isEmpty, range.lowerBound >= 0 else { throw StorageError(.invalidRange, .get, name) }
      call.headers = [("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
    }
    switch try await send(call, .get, name) {
    case .no(let failure): throw failure.error(.get, name)
    case .yes(let response): return try response.object(range, name)
    }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    if let size = try await sendHead(name) { return size }
    // A refusal of HEAD has no body and so no reason: a bucket that is gone looks like an object that is. A GET of one
    // byte tells, and finds what HEAD does not (Backblaze refuses HEAD where GET is allowed; Wasabi's is late).
    let call = S3Connection.Call(
      method: "GET", key: key(name), headers: [("range", "bytes=0-0")], maximumBody: StorageLimits.maximumObjectSize)
    switch try await send(call, .head, name) {
    case .no(let failure):
      // An empty object has no first byte.
      if failure.cause == .invalidRange { return 0 }
      throw failure.error(.head, name)
    case .yes(let response):
      if let total = response.headers["Content-Range"].flatMap(HTTPContentRange.init)?.total { return total }
      guard response.status == 200 else {
        throw StorageError(.protocolViolation, .head, name, detail: "a part without saying of what")
      }
      return response.body.count
    }
  }

  /// Nil for an answer that does not say why there is no size.
  private func sendHead(_ name: ObjectName) async throws(StorageError) -> Int? {
    switch try await send(S3Connection.Call(method: "HEAD", key: key(name)), .head, name) {
    case .yes(let response):
      guard let size = response.contentLength else {
        throw StorageError(.protocolViolation, .head, name, detail: "no size")
      }
      return size
    case .no(let failure):
      if [400, 403, 404, 405].contains(failure.status) { return nil }
      throw failure.error(.head, name)
    }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try StorageError.checkListing(prefix: prefix, limit: limit)
    let lister = S3Lister(connection: connection, prefix: prefix, after: after, limit: limit)
    // Each obstacle is met once: then it is known.
    while true {
      let habits = memory.habits.withLock { $0 }
      do { return try await lister.page(habits) } catch {
        switch error {
        case .storage(let error): throw error
        case .needsVersion1: memory.habits.withLock { $0.needsVersion1 = true }
        case .isUnordered: memory.habits.withLock { $0.isUnordered = true }
        }
      }
    }
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    guard case .no(let failure) = try await send(S3Connection.Call(method: "DELETE", key: key(name)), .delete, name)
    else { return }
    if failure.cause != .notFound { throw failure.error(.delete, name, changes: true) }
  }

  // MARK: Finding out

  public func probe() async throws(StorageError) -> Capabilities {
    let refuses = try await tryOverwriting(name: nil, operation: .probe)
    memory.refusesOverwriting.withLock { $0 = refuses }
    let isKnown = connection.isServer(S3Quirks.atomicServers)
    return Capabilities(
      conditionalCreate: refuses ? (isKnown ? .atomic : .bestEffort) : .none, publish: .atomic, listing: .strong,
      maximumConcurrency: S3Configuration.concurrency)
  }

  /// Found out before the first creation of a session, not assumed: services that do not know the condition pass over
  /// it and overwrite.
  private func refusesOverwriting(for name: ObjectName) async throws(StorageError) -> Bool {
    if let known = memory.refusesOverwriting.withLock({ $0 }) { return known }
    guard await turns.take(Self.trial) else { throw StorageError(.cancelled, .put, name) }
    let result: Result<Bool, StorageError>
    if let known = memory.refusesOverwriting.withLock({ $0 }) {
      result = .success(known)
    } else {
      do { result = .success(try await tryOverwriting(name: name, operation: .put)) } catch { result = .failure(error) }
    }
    if case .success(let refuses) = result { memory.refusesOverwriting.withLock { $0 = refuses } }
    await turns.giveBack(Self.trial)
    return try result.get()
  }

  /// Stands before the names of trial objects: outside the grammar, so that nobody lists them.
  private static let trial = ".latchkey-trial"

  /// Creates an object of its own twice, and deletes it. Both directions count: Ceph's gateway on POSIX refuses a new
  /// name and overwrites an old one.
  private func tryOverwriting(
    name: ObjectName?, operation: StorageError.Operation
  ) async throws(StorageError) -> Bool {
    let random = String(UInt64.random(in: .min ... .max), radix: 36)
    let key = connection.configuration.key("\(Self.trial)/\(random)")
    func create(_ byte: UInt8) async throws(StorageError) -> Bool {
      let call = S3Connection.Call(method: "PUT", key: key, headers: [("if-none-match", "*")], body: [byte])
      switch try await send(call, operation, name) {
      case .yes: return true
      case .no(let failure):
        if failure.cause == .alreadyExists || failure.code == "PreconditionFailed" { return false }
        // Swift, and gateways that know no conditions on a PUT.
        if failure.cause == .unsupported { return false }
        throw failure.error(operation, name)
      }
    }
    let first = try await create(1)
    let second = try await create(2)
    if first || second {
      // A credential that must not delete leaves it there: a byte outside the grammar, in nobody's way.
      _ = try await send(S3Connection.Call(method: "DELETE", key: key), operation, name)
    }
    return first && !second
  }
}
