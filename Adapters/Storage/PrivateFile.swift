#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A small file with a secret in it: read only if nobody but its owner can read it.
public enum PrivateFile {
  /// Larger files hold no credential.
  public static let maximumBytes = 64 << 10

  /// Why a file was not used. Nothing of its content is in it.
  public enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    /// With the system's reason.
    case unreadable(path: String, reason: String)
    case notAFile(path: String)
    case readableByOthers(path: String)
    case tooLarge(path: String)
    case notText(path: String)

    public var description: String {
      switch self {
      case .unreadable(let path, let reason): "\(path) cannot be read: \(reason)"
      case .notAFile(let path): "\(path) is not a file"
      case .readableByOthers(let path):
        "\(path) can be read by other users of this computer and was not used: chmod 600 \(path)"
      case .tooLarge(let path): "\(path) is larger than a credential can be"
      case .notText(let path): "\(path) is not text"
      }
    }
  }

  /// The text of a file, of a pipe or of a terminal.
  ///
  /// - Parameter firstLineOnly: reads no further than the first line's end, which a pipe may leave open behind it.
  public static func read(_ path: String, firstLineOnly: Bool = false) throws(Failure) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else { throw .notAFile(path: path) }
    // A pipe has no other readers than its two ends; only what lies in a directory can be opened by others.
    guard status.st_mode & S_IFMT != S_IFREG || status.st_mode & 0o077 == 0 else {
      throw .readableByOthers(path: path)
    }
    var bytes = [UInt8](repeating: 0, count: maximumBytes + 1)
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    var count = 0
    while count < bytes.count, !(firstLineOnly && bytes[..<count].contains(UInt8(ascii: "\n"))) {
      let more = bytes.withUnsafeMutableBytes {
        Self.next(file, into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
      }
      if more < 0 { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
      if more == 0 { break }
      count += more
    }
    guard count <= maximumBytes else { throw .tooLarge(path: path) }
    let content = firstLineOnly ? bytes[..<count].prefix { $0 != UInt8(ascii: "\n") } : bytes[..<count]
    guard let text = String(validating: content, as: UTF8.self) else { throw .notText(path: path) }
    return text
  }

  private static func next(_ file: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = Self.systemRead(file, buffer.baseAddress, buffer.count)
      if count >= 0 || errno != EINTR { return count }
    }
  }

  private static func systemRead(_ file: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    #if canImport(Darwin)
      Darwin.read(file, start, count)
    #elseif canImport(Musl)
      Musl.read(file, start, count)
    #else
      Glibc.read(file, start, count)
    #endif
  }

  private static func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
  }
}
