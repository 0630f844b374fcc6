internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What attaching decided, kept in the file so that it can be decided again the same way when the schema changes.
struct Settings: Equatable {
  var rules: Rules
  /// The tables that were named; nil for all that may sync.
  var named: [String]?
  /// Whether rules come from the zone's notes: the file was made by joining.
  var adopts = false
  /// Whether tables are made from the zone's notes.
  var createsTables = false
  /// What the zone's notes say of a table; only if ``adopts``.
  var adopted: [String: Verdict] = [:]

  var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(6)
    writer.uint(1 as UInt64)
    writer.array(rules.tables.count)
    for name in rules.tables.keys.sorted() {
      writer.array(2)
      writer.text(name)
      (rules.tables[name] ?? TableRules()).write(to: &writer)
    }
    if let named { writer.texts(named) } else { writer.null() }
    writer.bool(adopts)
    writer.bool(createsTables)
    writer.array(adopted.count)
    for name in adopted.keys.sorted() {
      writer.array(2)
      writer.text(name)
      writer.text(adopted[name]?.rawValue ?? "")
    }
    return writer.bytes
  }

  init(rules: Rules, named: [String]?) {
    self.rules = rules
    self.named = named
  }

  init(decoding bytes: [UInt8]) throws(CBORError) {
    var reader = CBORReader(bytes)
    try reader.array(exactly: 6)
    _ = try reader.uint()
    rules = Rules()
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      let name = try reader.text()
      rules.tables[name] = try TableRules(from: &reader)
    }
    named = try reader.null() ? nil : try reader.texts()
    adopts = try reader.bool()
    createsTables = try reader.bool()
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      let name = try reader.text()
      adopted[name] = Verdict(rawValue: try reader.text())
    }
  }
}

extension CBORWriter {
  mutating func texts(_ values: [String]) {
    array(values.count)
    for value in values { text(value) }
  }
}

extension CBORReader {
  mutating func texts(max: Int = 65_536) throws(CBORError) -> [String] {
    var out: [String] = []
    for _ in 0..<(try array(max: max)) { out.append(try text()) }
    return out
  }
}

extension TableRules {
  /// `[identity, references, local, local columns, compress]`; identity is null, 0 generated, 1 primary key, or columns.
  func write(to writer: inout CBORWriter) {
    writer.array(5)
    switch identity {
    case nil: writer.null()
    case .generated?: writer.uint(0 as UInt64)
    case .primaryKey?: writer.uint(1 as UInt64)
    case .columns(let columns)?: writer.texts(columns)
    }
    writer.array(references.count)
    for column in references.keys.sorted() {
      guard let reference = references[column] else { continue }
      writer.array(4)
      writer.text(column)
      writer.text(reference.table)
      if let action = reference.onDelete { writer.text(action.rawValue) } else { writer.null() }
      writer.array(reference.none.count)
      for value in reference.none { Value(value).write(to: &writer) }
    }
    writer.bool(isLocal)
    writer.texts(localColumns)
    writer.bool(compress)
  }

  init(from reader: inout CBORReader) throws(CBORError) {
    try reader.array(exactly: 5)
    var identity: Identity?
    switch try reader.peek() {
    case .null: _ = try reader.null()
    case .unsigned: identity = try reader.uint(max: 1) == 0 ? .generated : .primaryKey
    case .array: identity = .columns(try reader.texts(max: 1_024))
    case .negative, .bytes, .text, .map, .tag, .bool, .double: throw .unexpected("identity")
    }
    var references: [String: ReferenceRule] = [:]
    for _ in 0..<(try reader.array(max: 65_536)) {
      try reader.array(exactly: 4)
      let column = try reader.text()
      let table = try reader.text()
      var action: DeleteAction?
      if try !reader.null() {
        guard let known = DeleteAction(rawValue: try reader.text()) else { throw .unexpected("delete action") }
        action = known
      }
      var none: [SQLiteValue] = []
      for _ in 0..<(try reader.array(max: 1_024)) {
        guard let value = try Value.read(from: &reader).plain else { throw .unexpected("plain value") }
        none.append(value)
      }
      references[column] = ReferenceRule(table: table, onDelete: action, none: none)
    }
    self.init(
      identity: identity, references: references, isLocal: try reader.bool(),
      localColumns: try reader.texts(max: 65_536),
      compress: try reader.bool())
  }
}

extension Value {
  /// Stands for a value that this file no longer has, though it has its stamp and fingerprint: the app threw the table
  /// away, or the column. Never written to the wire; begins with CBOR's "undefined", which no reader takes.
  static func missing(_ hash: FieldHash) -> Value {
    // That there was none is all there is to know.
    if hash == FieldHash(Value.null) { return .null }
    var raw: [UInt8] = [0xf7]
    raw.append(word: hash.value)
    return .unknown(raw)
  }

  /// Of a value that this file no longer has; nil for all others.
  var lostFingerprint: UInt64? {
    guard case .unknown(let raw) = self, raw.count == 9, raw[0] == 0xf7 else { return nil }
    return raw[1...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  var isMissing: Bool { lostFingerprint != nil }

  /// A value as the table holds it, taken as it is.
  init(_ value: SQLiteValue) {
    switch value {
    case .null: self = .null
    case .integer(let x): self = .integer(x)
    case .real(let x): self = .real(x)
    case .text(let x): self = .text(x)
    case .blob(let x): self = .blob(x)
    }
  }

  /// The value as a table can hold it; nil for what must be resolved or is not known.
  var plain: SQLiteValue? {
    switch self {
    case .null: .null
    case .integer(let x): .integer(x)
    case .real(let x): .real(x)
    case .text(let x): .text(x)
    case .blob(let x): .blob(x)
    case .reference, .together, .unknown: nil
    }
  }
}
