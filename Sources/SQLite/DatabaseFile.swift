#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// What can be told of a database file without opening it as one.
public enum DatabaseFile {
  /// Whether a file exists at `path`, of whatever kind.
  public static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Whether a directory is at `path`: SQLite opens one, and fails to read it.
  public static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Whether the header says that the file is in WAL mode (SQLite file format, §1.3.3).
  public static func isWAL(_ path: String) -> Bool {
    guard let file = fopen(path, "rb") else { return false }
    defer { fclose(file) }
    var header = [UInt8](repeating: 0, count: 20)
    return fread(&header, 1, 20, file) == 20 && header[18] == 2 && header[19] == 2
  }
}
