internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// A table as it is described in the zone (format §6, note kind 1): structured, never SQL, so that a device without
/// the app's file can make the table and nothing else.
///
/// `[1, without rowid, strict, autoincrement, columns, foreign keys, indexes, verdict, user_version]`, and the table's
/// name if it is not that on the wire, with column = `[name, type, not null, default, key position, collation, generated]`, and its name on
/// the wire if it has another; default = null, a value in an array,
/// or the text CURRENT_…; foreign key = `[table, [from…], [to…], on update, on delete]`;
/// index = `[name or null for a UNIQUE clause, unique, [[column, descending, collation]…]]`. Its rules are a note of their own.
struct SchemaNote: Equatable {
  static let kind: UInt64 = 1

  /// The table's name on the wire.
  var wire: String
  var shape: TableShape
  /// The columns' names on the wire, as the shape orders them.
  var wires: [String]
  var verdict: Verdict
  /// Of the app that made the table so: the file's user_version.
  var version: Int64

  var names: [NamedColumn] { zip(shape.columns, wires).map { NamedColumn(name: $0.name, wire: $1) } }

  /// Indexes that a description can have: neither partial nor over expressions, the key's own left out.
  private var indexes: [IndexShape] {
    let plain = shape.indexes.filter { !$0.isPartial && !$0.hasExpressions && $0.origin != .primaryKey }
    return plain.filter { $0.origin == .unique } + plain.filter { $0.origin == .created }.sorted { $0.name < $1.name }
  }

  var encoded: [UInt8] {
    var writer = CBORWriter()
    let isRenamed = !sameBytes(shape.name, wire)
    writer.array(isRenamed ? 10 : 9)
    writer.uint(1 as UInt64)
    writer.bool(shape.isWithoutRowID)
    writer.bool(shape.isStrict)
    writer.bool(shape.isAutoincrement)
    writer.array(shape.columns.count)
    for (column, wire) in zip(shape.columns, wires) {
      let isRenamed = !sameBytes(column.name, wire)
      writer.array(isRenamed ? 8 : 7)
      writer.text(column.name)
      writer.text(column.type)
      writer.bool(column.isNotNull)
      switch column.defaultSQL.flatMap(LiteralDefault.init) {
      case nil: writer.null()
      case .value(let value)?:
        writer.array(1)
        Value(value).write(to: &writer)
      case .current(let word)?: writer.text(word)
      }
      writer.uint(column.keyPosition)
      writer.text(column.collation)
      writer.bool(column.isGenerated)
      if isRenamed { writer.text(wire) }
    }
    writer.array(shape.foreignKeys.count)
    for key in shape.foreignKeys {
      writer.array(5)
      writer.text(key.table)
      writer.texts(key.from)
      writer.texts(key.to)
      writer.text(key.onUpdate)
      writer.text(key.onDelete)
    }
    writer.array(indexes.count)
    for index in indexes {
      writer.array(3)
      if index.origin == .created { writer.text(index.name) } else { writer.null() }
      writer.bool(index.isUnique)
      writer.array(index.parts.count)
      for part in index.parts {
        writer.array(3)
        writer.text(part.column ?? "")
        writer.bool(part.isDescending)
        writer.text(part.collation)
      }
    }
    writer.text(verdict.rawValue)
    writer.int(version)
    if isRenamed { writer.text(shape.name) }
    return writer.bytes
  }

  init(
    wire: String, shape: TableShape, wires: [String], verdict: Verdict, version: Int64
  ) {
    self.version = version
    self.wire = wire
    self.shape = shape
    self.wires = wires
    self.verdict = verdict
  }

  /// Reads a description. Bounded by format §12; a newer version or anything unexpected throws.
  init(table: String, decoding bytes: [UInt8]) throws(CBORError) {
    var reader = CBORReader(bytes)
    let count = try reader.array(max: 10)
    guard count >= 9 else { throw .unexpected("a table's description") }
    guard try reader.uint() == 1 else { throw .unexpected("version 1") }
    let isWithoutRowID = try reader.bool()
    let isStrict = try reader.bool()
    let isAutoincrement = try reader.bool()
    var columns: [ColumnShape] = []
    var wires: [String] = []
    for _ in 0..<(try reader.array(max: 32_767)) {
      let count = try reader.array(max: 8)
      guard count >= 7 else { throw .unexpected("a column's description") }
      let name = try reader.text(max: 1_024)
      let type = try reader.text(max: 1_024)
      let isNotNull = try reader.bool()
      var defaultSQL: String?
      switch try reader.peek() {
      case .null: _ = try reader.null()
      case .array:
        try reader.array(exactly: 1)
        guard let value = try Value.read(from: &reader).plain else { throw .unexpected("plain value") }
        defaultSQL = literal(value)
      case .text:
        let word = try reader.text(max: 32)
        guard case .current? = LiteralDefault(word) else { throw .unexpected("default") }
        defaultSQL = word
      case .unsigned, .negative, .bytes, .map, .tag, .bool, .double: throw .unexpected("default")
      }
      columns.append(
        ColumnShape(
          name: name, type: type, isNotNull: isNotNull, defaultSQL: defaultSQL,
          keyPosition: try reader.uint(max: 32_767),
          collation: try reader.text(max: 1_024), isGenerated: try reader.bool()))
      wires.append(count == 8 ? try reader.text(max: 1_024) : name)
    }
    var foreignKeys: [ForeignKeyShape] = []
    for _ in 0..<(try reader.array(max: 1_024)) {
      try reader.array(exactly: 5)
      foreignKeys.append(
        ForeignKeyShape(
          table: try reader.text(max: 1_024), from: try reader.texts(max: 1_024), to: try reader.texts(max: 1_024),
          onUpdate: try reader.text(max: 32), onDelete: try reader.text(max: 32)))
    }
    var indexes: [IndexShape] = []
    for _ in 0..<(try reader.array(max: 1_024)) {
      try reader.array(exactly: 3)
      let name = try reader.null() ? nil : try reader.text(max: 1_024)
      let isUnique = try reader.bool()
      var parts: [IndexShape.Part] = []
      for _ in 0..<(try reader.array(max: 32_767)) {
        try reader.array(exactly: 3)
        parts.append(
          IndexShape.Part(
            column: try reader.text(max: 1_024), isDescending: try reader.bool(), collation: try reader.text(max: 1_024)
          ))
      }
      indexes.append(
        IndexShape(
          name: name ?? "", isUnique: isUnique, origin: name == nil ? .unique : .created, isPartial: false,
          parts: parts,
          condition: nil))
    }
    guard let verdict = Verdict(rawValue: try reader.text(max: 32)) else { throw .unexpected("verdict") }
    let version = try reader.int()
    let name = count == 10 ? try reader.text(max: 1_024) : table
    try reader.finish()
    self.init(
      wire: table,
      shape: TableShape(
        name: name, columns: columns, isWithoutRowID: isWithoutRowID, isStrict: isStrict,
        isAutoincrement: isAutoincrement,
        foreignKeys: foreignKeys, indexes: indexes, sql: ""),
      wires: wires, verdict: verdict, version: version)
  }

  // MARK: Making the table

  /// The statements that make the table; nil if the description has anything that could not have been described, so
  /// that no text from the network ever stands unquoted in SQL unless it is one of a few known words.
  func statements() -> [String]? {
    let actions: Set<String> = ["NO ACTION", "RESTRICT", "SET NULL", "SET DEFAULT", "CASCADE"]
    let name = shape.name.lowercased()
    guard !shape.columns.isEmpty, !name.isEmpty, !name.hasPrefix("sqlite_"), !name.hasPrefix("lk_") else { return nil }
    let key = shape.key
    var lines: [String] = []
    for column in shape.columns {
      guard isPlainType(column.type), isBuiltIn(collation: column.collation), !column.isGenerated else { return nil }
      var line = quoted(column.name)
      if !column.type.isEmpty { line += " \(column.type)" }
      if key.count == 1, column.keyPosition == 1 {
        line += " PRIMARY KEY" + (shape.isAutoincrement ? " AUTOINCREMENT" : "")
      }
      if column.isNotNull { line += " NOT NULL" }
      if let sql = column.defaultSQL {
        guard let known = LiteralDefault(sql) else { return nil }
        line += " DEFAULT \(known.sql)"
      }
      if column.collation.uppercased() != "BINARY" { line += " COLLATE \(column.collation.uppercased())" }
      lines.append(line)
    }
    if key.count > 1 { lines.append("PRIMARY KEY (\(key.map { quoted($0.name) }.joined(separator: ", ")))") }
    for index in shape.indexes where index.origin == .unique {
      guard let parts = parts(of: index) else { return nil }
      lines.append("UNIQUE (\(parts))")
    }
    for foreign in shape.foreignKeys {
      guard actions.contains(foreign.onUpdate), actions.contains(foreign.onDelete), !foreign.from.isEmpty else {
        return nil
      }
      var line = "FOREIGN KEY (\(foreign.from.map(quoted).joined(separator: ", "))) REFERENCES \(quoted(foreign.table))"
      if !foreign.to.isEmpty { line += " (\(foreign.to.map(quoted).joined(separator: ", ")))" }
      if foreign.onUpdate != "NO ACTION" { line += " ON UPDATE \(foreign.onUpdate)" }
      if foreign.onDelete != "NO ACTION" { line += " ON DELETE \(foreign.onDelete)" }
      lines.append(line)
    }
    let options = [shape.isWithoutRowID ? "WITHOUT ROWID" : nil, shape.isStrict ? "STRICT" : nil].compactMap(\.self)
    var out = [
      "CREATE TABLE main.\(quoted(shape.name)) (\(lines.joined(separator: ", ")))\(options.isEmpty ? "" : " ")\(options.joined(separator: ", "))"
    ]
    for index in shape.indexes where index.origin == .created {
      guard let parts = parts(of: index), !index.name.lowercased().hasPrefix("sqlite_"),
        !index.name.lowercased().hasPrefix("lk_")
      else {
        return nil
      }
      out.append(
        "CREATE \(index.isUnique ? "UNIQUE " : "")INDEX main.\(quoted(index.name)) ON \(quoted(shape.name)) (\(parts))")
    }
    return out
  }

  private func parts(of index: IndexShape) -> String? {
    guard !index.parts.isEmpty, index.parts.allSatisfy({ isBuiltIn(collation: $0.collation) }) else { return nil }
    return index.parts.map { part in
      "\(quoted(part.column ?? "")) COLLATE \(part.collation.uppercased())\(part.isDescending ? " DESC" : "")"
    }.joined(separator: ", ")
  }
}

/// The database as it is described in the zone (format §6, note kind 2, key `database`):
/// `[1, user_version, application_id, [what a file made from the description would lack…]]`.
struct DatabaseNote: Equatable {
  static let kind: UInt64 = 2
  static let key = "database"

  var userVersion: Int64
  var applicationID: Int64
  var needsTemplate: [String]

  var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(4)
    writer.uint(1 as UInt64)
    writer.int(userVersion)
    writer.int(applicationID)
    writer.texts(needsTemplate)
    return writer.bytes
  }

  init(userVersion: Int64, applicationID: Int64, needsTemplate: [String]) {
    self.userVersion = userVersion
    self.applicationID = applicationID
    self.needsTemplate = needsTemplate
  }

  init(decoding bytes: [UInt8]) throws(CBORError) {
    var reader = CBORReader(bytes)
    try reader.array(exactly: 4)
    guard try reader.uint() == 1 else { throw .unexpected("version 1") }
    userVersion = try reader.int()
    applicationID = try reader.int()
    needsTemplate = try reader.texts(max: 65_536)
    try reader.finish()
  }
}
