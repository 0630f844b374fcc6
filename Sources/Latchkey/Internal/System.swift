internal import Glibc

/// The few things asked of the operating system.

func currentDirectory() -> String {
  guard let buffer = getcwd(nil, 0) else { return "/" }
  defer { free(buffer) }
  return String(cString: buffer)
}

/// A path that does not depend on the current directory, so that one file is not listed as two: `.` and double slashes go,
/// and a folder reached through `..` is looked up (it may lead through a link). Other links stay as they are.
func absolute(_ path: String) -> String {
  let whole = path.hasPrefix("/") ? path : currentDirectory() + "/" + path
  let parts = whole.split(separator: "/").filter { $0 != "." }
  if parts.contains(".."), let last = parts.last, last != "..",
    let folder = realpath("/" + parts.dropLast().joined(separator: "/"), nil)
  {
    defer { free(folder) }
    let resolved = String(cString: folder)
    return (resolved == "/" ? "" : resolved) + "/" + last
  }
  return "/" + parts.joined(separator: "/")
}

func hostName() -> String {
  var buffer = [CChar](repeating: 0, count: 256)
  guard gethostname(&buffer, buffer.count - 1) == 0 else { return "device" }
  let name = buffer.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
  return name.isEmpty ? "device" : name
}

func fileExists(_ path: String) -> Bool { access(path, F_OK) == 0 }

/// Removes a file; absent is success.
func removeFile(_ path: String) { unlink(path) }

/// Publishes a finished file under its name, which must be free; both lie in one folder. Durable once it returns.
///
/// - Returns: 0, or the system's error number.
func publishFile(_ temporary: String, as path: String) -> Int32 {
  let file = open(temporary, O_RDONLY)
  guard file >= 0 else { return errno }
  let synced = fsync(file)
  close(file)
  guard synced == 0 else { return errno }
  guard link(temporary, path) == 0 else { return errno }
  unlink(temporary)
  let folder = open(parent(of: path), O_RDONLY | O_DIRECTORY)
  if folder >= 0 {
    fsync(folder)
    close(folder)
  }
  return 0
}

func parent(of path: String) -> String {
  guard let slash = path.lastIndex(of: "/") else { return "." }
  return slash == path.startIndex ? "/" : String(path[..<slash])
}

func lastComponent(_ path: String) -> String {
  String(path.split(separator: "/").last ?? "")
}

/// The lines of a small file; none if it is not there.
func readLines(_ path: String) throws(LatchkeyError) -> [String] {
  let file = open(path, O_RDONLY)
  guard file >= 0 else {
    if errno == ENOENT { return [] }
    throw LatchkeyError(.other, "cannot-read", "\(path) cannot be read (error \(errno)).")
  }
  defer { close(file) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = read(file, &buffer, buffer.count)
    if count == 0 { break }
    guard count > 0 else { throw LatchkeyError(.other, "cannot-read", "\(path) cannot be read (error \(errno)).") }
    bytes += buffer[..<count]
  }
  return bytes.split(separator: 10).map { String(decoding: $0, as: UTF8.self) }
}

/// Replaces a small file as a whole.
func replaceLines(_ path: String, _ lines: [String]) throws(LatchkeyError) {
  let temporary = path + ".new"
  func fail() -> LatchkeyError { LatchkeyError(.other, "cannot-write", "\(path) cannot be written (error \(errno)).") }
  let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
  guard file >= 0 else { throw fail() }
  let bytes: [UInt8] = lines.flatMap { (line: String) -> [UInt8] in Array(line.utf8) + [10] }
  let written = write(file, bytes, bytes.count)
  let synced = fsync(file)
  close(file)
  guard written == bytes.count, synced == 0, rename(temporary, path) == 0 else { throw fail() }
}
