import LatchkeySQLite

/// What the tables and columns of ``AppSchema`` are called in one file, whose app may be of any version.
struct AppView: Equatable {
  struct Table: Equatable {
    let name: String
    /// By index in ``AppSchema/Table/columns``; nil for what the file does not have.
    let columns: [String?]
  }

  let tables: [Table?]

  init(_ connection: Connection) throws {
    var found: [String: Set<String>] = [:]
    try connection.forEach(
      "SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name GLOB 'zebrafin*'"
    ) { row in found[row.text(0), default: []].insert(row.text(1)) }
    tables = AppSchema.tables.map { table in
      for name in [table.name, table.laterName ?? table.name] {
        guard let columns = found[name] else { continue }
        return Table(
          name: name,
          columns: table.columns.map { column in
            [column.name, column.laterName ?? column.name].first { columns.contains($0) }
          })
      }
      return nil
    }
  }

  func has(_ table: Int, _ column: Int) -> Bool { tables[table]?.columns[column] != nil }
}
