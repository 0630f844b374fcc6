/// Deterministic CBOR (RFC 8949 §4.2.1), the only encoding that Latchkey signs, hashes or seals.
///
/// One value has one encoding: shortest heads, definite lengths, no indefinite strings, and floating-point numbers
/// always as eight bytes (so that every bit of a SQLite REAL survives). The reader refuses everything else, which
/// makes "decode, encode again and compare" true by construction; the tests check it.

/// Why bytes are not a value of this format.
public enum CBORError: Error, Equatable, Sendable {
  /// The bytes end inside a value, or a length points past the end.
  case truncated
  /// Bytes follow the value.
  case trailing
  /// A head is longer than needed, or a form that deterministic encoding forbids.
  case notDeterministic
  /// A value of another kind stands where this one was expected.
  case unexpected(String)
  /// An integer does not fit.
  case range
  /// A text string is not UTF-8.
  case notUTF8
  /// Deeper, longer or more than the stated bound.
  case limit(String)
}

/// What kind of value comes next.
public enum CBORKind: Equatable, Sendable {
  case unsigned, negative, bytes, text, array, map, tag, bool, null, double
}

/// Writes deterministic CBOR into one growing buffer.
public struct CBORWriter: Sendable {
  /// What has been written.
  public private(set) var bytes: [UInt8] = []

  public init(reserving capacity: Int = 256) { bytes.reserveCapacity(capacity) }

  @inline(__always)
  private mutating func head(_ major: UInt8, _ value: UInt64) {
    let m = major << 5
    switch value {
    case 0..<24: bytes.append(m | UInt8(value))
    case 24...0xff:
      bytes.append(m | 24)
      bytes.append(UInt8(value))
    case 0x100...0xffff:
      bytes.append(m | 25)
      bytes.append(UInt8(truncatingIfNeeded: value >> 8))
      bytes.append(UInt8(truncatingIfNeeded: value))
    case 0x1_0000...0xffff_ffff:
      bytes.append(m | 26)
      for shift in stride(from: 24, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
      }
    default:
      bytes.append(m | 27)
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
      }
    }
  }

  public mutating func uint(_ value: UInt64) { head(0, value) }
  public mutating func uint(_ value: Int) { head(0, UInt64(value)) }
  public mutating func int(_ value: Int64) {
    if value >= 0 { head(0, UInt64(value)) } else { head(1, UInt64(bitPattern: ~value)) }
  }
  public mutating func byteString(_ value: [UInt8]) {
    head(2, UInt64(value.count))
    bytes.append(contentsOf: value)
  }
  public mutating func byteString(_ value: ArraySlice<UInt8>) {
    head(2, UInt64(value.count))
    bytes.append(contentsOf: value)
  }
  public mutating func text(_ value: String) {
    var value = value
    value.withUTF8 { utf8 in
      head(3, UInt64(utf8.count))
      bytes.append(contentsOf: utf8)
    }
  }
  /// Text given as bytes that the caller knows to be UTF-8.
  public mutating func text(utf8 value: [UInt8]) {
    head(3, UInt64(value.count))
    bytes.append(contentsOf: value)
  }
  public mutating func array(_ count: Int) { head(4, UInt64(count)) }
  public mutating func map(_ count: Int) { head(5, UInt64(count)) }
  public mutating func tag(_ value: UInt64) { head(6, value) }
  public mutating func bool(_ value: Bool) { bytes.append(value ? 0xf5 : 0xf4) }
  public mutating func null() { bytes.append(0xf6) }
  /// Always eight bytes, bit for bit.
  public mutating func double(_ value: Double) {
    bytes.append(0xfb)
    let bits = value.bitPattern
    for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift))) }
  }
  /// Bytes that are one or more complete encoded values already.
  public mutating func raw(_ encoded: [UInt8]) { bytes.append(contentsOf: encoded) }
  public mutating func raw(_ encoded: ArraySlice<UInt8>) { bytes.append(contentsOf: encoded) }
  public mutating func id(_ value: some FixedBytes) { byteString(value.bytes) }
}

/// Reads deterministic CBOR. Every length is checked against what is there before anything is allocated.
public struct CBORReader: Sendable {
  private let source: [UInt8]
  /// Index of the next byte, for messages and for slicing out what was read.
  public private(set) var position: Int
  private let end: Int

  public init(_ bytes: [UInt8]) {
    source = bytes
    position = 0
    end = bytes.count
  }

  public var isAtEnd: Bool { position == end }

  /// Throws unless everything was read.
  public func finish() throws(CBORError) {
    if position != end { throw .trailing }
  }

  /// The kind of the next value, without reading it.
  public func peek() throws(CBORError) -> CBORKind {
    guard position < end else { throw .truncated }
    let byte = source[position]
    switch byte >> 5 {
    case 0: return .unsigned
    case 1: return .negative
    case 2: return .bytes
    case 3: return .text
    case 4: return .array
    case 5: return .map
    case 6: return .tag
    default:
      switch byte {
      case 0xf4, 0xf5: return .bool
      case 0xf6: return .null
      case 0xfb: return .double
      default: throw .notDeterministic
      }
    }
  }

  @inline(__always)
  private mutating func head(_ major: UInt8, _ name: StaticString) throws(CBORError) -> UInt64 {
    guard position < end else { throw .truncated }
    let byte = source[position]
    guard byte >> 5 == major else { throw .unexpected("\(name)") }
    position += 1
    let low = byte & 31
    if low < 24 { return UInt64(low) }
    guard low <= 27 else { throw .notDeterministic }
    let width = 1 << Int(low - 24)
    guard end - position >= width else { throw .truncated }
    var value: UInt64 = 0
    for i in 0..<width { value = value << 8 | UInt64(source[position + i]) }
    position += width
    let least: UInt64 =
      switch low {
      case 24: 24
      case 25: 0x100
      case 26: 0x1_0000
      default: 0x1_0000_0000
      }
    guard value >= least else { throw .notDeterministic }
    return value
  }

  public mutating func uint() throws(CBORError) -> UInt64 { try head(0, "unsigned integer") }

  /// A small count or index: at most `max`.
  public mutating func uint(max: Int) throws(CBORError) -> Int {
    let value = try uint()
    guard value <= UInt64(max) else { throw .limit("integer over \(max)") }
    return Int(value)
  }

  public mutating func int() throws(CBORError) -> Int64 {
    guard position < end else { throw .truncated }
    if source[position] >> 5 == 1 {
      let value = try head(1, "integer")
      guard value <= UInt64(Int64.max) else { throw .range }
      return ~Int64(value)
    }
    let value = try head(0, "integer")
    guard value <= UInt64(Int64.max) else { throw .range }
    return Int64(value)
  }

  @inline(__always)
  private mutating func span(_ major: UInt8, _ name: StaticString, _ max: Int) throws(CBORError) -> Range<Int> {
    let length = try head(major, name)
    guard length <= UInt64(end - position) else { throw .truncated }
    guard length <= UInt64(max) else { throw .limit("string over \(max) bytes") }
    let range = position..<position + Int(length)
    position = range.upperBound
    return range
  }

  public mutating func byteString(max: Int = .max) throws(CBORError) -> [UInt8] {
    Array(source[try span(2, "byte string", max)])
  }

  /// The UTF-8 bytes of a text string, checked.
  public mutating func utf8(max: Int = .max) throws(CBORError) -> [UInt8] {
    let bytes = Array(source[try span(3, "text", max)])
    guard isUTF8(bytes) else { throw .notUTF8 }
    return bytes
  }

  public mutating func text(max: Int = 65_536) throws(CBORError) -> String {
    String(decoding: try utf8(max: max), as: UTF8.self)
  }

  /// The element count of an array. Never more than the bytes that are left could hold.
  public mutating func array(max: Int = .max) throws(CBORError) -> Int {
    let count = try head(4, "array")
    guard count <= UInt64(end - position) else { throw .truncated }
    guard count <= UInt64(max) else { throw .limit("array over \(max) elements") }
    return Int(count)
  }

  /// An array of exactly `count` elements.
  public mutating func array(exactly count: Int) throws(CBORError) {
    guard try array() == count else { throw .unexpected("array of \(count)") }
  }

  public mutating func map(max: Int = .max) throws(CBORError) -> Int {
    let count = try head(5, "map")
    guard count <= UInt64((end - position) / 2) else { throw .truncated }
    guard count <= UInt64(max) else { throw .limit("map over \(max) pairs") }
    return Int(count)
  }

  public mutating func tag() throws(CBORError) -> UInt64 { try head(6, "tag") }

  public mutating func bool() throws(CBORError) -> Bool {
    guard position < end else { throw .truncated }
    switch source[position] {
    case 0xf4:
      position += 1
      return false
    case 0xf5:
      position += 1
      return true
    default: throw .unexpected("boolean")
    }
  }

  /// Reads a null if one is next.
  public mutating func null() throws(CBORError) -> Bool {
    guard position < end else { throw .truncated }
    guard source[position] == 0xf6 else { return false }
    position += 1
    return true
  }

  public mutating func double() throws(CBORError) -> Double {
    guard position < end else { throw .truncated }
    guard source[position] == 0xfb else { throw .unexpected("double") }
    guard end - position >= 9 else { throw .truncated }
    var bits: UInt64 = 0
    for i in 1...8 { bits = bits << 8 | UInt64(source[position + i]) }
    position += 9
    return Double(bitPattern: bits)
  }

  public mutating func id<ID: FixedBytes>(_: ID.Type = ID.self) throws(CBORError) -> ID {
    guard let value = ID(try byteString(max: ID.byteCount)) else { throw .unexpected("\(ID.byteCount) bytes") }
    return value
  }

  /// Reads one complete value of any kind and returns its bytes. At most `depth` levels deep.
  public mutating func raw(depth: Int = 32) throws(CBORError) -> [UInt8] {
    let start = position
    try skip(depth: depth)
    return Array(source[start..<position])
  }

  private mutating func skip(depth: Int) throws(CBORError) {
    guard depth > 0 else { throw .limit("nesting too deep") }
    switch try peek() {
    case .unsigned: _ = try uint()
    case .negative: _ = try head(1, "integer")
    case .bytes: _ = try span(2, "byte string", .max)
    case .text: _ = try utf8()
    case .array: for _ in 0..<(try array()) { try skip(depth: depth - 1) }
    case .map:
      var former: Range<Int>?
      for _ in 0..<(try map()) {
        let start = position
        try skip(depth: depth - 1)
        // RFC 8949 §4.2.1: keys ascend byte by byte, so none is there twice.
        if let former, !source[former].lexicographicallyPrecedes(source[start..<position]) { throw .notDeterministic }
        former = start..<position
        try skip(depth: depth - 1)
      }
    case .tag:
      _ = try tag()
      try skip(depth: depth - 1)
    case .bool: _ = try bool()
    case .null: _ = try null()
    case .double: _ = try double()
    }
  }
}

/// Whether bytes are well-formed UTF-8 (Unicode 15, table 3-7).
public func isUTF8(_ bytes: [UInt8]) -> Bool {
  bytes.withUnsafeBufferPointer { buffer in
    if buffer.allSatisfy({ $0 < 0x80 }) { return true }
    var iterator = buffer.makeIterator()
    var decoder = UTF8()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue: continue
      case .emptyInput: return true
      case .error: return false
      }
    }
  }
}
