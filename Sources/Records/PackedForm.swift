import LatchkeyEncoding

/// The ways in which a column's values are written (format §6, "values").
enum PackedForm {
  static let each: UInt64 = 0
  static let references: UInt64 = 1
  static let hyphenated: UInt64 = 2
  static let hexadecimal: UInt64 = 3
  static let same: UInt64 = 4

  /// The form by which a value is sixteen bytes, and these; nil for most values.
  static func pack(_ value: Value) -> (form: UInt64, bytes: Bytes16)? {
    switch value {
    case .reference(let name): return (references, name.raw)
    case .text(let text):
      if text.count == 32 { return sixteen(text, hyphens: false).map { (hexadecimal, $0) } }
      if text.count == 36 { return sixteen(text, hyphens: true).map { (hyphenated, $0) } }
      return nil
    case .null, .integer, .real, .blob, .together, .unknown: return nil
    }
  }

  /// The value that sixteen bytes stand for in one of the three packed forms.
  static func value(_ form: UInt64, _ bytes: Bytes16) -> Value {
    if form == references { return .reference(RecordName(raw: bytes)) }
    var text: [UInt8] = []
    text.reserveCapacity(36)
    for position in 0..<32 {
      if form == hyphenated, isAfterHyphen(position) { text.append(45) }
      let word = position < 16 ? bytes.high : bytes.low
      let digit = UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (position & 15))) & 15
      text.append(digit < 10 ? 48 + digit : 87 + digit)
    }
    return .text(text)
  }

  /// 8-4-4-4-12 digits (RFC 9562 §4).
  @inline(__always)
  private static func isAfterHyphen(_ position: Int) -> Bool {
    position == 8 || position == 12 || position == 16 || position == 20
  }

  private static func sixteen(_ text: [UInt8], hyphens: Bool) -> Bytes16? {
    var high: UInt64 = 0
    var low: UInt64 = 0
    var next = 0
    for position in 0..<32 {
      if hyphens, isAfterHyphen(position) {
        if text[next] != 45 { return nil }
        next += 1
      }
      let digit: UInt8
      switch text[next] {
      case let c where (48...57).contains(c): digit = c - 48
      case let c where (97...102).contains(c): digit = c - 87
      default: return nil
      }
      next += 1
      if position < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
    }
    return Bytes16(high: high, low: low)
  }
}

/// The n-th sixteen bytes of a packed string.
@inline(__always)
func packedName(_ packed: [UInt8], _ index: Int) -> Bytes16 {
  var high: UInt64 = 0
  var low: UInt64 = 0
  let start = index * 16
  for i in start..<start + 8 { high = high << 8 | UInt64(packed[i]) }
  for i in start + 8..<start + 16 { low = low << 8 | UInt64(packed[i]) }
  return Bytes16(high: high, low: low)
}

/// Appends sixteen bytes to a packed string.
@inline(__always)
func appendPacked(_ bytes: Bytes16, to packed: inout [UInt8]) {
  for word in [bytes.high, bytes.low] {
    for shift in stride(from: 56, through: 0, by: -8) {
      packed.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
    }
  }
}
