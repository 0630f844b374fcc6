import LatchkeyEncoding
import LatchkeySQLite

/// What a device's tables show at one moment, read by plain SELECTs, with the record that Latchkey's map has for each row.
struct Snapshot: Equatable {
  struct Row: Equatable {
    /// Nil for a row that Latchkey has not stamped yet, and in a file that is not attached.
    let record: RecordName?
    /// In the order of ``AppSchema/Table/columns``; nil for columns that the file does not have.
    let values: [SQLiteValue?]

    subscript(column: Int) -> SQLiteValue { values[column] ?? .null }
  }

  let view: AppView
  /// Nil for a table that the file does not have.
  private(set) var tables: [[Row]?] = []

  init(_ connection: Connection) throws {
    let isAttached = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'lk_table'") == 1
    view = try AppView(connection)
    for (table, found) in zip(AppSchema.tables, view.tables) {
      guard let found else {
        tables.append(nil)
        continue
      }
      let names = found.columns.compactMap(\.self).map { "t.\($0)" }.joined(separator: ", ")
      let keys = table.key.compactMap { found.columns[$0] }.map { "t.\($0)" }
      var id: Int64?
      // A table that the app has made since Latchkey last looked has no map yet.
      if isAttached {
        id = try connection.integer(
          "SELECT t.id FROM lk_table t JOIN sqlite_schema m ON m.name = 'lk_map' || t.id WHERE t.wire = ?",
          [SQLiteValue(table.name)])
      }
      var sql = "SELECT \(names), NULL FROM \(found.name) t"
      if let id {
        let same = keys.enumerated().map { "m.k\($0) = \($1)" }.joined(separator: " AND ")
        sql = """
          SELECT \(names), r.record FROM \(found.name) t
          LEFT JOIN lk_map\(id) m ON \(same) LEFT JOIN lk_row r ON r.id = m.row
          """
      }
      sql += " ORDER BY \(keys.joined(separator: ", "))"
      tables.append(
        try connection.rows(sql).map { row in
          var values = row[...]
          let shown = found.columns.map { $0 == nil ? nil : values.popFirst() }
          return Row(record: row[row.count - 1].bytes.flatMap(RecordName.init), values: shown)
        })
    }
  }

  /// Whether all tables are there that every version of the app has.
  var isComplete: Bool { zip(tables, AppSchema.tables).allSatisfy { $0 != nil || $1.isLater } }

  /// What the rows say, apart from the integers that each device gives: by the value that no two inserts share, with
  /// references as the target's such value, and without local columns.
  ///
  /// - Throws: ``Violation`` where a row refers to one that is not there.
  func meaning() throws -> Meaning {
    var uids: [[SQLiteValue: SQLiteValue]] = []
    for (index, table) in AppSchema.tables.enumerated() {
      var known: [SQLiteValue: SQLiteValue] = [:]
      for row in tables[index] ?? [] where table.key.count == 1 {
        known[row[table.key[0]]] = row[table.uid]
      }
      uids.append(known)
    }
    var out = Meaning()
    for (index, table) in AppSchema.tables.enumerated() {
      guard let rows = tables[index] else {
        out.leaveOut(table: index)
        continue
      }
      for row in rows {
        var fields: [SQLiteValue?] = []
        for (column, declared) in table.columns.enumerated() {
          if declared.isLocal || (table.keyIsLocal && table.key.contains(column)) { continue }
          guard let value = row.values[column] else {
            fields.append(nil)
            continue
          }
          guard let reference = declared.reference, !value.isNull, value != reference.none else {
            fields.append(value)
            continue
          }
          guard let uid = uids[reference.table][value] else {
            throw Violation(.references, "\(table.name).\(declared.name) shows \(value), which is not there")
          }
          fields.append(uid)
        }
        out.add(table: index, uid: row[table.uid], fields)
      }
    }
    return out
  }
}

/// What tables say, without what differs per device: by table and unique value.
struct Meaning: Equatable {
  private var rows: [[SQLiteValue: [SQLiteValue?]]?] = AppSchema.tables.map { _ in [:] }
  /// Rows that came twice under one unique value, which never happens.
  private var isAmbiguous = false

  var isEmpty: Bool { rows.allSatisfy { $0?.isEmpty ?? true } }

  /// - Parameter fields: nil for what is not looked at, or not there.
  mutating func add(table: Int, uid: SQLiteValue, _ fields: [SQLiteValue?]) {
    if rows[table]?.updateValue(fields, forKey: uid) != nil { isAmbiguous = true }
  }

  /// A table that is not there.
  mutating func leaveOut(table: Int) { rows[table] = nil }

  /// The first difference in words, in what both have; nil if there is none.
  func difference(from other: Meaning) -> String? {
    if isAmbiguous || other.isAmbiguous { return "one unique value stands in two rows" }
    if rows == other.rows { return nil }
    for (index, table) in AppSchema.tables.enumerated() {
      guard let mine = rows[index], let theirs = other.rows[index] else { continue }
      for (uid, fields) in mine.sorted(by: { "\($0.key)" < "\($1.key)" }) {
        guard let others = theirs[uid] else { return "\(table.name) \(show(uid)) is in the first only" }
        if zip(fields, others).contains(where: { $0 != nil && $1 != nil && $0 != $1 }) {
          return "\(table.name) \(show(uid)): \(words(fields)) and \(words(others))"
        }
      }
      let extra = theirs.keys.filter { mine[$0] == nil }.map(show).sorted()
      if let first = extra.first { return "\(table.name) \(first) is in the second only" }
    }
    return nil
  }

  /// All rows in words, in order: for the trace.
  var text: String {
    rows.enumerated().flatMap { index, table in
      (table ?? [:]).map { "\(AppSchema.tables[index].name) \(words($1))" }.sorted()
    }.joined(separator: "\n")
  }

  private func words(_ fields: [SQLiteValue?]) -> String {
    fields.map { $0.map(show) ?? "-" }.joined(separator: "|")
  }
}

/// A value for people.
func show(_ value: SQLiteValue) -> String {
  switch value {
  case .null: "NULL"
  case .integer(let x): "\(x)"
  case .real(let x): "\(x)"
  case .text(let x):
    String(decoding: x.starts(with: AppSchema.canary.utf8) ? Array(x.dropFirst(8)) : x, as: UTF8.self)
  case .blob(let x): x.count > 8 ? "x\(hex(x.prefix(8)))…\(x.count)" : "x\(hex(x))"
  }
}
