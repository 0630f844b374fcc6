internal import LatchkeyEncoding
internal import LatchkeyStorage
internal import Synchronization

/// The folder, synchronously: what ``FolderStore`` performs off the cooperative threads. Safe to use from several
/// threads.
final class Folder: Sendable {
  /// Absolute, without a trailing slash.
  let root: String
  let files: any FileOperations
  /// The file system that the folder was on when it was opened. A mount point that has lost its disk is on another.
  let device: UInt64
  /// Names staging files; random, so that no two devices meet.
  let token: @Sendable () -> UInt64
  let memory = Mutex(Memory())

  /// What this connection has learned.
  struct Memory {
    /// Directories whose entries, up to the root, are on the medium.
    var durable: Set<String> = []
    /// Directories that were searched for leftover staging files.
    var swept: Set<String> = []
    /// Objects that are there, and whose last sync failed: the medium may not have them although they can be read.
    var suspect: Set<ObjectName> = []
    /// The file system knows no hard links.
    var noLinks = false
  }

  init(root: String, device: UInt64, files: any FileOperations, token: @escaping @Sendable () -> UInt64) {
    self.root = root
    self.device = device
    self.files = files
    self.token = token
  }

  /// The path of an object.
  func path(_ name: ObjectName) -> String { root + "/" + name.text }

  /// Every operation begins here: a folder that is gone or was unmounted must never look empty, nor be written into.
  func checkRoot(_ failure: FolderFailure) throws(StorageError) {
    let status: FileStatus
    do { status = try files.status(root, following: true) } catch {
      if error.saysAbsent { throw failure.make(.storeMissing, detail: root) }
      throw failure.translate(error, "stat \(root)")
    }
    guard status.kind == .directory else { throw failure.make(.storeMissing, detail: "\(root) is not a folder") }
    guard status.device == device else {
      throw failure.make(.storeMissing, detail: "\(root) was unmounted or mounted again; open it again")
    }
  }

  /// Whether the directories on the way to an object are real ones. A symbolic link there leads out of the store, and
  /// whoever can write into the folder could have put it there.
  func hasRealParents(_ name: ObjectName, _ failure: FolderFailure) throws(StorageError) -> Bool {
    var path = root
    for part in name.text.split(separator: "/").dropLast() {
      path += "/" + part
      guard try kind(path, failure) == .directory else { return false }
    }
    return true
  }

  /// What is at a path; nil if nothing.
  func kind(_ path: String, _ failure: FolderFailure) throws(StorageError) -> FileKind? {
    do { return try files.status(path, following: false).kind } catch {
      if error.saysAbsent { return nil }
      throw failure.translate(error, "lstat")
    }
  }

  // MARK: Reading

  func get(_ name: ObjectName, range: Range<Int>?) throws(StorageError) -> [UInt8] {
    let failure = FolderFailure(operation: .get, name: name)
    try checkRoot(failure)
    // Looked for twice: on NFS a name is away for a moment while another device moves it there.
    var found = try openObject(name, failure)
    if found == nil { found = try openObject(name, failure) }
    guard let (file, status) = found else { throw try absence(name, failure) }
    defer { closeQuietly(file) }
    let wanted = range ?? 0..<status.size
    if let range {
      guard !range.isEmpty, range.lowerBound >= 0, range.upperBound <= status.size else {
        throw failure.make(.invalidRange, detail: "it has \(status.size) bytes")
      }
    }
    // Before anything is allocated: the size is what a stranger's folder says.
    guard wanted.count <= StorageLimits.maximumObjectSize else {
      throw failure.make(.tooLarge, detail: "\(wanted.count) bytes")
    }
    return try read(file, wanted, status, failure)
  }

  func head(_ name: ObjectName) throws(StorageError) -> Int {
    let failure = FolderFailure(operation: .head, name: name)
    try checkRoot(failure)
    var found = try status(name, failure)
    if found == nil { found = try status(name, failure) }
    guard let status = found else { throw try absence(name, failure) }
    guard status.kind == .regular else { throw failure.make(.notFound) }
    return status.size
  }

  /// Nil if nothing of that name is there.
  private func status(_ name: ObjectName, _ failure: FolderFailure) throws(StorageError) -> FileStatus? {
    guard try hasRealParents(name, failure) else { return nil }
    do { return try files.status(path(name), following: false) } catch {
      if error.saysAbsent { return nil }
      throw failure.translate(error, "lstat")
    }
  }

  /// Opens a regular file; nil if there is none of that name.
  func openObject(
    _ name: ObjectName, _ failure: FolderFailure
  ) throws(StorageError) -> (file: Descriptor, status: FileStatus)? {
    guard try hasRealParents(name, failure) else { return nil }
    let file: Descriptor
    do { file = try files.open(path(name)) } catch {
      if error.saysAbsent { return nil }
      throw failure.translate(error, "open")
    }
    do {
      let status = try files.status(file)
      if status.kind == .regular { return (file, status) }
      closeQuietly(file)
      return nil
    } catch {
      closeQuietly(file)
      throw failure.translate(error, "fstat")
    }
  }

  /// Exactly the bytes of `range`, which is inside the file.
  func read(
    _ file: Descriptor, _ range: Range<Int>, _ status: FileStatus, _ failure: FolderFailure
  ) throws(StorageError) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < range.count {
      let chunk: [UInt8]
      do {
        chunk = try files.read(file, at: range.lowerBound + bytes.count, count: range.count - bytes.count)
      } catch {
        // A placeholder of a synced folder that could not be fetched: not damaged, not absent, only elsewhere. One that
        // is fetched while it is read is read like any file.
        if status.size > 0, status.blocks == 0 {
          throw failure.make(.unavailable, detail: "its content is not on this device and could not be fetched")
        }
        throw failure.translate(error, "read")
      }
      guard !chunk.isEmpty else {
        throw failure.make(.truncated, detail: "\(bytes.count) of \(range.count) bytes")
      }
      if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
    }
    return bytes
  }

  /// Why there is no such object: absent, or taken off this device by the program that syncs the folder.
  private func absence(_ name: ObjectName, _ failure: FolderFailure) throws(StorageError) -> StorageError {
    let path = path(name)
    let last = path.split(separator: "/").last.map(String.init) ?? ""
    let directory = String(path.dropLast(last.count))
    // iCloud Drive and Nextcloud leave these in place of a file whose content is only on their server.
    for stub in ["\(directory).\(last).icloud", "\(directory)\(last).nextcloud"]
    where try kind(stub, failure) == .regular {
      return failure.make(.unavailable, detail: "its content is not on this device; fetch it with the sync program")
    }
    return failure.make(.notFound)
  }

  func closeQuietly(_ file: Descriptor) {
    // Nothing was written through it, or the failure that is being reported is the one that matters.
    do { try files.close(file) } catch {}
  }

  // MARK: Deleting

  func delete(_ name: ObjectName) throws(StorageError) {
    let failure = FolderFailure(operation: .delete, name: name)
    try checkRoot(failure)
    guard try hasRealParents(name, failure), try kind(path(name), failure) == .regular else { return }
    do { try files.unlink(path(name)) } catch {
      if error.saysAbsent { return }
      throw failure.translate(error, "unlink", effect: .unknown)
    }
    _ = memory.withLock { $0.suspect.remove(name) }
    try syncDirectory(parent(of: name), failure, effect: .unknown)
  }

  /// The directory that holds an object.
  func parent(of name: ObjectName) -> String {
    guard let slash = name.text.lastIndex(of: "/") else { return root }
    return root + "/" + name.text[..<slash]
  }

  /// Forces a directory onto the medium where its file system can do that.
  func syncDirectory(
    _ path: String, _ failure: FolderFailure, effect: StorageError.Effect
  ) throws(StorageError) {
    do { try files.syncDirectory(path) } catch {
      if error.saysNoDirectorySync { return }
      throw failure.translate(error, "fsync of the directory", effect: effect)
    }
  }
}
