public import LatchkeySQLite

/// Tables that have one row (rule `singleton`).
extension Replica {
  /// Whether the rules say that a table has one row.
  ///
  /// - Throws: ``TablesError/noTable(_:)`` if no table of this name syncs.
  public func isSingleton(_ table: String) throws -> Bool {
    let table = try synced(table)
    return settings.rules[table.name].isSingleton
  }

  /// The key of the row; nil if there is none.
  public func singleton(_ table: String) throws -> [SQLiteValue]? {
    let table = try synced(table)
    return try connection.first(table.selectFirstPage, [.integer(1)]).map(table.keyValues)
  }

  /// The key of the row, which is made if there is none: like any row of the app's.
  public func ensureSingleton(_ table: String, _ values: [String: SQLiteValue]) throws -> [SQLiteValue] {
    let synced = try synced(table)
    return try transaction {
      if let key = try singleton(table) { return key }
      let columns = values.keys.sorted()
      let name = "main.\(quoted(synced.name))"
      if columns.isEmpty {
        try connection.run("INSERT INTO \(name) DEFAULT VALUES")
      } else {
        let list = columns.map(quoted).joined(separator: ", ")
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        try connection.run("INSERT INTO \(name)(\(list)) VALUES (\(marks))", columns.map { values[$0] ?? .null })
      }
      guard let key = try singleton(table) else { throw TablesError.rule("\(table) does not keep a row") }
      return key
    }
  }

  private func synced(_ name: String) throws -> SyncedTable {
    guard let table = tables.first(where: { $0.shape != nil && $0.name.lowercased() == name.lowercased() }) else {
      throw TablesError.noTable(name)
    }
    return table
  }
}
