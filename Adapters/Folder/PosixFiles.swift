#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The real files.
public struct PosixFiles: FileOperations {
  public init() {}

  public func status(_ path: String, following: Bool) throws(SystemCallError) -> FileStatus {
    var info = stat()
    try Self.call { following ? stat(path, &info) : lstat(path, &info) }
    return FileStatus(info)
  }

  public func entries(_ path: String) throws(SystemCallError) -> [DirectoryEntry] {
    guard let stream = opendir(path) else { throw SystemCallError(errno) }
    defer { closedir(stream) }
    var entries: [DirectoryEntry] = []
    while true {
      // The only way to tell the end from a failure.
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw SystemCallError(errno) }
        return entries
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
      }
      if name == "." || name == ".." { continue }
      let kind: FileKind? =
        switch Int(entry.pointee.d_type) {
        case Int(DT_REG): .regular
        case Int(DT_DIR): .directory
        case Int(DT_UNKNOWN): nil
        default: .other
        }
      entries.append(DirectoryEntry(name: name, kind: kind))
    }
  }

  public func create(_ path: String) throws(SystemCallError) -> Descriptor {
    try Self.call { openFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666) }
  }

  public func open(_ path: String) throws(SystemCallError) -> Descriptor {
    try Self.call { openFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0) }
  }

  public func status(_ file: Descriptor) throws(SystemCallError) -> FileStatus {
    var info = stat()
    try Self.call { fstat(file, &info) }
    return FileStatus(info)
  }

  public func write(_ file: Descriptor, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    let count = bytes.withUnsafeBytes { buffer in
      Self.repeating { writeFile(file, buffer.baseAddress, buffer.count) }
    }
    guard count >= 0 else { throw SystemCallError(errno) }
    // POSIX allows no progress without an error only for nothing to write; a loop over it would never end.
    guard count > 0 || bytes.isEmpty else { throw SystemCallError(EIO) }
    return count
  }

  public func read(_ file: Descriptor, at offset: Int, count: Int) throws(SystemCallError) -> [UInt8] {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let got = Self.repeating { pread(file, buffer.baseAddress, count, off_t(offset)) }
      if got < 0 { code = errno }
      initialized = max(0, got)
    }
    if code != 0 { throw SystemCallError(code) }
    return bytes
  }

  public func sync(_ file: Descriptor) throws(SystemCallError) {
    // Never repeated, not even after EINTR: a failed fsync may have dropped the pages it could not write, and the next
    // one then succeeds over nothing (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    guard forceOntoMedium(file) == 0 else { throw SystemCallError(errno) }
  }

  public func close(_ file: Descriptor) throws(SystemCallError) {
    // After EINTR the descriptor is gone on Linux and macOS; closing again could close somebody else's.
    guard closeFile(file) == 0 || errno == EINTR else { throw SystemCallError(errno) }
  }

  public func syncDirectory(_ path: String) throws(SystemCallError) {
    let directory = try Self.call { openFile(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) }
    let code = forceOntoMedium(directory) == 0 ? 0 : errno
    _ = closeFile(directory)
    if code != 0 { throw SystemCallError(Self.syncFailure(code)) }
  }

  /// SMB says of a directory that was just opened that it is not there (restic #3720), and means that it cannot be forced onto
  /// the medium; one that is really gone cannot be opened.
  static func syncFailure(_ code: Int32) -> Int32 { code == ENOENT ? EINVAL : code }

  public func link(_ path: String, _ new: String) throws(SystemCallError) {
    // linkat without AT_SYMLINK_FOLLOW: what is linked is what was staged.
    try Self.call { linkat(AT_FDCWD, path, AT_FDCWD, new, 0) }
  }

  public func rename(_ path: String, _ new: String) throws(SystemCallError) {
    try Self.call { renameFile(path, new) }
  }

  public func unlink(_ path: String) throws(SystemCallError) { try Self.call { unlinkFile(path) } }

  public func makeDirectory(_ path: String) throws(SystemCallError) { try Self.call { mkdir(path, 0o777) } }

  public func removeDirectory(_ path: String) throws(SystemCallError) { try Self.call { rmdir(path) } }

  public func now() -> Int { time(nil) }

  /// Calls again after a signal. - Returns: what the call returned; throws where it is -1.
  @discardableResult
  private static func call(_ body: () -> Int32) throws(SystemCallError) -> Int32 {
    let result = repeating(body)
    guard result >= 0 else { throw SystemCallError(errno) }
    return result
  }

  private static func repeating<Result: SignedInteger>(_ body: () -> Result) -> Result {
    while true {
      let result = body()
      if result >= 0 || errno != EINTR { return result }
    }
  }
}

extension FileStatus {
  fileprivate init(_ info: stat) {
    let kind: FileKind =
      switch info.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      default: .other
      }
    #if canImport(Darwin)
      let modified = info.st_mtimespec.tv_sec
    #else
      let modified = info.st_mtim.tv_sec
    #endif
    self.init(
      kind: kind, size: Int(info.st_size), blocks: Int(info.st_blocks),
      device: UInt64(truncatingIfNeeded: info.st_dev), modified: Int(modified))
  }
}

// The C functions that the methods above hide by their names.
private func openFile(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func closeFile(_ file: Int32) -> Int32 { close(file) }
private func writeFile(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(file, bytes, count) }
private func renameFile(_ path: String, _ new: String) -> Int32 { rename(path, new) }
private func unlinkFile(_ path: String) -> Int32 { unlink(path) }

/// On Apple's systems `fsync` stops at the drive's cache.
private func forceOntoMedium(_ file: Int32) -> Int32 {
  #if canImport(Darwin)
    return fcntl(file, F_FULLFSYNC) == -1 ? -1 : 0
  #else
    return fsync(file)
  #endif
}
