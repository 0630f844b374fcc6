#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// An open file, as the system numbers it.
struct Descriptor: Sendable, Equatable {
  let number: Int32

  static let input = Descriptor(number: STDIN_FILENO)
  static let output = Descriptor(number: STDOUT_FILENO)
  static let error = Descriptor(number: STDERR_FILENO)

  /// The terminal the command was started from, if there is one, whatever the standard streams are.
  static func controllingTerminal() -> Descriptor? {
    let number = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
    return number < 0 ? nil : Descriptor(number: number)
  }

  var isTerminal: Bool { isatty(number) == 1 }

  /// Writes all of the text.
  ///
  /// - Returns: false if it could not be written. A reader that went away (`latchkey … | head`) is no failure: it has
  ///   what it wanted.
  @discardableResult
  func write(_ text: String) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { systemWrite(number, $0.baseAddress, $0.count) }
      if count > 0 {
        bytes = bytes.dropFirst(count)
      } else if errno != EINTR {
        return errno == EPIPE
      }
    }
    return true
  }

  /// One line without its end, of at most `limit` bytes.
  ///
  /// Byte by byte, so that what follows the line stays for the next question.
  ///
  /// - Returns: nil at the end of input, on a read error, or if the line is longer.
  func readLine(limit: Int = 65_536) -> [UInt8]? {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count <= limit {
      let count = systemRead(number, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { return line.isEmpty ? nil : line }
      if byte == UInt8(ascii: "\n") { return line }
      line.append(byte)
    }
    return nil
  }

  /// Everything up to the end.
  ///
  /// - Returns: nil on a read error, or if it is more than `limit` bytes.
  func readAll(limit: Int) -> [UInt8]? {
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while content.count <= limit {
      let count = chunk.withUnsafeMutableBytes { systemRead(number, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0 { return nil }
      if count == 0 { return content }
      content += chunk[..<count]
    }
    return nil
  }

  func closeFile() { _ = close(number) }
}

// The methods above have the names of the calls they make.
private func systemWrite(_ number: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(number, bytes, count)
}
private func systemRead(_ number: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
  read(number, bytes, count)
}
