internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Records that are not shown, and why.
extension Materialiser {
  func hide(_ row: Row) throws {
    guard let key = row.key else { return }
    if !row.isOff {
      try connection.run(row.table.deleteRow, key)
      try replica.unmap(row.table, key)
    }
    row.isOff = false
    row.key = nil
    gone[FieldHash(target: row.name)] = row.name
    retired[row.table.id, default: []].insert(key)
    orphaning.append(Orphaning(name: row.name, table: row.table, key: key, values: row.values, shown: row.shown))
    touched.insert(row.table.id)
    isChanged = true
    row.wasShown = false
    row.values = nil
    row.shown = [:]
    row.targets = [:]
  }

  func park(_ row: Row, _ parking: Parking) throws {
    if row.key != nil {
      // What shows as one with another is not hidden.
      if row.state.isLive, parking.kind != Parking.merged(into: .zero).kind {
        hidden.append("\(row.table.name) \(row.key.map { $0.map(describe).joined(separator: ", ") } ?? "")")
      }
      try hide(row)
    }
    row.kept = allCells(row)
    try setParking(row, parking, waits: parking.target.map { [$0] } ?? [])
    try replica.save(row)
    if let users = borrowers.removeValue(forKey: row.record) { for user in users.sorted() { try enqueueAgain(user) } }
  }

  func enqueueAgain(_ record: RecordID) throws {
    guard let row = try row(record) else { return }
    stage(row)
  }

  /// Notes why a row is not shown, and for whom it or its references wait.
  func setParking(_ row: Row, _ parking: Parking?, waits: Set<RecordName>) throws {
    if row.id == nil { try replica.save(row) }
    guard let id = row.id else { return }
    if row.parking != parking {
      if let parking {
        try replica.park(id, row.table, parking)
      } else {
        try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(id)])
      }
      row.parking = parking
    }
    for target in row.waits.subtracting(waits).sorted() {
      try connection.run("DELETE FROM main.lk_wait WHERE target = ? AND row = ?", [.blob(target.bytes), .integer(id)])
    }
    for target in waits.sorted() {
      try connection.run(
        "INSERT INTO main.lk_wait(target, row) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [.blob(target.bytes), .integer(id)])
    }
    row.waits = waits
    if !waits.isEmpty { hasWaiting = true }
  }
}
