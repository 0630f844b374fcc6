internal import LatchkeyEncoding
internal import LatchkeyStorage

/// Writing an object: stage, write, fsync, publish without replacing, fsync the directory.
///
/// After a crash at any point the object is wholly there or not there at all; what `put` has confirmed is there. The
/// order is the one of Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014), §4.
extension Folder {
  func put(_ name: ObjectName, _ bytes: [UInt8]) throws(StorageError) {
    let failure = FolderFailure(operation: .put, name: name)
    guard bytes.count <= StorageLimits.maximumObjectSize else {
      throw failure.make(.tooLarge, detail: "\(bytes.count) bytes")
    }
    try checkRoot(failure)
    let directory = try prepareDirectory(of: name, failure)
    sweep(directory)
    switch try compare(name, bytes, failure) {
    case .different:
      throw failure.make(.alreadyExists)
    case .identical:
      guard memory.withLock({ $0.suspect.contains(name) }) else { return try confirm(name, failure) }
      // It can be read, but a sync of it failed: it may be in memory only, and another sync would tell nothing. Written
      // anew, and put in place of the same bytes.
      let staging = try stage(bytes, in: directory, failure)
      defer { discard(staging) }
      do { try files.rename(staging, path(name)) } catch { throw failure.translate(error, "rename", effect: .unknown) }
      try confirmEntry(name, failure)
    case .absent:
      let staging = try stage(bytes, in: directory, failure)
      defer { discard(staging) }
      try publish(staging, name, bytes, failure)
    }
  }

  // MARK: The steps

  /// Makes the directories on the way, each forced onto the medium before anything is put into it.
  private func prepareDirectory(of name: ObjectName, _ failure: FolderFailure) throws(StorageError) -> String {
    var path = root
    for part in name.text.split(separator: "/").dropLast() {
      let parent = path
      path += "/" + part
      switch try kind(path, failure) {
      case .directory:
        if memory.withLock({ $0.durable.contains(path) }) { continue }
        // Somebody else made it, perhaps just now.
        try syncDirectory(parent, failure, effect: .notApplied)
      case nil:
        try makeDirectory(path, in: parent, failure)
      case .regular, .other:
        throw failure.make(.config, detail: "\(path) is not a folder")
      }
      _ = memory.withLock { $0.durable.insert(path) }
    }
    return path
  }

  private func makeDirectory(_ path: String, in parent: String, _ failure: FolderFailure) throws(StorageError) {
    var isOurs = true
    do { try files.makeDirectory(path) } catch {
      guard error.saysExists else {
        // ENOENT: the parent went away between two calls.
        if error.saysAbsent { throw failure.make(.unavailable, detail: "\(parent) is gone") }
        throw failure.translate(error, "mkdir")
      }
      isOurs = false
    }
    do { try syncDirectory(parent, failure, effect: .notApplied) } catch {
      // So that the next attempt makes it anew: syncing it again would tell nothing. Fails if somebody else uses it.
      if isOurs { do { try files.removeDirectory(path) } catch {} }
      throw error
    }
  }

  /// Writes a file of a name that no listing shows, and forces it onto the medium.
  ///
  /// A full disk may show at any of the three: write, fsync (delayed allocation) or close (NFS).
  private func stage(_ bytes: [UInt8], in directory: String, _ failure: FolderFailure) throws(StorageError) -> String {
    let staging = directory + "/" + StagingName.make(token())
    let file: Descriptor
    do { file = try files.create(staging) } catch {
      if error.saysAbsent { throw try vanished(directory, failure) }
      // Another device drew the same sixteen digits: the next attempt draws others.
      if error.saysExists { throw failure.make(.conflict, detail: "the staging name is taken") }
      throw failure.translate(error, "create")
    }
    var failed: StorageError?
    do throws(SystemCallError) {
      var rest = bytes[...]
      while !rest.isEmpty { rest = rest.dropFirst(try files.write(file, rest)) }
    } catch {
      failed = failure.translate(error, "write")
    }
    if failed == nil {
      do { try files.sync(file) } catch { failed = failure.translate(error, "fsync") }
    }
    do { try files.close(file) } catch {
      if failed == nil { failed = failure.translate(error, "close") }
    }
    if let failed {
      discard(staging)
      throw failed
    }
    return staging
  }

  /// Gives the staged file its name, unless something has it.
  private func publish(
    _ staging: String, _ name: ObjectName, _ bytes: [UInt8], _ failure: FolderFailure
  ) throws(StorageError) {
    if memory.withLock({ $0.noLinks }) { return try publishByRename(staging, name, bytes, failure) }
    do { try files.link(staging, path(name)) } catch {
      if error.saysNoLinks {
        memory.withLock { $0.noLinks = true }
        return try publishByRename(staging, name, bytes, failure)
      }
      return try resolve(failure.translate(error, "link", effect: .unknown), name, bytes, failure)
    }
    try confirmEntry(name, failure)
  }

  /// For file systems without hard links. Somebody may take the name between looking and renaming, so what is there in
  /// the end is looked at once more: that narrows the gap and does not close it
  /// (``Capabilities/ConditionalCreate/bestEffort``).
  private func publishByRename(
    _ staging: String, _ name: ObjectName, _ bytes: [UInt8], _ failure: FolderFailure
  ) throws(StorageError) {
    switch try compare(name, bytes, failure) {
    case .different: throw failure.make(.alreadyExists)
    case .identical: return try confirm(name, failure)
    case .absent: break
    }
    do { try files.rename(staging, path(name)) } catch {
      return try resolve(failure.translate(error, "rename", effect: .unknown), name, bytes, failure)
    }
    try confirmEntry(name, failure)
    guard try compare(name, bytes, failure) != .different else { throw failure.make(.alreadyExists, effect: .unknown) }
  }

  /// The name is taken, or the reply was lost (a repeated NFS LINK answers EEXIST to its own success): what is there
  /// decides.
  private func resolve(
    _ error: StorageError, _ name: ObjectName, _ bytes: [UInt8], _ failure: FolderFailure
  ) throws(StorageError) {
    let found: Comparison
    do { found = try compare(name, bytes, failure) } catch { throw failure.unknown(error) }
    switch found {
    case .identical: try confirm(name, failure)
    case .different: throw failure.make(.alreadyExists)
    case .absent:
      switch error.cause {
      // ENOENT is the directory's, EEXIST was somebody's who has deleted it since: both are worth another attempt.
      case .notFound, .alreadyExists: throw failure.make(.unavailable, effect: .unknown, detail: error.detail)
      default: throw error
      }
    }
  }

  // MARK: What is there

  private enum Comparison { case absent, identical, different }

  private func compare(
    _ name: ObjectName, _ bytes: [UInt8], _ failure: FolderFailure
  ) throws(StorageError) -> Comparison {
    // Somebody may publish it between two looks, or delete it; who does both all the time is told as a conflict.
    for _ in 0..<4 {
      if let (file, status) = try openObject(name, failure) {
        defer { closeQuietly(file) }
        guard status.size == bytes.count else { return .different }
        return try read(file, 0..<status.size, status, failure) == bytes ? .identical : .different
      }
      switch try kind(path(name), failure) {
      case nil: return .absent
      case .regular: continue
      case .directory, .other: throw failure.make(.config, detail: "\(path(name)) is not a file")
      }
    }
    throw failure.make(.conflict, detail: "it comes and goes")
  }

  /// Forces an object that is there, bytes and entry, onto the medium: whoever wrote it may have crashed before.
  private func confirm(_ name: ObjectName, _ failure: FolderFailure) throws(StorageError) {
    guard let (file, _) = try openObject(name, failure) else { throw failure.make(.unavailable, effect: .unknown) }
    var failed: StorageError?
    do { try files.sync(file) } catch { failed = failure.translate(error, "fsync", effect: .unknown) }
    closeQuietly(file)
    if let failed {
      memory.withLock { _ = $0.suspect.insert(name) }
      throw failed
    }
    try confirmEntry(name, failure)
  }

  /// Forces the entry of an object, whose bytes are on the medium, there too.
  private func confirmEntry(_ name: ObjectName, _ failure: FolderFailure) throws(StorageError) {
    do { try syncDirectory(parent(of: name), failure, effect: .unknown) } catch {
      memory.withLock { _ = $0.suspect.insert(name) }
      throw error
    }
    memory.withLock { _ = $0.suspect.remove(name) }
  }

  /// A directory that was there a moment ago is not: the folder is gone, or somebody tidied up.
  private func vanished(_ directory: String, _ failure: FolderFailure) throws(StorageError) -> StorageError {
    try checkRoot(failure)
    return failure.make(.unavailable, detail: "\(directory) is gone")
  }

  // MARK: Staging files

  /// Removes our own staging file. If that fails, it stays until ``sweep(_:)`` finds it a day later.
  private func discard(_ staging: String) {
    do { try files.unlink(staging) } catch {}
  }

  /// Removes staging files that a crash left in a directory, once a connection and directory. Nothing depends on it, so
  /// whatever fails is left for another time.
  private func sweep(_ directory: String) {
    guard memory.withLock({ $0.swept.insert(directory).inserted }) else { return }
    do throws(SystemCallError) {
      for entry in try files.entries(directory) where StagingName.matches(entry.name) {
        let path = directory + "/" + entry.name
        let status = try files.status(path, following: false)
        if status.kind == .regular, status.modified < files.now() - StagingName.leftoverAge { try files.unlink(path) }
      }
    } catch {}
  }

  // MARK: Probing

  /// Tries out writing and linking under staging names, and removes them.
  func probe() throws(StorageError) -> Capabilities {
    let failure = FolderFailure(operation: .probe, name: nil)
    try checkRoot(failure)
    let staging = try stage(Array("latchkey".utf8), in: root, failure)
    defer { discard(staging) }
    let second = root + "/" + StagingName.make(token())
    var create = Capabilities.ConditionalCreate.bestEffort
    do throws(SystemCallError) {
      try files.link(staging, second)
      defer { discard(second) }
      // Whether a taken name is refused: some user-space file systems replace it.
      do throws(SystemCallError) { try files.link(staging, second) } catch {
        if error.saysExists { create = .atomic }
      }
    } catch {
      guard error.saysNoLinks else { throw failure.translate(error, "link") }
    }
    try syncDirectory(root, failure, effect: .notApplied)
    return Capabilities(
      conditionalCreate: create, publish: .atomic, listing: .strong, maximumConcurrency: FolderStore.concurrency,
      hints: FolderStore.hasHints)
  }
}
