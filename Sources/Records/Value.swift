public import LatchkeyEncoding

/// One value of one column, exactly as SQLite holds it (format §5).
///
/// Two values are equal iff their bytes on the wire are: doubles compare bit by bit, text byte by byte.
public enum Value: Sendable {
  case null
  case integer(Int64)
  case real(Double)
  /// The exact bytes of a text, which need not be UTF-8.
  case text([UInt8])
  case blob([UInt8])
  /// A reference to another row, by its record name.
  case reference(RecordName)
  /// The values of columns that are one cell, in the order of the cell's name. No element is itself `together`.
  case together([Value])
  /// A kind of value from a newer version: the raw CBOR of one tagged value, kept and handed on.
  case unknown([UInt8])

  /// Text from a string.
  public static func text(_ string: String) -> Value { .text(Array(string.utf8)) }

  /// Largest value that is sent, in bytes; the row of a larger one waits (format §5).
  public static let maximumByteCount = 16 << 20

  /// How deep a value may nest.
  static let maximumDepth = 16

  public var isNull: Bool {
    if case .null = self { return true }
    return false
  }

  /// Bytes of content: what ``maximumByteCount`` bounds, and at most nine less than the value takes on the wire.
  public var byteCount: Int {
    switch self {
    case .null: 1
    case .integer(let value):
      switch value.magnitude {
      case 0..<24: 1
      case 24..<256: 2
      case 256..<65_536: 3
      case 65_536..<4_294_967_296: 5
      default: 9
      }
    case .real: 9
    case .text(let bytes), .blob(let bytes), .unknown(let bytes): bytes.count
    case .reference: 18
    case .together(let values): values.reduce(0) { $0 + $1.byteCount + 9 }
    }
  }
}

extension Value: Hashable {
  public static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.integer(let x), .integer(let y)): x == y
    case (.real(let x), .real(let y)): x.bitPattern == y.bitPattern
    case (.text(let x), .text(let y)): x == y
    case (.blob(let x), .blob(let y)): x == y
    case (.reference(let x), .reference(let y)): x == y
    case (.together(let x), .together(let y)): x == y
    case (.unknown(let x), .unknown(let y)): x == y
    case (.null, _), (.integer, _), (.real, _), (.text, _), (.blob, _), (.reference, _), (.together, _), (.unknown, _):
      false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .integer(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value.bitPattern)
    case .text(let bytes), .blob(let bytes), .unknown(let bytes): hasher.combine(bytes)
    case .reference(let name): hasher.combine(name)
    case .together(let values): hasher.combine(values)
    }
  }
}

extension Value {
  private enum Tag {
    static let textThatIsNotUTF8: UInt64 = 8
    static let reference: UInt64 = 9
    static let together: UInt64 = 11
  }

  /// Appends the value's one encoding.
  public func write(to writer: inout CBORWriter) {
    switch self {
    case .null: writer.null()
    case .integer(let value): writer.int(value)
    case .real(let value): writer.double(value)
    case .text(let bytes):
      if isUTF8(bytes) {
        writer.text(utf8: bytes)
      } else {
        writer.tag(Tag.textThatIsNotUTF8)
        writer.byteString(bytes)
      }
    case .blob(let bytes): writer.byteString(bytes)
    case .reference(let name):
      writer.tag(Tag.reference)
      writer.id(name)
    case .together(let values):
      writer.tag(Tag.together)
      writer.array(values.count)
      for value in values { value.write(to: &writer) }
    case .unknown(let raw): writer.raw(raw)
    }
  }

  /// The value's one encoding.
  public var encoded: [UInt8] {
    var writer = CBORWriter(reserving: byteCount + 9)
    write(to: &writer)
    return writer.bytes
  }

  /// Reads one value. Tags that this version does not know are kept as ``unknown(_:)``.
  public static func read(from reader: inout CBORReader) throws(CBORError) -> Value {
    try read(from: &reader, isElement: false)
  }

  private static func read(from reader: inout CBORReader, isElement: Bool) throws(CBORError) -> Value {
    switch try reader.peek() {
    case .null:
      _ = try reader.null()
      return .null
    case .unsigned, .negative: return .integer(try reader.int())
    case .double: return .real(try reader.double())
    case .text: return .text(try reader.utf8())
    case .bytes: return .blob(try reader.byteString())
    case .tag:
      let start = reader
      switch try reader.tag() {
      case Tag.textThatIsNotUTF8:
        let bytes = try reader.byteString()
        if isUTF8(bytes) { throw .notDeterministic }
        return .text(bytes)
      case Tag.reference: return .reference(try reader.id())
      case Tag.together:
        if isElement { throw .unexpected("value that is not an array") }
        let count = try reader.array(max: 32_767)
        var values: [Value] = []
        values.reserveCapacity(count)
        for _ in 0..<count { values.append(try read(from: &reader, isElement: true)) }
        return .together(values)
      default:
        reader = start
        return .unknown(try reader.raw(depth: maximumDepth))
      }
    case .array, .map, .bool: throw .unexpected("value")
    }
  }
}
