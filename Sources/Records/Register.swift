public import LatchkeyEncoding

/// What a stamp belongs to: a record is a set of registers, each with a stamp and a value (format §5).
///
/// Registers are ordered as their encoded keys are, byte by byte. Names of columns are compared byte by byte too: two
/// spellings of one accented letter are two columns to SQLite.
public enum Register: Sendable {
  /// Insert or re-insert.
  case born
  /// Delete.
  case tombstone
  /// The zone that the record belongs to.
  case home
  /// Which record this one is a duplicate of.
  case alias
  /// The zone that the record is lent into.
  case lend
  /// A row or (with a column) a reference that a dead parent hides.
  case hide(column: String?)
  /// One origin's running contribution to a sum.
  indirect case additive(column: String, Origin)
  /// A column, or columns that are one cell (``together(_:)``).
  case cell(String)
  /// A register of a newer version: its raw key, kept, merged by stamp and handed on.
  case unknown([UInt8])

  /// The register of columns that are written and merged as one cell: their wire names in declared order, joined by
  /// U+001F.
  public static func together(_ columns: [String]) -> Register { .cell(columns.joined(separator: "\u{1f}")) }

  /// Longest wire name of a table or column, in bytes of UTF-8 (format §12).
  public static let maximumNameByteCount = 1024
  /// Longest encoded key, in bytes: bounds a joined name and an unknown register's key.
  static let maximumKeyByteCount = 16_384
}

extension Register: Hashable {
  public static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.born, .born), (.tombstone, .tombstone), (.home, .home), (.alias, .alias), (.lend, .lend): true
    case (.hide(let x), .hide(let y)):
      switch (x, y) {
      case (nil, nil): true
      case (let x?, let y?): sameBytes(x, y)
      default: false
      }
    case (.additive(let x, let p), .additive(let y, let q)): p == q && sameBytes(x, y)
    case (.cell(let x), .cell(let y)): sameBytes(x, y)
    case (.unknown(let x), .unknown(let y)): x == y
    case (.born, _), (.tombstone, _), (.home, _), (.alias, _), (.lend, _), (.hide, _), (.additive, _), (.cell, _),
      (.unknown, _):
      false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .born, .tombstone, .home, .alias, .lend: hasher.combine(number)
    case .hide(let column):
      hasher.combine(number)
      hasher.combine(column)
    case .additive(let column, let origin):
      hasher.combine(number)
      hasher.combine(column)
      hasher.combine(origin)
    case .cell(let column): hasher.combine(column)
    case .unknown(let raw): hasher.combine(raw)
    }
  }

  /// The number that begins the key; nil where the key is a text or not known.
  private var number: UInt64? {
    switch self {
    case .born: 0
    case .tombstone: 1
    case .home: 2
    case .alias: 3
    case .lend: 4
    case .hide: 5
    case .additive: 6
    case .cell, .unknown: nil
    }
  }
}

extension Register: Comparable {
  public static func < (a: Self, b: Self) -> Bool {
    switch (a, b) {
    // A text's head holds its length, so shorter names come first.
    case (.cell(let x), .cell(let y)):
      return x.utf8.count != y.utf8.count ? x.utf8.count < y.utf8.count : x.utf8.lexicographicallyPrecedes(y.utf8)
    case (.born, .cell), (.tombstone, .cell), (.home, .cell), (.alias, .cell), (.lend, .cell): return true
    case (.cell, .born), (.cell, .tombstone), (.cell, .home), (.cell, .alias), (.cell, .lend): return false
    default: return a.encoded.lexicographicallyPrecedes(b.encoded)
    }
  }
}

extension Register {
  /// Appends the key.
  public func write(to writer: inout CBORWriter) {
    switch self {
    case .born: writer.uint(0 as UInt64)
    case .tombstone: writer.uint(1 as UInt64)
    case .home: writer.uint(2 as UInt64)
    case .alias: writer.uint(3 as UInt64)
    case .lend: writer.uint(4 as UInt64)
    case .hide(let column):
      writer.array(2)
      writer.uint(5 as UInt64)
      if let column { writer.text(column) } else { writer.null() }
    case .additive(let column, let origin):
      writer.array(4)
      writer.uint(6 as UInt64)
      writer.text(column)
      writer.id(origin.device)
      writer.id(origin.incarnation)
    case .cell(let column): writer.text(column)
    case .unknown(let raw): writer.raw(raw)
    }
  }

  /// The key.
  public var encoded: [UInt8] {
    var writer = CBORWriter(reserving: 32)
    write(to: &writer)
    return writer.bytes
  }

  /// Reads one key. Numbers and arrays that this version does not know are kept as ``unknown(_:)``.
  public static func read(from reader: inout CBORReader) throws(CBORError) -> Register {
    let start = reader
    switch try reader.peek() {
    case .text:
      let name = try reader.text(max: maximumKeyByteCount)
      if name.isEmpty { throw .unexpected("name") }
      return .cell(name)
    case .unsigned:
      switch try reader.uint() {
      case 0: return .born
      case 1: return .tombstone
      case 2: return .home
      case 3: return .alias
      case 4: return .lend
      case 5, 6: throw .unexpected("register")
      default: return try keep(from: start, to: &reader)
      }
    case .array:
      let count = try reader.array()
      guard count > 0 else { throw .unexpected("register") }
      guard try reader.peek() == .unsigned else { throw .unexpected("register") }
      switch try reader.uint() {
      case 0...4: throw .unexpected("register")
      case 5:
        guard count == 2 else { throw .unexpected("array of 2") }
        return .hide(column: try reader.null() ? nil : try columnName(&reader))
      case 6:
        guard count == 4 else { throw .unexpected("array of 4") }
        return .additive(
          column: try columnName(&reader), Origin(device: try reader.id(), incarnation: try reader.id()))
      default: return try keep(from: start, to: &reader)
      }
    case .negative, .bytes, .map, .tag, .bool, .null, .double: throw .unexpected("register")
    }
  }

  private static func columnName(_ reader: inout CBORReader) throws(CBORError) -> String {
    let name = try reader.text(max: maximumNameByteCount)
    if name.isEmpty { throw .unexpected("name") }
    return name
  }

  private static func keep(from start: CBORReader, to reader: inout CBORReader) throws(CBORError) -> Register {
    reader = start
    let raw = try reader.raw(depth: Value.maximumDepth)
    if raw.count > maximumKeyByteCount { throw .limit("register key over \(maximumKeyByteCount) bytes") }
    return .unknown(raw)
  }
}

/// Whether two names are the same bytes. (`==` of strings also takes canonically equivalent ones for equal.)
@inline(__always)
func sameBytes(_ a: String, _ b: String) -> Bool {
  guard a.utf8.count == b.utf8.count else { return false }
  let inPlace = a.utf8.withContiguousStorageIfAvailable { x in
    b.utf8.withContiguousStorageIfAvailable { y in x.elementsEqual(y) }
  }
  return inPlace.flatMap { $0 } ?? a.utf8.elementsEqual(b.utf8)
}
