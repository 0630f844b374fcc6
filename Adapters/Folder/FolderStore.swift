public import LatchkeyEncoding
public import LatchkeyStorage

/// A store in a folder: on a disk, a stick, a network share, or one that Dropbox, Syncthing or Nextcloud keeps in sync.
///
/// Every object is a file under its own name. A file is written under a staging name, forced onto the medium, published
/// without replacing anything (a hard link; where there are none, a rename after looking), and its directory is forced
/// too. What is not a name of Latchkey's grammar (conflicted copies, `.stfolder`, `.DS_Store`, other people's files) is
/// neither listed nor deleted; symbolic links are not followed below the folder.
///
/// The folder must exist: one that is gone, or whose disk was unmounted since it was opened, is `.storeMissing` and
/// never empty. Where a folder is synced by other programs, "created once" holds on this machine only; nothing in
/// Latchkey depends on more.
///
/// Files are read and written on threads of their own, ``concurrency`` at a time, so that a slow disk or share does not
/// hold up Swift's cooperative threads. A task that is cancelled before its turn throws `.cancelled`; a step that has
/// begun is finished.
///
/// Source: docs/format.md §3 for the tree of names.
public struct FolderStore: ObjectStore {
  /// How many operations run at a time.
  public static let concurrency = 4

  let folder: Folder
  let lanes: Lanes

  /// Opens a folder.
  ///
  /// - Parameters:
  ///   - path: absolute.
  ///   - mode: `.create` makes the folder if it is not there, but not the folder that holds it: an unmounted disk is
  ///     not to be filled in by its mount point.
  ///   - files: the operating system; tests pass another.
  ///   - token: random numbers that name staging files.
  /// - Throws: ``StorageError``; `.storeMissing` if there is no folder, `.config` if the path is not absolute.
  public static func open(
    at path: String, _ mode: OpenMode = .existing, files: any FileOperations = PosixFiles(),
    token: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
  ) async throws(StorageError) -> FolderStore {
    let lanes = Lanes(concurrency)
    let folder = try await lanes.run(.open, nil) { () throws(StorageError) in
      try Folder.open(path, mode, files: files, token: token)
    }
    return FolderStore(folder: folder, lanes: lanes)
  }

  private init(folder: Folder, lanes: Lanes) {
    self.folder = folder
    self.lanes = lanes
  }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    try await lanes.run(.put, name) { () throws(StorageError) in try folder.put(name, bytes) }
  }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await lanes.run(.get, name) { () throws(StorageError) in try folder.get(name, range: range) }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await lanes.run(.head, name) { () throws(StorageError) in try folder.head(name) }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try await lanes.run(.list, nil) { () throws(StorageError) in
      try folder.list(prefix: prefix, after: after, limit: limit)
    }
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    try await lanes.run(.delete, name) { () throws(StorageError) in try folder.delete(name) }
  }

  public func probe() async throws(StorageError) -> Capabilities {
    try await lanes.run(.probe, nil) { () throws(StorageError) in try folder.probe() }
  }

  /// Whether the kernel can be asked for hints here.
  static var hasHints: Bool {
    #if os(Linux)
      true
    #else
      false
    #endif
  }

  /// What the kernel says of this folder; nothing of what other machines write to a share.
  public func changes() -> AsyncStream<Void>? {
    #if os(Linux)
      FolderChanges.stream(folder.root)
    #else
      nil
    #endif
  }
}

extension Folder {
  static func open(
    _ path: String, _ mode: OpenMode, files: any FileOperations, token: @escaping @Sendable () -> UInt64
  ) throws(StorageError) -> Folder {
    let failure = FolderFailure(operation: .open, name: nil)
    guard path.hasPrefix("/"), !path.contains("\0") else {
      throw failure.make(.config, detail: "the folder's path is not absolute")
    }
    var root = path
    while root.hasSuffix("/") { root.removeLast() }
    guard !root.isEmpty else {
      throw failure.make(.config, detail: "/ itself cannot be a store; choose a folder in it")
    }
    let status: FileStatus
    do { status = try files.status(root, following: true) } catch {
      guard error.saysAbsent else { throw failure.translate(error, "stat \(root)") }
      guard mode == .create else { throw failure.make(.storeMissing, detail: root) }
      return try create(root, failure, files: files, token: token)
    }
    guard status.kind == .directory else { throw failure.make(.config, detail: "\(root) is not a folder") }
    return Folder(root: root, device: status.device, files: files, token: token)
  }

  private static func create(
    _ root: String, _ failure: FolderFailure, files: any FileOperations, token: @escaping @Sendable () -> UInt64
  ) throws(StorageError) -> Folder {
    let parent = root.lastIndex(of: "/").map { String(root[..<$0]) } ?? ""
    do {
      try files.makeDirectory(root)
    } catch {
      if error.saysAbsent { throw failure.make(.storeMissing, detail: "there is no \(parent) to make it in") }
      // Somebody else made it meanwhile.
      guard error.saysExists else { throw failure.translate(error, "mkdir") }
    }
    do { try files.syncDirectory(parent.isEmpty ? "/" : parent) } catch {
      // A parent that may be passed through but not opened cannot be synced by us.
      guard error.saysNoDirectorySync || error.saysForbidden else {
        throw failure.translate(error, "fsync of the directory")
      }
    }
    return try open(root, .existing, files: files, token: token)
  }
}
