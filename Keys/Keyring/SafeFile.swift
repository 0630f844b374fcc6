#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// One step of replacing a file; named so that a test can let each of them fail.
package enum FileStep: String, Sendable, CaseIterable {
  case create, write, sync, rename, syncFolder = "sync the folder of"
}

/// Reads and replaces small private files.
///
/// Replacing is atomic and durable: a file beside it is written and synced, renamed over it, and the folder is synced. A
/// crash at any point leaves the old bytes or the new.
struct SafeFile: Sendable {
  /// Largest file that is read, in bytes.
  static let maximumSize = 64 << 20
  /// What a test says about a step: nil lets it happen, an error number lets it fail.
  let fault: @Sendable (FileStep) -> Int32?

  /// The bytes of a file that only its owner can read or change.
  func read(_ path: String) throws(KeyringError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else { throw Self.error(errno, path, "open") }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Self.error(errno, path, "examine") }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .damaged(path: path) }
    try Self.requirePrivate(status, path)
    guard status.st_size <= Self.maximumSize else { throw .damaged(path: path) }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer -> Int in
        guard let start = buffer.baseAddress else { return 0 }
        return readSome(file, start + filled, buffer.count - filled)
      }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Self.error(errno, path, "read") }
      if count == 0 { break }
      filled += count
    }
    return filled == bytes.count ? bytes : Array(bytes.prefix(filled))
  }

  /// Replaces `path`; its folder must exist, and the caller must be its only writer.
  func replace(_ path: String, with bytes: [UInt8]) throws(KeyringError) {
    let draft = path + ".new"
    do throws(KeyringError) {
      try write(bytes, to: draft, for: path)
      if let code = fault(.rename) { throw Self.error(code, path, FileStep.rename.rawValue) }
      guard rename(draft, path) == 0 else { throw Self.error(errno, path, FileStep.rename.rawValue) }
    } catch {
      unlink(draft)
      throw error
    }
    try syncFolder(of: path)
  }

  func remove(_ path: String) throws(KeyringError) {
    guard unlink(path) == 0 || errno == ENOENT else { throw Self.error(errno, path, "remove") }
    try syncFolder(of: path)
  }

  /// Overwrites a file with zeros, as far as its disk lets that be, and removes it.
  func wipe(_ path: String) throws(KeyringError) {
    let file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
    if file >= 0 {
      defer { close(file) }
      var status = stat()
      if fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
        var left = min(Int(status.st_size), Self.maximumSize)
        let zeros = [UInt8](repeating: 0, count: 65_536)
        while left > 0 {
          let count = zeros.withUnsafeBytes { buffer -> Int in
            guard let start = buffer.baseAddress else { return 0 }
            return writeSome(file, start, min(left, buffer.count))
          }
          if count < 0 && errno == EINTR { continue }
          if count <= 0 { break }
          left -= count
        }
        fsync(file)
      }
    }
    try remove(path)
  }

  /// Names of what lies in a folder, sorted.
  static func names(in path: String) throws(KeyringError) -> [String] {
    guard let folder = opendir(path) else { throw error(errno, path, "read") }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  private func write(_ bytes: [UInt8], to draft: String, for path: String) throws(KeyringError) {
    if let code = fault(.create) { throw Self.error(code, path, FileStep.create.rawValue) }
    // What an interrupted run left behind goes first, so that permissions are those given here.
    unlink(draft)
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Self.error(errno, path, FileStep.create.rawValue) }
    defer { close(file) }
    var written = 0
    while written < bytes.count {
      if let code = fault(.write) { throw Self.error(code, path, FileStep.write.rawValue) }
      let count = bytes.withUnsafeBytes { buffer -> Int in
        guard let start = buffer.baseAddress else { return 0 }
        return writeSome(file, start + written, buffer.count - written)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw Self.error(count == 0 ? ENOSPC : errno, path, FileStep.write.rawValue) }
      written += count
    }
    if let code = fault(.sync) { throw Self.error(code, path, FileStep.sync.rawValue) }
    guard fsync(file) == 0 else { throw Self.error(errno, path, FileStep.sync.rawValue) }
  }

  private func syncFolder(of path: String) throws(KeyringError) {
    if let code = fault(.syncFolder) { throw Self.error(code, path, FileStep.syncFolder.rawValue) }
    let slash = path.lastIndex(of: "/")
    let parent = slash.map { String(path[..<$0]) } ?? "."
    let folder = open(parent.isEmpty ? "/" : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw Self.error(errno, path, FileStep.syncFolder.rawValue) }
    defer { close(folder) }
    // Some file systems cannot sync a folder; they say EINVAL, and there is nothing better to do.
    guard fsync(folder) == 0 || errno == EINVAL else { throw Self.error(errno, path, FileStep.syncFolder.rawValue) }
  }

  /// A folder that only its owner can enter; made, with those above it, if it is not there.
  static func makePrivateFolder(_ path: String) throws(KeyringError) {
    if !exists(path), let slash = path.lastIndex(of: "/"), slash > path.startIndex {
      let parent = String(path[..<slash])
      if !exists(parent) { try makePrivateFolder(parent) }
    }
    if mkdir(path, 0o700) != 0 {
      guard errno == EEXIST else { throw error(errno, path, FileStep.create.rawValue) }
      // Somebody made it for this purpose with a plain `mkdir`: nothing is in it that others could rely on.
      if isEmptyFolder(path) { _ = chmod(path, 0o700) }
    }
    try checkPrivateFolder(path)
  }

  private static func isEmptyFolder(_ path: String) -> Bool {
    guard let folder = opendir(path) else { return false }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // `.` and `..`
    return count <= 2
  }

  static func checkPrivateFolder(_ path: String) throws(KeyringError) {
    var status = stat()
    // The folder itself may be reached by a symbolic link (people keep their configuration elsewhere); files may not.
    guard stat(path, &status) == 0 else { throw error(errno, path, "examine") }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .damaged(path: path) }
    try requirePrivate(status, path)
  }

  private static func requirePrivate(_ status: stat, _ path: String) throws(KeyringError) {
    guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else { throw .loosePermissions(path: path) }
  }

  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  static func error(_ code: Int32, _ path: String, _ step: String) -> KeyringError {
    switch code {
    case ENOENT, ENOTDIR: .missing(path: path)
    case ENOSPC, EDQUOT: .full(path: path)
    case EROFS, EACCES, EPERM: .readOnly(path: path)
    case ELOOP: .damaged(path: path)
    default: .system(path: path, step: step, code: code)
    }
  }
}

/// `read(2)` and `write(2)`, whose names this file's own methods hide.
private func readSome(_ file: Int32, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
  read(file, buffer, count)
}
private func writeSome(_ file: Int32, _ buffer: UnsafeRawPointer, _ count: Int) -> Int {
  write(file, buffer, count)
}
