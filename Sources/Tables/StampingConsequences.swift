internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What follows from what was stamped, for rows that nobody edited.
extension StampPass {
  /// What a pass that did not come to the end left for the last one to do.
  enum Deferred: Int64 { case deleted = 1, moved, inserted, changed }

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
  func deferConsequences() throws {
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
    for record in affected.sorted() {
      toShow.append(record)
      waitersOf.append(record.name)
    }
    if report.more { return try deferConsequences() }
    if hasDeferred { try connection.run("DELETE FROM main.lk_after") }
    let again = try replica.state("retry") != nil
    let isRegrouped = try replica.state("regroup") != nil
    if toShow.isEmpty, goneRows.isEmpty, movedRows.isEmpty, waitersOf.isEmpty, !again, !isRegrouped,
      touchedTables.isEmpty
    {
      return
    }
    let materialiser = try Materialiser(replica: replica, gone: gone)
    for row in goneRows { materialiser.noteGone(row) }
    for row in movedRows { materialiser.noteMoved(row) }
    for name in waitersOf { materialiser.noteShown(name) }
    for record in toShow { try materialiser.enqueue(record) }
    if again {
      try materialiser.enqueueAllKept()
      try replica.setState("retry", nil)
    }
    try materialiser.enqueueRegrouped()
    materialiser.touched.formUnion(touchedTables)
    try materialiser.run()
    report.hidden = materialiser.hidden
  }
}
