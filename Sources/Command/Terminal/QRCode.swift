#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A QR code (ISO/IEC 18004): black and white squares, to be shown on a terminal.
struct QRCode: Sendable, Equatable {
  /// Modules a side.
  let width: Int
  /// Row by row; true is black.
  let modules: [Bool]

  /// The free border that the standard asks for, in modules.
  private static let border = 4

  private func isBlack(_ row: Int, _ column: Int) -> Bool {
    let (row, column) = (row - Self.border, column - Self.border)
    guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
    return modules[row * width + column]
  }

  /// Drawn in white on the terminal's black: half a character a module, or with `ascii` two characters a module.
  func lines(ascii: Bool) -> [String] {
    let side = width + 2 * Self.border
    if ascii {
      return (0..<side).map { row in
        (0..<side).map { isBlack(row, $0) ? "  " : "##" }.joined()
      }
    }
    return stride(from: 0, to: side, by: 2).map { row in
      (0..<side).map { column in
        // Below the last row there is nothing to be drawn.
        switch (isBlack(row, column), row + 1 == side || isBlack(row + 1, column)) {
        case (false, false): "█"
        case (false, true): "▀"
        case (true, false): "▄"
        case (true, true): " "
        }
      }.joined()
    }
  }

  /// For a terminal: with colours it is black and white, whatever the terminal's own are.
  func shown(ascii: Bool, coloured: Bool) -> String {
    lines(ascii: ascii).map { coloured ? "\u{1B}[97;40m\($0)\u{1B}[0m\n" : $0 + "\n" }.joined()
  }
}

/// libqrencode (Kentaro Fukuchi), found when it is asked for: nothing else of the command needs it.
struct QREncoder {
  /// `QRcode` of qrencode.h.
  private struct Code {
    var version: Int32
    var width: Int32
    var data: UnsafeMutablePointer<UInt8>?
  }

  // `QRcode *QRcode_encodeString8bit(const char *, int version, QRecLevel)`, `void QRcode_free(QRcode *)`.
  private typealias Encode = @convention(c) (UnsafePointer<CChar>, Int32, Int32) -> UnsafeMutableRawPointer?
  private typealias Free = @convention(c) (UnsafeMutableRawPointer) -> Void

  private let encode: Encode
  private let free: Free

  private static let names = ["libqrencode.so.4", "libqrencode.so", "libqrencode.4.dylib", "libqrencode.dylib"]

  /// - Parameter names: of the library's file, tried in order.
  /// - Throws: exit code 1, where it is not installed.
  init(_ names: [String] = QREncoder.names) throws(CommandError) {
    for name in names {
      // Stays open until the process ends.
      guard let library = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { continue }
      guard let encode = dlsym(library, "QRcode_encodeString8bit"), let free = dlsym(library, "QRcode_free") else {
        continue
      }
      self.encode = unsafeBitCast(encode, to: Encode.self)
      self.free = unsafeBitCast(free, to: Free.self)
      return
    }
    throw CommandError(
      .other, "qr-unavailable",
      "A QR code needs the library libqrencode, which is not installed (Debian and Ubuntu: the package libqrencode4). Nothing was "
        + "changed.",
      next: ["apt install libqrencode4", "latchkey invite --out FILE"])
  }

  /// Nil for a text that is too long for any code.
  func code(of text: String) -> QRCode? {
    // Version 0: the smallest that fits. Level 0: a screen has no stains to be corrected.
    guard let raw = encode(text, 0, 0) else { return nil }
    defer { free(raw) }
    let code = raw.assumingMemoryBound(to: Code.self).pointee
    guard let data = code.data, (1...177).contains(code.width) else { return nil }
    let width = Int(code.width)
    return QRCode(width: width, modules: (0..<width * width).map { data[$0] & 1 == 1 })
  }
}
