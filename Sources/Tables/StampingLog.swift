internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What the triggers logged: which row of which record was inserted, moved, changed or deleted.
extension StampPass {
  /// What the log says of one key.
  struct Touch {
    var key: [SQLiteValue]
    /// The record that the key is mapped to, followed through moves.
    var row: Int64?
    /// The record that was deleted under this key before something was inserted again.
    var former: Int64?
    var isUpdated = false
    /// Whether an insert met a mapped key: REPLACE deleted it without a trigger.
    var isReplaced = false
    var milliseconds: Int64 = 0
    var order = 0
  }

  mutating func readLogs() throws {
    for table in present {
      guard let last = try connection.integer("SELECT max(id) FROM main.lk_log\(table.id)"), last != 0 else { continue }
      var end = last
      let count = try connection.integer("SELECT count(*) FROM main.lk_log\(table.id)") ?? 0
      if count > Int64(limit) {
        // A log with moves is taken whole: half a chain of moves would look like a delete.
        let moves = table.key.indices.map { "o\($0) IS NOT NULL" }.joined(separator: " OR ")
        if try connection.first("SELECT 1 FROM main.lk_log\(table.id) WHERE \(moves) LIMIT 1") == nil {
          end =
            try connection.integer(
              "SELECT id FROM main.lk_log\(table.id) ORDER BY id LIMIT 1 OFFSET ?", [.integer(Int64(limit) - 1)])
            ?? last
          report.more = true
        }
      }
      logEnds[table.id] = end
      touchedTables.insert(table.id)
      try read(table, upTo: end)
    }
  }

  mutating func read(_ table: SyncedTable, upTo end: Int64) throws {
    var touches: [[SQLiteValue]: Touch] = [:]
    var freed: [Int64: Int64] = [:]
    var moved = false
    var mayReplace = false
    let replica = self.replica
    func touch(_ key: [SQLiteValue]) throws -> [SQLiteValue] {
      let folded = table.folded(key)
      if touches[folded] == nil { touches[folded] = Touch(key: key, row: try replica.mapped(table, key)) }
      return folded
    }
    let width = table.key.count
    let columns = (0..<width).map { "k\($0)" } + (0..<width).map { "o\($0)" }
    let log = try connection.rows(
      "SELECT op, ms, \(columns.joined(separator: ", ")) FROM main.lk_log\(table.id) WHERE id <= ? ORDER BY id",
      [.integer(end)])
    for entry in log {
      guard let operation = entry[0].integer.flatMap(Bookkeeping.Operation.init) else { continue }
      order += 1
      let milliseconds = min(entry[1].integer ?? now, now)
      let key = Array(entry[2..<2 + width])
      let old = (0..<width).map { entry[2 + width + $0].isNull ? key[$0] : entry[2 + width + $0] }
      let isMove = operation == .update && entry[(2 + width)...].contains { !$0.isNull }
      if isMove, !old.contains(where: \.isNull) {
        let from = try touch(old)
        if key.contains(where: \.isNull) {
          // The row can no longer be told from others, and nobody has deleted it.
          if let row = touches[from]?.row { try loseKey(table, row) }
          touches[from]?.row = nil
          continue
        }
        let to = try touch(key)
        if from != to {
          if let victim = touches[to]?.row { freed[victim] = milliseconds }
          let mover = touches[from]
          touches[to]?.row = mover?.row
          touches[to]?.former = mover?.former
          touches[to]?.isReplaced = mover?.isReplaced ?? false
          touches[from]?.row = nil
          touches[from]?.former = nil
          touches[from]?.milliseconds = milliseconds
          touches[from]?.order = order
        }
        touches[to]?.key = key
        touches[to]?.milliseconds = milliseconds
        touches[to]?.order = order
        moved = true
        mayReplace = true
        continue
      }
      if key.contains(where: \.isNull) { continue }
      let at = try touch(key)
      touches[at]?.milliseconds = milliseconds
      touches[at]?.order = order
      switch operation {
      case .insert:
        touches[at]?.key = key
        if touches[at]?.row != nil { touches[at]?.isReplaced = true }
        mayReplace = true
      case .update:
        touches[at]?.key = key
        touches[at]?.isUpdated = true
        mayReplace = true
      case .delete:
        if let row = touches[at]?.row {
          freed[row] = milliseconds
          touches[at]?.former = row
          touches[at]?.row = nil
        }
      }
    }
    try settle(table, touches, freed, moved: moved)
    if mayReplace, table.hasSecondaryUnique { try findReplaced(table) }
  }

  /// Follows the log's outcome in the map, and decides which rows to look at.
  mutating func settle(
    _ table: SyncedTable, _ touches: [[SQLiteValue]: Touch], _ freed: [Int64: Int64], moved: Bool
  ) throws {
    var freed = freed
    let ordered = touches.values.sorted { $0.order < $1.order }
    // A record that ends up under some key again is not deleted.
    for touch in ordered { if let row = touch.row { freed[row] = nil } }
    // Old keys are left before new ones are taken, so that swaps do not collide.
    var moves: [(Int64, [SQLiteValue])] = []
    for touch in ordered {
      guard let row = touch.row,
        let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(row)])?[0]
      else { continue }
      guard packed != replica.pack(key: touch.key) else { continue }
      if let key = try replica.unpack(key: packed, table) { try replica.unmap(table, key) }
      moves.append((row, touch.key))
    }
    var isRetired: Set<Int64> = []
    for touch in ordered {
      let values = try connection.first(table.selectRow, touch.key)
      if let former = touch.former, freed[former] != nil, touch.row == nil, let values,
        try isSame(former, values, table, wasReplaced: false)
      {
        // Deleted and inserted again, much the same: an update.
        freed[former] = nil
        rewritten.insert(former)
        if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(former)])?[0],
          packed != replica.pack(key: touch.key)
        {
          if let key = try replica.unpack(key: packed, table) { try replica.unmap(table, key) }
          moves.append((former, touch.key))
        }
        add(table, touch.key, touch.milliseconds, touch.order, values)
        continue
      }
      if let row = touch.row, values == nil {
        // Vanished without a trigger.
        freed[row] = touch.milliseconds
        continue
      }
      guard let values else { continue }
      if touch.row == nil, touch.isUpdated, let row = try keyless(table, values) {
        moves.append((row, touch.key))
        try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(row)])
      }
      if touch.isReplaced, let row = touch.row, try !isSame(row, values, table, wasReplaced: true) {
        freed[row] = touch.milliseconds
      }
      add(table, touch.key, touch.milliseconds, touch.order, values)
    }
    for (row, milliseconds) in freed.sorted(by: { $0.key < $1.key }) where isRetired.insert(row).inserted {
      // Its key is free for the row that took it.
      if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(row)])?[0],
        let key = try replica.unpack(key: packed, table), try replica.mapped(table, key) == row
      {
        try replica.unmap(table, key)
      }
      moves.removeAll { $0.0 == row }
      deleted.append((row, milliseconds))
    }
    for (row, key) in moves {
      if let raw = try connection.first("SELECT key, record, shown FROM main.lk_row WHERE id = ?", [.integer(row)]) {
        formerKeys[row] = raw[0]
        if let name = raw[1].bytes.flatMap(RecordName.init), let former = try replica.unpack(key: raw[0], table),
          raw[2].bytes != nil
        {
          // Rows that still have the former key mean this row, whoever has that key now.
          let moved = Row(name: name, table: table)
          moved.reservedKey = former
          gone[FieldHash(target: name)] = name
          movedRows.append(moved)
        }
      }
      try replica.map(table, key, row)
      try connection.run("UPDATE main.lk_row SET key = ? WHERE id = ?", [replica.pack(key: key), .integer(row)])
      if try replica.takeAwaitedName(table, key) != nil {
        // Rows that pointed at nothing point at this one now.
        for (referrer, column) in table.referrers {
          for child in try connection.rows(referrer.selectKeys(where: column), [key[0]]) {
            add(referrer, child, now, order)
          }
        }
      }
    }
  }

  /// Keeps the record of a row whose key the app made NULL: here it is not shown under it, elsewhere it stays.
  func loseKey(_ table: SyncedTable, _ id: Int64) throws {
    try release(table, id)
    guard let row = try replica.loadRow(id: id) else { return }
    guard row.isStamped else {
      try connection.run("DELETE FROM main.lk_row WHERE id = ?", [.integer(id)])
      return
    }
    row.key = nil
    for cell in row.state.cells { row.kept[table.number(of: cell.column)] = cell.value }
    try replica.save(row)
    try replica.park(id, table, .keyless)
  }

  /// The record of a row that had lost its key and got one again: of those that wait, the first that has at least half its
  /// fields.
  func keyless(_ table: SyncedTable, _ values: [SQLiteValue]) throws -> Int64? {
    guard table.keyMayBeNull else { return nil }
    let fields = table.columns.indices.filter { !table.key.contains($0) }
    for raw in try connection.rows(
      "SELECT row FROM main.lk_park WHERE tid = ? AND kind = ? ORDER BY row",
      [.integer(table.id), .integer(Parking.keyless.kind)])
    {
      guard let id = raw[0].integer, let row = try replica.loadRow(id: id) else { continue }
      let equal = try fields.count { index in
        guard let cell = row.state.cell(table.columns[index].wire) else { return values[index].isNull }
        return try FieldHash(cell) == FieldHash(replica.translate(table.columns[index], values[index]))
      }
      if equal * 2 >= fields.count { return id }
    }
    return nil
  }

  mutating func add(
    _ table: SyncedTable, _ key: [SQLiteValue], _ milliseconds: Int64, _ order: Int, _ values: [SQLiteValue]? = nil
  ) {
    // A log that must be taken whole is not held in memory whole.
    let kept = candidates.count < Replica.maximumGroupRows ? values : nil
    candidates.append(Candidate(table: table, key: key, milliseconds: milliseconds, order: order, values: kept))
  }

  /// Whether a row that took the place of a mapped one is the same record, edited.
  ///
  /// After a delete and an insert: if at least half the fields are the same, or rows still point at it. After a REPLACE:
  /// unless every unique field changed.
  func isSame(_ id: Int64, _ values: [SQLiteValue], _ table: SyncedTable, wasReplaced: Bool) throws -> Bool {
    guard let row = try stored(id) else { return false }
    func isEqual(_ index: Int) -> Bool { row.shown[table.columns[index].number] == FieldHash(values[index]) }
    if wasReplaced {
      let unique = Set(
        table.uniqueIndexes.filter { $0.origin != .primaryKey }.flatMap { $0.parts.compactMap(\.column) })
      let indexes = table.columns.indices.filter { unique.contains(table.columns[$0].name) }
      if table.identity != nil || indexes.isEmpty { return true }
      return indexes.contains(where: isEqual)
    }
    if table.identity == table.key {
      // The same numbers under which other rows stand now are another key.
      return try table.key.allSatisfy { index in
        let column = table.columns[index]
        guard let former = row.targets[column.number] else { return true }
        return try target(of: replica.translate(column, values[index])) == former
      }
    }
    let fields = table.columns.indices.filter { !table.key.contains($0) }
    if fields.count(where: isEqual) * 2 >= fields.count { return true }
    let name = FieldHash(target: row.name)
    for (referrer, column) in table.referrers {
      let number = referrer.columns[column].number
      let reference = referrer.columns[column].reference
      let value =
        reference?.column.flatMap { name in table.columns.firstIndex { $0.name == name } }.map { values[$0] }
        ?? values[table.key[0]]
      for key in try connection.rows(referrer.selectKeys(where: column), [value]) {
        guard let id = try replica.mapped(referrer, formerKey(referrer, key)), let child = try stored(id) else {
          continue
        }
        if child.targets[number] == name { return true }
      }
    }
    return false
  }

  /// The key that a row had before the log, in a table whose log was not read yet.
  func formerKey(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> [SQLiteValue] {
    if logEnds[table.id] != nil { return key }
    let same = key.indices.map { "k\($0) = ?" }.joined(separator: " AND ")
    let moved = key.indices.map { "o\($0) IS NOT NULL" }.joined(separator: " OR ")
    let old = key.indices.map { "coalesce(o\($0), k\($0))" }.joined(separator: ", ")
    var key = key
    var before = Int64.max
    while let move = try connection.first(
      "SELECT id, \(old) FROM main.lk_log\(table.id) WHERE \(same) AND (\(moved)) AND id < ? ORDER BY id DESC LIMIT 1",
      key + [.integer(before)]), let id = move[0].integer
    {
      (before, key) = (id, Array(move[1...]))
    }
    return key
  }

  /// A record's name and hashes, without its values.
  func stored(_ id: Int64) throws -> Row? {
    guard let raw = try connection.first("SELECT record, tid, shown FROM main.lk_row WHERE id = ?", [.integer(id)]),
      let name = raw[0].bytes.flatMap(RecordName.init), let table = raw[1].integer.flatMap({ replica.tablesByID[$0] })
    else { return nil }
    let row = Row(name: name, table: table)
    if let shown = raw[2].bytes { try RowCodec.decode(shown: shown, into: row) }
    return row
  }

  /// Finds what REPLACE deleted because of another unique key: two counts tell whether there is anything to find.
  mutating func findReplaced(_ table: SyncedTable) throws {
    for candidate in candidates where candidate.table === table {
      guard try replica.mapped(table, candidate.key) == nil,
        let values = try connection.first(table.selectRow, candidate.key)
      else { continue }
      _ = try replica.nameNewRow(table, values)
    }
    let rows = try connection.integer(table.countRows) ?? 0
    let mapped = try connection.integer("SELECT count(*) FROM main.lk_map\(table.id)") ?? 0
    // Rows that a scan has not come to are not mapped yet.
    if rows == mapped { return }
    for raw in try connection.rows(table.lostRows) {
      guard let id = raw[0].integer else { continue }
      try release(table, id)
      deleted.append((id, now))
    }
  }

  func release(_ table: SyncedTable, _ id: Int64) throws {
    if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(id)])?[0],
      let key = try replica.unpack(key: packed, table)
    {
      try replica.unmap(table, key)
    }
  }
}
