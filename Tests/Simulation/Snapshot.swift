import LatchkeyEncoding
import LatchkeySQLite

/// What a device's tables show at one moment, read by plain SELECTs, with the record that Latchkey's map has for each row.
struct Snapshot: Equatable {
  struct Row: Equatable {
    /// Nil for a row that Latchkey has not stamped yet, and in a file that is not attached.
    let record: RecordName?
    /// In the order of ``AppSchema/Table/columns``.
    let values: [SQLiteValue]
  }

  /// Nil for a table that the file does not have.
  private(set) var tables: [[Row]?] = []

  init(_ connection: Connection) throws {
    let isAttached = try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'lk_table'") == 1
    for table in AppSchema.tables {
      guard try connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = ?", [SQLiteValue(table.name)]) == 1
      else {
        tables.append(nil)
        continue
      }
      let columns = table.columns.map { "t.\($0.name)" }.joined(separator: ", ")
      let keys = table.key.map { "t.\(table.columns[$0].name)" }
      var id: Int64?
      if isAttached { id = try connection.integer("SELECT id FROM lk_table WHERE wire = ?", [SQLiteValue(table.name)]) }
      var sql = "SELECT \(columns), NULL FROM \(table.name) t"
      if let id {
        let same = keys.enumerated().map { "m.k\($0) = \($1)" }.joined(separator: " AND ")
        sql = """
          SELECT \(columns), r.record FROM \(table.name) t
          LEFT JOIN lk_map\(id) m ON \(same) LEFT JOIN lk_row r ON r.id = m.row
          """
      }
      sql += " ORDER BY \(keys.joined(separator: ", "))"
      tables.append(
        try connection.rows(sql).map { row in
          Row(record: row[row.count - 1].bytes.flatMap(RecordName.init), values: Array(row.dropLast()))
        })
    }
  }

  /// Whether all tables are there.
  var isComplete: Bool { !tables.contains { $0 == nil } }

  /// What the rows say, apart from the integers that each device gives: by the value that no two inserts share, with
  /// references as the target's such value, and without local columns.
  ///
  /// - Throws: ``Violation`` where a row refers to one that is not there.
  func meaning() throws -> Meaning {
    var uids: [[SQLiteValue: SQLiteValue]] = []
    for (index, table) in AppSchema.tables.enumerated() {
      var known: [SQLiteValue: SQLiteValue] = [:]
      for row in tables[index] ?? [] where table.key.count == 1 {
        known[row.values[table.key[0]]] = row.values[table.uid]
      }
      uids.append(known)
    }
    var out = Meaning()
    for (index, table) in AppSchema.tables.enumerated() {
      for row in tables[index] ?? [] {
        var fields: [SQLiteValue] = []
        for (column, declared) in table.columns.enumerated() {
          let value = row.values[column]
          if declared.isLocal || (table.keyIsLocal && table.key.contains(column)) { continue }
          guard let reference = declared.reference, !value.isNull, value != reference.none else {
            fields.append(value)
            continue
          }
          guard let uid = uids[reference.table][value] else {
            throw Violation(.references, "\(table.name).\(declared.name) shows \(value), which is not there")
          }
          fields.append(uid)
        }
        out.add(table: index, uid: row.values[table.uid], fields)
      }
    }
    return out
  }
}

/// What tables say, without what differs per device: by table and unique value.
struct Meaning: Equatable {
  private var rows: [[SQLiteValue: [SQLiteValue]]] = AppSchema.tables.map { _ in [:] }
  /// Rows that came twice under one unique value, which never happens.
  private var isAmbiguous = false

  var isEmpty: Bool { rows.allSatisfy(\.isEmpty) }

  mutating func add(table: Int, uid: SQLiteValue, _ fields: [SQLiteValue]) {
    if rows[table].updateValue(fields, forKey: uid) != nil { isAmbiguous = true }
  }

  /// The first difference in words; nil if there is none.
  func difference(from other: Meaning) -> String? {
    if isAmbiguous || other.isAmbiguous { return "one unique value stands in two rows" }
    if rows == other.rows { return nil }
    for (index, table) in AppSchema.tables.enumerated() {
      for (uid, fields) in rows[index].sorted(by: { "\($0.key)" < "\($1.key)" }) {
        guard let others = other.rows[index][uid] else { return "\(table.name) \(show(uid)) is in the first only" }
        if others != fields {
          return "\(table.name) \(show(uid)): \(fields.map(show)) and \(others.map(show))"
        }
      }
      let extra = other.rows[index].keys.filter { rows[index][$0] == nil }.map(show).sorted()
      if let first = extra.first { return "\(table.name) \(first) is in the second only" }
    }
    return nil
  }

  /// All rows in words, in order: for the trace.
  var text: String {
    rows.enumerated().flatMap { index, table in
      table.map { "\(AppSchema.tables[index].name) \($1.map(show).joined(separator: "|"))" }.sorted()
    }.joined(separator: "\n")
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
