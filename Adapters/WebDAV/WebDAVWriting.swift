public import LatchkeyEncoding
internal import LatchkeyHTTP
public import LatchkeyStorage
internal import Synchronization

extension WebDAVStore {
  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    guard bytes.count <= StorageLimits.maximumObjectSize else { throw StorageError(.tooLarge, .put, name) }
    if Task.isCancelled { throw StorageError(.cancelled, .put, name) }
    let staged = stagingPath()
    do throws(StorageError) {
      try await stage(staged, bytes, name)
      // Moved: there is nothing left to clean up.
      if try await publish(staged, name, bytes) { return }
    } catch {
      if error.cause != .cancelled { await removeQuietly(staged) }
      throw error
    }
    await removeQuietly(staged)
  }

  /// In the folder itself, which is there, and outside the grammar of names. No dot: nginx lists no such files, and some
  /// servers refuse them.
  func stagingPath() -> String {
    let digits = String(token(), radix: 16)
    return path(Self.stagingMark + String(repeating: "0", count: 16 - digits.count) + digits)
  }

  static let stagingMark = "lk_tmp_"

  /// How old, in seconds, a staging file must be to be one that a crash left behind. Younger ones may belong to another
  /// device that is writing now.
  static let leftoverAge = 86_400

  /// Uploads under a staging name. Whatever goes wrong here has not touched the object.
  private func stage(_ staged: String, _ bytes: [UInt8], _ name: ObjectName) async throws(StorageError) {
    let call = WebDAVConnection.Call(
      method: "PUT", path: staged, headers: [("Content-Type", "application/octet-stream")], body: bytes)
    let failure = try await upload(call, name)
    // Also after a success: servers have said so of half a file, and of none.
    let resource: Multistatus.Resource?
    do { resource = try await lookUp(staged, .put, name) } catch { throw failure ?? error }
    guard let resource else {
      throw failure ?? StorageError(.unavailable, .put, name, detail: "the server has not kept what was uploaded")
    }
    let size: Int
    if let known = resource.size { size = known } else { size = try await sizeByHead(staged, .put, name) }
    guard size == bytes.count else {
      throw failure
        ?? StorageError(
          .truncated, .put, name, detail: "the server has kept \(size) of \(bytes.count) bytes")
    }
  }

  /// - Returns: nil for a success; why it is not known whether everything arrived.
  private func upload(
    _ call: WebDAVConnection.Call, _ name: ObjectName
  ) async throws(StorageError) -> StorageError? {
    let reply: WebDAVConnection.Reply
    do { reply = try await connection.send(call) } catch {
      let lost = error.storageError(.put, name)
      guard error.mayHaveArrived, lost.cause != .cancelled else { throw lost }
      return lost
    }
    guard let refusal = failure(reply) else { return nil }
    if refusal.cause == .notFound || refusal.status == 409 { try await checkRoot(.put, name) }
    let error = refusal.error(.put, name)
    guard refusal.mayBeApplied else { throw error }
    return error
  }

  /// Moves what was staged to its name.
  ///
  /// - Returns: whether it was moved; if not, the same bytes are there already.
  private func publish(_ staged: String, _ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) -> Bool {
    if try await !refusesOverwriting(), try await lookUp(path(name.text), .put, name) != nil,
      try await isThere(name, bytes)
    {
      return false
    }
    var hasMadeDirectory = false
    for _ in 0..<4 {
      let outcome = try await move(staged, to: path(name.text), name)
      let directory = Self.directory(of: name)
      switch outcome {
      case .moved:
        memory.habits.withLock { _ = $0.directories.insert(directory) }
        return true
      case .lost(let failure):
        try await settle(name, bytes, failure)
        // Moved after all, or by somebody else: in either case nothing may be left.
        return false
      case .refused(let failure):
        if failure.status == 412 { memory.habits.withLock { $0.refusesOverwriting = true } }
        let isNew = memory.habits.withLock { !$0.directories.contains(directory) }
        let mayLackDirectory =
          !hasMadeDirectory && (isNew ? [403, 404, 405, 409, 500] : [404, 409, 500]).contains(failure.status)
        // Servers have many words for a name that is taken, and for one whose directory is not there.
        let asksFirst = !(isNew && mayLackDirectory)
        if asksFirst, try await isThere(name, bytes) { return false }
        if mayLackDirectory {
          hasMadeDirectory = true
          try await makeDirectory(path(directory), .put, name)
        } else if failure.status != 412 {
          if !asksFirst, try await isThere(name, bytes) { return false }
          let error = failure.error(.put, name, changes: true)
          throw error.cause == .notFound ? StorageError(.conflict, .put, name, detail: error.detail) : error
        }
      }
    }
    throw StorageError(
      .conflict, .put, name, detail: "the server says that the object exists, and that it does not")
  }

  private enum Outcome {
    case moved
    case refused(WebDAVFailure)
    /// It may have been done.
    case lost(StorageError)
  }

  private func move(_ from: String, to: String, _ name: ObjectName) async throws(StorageError) -> Outcome {
    var target = connection.configuration.root
    target.path = to
    // A server behind a proxy that does the encryption knows itself as http, and takes an https address for a
    // stranger's; Apache takes no paths.
    var mayTryOther = true
    while true {
      let takesPaths = memory.habits.withLock { $0.takesPaths }
      let call = WebDAVConnection.Call(
        method: "MOVE", path: from,
        headers: [("Destination", takesPaths ? to : target.text), ("Overwrite", "F")])
      let reply: WebDAVConnection.Reply
      do { reply = try await connection.send(call) } catch {
        let failure = error.storageError(.put, name, changes: true)
        guard failure.effect == .unknown, failure.cause != .cancelled else { throw failure }
        return .lost(failure)
      }
      guard let failure = failure(reply) else { return .moved }
      if mayTryOther, [400, 502].contains(failure.status), failure.cause != .config {
        mayTryOther = false
        memory.habits.withLock { $0.takesPaths = !takesPaths }
        continue
      }
      if failure.mayBeApplied, failure.status != 500 { return .lost(failure.error(.put, name, changes: true)) }
      return .refused(failure)
    }
  }

  /// After a lost reply: the object tells whether it arrived.
  private func settle(_ name: ObjectName, _ bytes: [UInt8], _ failure: StorageError) async throws(StorageError) {
    if Task.isCancelled { throw failure }
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
    let reply: WebDAVConnection.Reply
    // Room for an error's text, too.
    do { reply = try await connection.send(getCall(name, maximumBody: max(bytes.count, 64 << 10))) } catch {
      if case .bodyTooLarge = error.cause { throw different }
      throw error.storageError(.put, name)
    }
    if reply.response.status == 200 {
      guard reply.response.isDelimited else { throw StorageError(.truncated, .put, name) }
      guard reply.response.body == bytes else { throw different }
      return true
    }
    let failure = WebDAVFailure(reply)
    if isDirectory(reply, name) { throw different }
    if failure.cause == .notFound { return false }
    throw failure.error(.put, name)
  }

  /// The prefix that a name is in; empty for the folder itself.
  private static func directory(of name: ObjectName) -> String {
    name.text.lastIndex(of: "/").map { String(name.text[...$0]) } ?? ""
  }

  // MARK: Directories

  /// Makes a directory, and those above it that are not there.
  ///
  /// - Parameter path: ends with a slash, without which nginx refuses to make one.
  func makeDirectory(
    _ path: String, _ operation: StorageError.Operation, _ name: ObjectName?
  ) async throws(StorageError) {
    guard path != "/" else { return }
    // No object makes the folder itself: one that is gone is a store that is missing.
    if operation != .open, path == rootPath {
      try await checkRoot(operation, name)
      return
    }
    var failure = try await sendMakeDirectory(path, operation, name)
    guard failure != nil else { return }
    // Refusals say little: that it is there (405, 409, 301), that somebody is making it (423), that what it would be in
    // is not there (409, and much else).
    if try await lookUp(path, operation, name) != nil { return }
    let parts = path.split(separator: "/").dropLast()
    try await makeDirectory(parts.isEmpty ? "/" : "/" + parts.joined(separator: "/") + "/", operation, name)
    failure = try await sendMakeDirectory(path, operation, name)
    guard let failure, try await lookUp(path, operation, name) == nil else { return }
    let error = failure.error(operation, name)
    throw StorageError(
      error.cause == .notFound ? .forbidden : error.cause, operation, name,
      detail: "the directory \(path) could not be made: \(error.detail)", advice: error.advice)
  }

  private func sendMakeDirectory(
    _ path: String, _ operation: StorageError.Operation, _ name: ObjectName?
  ) async throws(StorageError) -> WebDAVFailure? {
    failure(try await send(WebDAVConnection.Call(method: "MKCOL", path: path), operation, name))
  }

  // MARK: Finding out

  public func probe() async throws(StorageError) -> Capabilities {
    let refuses = try await tryOverwriting(.probe)
    try await sweep()
    // Never more than best effort: of servers that look before they move, two that do so at once both succeed.
    return Capabilities(
      conditionalCreate: refuses ? .bestEffort : .none, publish: .atomic, listing: .strong,
      maximumConcurrency: WebDAVConfiguration.concurrency)
  }

  /// A session that writes little looks before it moves; one that writes more tries out whether it must.
  private func refusesOverwriting() async throws(StorageError) -> Bool {
    let (known, looks) = memory.habits.withLock { habits in
      if habits.refusesOverwriting == nil { habits.looks += 1 }
      return (habits.refusesOverwriting, habits.looks)
    }
    if let known { return known }
    guard looks > Self.looksBeforeTrial else { return false }
    return try await tryOverwriting(.put)
  }

  private static let looksBeforeTrial = 4

  /// Moves a file of its own onto another, and deletes both.
  private func tryOverwriting(_ operation: StorageError.Operation) async throws(StorageError) -> Bool {
    let (from, to) = (stagingPath(), stagingPath())
    let result: Result<Bool, StorageError>
    do throws(StorageError) {
      for path in [from, to] {
        let call = WebDAVConnection.Call(method: "PUT", path: path, body: [UInt8](path.utf8.suffix(1)))
        if let failure = failure(try await send(call, operation, nil)) {
          if failure.cause == .notFound || failure.status == 409 { try await checkRoot(operation) }
          throw failure.error(operation, nil)
        }
      }
      var target = connection.configuration.root
      target.path = to
      var isRefused = false
      // Whatever it refuses with; but not for the form of the address.
      for takesPaths in [false, true] {
        let call = WebDAVConnection.Call(
          method: "MOVE", path: from,
          headers: [("Destination", takesPaths ? to : target.text), ("Overwrite", "F")])
        let refusal = failure(try await send(call, operation, nil))
        if let refusal, [401, 501].contains(refusal.status) { throw refusal.error(operation, nil) }
        isRefused = refusal != nil
        if refusal?.status == 412 || refusal == nil { break }
      }
      result = .success(isRefused)
    } catch { result = .failure(error) }
    if !Task.isCancelled { for path in [from, to] { await removeQuietly(path) } }
    let refuses = try result.get()
    memory.habits.withLock { $0.refusesOverwriting = refuses }
    return refuses
  }

  /// Deletes what uploads that broke off have left in the folder, if it is old enough to be nobody's.
  private func sweep() async throws(StorageError) {
    guard let (answer, reply) = try await properties(rootPath, depth: 1, .probe, nil),
      let now = reply.response.date
    else { return }
    for resource in answer.resources {
      guard let name = resource.path.last, Self.isStaging(name), !resource.isCollection,
        let modified = resource.modified, modified < now - Self.leftoverAge
      else { continue }
      await removeQuietly(path(name))
    }
  }

  /// Exactly the mark and sixteen digits: what is not exactly that is not ours to remove.
  private static func isStaging(_ name: String) -> Bool {
    guard name.hasPrefix(stagingMark) else { return false }
    let digits = name.utf8.dropFirst(stagingMark.utf8.count)
    return digits.count == 16 && digits.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// Deletes a staging file; whether that succeeds matters to nobody.
  func removeQuietly(_ path: String) async {
    do { try await remove(path, .delete, nil) } catch {}
  }
}
