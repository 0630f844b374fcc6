/// The operating system as the folder adapter sees it: one method a system call, so that a test can let any step fail,
/// stop after it, or keep the files in memory.
///
/// Only those who test the adapter need this. Paths are absolute. Nothing follows a symbolic link in a path's last part
/// unless it says so. A call that a signal interrupted is made again, `fsync` excepted.
public protocol FileOperations: Sendable {
  /// What is at a path. - Parameter following: whether a symbolic link stands for what it points to.
  func status(_ path: String, following: Bool) throws(SystemCallError) -> FileStatus
  /// Everything in a directory but `.` and `..`, in any order.
  func entries(_ path: String) throws(SystemCallError) -> [DirectoryEntry]
  /// Makes a new file for writing; fails with `EEXIST` if there is anything. Who may read it is for the process's file mode
  /// mask to say: accounts of one computer can share a folder, and what is in it needs no protection from readers.
  func create(_ path: String) throws(SystemCallError) -> Descriptor
  /// Opens for reading; does not wait on a pipe.
  func open(_ path: String) throws(SystemCallError) -> Descriptor
  func status(_ file: Descriptor) throws(SystemCallError) -> FileStatus
  /// Appends a beginning of `bytes`. - Returns: how many bytes; at least one.
  func write(_ file: Descriptor, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int
  /// Reads at most `count` bytes from `offset` on; none at the end.
  func read(_ file: Descriptor, at offset: Int, count: Int) throws(SystemCallError) -> [UInt8]
  /// Forces what was written onto the medium.
  func sync(_ file: Descriptor) throws(SystemCallError)
  /// Closes; the descriptor is gone even if this fails.
  func close(_ file: Descriptor) throws(SystemCallError)
  /// Forces a directory's entries onto the medium.
  func syncDirectory(_ path: String) throws(SystemCallError)
  /// Gives a file a second name; fails with `EEXIST` if that name is taken.
  func link(_ path: String, _ new: String) throws(SystemCallError)
  /// Renames, replacing what has the new name.
  func rename(_ path: String, _ new: String) throws(SystemCallError)
  /// Removes a name that is not a directory.
  func unlink(_ path: String) throws(SystemCallError)
  /// Makes a directory, with the permissions that the process's file mode mask leaves.
  func makeDirectory(_ path: String) throws(SystemCallError)
  /// Removes an empty directory.
  func removeDirectory(_ path: String) throws(SystemCallError)
  /// Seconds since 1970, by the clock that stamps files.
  func now() -> Int
}

/// An open file.
public typealias Descriptor = Int32

/// What a system call said when it failed.
public struct SystemCallError: Error, Equatable, Sendable {
  /// `errno`.
  public let code: Int32
  public init(_ code: Int32) { self.code = code }
}

public enum FileKind: Equatable, Sendable {
  case regular, directory
  /// A symbolic link, pipe, socket or device: never an object.
  case other
}

public struct FileStatus: Equatable, Sendable {
  public var kind: FileKind
  /// Bytes.
  public var size: Int
  /// Blocks on the medium; none for a file whose content is elsewhere (or all holes).
  public var blocks: Int
  /// The file system that it is on.
  public var device: UInt64
  /// Seconds since 1970.
  public var modified: Int

  public init(kind: FileKind, size: Int, blocks: Int, device: UInt64, modified: Int) {
    self.kind = kind
    self.size = size
    self.blocks = blocks
    self.device = device
    self.modified = modified
  }
}

public struct DirectoryEntry: Equatable, Sendable {
  public var name: String
  /// Nil where the directory does not say; then `status` does.
  public var kind: FileKind?

  public init(name: String, kind: FileKind?) {
    self.name = name
    self.kind = kind
  }
}
