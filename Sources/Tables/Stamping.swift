internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Turning what the app changed into push groups.
extension Replica {
  /// Edits with more time than this between them get stamps of their own, in milliseconds: else the later would
  /// re-date the earlier.
  static let clusterGap: Int64 = 2_000
  /// Most rows in a push group.
  static let maximumGroupRows = 20_000

  /// Stamps what was changed since the last time and gives it out, group by group.
  ///
  /// Inside ``transaction(_:)``. Each changed row is read once and compared with what the table showed; what did not
  /// change is not sent. What the app writes after this transaction began belongs to the next pass.
  ///
  /// - Parameters:
  ///   - now: the local time, in milliseconds since 1970-01-01 UTC; an edit is never dated later.
  ///   - limit: about how many rows to take at most; the report's `more` says whether there are others.
  ///   - emit: seals the group and keeps it until it is acknowledged, in the same transaction; returns the group's tie.
  @discardableResult
  public func stamp(now: Int64, limit: Int = 20_000, emit: (PendingGroup) throws -> UInt64) throws -> StampReport {
    precondition(connection.isInTransaction, "stamp inside transaction")
    var pass = StampPass(replica: self, now: now, limit: max(limit, 1))
    isNaming = true
    namedNow = []
    defer { isNaming = false }
    try pass.readDeferred()
    try pass.readLogs()
    try pass.readScans()
    try pass.retireDeleted()
    try pass.compareRows()
    try pass.emitGroups(emit)
    try pass.clearLogs()
    isNaming = false
    try pass.showConsequences()
    return pass.report
  }
}

/// One pass of ``Replica/stamp(now:limit:emit:)``.
struct StampPass {
  let replica: Replica
  let now: Int64
  let limit: Int
  var report = StampReport()

  /// A row of the table that may have changed.
  private struct Candidate {
    let table: SyncedTable
    let key: [SQLiteValue]
    let milliseconds: Int64
    let order: Int
    /// The row, if it was read already.
    var values: [SQLiteValue]?
  }

  /// What will be stamped.
  private struct Change {
    enum Kind { case insert, update, delete }
    let row: Row
    let kind: Kind
    var cells: [(index: Int, value: Value, isFilledIn: Bool)]
    let milliseconds: Int64
    let order: Int
  }

  private var candidates: [Candidate] = []
  private var deleted: [(id: Int64, milliseconds: Int64)] = []
  private var changes: [Change] = []
  private var logEnds: [Int64: Int64] = [:]
  private var order = 0
  /// Records that were deleted or moved in this pass, by the hash under which referring rows know them.
  private var gone: [FieldHash: RecordName] = [:]
  private var goneRows: [Row] = []
  /// Records whose key the app changed, with the former one.
  private var movedRows: [Row] = []
  private var deletedRecords: Set<RecordID> = []
  /// Rows that the app deleted and inserted again: what they refer to, they refer to now.
  private var rewritten: Set<Int64> = []
  /// Columns whose values the rules did not take for references before, by table.
  private var newReferences: [Int64: Set<String>] = [:]
  private var toShow: [RecordID] = []
  private var touchedTables: Set<Int64> = []
  private var waitersOf: [RecordName] = []
  /// Keys that rows had before they were moved, for tables whose keys are this device's own.
  private var formerKeys: [Int64: SQLiteValue] = [:]

  init(replica: Replica, now: Int64, limit: Int) {
    self.replica = replica
    self.now = now
    self.limit = limit
  }

  private var connection: Connection { replica.connection }
  private var present: [SyncedTable] {
    replica.tables.filter { $0.shape != nil }.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) }
  }

  // MARK: What was logged

  /// What the log says of one key.
  private struct Touch {
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

  private mutating func read(_ table: SyncedTable, upTo end: Int64) throws {
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
  private mutating func settle(
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
  private func loseKey(_ table: SyncedTable, _ id: Int64) throws {
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
  private func keyless(_ table: SyncedTable, _ values: [SQLiteValue]) throws -> Int64? {
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

  private mutating func add(
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
  private func isSame(_ id: Int64, _ values: [SQLiteValue], _ table: SyncedTable, wasReplaced: Bool) throws -> Bool {
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
  private func formerKey(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> [SQLiteValue] {
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
  private func stored(_ id: Int64) throws -> Row? {
    guard let raw = try connection.first("SELECT record, tid, shown FROM main.lk_row WHERE id = ?", [.integer(id)]),
      let name = raw[0].bytes.flatMap(RecordName.init), let table = raw[1].integer.flatMap({ replica.tablesByID[$0] })
    else { return nil }
    let row = Row(name: name, table: table)
    if let shown = raw[2].bytes { try RowCodec.decode(shown: shown, into: row) }
    return row
  }

  /// Finds what REPLACE deleted because of another unique key: two counts tell whether there is anything to find.
  private mutating func findReplaced(_ table: SyncedTable) throws {
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

  private func release(_ table: SyncedTable, _ id: Int64) throws {
    if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(id)])?[0],
      let key = try replica.unpack(key: packed, table)
    {
      try replica.unmap(table, key)
    }
  }

  // MARK: What must be looked at whole

  /// Tables that were just attached, or whose triggers had vanished: every row is compared, in key order.
  mutating func readScans() throws {
    for table in present {
      guard
        let position = try connection.first("SELECT scan FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0]
          .bytes
      else { continue }
      touchedTables.insert(table.id)
      newReferences[table.id] = Set(try replica.newReferences(table))
      let room = limit - candidates.count
      if room <= 0 {
        report.more = true
        return
      }
      let page: [[SQLiteValue]]
      if position.isEmpty {
        page = try connection.rows(table.selectFirstPage, [.integer(Int64(room))])
      } else if let after = try replica.unpack(packed: position) {
        page = try connection.rows(table.selectNextPage, after + [.integer(Int64(room))])
      } else {
        page = []
      }
      for values in page {
        let key = table.keyValues(values)
        if key.contains(where: \.isNull) { continue }
        order += 1
        add(table, key, now, order, values)
      }
      if page.count == room, let last = page.last {
        try connection.run(
          "UPDATE main.lk_table SET scan = ? WHERE id = ?",
          [.blob(replica.packed(key: table.keyValues(last))), .integer(table.id)])
        report.more = true
        return
      }
      try connection.run("UPDATE main.lk_table SET scan = NULL WHERE id = ?", [.integer(table.id)])
      try replica.setState("references \(table.id)", nil)
      try findLost(table)
    }
  }

  /// Rows that the table lost while no trigger stood: deleted; if it is many, rather thrown away with the table, and
  /// then nobody else's are deleted for it.
  private mutating func findLost(_ table: SyncedTable) throws {
    let lost = try connection.rows(table.lostRows).compactMap { $0[0].integer }
    if lost.isEmpty { return }
    let all = try connection.integer("SELECT count(*) FROM main.lk_map\(table.id)") ?? 0
    let isThrownAway = lost.count >= 50 && Int64(lost.count) * 5 >= all || Int64(lost.count) == all
    for id in lost {
      try release(table, id)
      if isThrownAway {
        try connection.run("UPDATE main.lk_row SET key = NULL WHERE id = ?", [.integer(id)])
        try replica.park(id, table, .lost)
      } else {
        deleted.append((id, now))
      }
    }
  }

  // MARK: Deleted rows

  mutating func retireDeleted() throws {
    for (id, milliseconds) in deleted {
      guard let row = try replica.loadRow(id: id) else { continue }
      row.reservedKey = row.key
      row.formerShown = row.shown
      row.key = nil
      row.values = nil
      try connection.run("UPDATE main.lk_row SET key = NULL WHERE id = ?", [.integer(id)])
      guard row.isStamped else {
        // Inserted and deleted before anybody saw it.
        try connection.run("DELETE FROM main.lk_row WHERE id = ?", [.integer(id)])
        continue
      }
      gone[FieldHash(target: row.name)] = row.name
      goneRows.append(row)
      deletedRecords.insert(row.record)
      order += 1
      changes.append(Change(row: row, kind: .delete, cells: [], milliseconds: milliseconds, order: order))
    }
  }

  // MARK: Comparing

  mutating func compareRows() throws {
    var seen: Set<[SQLiteValue]> = []
    var waiting = candidates.sorted { ($0.table.rank, $0.order) < ($1.table.rank, $1.order) }
    var at = 0
    while at < waiting.count {
      let candidate = waiting[at]
      at += 1
      // Rows that were named because another refers to them are stamped with it.
      defer {
        for (table, key) in replica.namedNow {
          order += 1
          waiting.append(Candidate(table: table, key: key, milliseconds: candidate.milliseconds, order: order))
        }
        replica.namedNow = []
      }
      let table = candidate.table
      guard seen.insert([.integer(table.id)] + table.folded(candidate.key)).inserted else { continue }
      guard let values = try candidate.values ?? connection.first(table.selectRow, candidate.key) else { continue }
      let row: Row
      if let id = try replica.mapped(table, candidate.key) {
        guard let known = try replica.loadRow(id: id, values: values, gone: gone) else { continue }
        row = known
      } else {
        row = try replica.nameNewRow(table, values)
      }
      row.values = values
      try compare(row, values, candidate)
    }
    // A record that was deleted and is inserted again under its name: the insert alone says so.
    let inserted = Set(changes.lazy.filter { $0.kind == .insert }.map(\.row.record))
    changes.removeAll { $0.kind == .delete && inserted.contains($0.row.record) }
    movedRows += goneRows.filter { inserted.contains($0.record) }
    goneRows.removeAll { inserted.contains($0.record) }
  }

  private mutating func compare(_ row: Row, _ values: [SQLiteValue], _ candidate: Candidate) throws {
    let table = row.table
    let isInsert = !row.isStamped || row.shown.isEmpty || deletedRecords.contains(row.record)
    if !isInsert, !row.state.isLive {
      // Deleted elsewhere while the app had no such table here.
      toShow.append(row.record)
      return
    }
    var cells: [(index: Int, value: Value, isFilledIn: Bool)] = []
    var isShownOtherwise = false
    for (index, column) in table.columns.enumerated() {
      let raw = values[index]
      let hash = FieldHash(raw)
      let before = row.shown[column.number]
      if isInsert {
        let value = try replica.translate(column, raw)
        cells.append((index, value, false))
        note(row, column, hash, value)
        continue
      }
      if table.keyIsLocal, column.isKey {
        // The key is this device's own affair; what travels is the first device's, as a hint.
        if before != hash {
          if row.kept[column.number] == nil, row.state.cell(column.wire) != nil,
            let former = row.id.flatMap({ formerKeys[$0] })
          {
            row.keep(Value(former), at: column)
          }
          row.shown[column.number] = hash
          isShownOtherwise = true
        }
        continue
      }
      if before == hash, column.reference == nil { continue }
      if before == hash, row.targets[column.number] == nil, !raw.isNull {
        // A plain value stays one, unless the rules now say where it points; what a number means, only the device knows
        // that wrote it.
        guard newReferences[table.id]?.contains(column.wire) == true,
          row.state[.cell(column.wire)]?.stamp.origin.device == replica.zoneBinding.origin.device
        else { continue }
        let value = try replica.translate(column, raw)
        guard case .reference = value else { continue }
        note(row, column, hash, value)
        row.kept[column.number] = nil
        cells.append((index, value, false))
        continue
      }
      let value = try replica.translate(column, raw)
      let target = target(of: value)
      if before == hash, target == row.targets[column.number] {
        #if LATCHKEY_MUTATIONS
          if Mutation.isOn(.nullReference), raw.isNull, case .reference? = row.kept[column.number] {
            row.kept[column.number] = nil
            cells.append((index, value, false))
          }
        #endif
        continue
      }
      if column.reference != nil, let former = row.targets[column.number] {
        // The target has another key now: the same reference.
        if target == former {
          note(row, column, hash, value)
          isShownOtherwise = true
          continue
        }
        if let name = gone[former], !(row.id.map(rewritten.contains) ?? false),
          before == hash
            || raw.isNull && column.reference?.action == .null
              && deletedRecords.contains(RecordID(table: column.reference?.table ?? 0, name: name))
        {
          // The target was deleted, and its key perhaps taken by another row; or SET NULL did this. Nobody edited the
          // reference: it stays, and what is shown follows from the target.
          row.keep(.reference(name), at: column)
          note(row, column, hash, raw.isNull ? .null : value)
          isShownOtherwise = true
          toShow.append(row.record)
          continue
        }
      }
      if before == nil, let lost = row.kept[column.number]?.lostFingerprint, FieldHash(value).value == lost {
        // The column was away and is as it was.
        row.keep(value, at: column)
        row.kept[column.number] = nil
        note(row, column, hash, value)
        isShownOtherwise = true
        continue
      }
      if before == nil, row.state.cell(column.wire) != nil {
        // The column is new here and its value came before it: what the migration wrote gives way.
        note(row, column, hash, value)
        isShownOtherwise = true
        toShow.append(row.record)
        continue
      }
      if before == nil {
        // A column that this file did not have before: a migration's value loses to anybody's real one.
        note(row, column, hash, value)
        isShownOtherwise = true
        if column.defaultValue == raw { continue }
        cells.append((index, value, true))
        continue
      }
      note(row, column, hash, value)
      row.kept[column.number] = nil
      cells.append((index, value, false))
    }
    if let large = cells.first(where: { $0.value.byteCount > Value.maximumByteCount }) {
      try hold(row, candidate, table.columns[large.index].name)
      return
    }
    if cells.isEmpty {
      if isShownOtherwise { try replica.save(row) }
      return
    }
    if isInsert { row.kept = row.kept.filter { table.indexByNumber[$0.key] == nil } }
    changes.append(
      Change(
        row: row, kind: isInsert ? .insert : .update, cells: cells, milliseconds: candidate.milliseconds,
        order: candidate.order))
  }

  private func target(of value: Value) -> FieldHash? {
    if case .reference(let name) = value { FieldHash(target: name) } else { nil }
  }

  private func note(_ row: Row, _ column: SyncedColumn, _ hash: FieldHash, _ value: Value) {
    row.shown[column.number] = hash
    row.targets[column.number] = target(of: value)
  }

  /// A row with a value over the size that is sent waits whole, and is looked at again every time.
  private mutating func hold(_ row: Row, _ candidate: Candidate, _ column: String) throws {
    let table = candidate.table
    report.tooLarge.append("\(table.name).\(column)")
    let columns = table.key.indices.map { "k\($0)" }.joined(separator: ", ")
    let marks = table.key.map { _ in "?" }.joined(separator: ", ")
    held.append(
      (
        "INSERT INTO main.lk_log\(table.id)(op, ms, \(columns)) VALUES (2, ?, \(marks))",
        [.integer(candidate.milliseconds)] + candidate.key
      ))
  }
  private var held: [(String, [SQLiteValue])] = []

  // MARK: Giving out

  mutating func emitGroups(_ emit: (PendingGroup) throws -> UInt64) throws {
    changes.sort { ($0.milliseconds, $0.row.table.rank, $0.order) < ($1.milliseconds, $1.row.table.rank, $1.order) }
    var notes = try replica.pendingNotes()
    var start = 0
    while start < changes.count {
      var end = start + 1
      while end < changes.count, end - start < Replica.maximumGroupRows,
        changes[end].milliseconds - changes[end - 1].milliseconds <= Replica.clusterGap
      { end += 1 }
      try emitGroup(changes[start..<end], notes, emit)
      notes = []
      start = end
    }
    if !notes.isEmpty { try emitGroup([], notes, emit) }
    if report.groups > 0 { try replica.saveClock() }
  }

  private mutating func emitGroup(
    _ changes: ArraySlice<Change>, _ notes: [PendingNote], _ emit: (PendingGroup) throws -> UInt64
  ) throws {
    let origin = replica.zoneBinding.origin
    let hlc = replica.clock.tick(editedAt: changes.last?.milliseconds ?? now)
    var builder = PayloadBuilder(origin: origin, hlc: hlc)
    for note in notes {
      builder.add(
        note: Note(kind: note.kind, key: note.key, value: note.value, stamp: Stamp(hlc: hlc, origin: origin, tie: 0)))
    }
    for change in changes {
      builder.add(
        table: change.row.table.wire, record: change.row.name, registers(change), compress: change.row.table.compress)
    }
    let parts = builder.finish()
    let tie = try emit(PendingGroup(hlc: hlc, parts: parts))
    let own = Stamp(hlc: hlc, origin: origin, tie: tie)
    for note in notes { try replica.keep(own: note, stamp: own) }
    for change in changes { try save(change, own) }
    report.groups += 1
    report.rows += changes.count
  }

  private func registers(_ change: Change) -> [(Register, RegisterValue, StampReference)] {
    switch change.kind {
    case .delete: return [(.tombstone, .life(nil), .own)]
    case .insert, .update:
      var out: [(Register, RegisterValue, StampReference)] = change.kind == .insert ? [(.born, .life(nil), .own)] : []
      let born = change.row.born?.hlc ?? .zero
      for cell in change.cells {
        out.append(
          (
            .cell(change.row.table.columns[cell.index].wire), .cell(cell.value),
            cell.isFilledIn ? .filledIn(born) : .own
          ))
      }
      return out
    }
  }

  private mutating func save(_ change: Change, _ own: Stamp) throws {
    let row = change.row
    let born = row.born?.hlc ?? .zero
    let entries = registers(change).map { register, value, reference in
      let stamp: Stamp =
        if case .filledIn = reference { Stamp(hlc: born, isFilledIn: true, origin: own.origin, tie: own.tie) } else {
          own
        }
      return RegisterEntry(register, stamp, value)
    }
    row.state = row.state.merging(RecordState(entries))
    row.isStamped = true
    switch change.kind {
    case .delete:
      row.kept = [:]
      row.shown = [:]
      row.targets = [:]
      try replica.unpark(row)
    case .insert:
      try replica.unpark(row)
      waitersOf.append(row.name)
    case .update: try replica.stopWaiting(row)
    }
    try replica.save(row)
  }

  mutating func clearLogs() throws {
    for (table, end) in logEnds.sorted(by: { $0.key < $1.key }) {
      #if LATCHKEY_MUTATIONS
        if Mutation.isOn(.clearQueue) {
          try connection.run("DELETE FROM main.lk_log\(table)")
          continue
        }
      #endif
      try connection.run("DELETE FROM main.lk_log\(table) WHERE id <= ?", [.integer(end)])
    }
    for (sql, values) in held { try connection.run(sql, values) }
  }

  // MARK: Consequences

  /// What a pass that did not come to the end left for the last one to do.
  private enum Deferred: Int64 { case deleted = 1, moved, inserted, changed }

  /// Whether an earlier pass left something.
  private var hasDeferred = false

  mutating func readDeferred() throws {
    for raw in try connection.rows("SELECT kind, record, tid, key, shown FROM main.lk_after ORDER BY id") {
      guard let kind = raw[0].integer.flatMap(Deferred.init), let name = raw[1].bytes.flatMap(RecordName.init),
        let table = raw[2].integer.flatMap({ replica.tablesByID[$0] })
      else { continue }
      hasDeferred = true
      touchedTables.insert(table.id)
      let row = Row(name: name, table: table)
      row.reservedKey = try replica.unpack(key: raw[3], table)
      if let shown = raw[4].bytes {
        try RowCodec.decode(shown: shown, into: row)
        row.formerShown = row.shown
      }
      switch kind {
      case .deleted:
        gone[FieldHash(target: name)] = name
        deletedRecords.insert(row.record)
        goneRows.append(row)
      case .moved:
        gone[FieldHash(target: name)] = name
        movedRows.append(row)
      case .inserted: waitersOf.append(name)
      case .changed: toShow.append(row.record)
      }
    }
  }

  /// Rows that are shown anew while others are not stamped yet could overwrite what the app wrote there: all waits for
  /// the pass that comes to the end.
  private func deferConsequences() throws {
    try connection.run("DELETE FROM main.lk_after")
    func keep(_ kind: Deferred, _ name: RecordName, _ table: Int64, _ row: Row? = nil) throws {
      try connection.run(
        "INSERT INTO main.lk_after(kind, record, tid, key, shown) VALUES (?, ?, ?, ?, ?)",
        [
          .integer(kind.rawValue), .blob(name.bytes), .integer(table),
          row?.reservedKey.map(replica.pack(key:)) ?? .null,
          row.map { .blob(RowCodec.encode(shown: $0.formerShown, targets: [:])) } ?? .null,
        ])
    }
    for row in goneRows { try keep(.deleted, row.name, row.table.id, row) }
    for row in movedRows { try keep(.moved, row.name, row.table.id, row) }
    let isWaitedFor = try connection.first("SELECT 1 FROM main.lk_wait LIMIT 1") != nil
    for name in waitersOf where isWaitedFor {
      if try connection.first("SELECT 1 FROM main.lk_wait WHERE target = ? LIMIT 1", [.blob(name.bytes)]) != nil {
        // Whoever waits knows it by its name alone; any table of the pass will do.
        try keep(.inserted, name, touchedTables.min() ?? 0)
      }
    }
    for record in toShow { try keep(.changed, record.name, record.table) }
    // A unique key may have become free.
    for id in touchedTables.sorted() {
      if let row = try connection.first(
        "SELECT r.record FROM main.lk_park p JOIN main.lk_row r ON r.id = p.row WHERE p.tid = ? AND p.kind = ? LIMIT 1",
        [.integer(id), .integer(Parking.unique(by: .zero).kind)])?[0].bytes.flatMap(RecordName.init)
      {
        try keep(.changed, row, id)
      }
    }
  }

  /// What the table shows of other rows follows from what was stamped: rows that refer to a deleted one, rows that
  /// waited for an inserted one, rows that a unique key kept from being shown.
  mutating func showConsequences() throws {
    if report.more { return try deferConsequences() }
    if hasDeferred { try connection.run("DELETE FROM main.lk_after") }
    let again = try replica.state("retry") != nil
    if toShow.isEmpty, goneRows.isEmpty, movedRows.isEmpty, waitersOf.isEmpty, !again, touchedTables.isEmpty { return }
    let materialiser = try Materialiser(replica: replica, gone: gone)
    for row in goneRows { materialiser.noteGone(row) }
    for row in movedRows { materialiser.noteMoved(row) }
    for name in waitersOf { materialiser.noteShown(name) }
    for record in toShow { try materialiser.enqueue(record) }
    if again {
      try materialiser.enqueueAllKept()
      try replica.setState("retry", nil)
    }
    materialiser.touched.formUnion(touchedTables)
    try materialiser.run()
    report.hidden = materialiser.hidden
  }
}

/// A note that this file has to say.
struct PendingNote: Equatable {
  let kind: UInt64
  let key: String
  let value: [UInt8]
}
