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
    writer.array(7)
    writer.uint(2 as UInt64)
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
    writer.bool(rules.appliesWhenClosed)
    return writer.bytes
  }

  init(rules: Rules, named: [String]?) {
    self.rules = rules
    self.named = named
  }

  init(decoding bytes: [UInt8]) throws(CBORError) {
    var reader = CBORReader(bytes)
    let count = try reader.array(max: 7)
    guard count >= 6, try reader.uint() == 2 else { throw .unexpected("settings of version 2") }
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
    // Files that were attached before there was this rule do not say.
    if count == 7 { rules.appliesWhenClosed = try reader.bool() }
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

  package var isMissing: Bool { lostFingerprint != nil }

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
