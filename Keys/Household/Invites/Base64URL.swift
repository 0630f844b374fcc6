/// Base 64 with the alphabet for URLs (RFC 4648 §5), without padding.
enum Base64URL {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count * 4 + 2) / 3)
    var buffer = 0
    var bits = 0
    for byte in bytes {
      buffer = (buffer << 8 | Int(byte)) & 0xfff
      bits += 8
      while bits >= 6 {
        bits -= 6
        out.append(digits[buffer >> bits & 63])
      }
    }
    if bits > 0 { out.append(digits[buffer << (6 - bits) & 63]) }
    return String(decoding: out, as: UTF8.self)
  }

  /// Nil unless every character is a digit and the bits left over are zero: one text per byte string.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var out: [UInt8] = []
    var buffer = 0
    var bits = 0
    for c in text.utf8 {
      let digit: Int
      switch c {
      case 65...90: digit = Int(c) - 65
      case 97...122: digit = Int(c) - 71
      case 48...57: digit = Int(c) + 4
      case 45: digit = 62
      case 95: digit = 63
      default: return nil
      }
      buffer = (buffer << 6 | digit) & 0xfff
      bits += 6
      if bits >= 8 {
        bits -= 8
        out.append(UInt8(buffer >> bits & 255))
      }
    }
    return bits < 6 && buffer & ((1 << bits) - 1) == 0 ? out : nil
  }
}
