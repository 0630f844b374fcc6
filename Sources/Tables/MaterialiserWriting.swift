internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Writing the app's table, with room made where a unique key is taken.
extension Materialiser {
  /// Writes a row and returns what the table then shows; nil if it was parked instead.
  func write(_ row: Row, _ values: [SQLiteValue?]) throws -> [SQLiteValue]? {
    for _ in 0..<64 {
      do {
        return try attempt(row, values)
      } catch SQLiteError.constraint(let kind, let message) where kind == .unique || kind == .primaryKey {
        let others = try conflicts(row, values, message)
        if others.isEmpty {
          try park(row, .refused(message))
          return nil
        }
        var elder: Row?
        for other in others {
          if pending.contains(other.record) {
            // It is about to change: it stands aside until it is its turn.
            try standAside(other)
          } else if isOlder(row, other) {
            try park(other, .unique(by: row.name))
          } else {
            elder = other
          }
        }
        if let elder {
          try park(row, .unique(by: elder.name))
          return nil
        }
      } catch SQLiteError.constraint(_, let message) {
        try park(row, .refused(message))
        return nil
      } catch SQLiteError.tooBig {
        try park(row, .refused("a value is too large for this database"))
        return nil
      }
    }
    try park(row, .refused("it cannot be shown together with other rows"))
    return nil
  }

  func attempt(_ row: Row, _ values: [SQLiteValue?]) throws -> [SQLiteValue] {
    let table = row.table
    var isExact = true
    if let key = row.key, let before = row.values, !row.isOff {
      var indexes: [Int] = []
      var parameters: [SQLiteValue] = []
      for index in table.columns.indices {
        guard let wanted = values[index] ?? table.columns[index].defaultValue, wanted != before[index] else { continue }
        indexes.append(index)
        parameters.append(wanted)
        if !table.columns[index].affinity.keeps(wanted) { isExact = false }
      }
      if indexes.isEmpty { return before }
      try connection.run(table.update(indexes), parameters + key)
      var after = before
      for (index, value) in zip(indexes, parameters) { after[index] = value }
      touched.insert(table.id)
      isChanged = true
      let newKey = table.keyValues(after)
      if !isExact { after = try connection.first(table.selectRow, newKey) ?? after }
      if newKey != key {
        try replica.unmap(table, key)
        try replica.map(table, newKey, row.id ?? 0)
        row.key = newKey
        orphaning.append(Orphaning(name: row.name, table: table, key: key, values: before, shown: row.shown))
      }
      return after
    }
    var indexes: [Int] = []
    var parameters: [SQLiteValue] = []
    for index in table.columns.indices {
      guard let wanted = values[index] else {
        isExact = false
        continue
      }
      indexes.append(index)
      parameters.append(wanted)
      if !table.columns[index].affinity.keeps(wanted) { isExact = false }
    }
    try connection.run(table.insert(indexes), parameters)
    if connection.changes != 1 {
      throw SQLiteError.constraint(.trigger, message: "a trigger of the app does not take the row")
    }
    var after = values.map { $0 ?? .null }
    let key = table.keyValues(after)
    if !isExact { after = try connection.first(table.selectRow, key) ?? after }
    let stored = table.keyValues(after)
    if row.id == nil { try replica.save(row) }
    try replica.map(table, stored, row.id ?? 0)
    if row.isOff, let former = row.key, former != stored {
      orphaning.append(Orphaning(name: row.name, table: table, key: former, values: row.values, shown: row.shown))
    }
    row.key = stored
    row.isOff = false
    touched.insert(table.id)
    return after
  }

  /// The shown rows with which a row collides in a unique key.
  func conflicts(_ row: Row, _ values: [SQLiteValue?], _ message: String) throws -> [Row] {
    let table = row.table
    let full = table.columns.indices.map { values[$0] ?? table.columns[$0].defaultValue ?? .null }
    let ownKey = row.isOff ? nil : row.key
    var keys: [[SQLiteValue]] = []
    let keyList = table.key.map { quoted(table.columns[$0].name) }.joined(separator: ", ")
    if let raw = try connection.first(table.selectRow, table.keyValues(full)) { keys.append(table.keyValues(raw)) }
    for index in table.uniqueIndexes where !index.hasExpressions {
      var terms: [String] = []
      var parameters: [SQLiteValue] = []
      for part in index.parts {
        guard let name = part.column, let at = table.columns.firstIndex(where: { $0.name == name }), !full[at].isNull
        else { break }
        terms.append("\(quoted(name)) = ? COLLATE \(part.collation)")
        parameters.append(full[at])
      }
      guard terms.count == index.parts.count, !terms.isEmpty else { continue }
      if index.isPartial,
        !message.contains(index.parts.map { "\(table.name).\($0.column ?? "")" }.joined(separator: ", "))
      {
        continue
      }
      let condition = index.condition.map { " AND (\($0))" } ?? ""
      keys += try connection.rows(
        "SELECT \(keyList) FROM main.\(quoted(table.name)) WHERE \(terms.joined(separator: " AND "))\(condition)",
        parameters)
    }
    if table.uniqueIndexes.contains(where: { $0.hasExpressions && message.contains($0.name) }) {
      keys += try replacedBy(row, full)
    }
    var out: [Row] = []
    for key in keys {
      if let ownKey, table.folded(key) == table.folded(ownKey) { continue }
      guard let other = try mappedRow(table, key), other !== row, !out.contains(where: { $0 === other }) else {
        continue
      }
      out.append(other)
    }
    return out
  }

  /// The keys of the rows that would make room for a row if it replaced them: for unique keys over expressions, which
  /// only SQLite can evaluate.
  func replacedBy(_ row: Row, _ full: [SQLiteValue]) throws -> [[SQLiteValue]] {
    let table = row.table
    let names = table.columns.map { quoted($0.name) }.joined(separator: ", ")
    let marks = Array(repeating: "?", count: full.count).joined(separator: ", ")
    var keys: [[SQLiteValue]] = []
    try connection.run("SAVEPOINT lk_try")
    do {
      if let key = row.key, !row.isOff { try connection.run(table.deleteRow, key) }
      let before = try connection.rows("SELECT row FROM main.lk_map\(table.id)").count
      try connection.run("INSERT OR REPLACE INTO main.\(quoted(table.name)) (\(names)) VALUES (\(marks))", full)
      if before > 0 {
        for raw in try connection.rows(table.lostRows) {
          guard let id = raw[0].integer, id != row.id else { continue }
          if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(id)])?[0],
            let key = try replica.unpack(key: packed, table)
          {
            keys.append(key)
          }
        }
      }
    } catch is SQLiteError {
      keys = []
    }
    try connection.run("ROLLBACK TO lk_try")
    try connection.run("RELEASE lk_try")
    return keys
  }

  func standAside(_ row: Row) throws {
    guard let key = row.key, !row.isOff else { return }
    try connection.run(row.table.deleteRow, key)
    // Its key may be what the other needs.
    try replica.unmap(row.table, key)
    gone[FieldHash(target: row.name)] = row.name
    row.isOff = true
  }
}
