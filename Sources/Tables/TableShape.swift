internal import LatchkeyRecords
internal import LatchkeySQLite

/// One column as the schema declares it.
struct ColumnShape: Equatable, Sendable {
  let name: String
  let type: String
  let isNotNull: Bool
  /// The default as SQL text; nil for none.
  let defaultSQL: String?
  /// Position in the primary key, from 1; 0 for columns outside it.
  let keyPosition: Int
  /// BINARY, NOCASE, RTRIM or an app's own.
  let collation: String
  /// Computed by SQLite, virtual or stored: never written.
  let isGenerated: Bool

  var affinity: Affinity { Affinity(declared: type) }
}

/// One declared foreign key.
struct ForeignKeyShape: Equatable, Sendable {
  let table: String
  let from: [String]
  /// Empty where the declaration names no columns: the parent's primary key.
  let to: [String]
  let onUpdate: String
  let onDelete: String
}

/// One index.
struct IndexShape: Equatable, Sendable {
  /// How the index came to be.
  enum Origin: String, Sendable { case created = "c", unique = "u", primaryKey = "pk" }

  struct Part: Equatable, Sendable {
    /// Nil for an expression.
    let column: String?
    let isDescending: Bool
    let collation: String
  }

  let name: String
  let isUnique: Bool
  let origin: Origin
  let isPartial: Bool
  let parts: [Part]
  /// What follows WHERE in a partial index's declaration, as the app wrote it.
  let condition: String?

  var hasExpressions: Bool { parts.contains { $0.column == nil } }
}

/// A table as the schema declares it.
struct TableShape: Equatable, Sendable {
  let name: String
  let columns: [ColumnShape]
  let isWithoutRowID: Bool
  let isStrict: Bool
  let isAutoincrement: Bool
  let foreignKeys: [ForeignKeyShape]
  let indexes: [IndexShape]
  /// The declaration, as the app wrote it.
  let sql: String

  /// The primary key's columns, in its order.
  var key: [ColumnShape] { columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition } }

  func column(_ name: String) -> ColumnShape? {
    columns.first { $0.name == name } ?? columns.first { $0.name.lowercased() == name.lowercased() }
  }

  /// The same table as if it did not have some columns.
  func without(_ gone: Set<String>) -> TableShape {
    TableShape(
      name: name, columns: columns.filter { !gone.contains($0.name) }, isWithoutRowID: isWithoutRowID,
      isStrict: isStrict,
      isAutoincrement: isAutoincrement, foreignKeys: foreignKeys, indexes: indexes, sql: sql)
  }

  /// Whether the key is another name of the rowid, so that SQLite gives a free one for NULL.
  var keyIsRowID: Bool {
    guard !isWithoutRowID, key.count == 1, let column = key.first, column.type.uppercased() == "INTEGER" else {
      return false
    }
    // "INTEGER PRIMARY KEY DESC" is no rowid, and then there is an index for the key.
    return !indexes.contains { $0.origin == .primaryKey }
  }

  /// What a table made from the structured description would lack (format §6, note kind 1).
  var indescribable: [String] {
    var out: [String] = []
    let tokens = Set(sqlTokens(sql))
    if tokens.contains("CHECK") { out.append("the table \(name) has CHECK constraints") }
    if tokens.contains("DEFERRABLE") { out.append("the table \(name) has deferred foreign keys") }
    if tokens.contains("CONFLICT") { out.append("the table \(name) has ON CONFLICT clauses") }
    if columns.contains(where: \.isGenerated) { out.append("the table \(name) has generated columns") }
    for column in columns {
      if let sql = column.defaultSQL, LiteralDefault(sql) == nil {
        out.append("the default of \(name).\(column.name) is an expression")
      }
      if !isPlainType(column.type) { out.append("the type of \(name).\(column.name) is unusual") }
      if !isBuiltIn(collation: column.collation) { out.append("\(name).\(column.name) has a collation of the app") }
    }
    for index in indexes {
      if index.isPartial || index.hasExpressions {
        out.append("the index \(index.name) is partial or over expressions")
      }
      if index.parts.contains(where: { !isBuiltIn(collation: $0.collation) }) {
        out.append("the index \(index.name) has a collation of the app")
      }
    }
    return out
  }
}

func isBuiltIn(collation: String) -> Bool { ["BINARY", "NOCASE", "RTRIM"].contains(collation.uppercased()) }

/// Whether a declared type is words, with at most two numbers in parentheses, so that it can stand in a declaration
/// made from the network without being able to be anything else.
func isPlainType(_ type: String) -> Bool {
  let reserved: Set<String> = [
    "PRIMARY", "KEY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "ALWAYS", "AS",
    "CONSTRAINT", "ON", "FOREIGN", "AUTOINCREMENT", "DEFERRABLE", "INITIALLY",
  ]
  let tokens = sqlTokens(type)
  var words = 0
  var i = 0
  while i < tokens.count, let first = tokens[i].utf8.first, (65...90).contains(first) || first == 95 {
    if reserved.contains(tokens[i])
      || !tokens[i].utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) || $0 == 95 })
    {
      return false
    }
    words += 1
    i += 1
  }
  if i == tokens.count { return words > 0 || type.isEmpty }
  guard words > 0, tokens.last == ")", tokens[i] == "(" else { return false }
  let inside = tokens[(i + 1)..<(tokens.count - 1)]
  let numbers = inside.filter { $0 != "," }
  return (1...2).contains(numbers.count) && inside.count == numbers.count * 2 - 1
    && numbers.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } && $0.utf8.count < 10 }
}

/// A default that can be written down without an expression.
enum LiteralDefault: Equatable, Sendable {
  case value(SQLiteValue)
  /// CURRENT_TIME, CURRENT_DATE, CURRENT_TIMESTAMP.
  case current(String)

  /// Nil for an expression.
  init?(_ sql: String) {
    let tokens = sqlTokens(sql)
    if let number = LiteralDefault.number(sql) {
      self = .value(number)
      return
    }
    guard tokens.count == 1, let token = tokens.first else { return nil }
    switch token {
    case "NULL": self = .value(.null)
    case "TRUE": self = .value(.integer(1))
    case "FALSE": self = .value(.integer(0))
    case "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP": self = .current(token)
    default:
      guard let quote = token.first, quote == "'" || quote == "\"", token.utf8.count >= 2, token.last == quote else {
        return nil
      }
      let inner = token.dropFirst().dropLast().replacing("\(quote)\(quote)", with: String(quote))
      self = .value(SQLiteValue(String(inner)))
    }
  }

  private static func number(_ sql: String) -> SQLiteValue? {
    let text = sql.filter { !" \t\n\r".contains($0) }
    if let integer = Int64(text) { return .integer(integer) }
    guard let first = text.utf8.first, (48...57).contains(first) || first == 43 || first == 45 || first == 46,
      text.utf8.allSatisfy({ (48...57).contains($0) || [43, 45, 46, 69, 101].contains($0) }), let real = Double(text)
    else { return nil }
    return .real(real)
  }

  var sql: String {
    switch self {
    case .value(let value): literal(value)
    case .current(let word): word
    }
  }
}

/// A table in the schema, before one looks closer.
struct ListedTable: Equatable, Sendable {
  enum Kind: String, Sendable { case table, view, virtual, shadow }
  let name: String
  let kind: Kind
}

extension Connection {
  /// The tables of the file, in order of creation; neither SQLite's own nor ours.
  func listedTables() throws -> [ListedTable] {
    let order = try rows("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY rowid").compactMap {
      $0[0].string
    }
    var kinds: [String: ListedTable.Kind] = [:]
    try forEach("SELECT name, type FROM pragma_table_list WHERE schema = 'main'") { row in
      kinds[row.text(0)] = ListedTable.Kind(rawValue: row.text(1))
    }
    return order.compactMap { name in
      if name.hasPrefix("lk_") || name.lowercased().hasPrefix("sqlite_") { return nil }
      return ListedTable(name: name, kind: kinds[name] ?? .table)
    }
  }

  /// The shape of a table; nil if there is none of that name.
  func shape(of table: String) throws -> TableShape? {
    guard
      let row = try first(
        "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE",
        [SQLiteValue(table)]),
      let name = row[0].string, let sql = row[1].string
    else { return nil }
    let flags = try first(
      "SELECT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?", [SQLiteValue(name)])
    var isAutoincrement = false
    var columns: [ColumnShape] = []
    try forEach(
      "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid",
      [SQLiteValue(name)]
    ) { row in
      let traits = self.traits(table: name, column: row.text(0))
      isAutoincrement = isAutoincrement || traits?.isAutoincrement == true
      columns.append(
        ColumnShape(
          name: row.text(0), type: row.text(1), isNotNull: row.int(2) != 0,
          defaultSQL: row.isNull(3) ? nil : row.text(3),
          keyPosition: Int(row.int(4)), collation: (traits?.collation ?? "BINARY").uppercased(),
          isGenerated: row.int(5) == 2 || row.int(5) == 3))
    }
    return TableShape(
      name: name, columns: columns, isWithoutRowID: flags?[0].integer == 1, isStrict: flags?[1].integer == 1,
      isAutoincrement: isAutoincrement, foreignKeys: try foreignKeys(of: name), indexes: try indexes(of: name), sql: sql
    )
  }

  private func foreignKeys(of table: String) throws -> [ForeignKeyShape] {
    var byID: [Int64: ForeignKeyShape] = [:]
    try forEach(
      "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete FROM pragma_foreign_key_list(?) ORDER BY id, seq",
      [SQLiteValue(table)]
    ) { row in
      let known = byID[row.int(0)]
      byID[row.int(0)] = ForeignKeyShape(
        table: row.text(1), from: (known?.from ?? []) + [row.text(2)],
        to: (known?.to ?? []) + (row.isNull(3) ? [] : [row.text(3)]),
        onUpdate: row.text(4), onDelete: row.text(5))
    }
    // SQLite lists the last declared first.
    return byID.keys.sorted(by: >).compactMap { byID[$0] }
  }

  private func indexes(of table: String) throws -> [IndexShape] {
    var out: [IndexShape] = []
    for row in try rows(
      "SELECT name, \"unique\", origin, partial FROM pragma_index_list(?) ORDER BY seq DESC", [SQLiteValue(table)])
    {
      guard let name = row[0].string, let origin = row[2].string.flatMap(IndexShape.Origin.init) else { continue }
      var parts: [IndexShape.Part] = []
      try forEach(
        "SELECT name, \"desc\", coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno", [SQLiteValue(name)]
      ) { part in
        parts.append(
          IndexShape.Part(
            column: part.isNull(0) ? nil : part.text(0), isDescending: part.int(1) != 0,
            collation: part.text(2).uppercased()))
      }
      var condition: String?
      if row[3].integer == 1 {
        let sql =
          try first("SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?", [SQLiteValue(name)])?[0]
          .string ?? ""
        condition = conditionOf(index: sql)
      }
      out.append(
        IndexShape(
          name: name, isUnique: row[1].integer == 1, origin: origin, isPartial: row[3].integer == 1, parts: parts,
          condition: condition))
    }
    return out
  }
}

/// What follows the WHERE of a CREATE INDEX that stands outside all parentheses.
private func conditionOf(index sql: String) -> String? {
  var depth = 0
  for (token, end) in sqlLexemes(sql) {
    switch token {
    case "(": depth += 1
    case ")": depth -= 1
    case "WHERE" where depth == 0: return String(decoding: Array(sql.utf8)[end...], as: UTF8.self)
    default: break
    }
  }
  return nil
}
