/// Base 32 with the extended-hex alphabet in lower case (RFC 4648 §7), without padding.
///
/// The alphabet keeps order: the text of two equally long numbers sorts as the numbers do, so a listing of head names
/// is a listing by counter.
public enum Base32 {
  private static let digits = Array("0123456789abcdefghijklmnopqrstuv".utf8)

  public static func encode(_ bytes: [UInt8]) -> String {
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count * 8 + 4) / 5)
    var buffer = 0
    var bits = 0
    for byte in bytes {
      buffer = (buffer << 8 | Int(byte)) & 0xfff
      bits += 8
      while bits >= 5 {
        bits -= 5
        out.append(digits[buffer >> bits & 31])
      }
    }
    if bits > 0 { out.append(digits[buffer << (5 - bits) & 31]) }
    return String(decoding: out, as: UTF8.self)
  }

  /// A number as 13 digits, most significant first: every UInt64 fits, and text order is number order.
  public static func encode(counter: UInt64) -> String {
    var out: [UInt8] = []
    for i in stride(from: 60, through: 0, by: -5) { out.append(digits[Int(counter >> UInt64(i) & 31)]) }
    return String(decoding: out, as: UTF8.self)
  }

  /// The number that 13 digits stand for; nil for anything else.
  public static func counter(_ text: some StringProtocol) -> UInt64? {
    let utf8 = Array(text.utf8)
    guard utf8.count == 13 else { return nil }
    var value: UInt64 = 0
    for c in utf8 {
      let digit: UInt8
      switch c {
      case 48...57: digit = c - 48
      case 97...118: digit = c - 87
      default: return nil
      }
      guard value <= UInt64.max >> 5 else { return nil }
      value = value << 5 | UInt64(digit)
    }
    return value
  }
}
