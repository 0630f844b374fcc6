internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// A column's name in this file, and on the wire.
struct NamedColumn: Equatable {
  var name: String
  var wire: String
}

/// Which name on the wire each of the app's tables and columns has (format §5): the one it had when it was first attached.
///
/// A renamed table keeps its triggers, which then name it. For columns a trigger stands that does nothing and names them
/// all after UPDATE OF: SQLite rewrites that list when a column is renamed, and unlike every other mention of a column it
/// does not hinder DROP COLUMN.
extension Replica {
  /// The names of a table's columns as this file last saw them.
  func knownNames(_ id: Int64) throws -> [NamedColumn] {
    guard let bytes = try connection.first("SELECT names FROM main.lk_table WHERE id = ?", [.integer(id)])?[0].bytes
    else { return [] }
    return try decode(names: bytes)
  }

  func decode(names bytes: [UInt8]) throws -> [NamedColumn] {
    var reader = CBORReader(bytes)
    let all = try reader.texts()
    return stride(from: 0, to: all.count - 1, by: 2).map { NamedColumn(name: all[$0], wire: all[$0 + 1]) }
  }

  func save(names: [NamedColumn], _ id: Int64) throws {
    var writer = CBORWriter()
    writer.texts(names.flatMap { [$0.name, $0.wire] })
    try connection.run("UPDATE main.lk_table SET names = ? WHERE id = ?", [.blob(writer.bytes), .integer(id)])
  }

  /// What the columns that were known are called now, in the same order; nil if nothing tells, because the app made the
  /// table anew.
  private func witnessed(_ id: Int64, _ known: [NamedColumn]) throws -> [String]? {
    guard
      let sql = try connection.first(
        "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?", [SQLiteValue("lk_c\(id)")])?[0].string
    else { return nil }
    let names = columnsOfTrigger(sql)
    return names.count == known.count ? names : nil
  }

  /// What became of the columns of a table.
  struct FollowedNames {
    /// The columns with their names on the wire, in declared order.
    var names: [NamedColumn]
    /// Former name and name.
    var renamed: [(String, String)] = []
    /// Names on the wire of columns that were dropped and made anew.
    var renewed: [String] = []
  }

  /// Follows renamed, added and dropped columns of a table that is known.
  func followNames(_ id: Int64, _ shape: TableShape) throws -> FollowedNames {
    let known = try knownNames(id)
    let now = try witnessed(id, known)
    var names: [NamedColumn] = []
    var renamed: [(String, String)] = []
    var renewed: [String] = []
    var unknown: [String] = []
    var last = -1
    for column in shape.columns.map(\.name) {
      let candidates = known.indices.filter { sameBytes(now?[$0] ?? known[$0].name, column) }
      // A dropped column's name stays in the list, and another may have been given that name since.
      let moved = candidates.filter { !sameBytes(known[$0].name, column) }
      guard
        let index = candidates.count > 1 && moved.count == 1 ? moved[0] : candidates.count == 1 ? candidates[0] : nil
      else {
        unknown.append(column)
        continue
      }
      names.append(NamedColumn(name: column, wire: known[index].wire))
      // No ALTER TABLE changes the order: what stands behind a later one was dropped and added again.
      if now != nil, index < last { renewed.append(known[index].wire) }
      last = max(last, index)
      if !sameBytes(known[index].name, column) { renamed.append((known[index].name, column)) }
    }
    if now == nil, !unknown.isEmpty || names.count != known.count, let said = try said(of: id, shape) {
      return FollowedNames(names: said)
    }
    let said = try schemaNote(of: id)?.names ?? []
    for column in unknown {
      func isTaken(_ wire: String) -> Bool { names.contains { sameBytes($0.wire, wire) } }
      var wire = column
      if let other = said.first(where: { sameBytes($0.name, column) }), !isTaken(other.wire) { wire = other.wire }
      if let was = former(of: column, shape, among: known + said), !isTaken(was.wire) {
        wire = was.wire
        renamed.append((was.name, column))
      }
      var count = 2
      while isTaken(wire) {
        wire = "\(column)~\(count)"
        count += 1
      }
      names.append(NamedColumn(name: column, wire: wire))
    }
    let order = shape.columns.map(\.name)
    names = order.compactMap { name in names.first { sameBytes($0.name, name) } }
    if now != nil, names.count == known.count, let end = names.last, try isRenewed(id, shape, end) {
      renewed.append(end.wire)
    }
    return FollowedNames(names: names, renamed: renamed, renewed: renewed)
  }

  /// The column that the rules say a column was before, if it is gone.
  private func former(of column: String, _ shape: TableShape, among known: [NamedColumn]) -> NamedColumn? {
    let renamed = settings.rules[shape.name].renamed
    let formers = renamed.keys.filter { renamed[$0]?.lowercased() == column.lowercased() }.map { $0.lowercased() }
    return known.first { formers.contains($0.name.lowercased()) && shape.column($0.name) == nil }
  }

  /// Whether the last column was dropped and added again, which leaves no trace in the schema: no row shows what it showed,
  /// though no trigger said so, and all show the default. Looks at some rows.
  private func isRenewed(_ id: Int64, _ shape: TableShape, _ end: NamedColumn) throws -> Bool {
    guard let table = tablesByID[id], table.shape != nil,
      let column = table.columns.first(where: { sameBytes($0.name, end.name) }), !column.isKey,
      let unwritten = column.defaultValue
    else { return false }
    let same = table.key.enumerated().map { "t.\(quoted(table.columns[$1].name)) = m.k\($0)" }.joined(
      separator: " AND ")
    let logged = table.key.indices.map { "l.k\($0) IS m.k\($0)" }.joined(separator: " AND ")
    var isOther = false
    for raw in try connection.rows(
      """
      SELECT r.shown, t.\(quoted(end.name)) FROM main.lk_map\(id) m JOIN main.lk_row r ON r.id = m.row
      JOIN main.\(quoted(shape.name)) t ON \(same)
      WHERE NOT EXISTS (SELECT 1 FROM main.lk_log\(id) l WHERE \(logged)) LIMIT 500
      """)
    {
      guard raw[1] == unwritten, let shown = raw[0].bytes else { return false }
      let row = Row(name: .zero, table: table)
      try RowCodec.decode(shown: shown, into: row)
      if let hash = row.shown[column.number], hash != FieldHash(raw[1]) { isOther = true }
    }
    return isOther
  }

  /// What the zone calls the columns of a table that has just these.
  private func said(of id: Int64, _ shape: TableShape) throws -> [NamedColumn]? {
    guard let note = try schemaNote(of: id), note.names.count == shape.columns.count else { return nil }
    let names = shape.columns.compactMap { column in note.names.first { sameBytes($0.name, column.name) } }
    return names.count == shape.columns.count ? names : nil
  }

  private func schemaNote(of id: Int64) throws -> SchemaNote? {
    guard let wire = try connection.first("SELECT wire FROM main.lk_table WHERE id = ?", [.integer(id)])?[0].string,
      let note = try note(SchemaNote.kind, wire)
    else { return nil }
    return try? SchemaNote(table: wire, decoding: note.value)
  }

  /// The name on the wire of a table that this file did not have before: its own, unless the zone knows a table of another
  /// first name that is called so now, or another table of this file has that name.
  func wireName(ofNew table: String) throws -> String {
    func isTaken(_ wire: String) -> Bool { tables.contains { $0.shape != nil && sameBytes($0.wire, wire) } }
    for note in try schemaNotes() where !isTaken(note.wire) && sameBytes(note.shape.name, table) { return note.wire }
    var wire = table
    var count = 2
    while isTaken(wire) {
      wire = "\(table)~\(count)"
      count += 1
    }
    return wire
  }

  /// Rules that name a table or column by its former name are about it still.
  func followRules(table: String, renamed: [(String, String)]) {
    guard !renamed.isEmpty else { return }
    func now(_ column: String) -> String {
      renamed.first { $0.0.lowercased() == column.lowercased() }?.1 ?? column
    }
    for name in settings.rules.tables.keys.sorted() where name.lowercased() == table.lowercased() {
      settings.rules.tables[name] = settings.rules.tables[name]?.naming(column: now, table: { $0 })
    }
  }

  func followRules(renamedTable former: String, to name: String) {
    let folded = former.lowercased()
    for key in settings.rules.tables.keys.sorted() {
      guard var rules = settings.rules.tables[key] else { continue }
      rules = rules.naming(column: { $0 }, table: { $0.lowercased() == folded ? name : $0 })
      settings.rules.tables[key] = nil
      settings.rules.tables[key.lowercased() == folded ? name : key] = rules
    }
    if let verdict = settings.adopted.removeValue(forKey: former) { settings.adopted[name] = verdict }
    settings.named = settings.named?.map { $0.lowercased() == folded ? name : $0 }
  }
}

/// Equal strings need not be equal bytes, and to SQLite only bytes count.
func sameBytes(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }

/// The columns after UPDATE OF in a trigger's declaration, as SQLite keeps it.
func columnsOfTrigger(_ sql: String) -> [String] {
  let bytes = Array(sql.utf8)
  let opening = Array("UPDATE OF ".utf8)
  guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: opening) }) else { return [] }
  var names: [String] = []
  var at = start + opening.count
  while at < bytes.count {
    var name: [UInt8] = []
    if bytes[at] == UInt8(ascii: "\"") {
      at += 1
      while at < bytes.count {
        if bytes[at] == UInt8(ascii: "\"") {
          at += 1
          if at >= bytes.count || bytes[at] != UInt8(ascii: "\"") { break }
        }
        name.append(bytes[at])
        at += 1
      }
    } else {
      while at < bytes.count, bytes[at] != UInt8(ascii: ","), bytes[at] != UInt8(ascii: " ") {
        name.append(bytes[at])
        at += 1
      }
    }
    names.append(String(decoding: name, as: UTF8.self))
    while at < bytes.count, bytes[at] == UInt8(ascii: " ") { at += 1 }
    guard at < bytes.count, bytes[at] == UInt8(ascii: ",") else { break }
    at += 1
    while at < bytes.count, bytes[at] == UInt8(ascii: " ") { at += 1 }
  }
  return names
}
