public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// Rows that went with a table that was thrown away and made anew, so many that nobody's are deleted for it until a person says that it
/// was meant. Their values are in the store.
extension Replica {
  private static let lostCondition = "p.kind = \(Parking.lost.kind) AND r.hash IS NOT NULL"

  private func lost() throws -> [RecordID] {
    try connection.rows(
      "SELECT r.tid, r.record FROM main.lk_park p JOIN main.lk_row r ON r.id = p.row WHERE \(Self.lostCondition) ORDER BY r.id"
    ).compactMap { raw in
      guard let table = raw[0].integer, tablesByID[table]?.shape != nil,
        let name = raw[1].bytes.flatMap(RecordName.init)
      else { return nil }
      return RecordID(table: table, name: name)
    }
  }

  /// How many rows of which table, by wire name, in order. None of a table that the file no longer has.
  public func lostRows() throws -> [(table: String, rows: Int)] {
    guard hasLost else { return [] }
    var counts: [String: Int] = [:]
    for id in try lost() { if let table = tablesByID[id.table] { counts[table.wire, default: 0] += 1 } }
    return counts.sorted { $0.key < $1.key }.map { (table: $0.key, rows: $0.value) }
  }

  /// The records of those rows, by table's wire name.
  public func lostRecords() throws -> [(table: String, record: RecordName)] {
    try lost().compactMap { id in tablesByID[id.table].map { ($0.wire, id.name) } }
  }

  /// Deletes those rows for everybody. Inside ``transaction(_:)``; what the app changed is stamped first.
  /// - Returns: how many.
  public func deleteLostRows(now: Int64, emit: (PendingGroup) throws -> UInt64) throws -> Int {
    precondition(connection.isInTransaction, "delete inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    let rewrites = try lost().compactMap { id in
      tablesByID[id.table].map { Rewrite($0, id.name, [(.tombstone, .life(nil))]) }
    }
    try merge(try rewrite(rewrites, now: now, emit: emit), now, &report, emit)
    return rewrites.count
  }

  /// Shows those rows again, with values that others have. Inside ``transaction(_:)``; what the app changed is stamped first. Nothing is told
  /// to anybody: for the others they never went.
  /// - Parameter zone: what the zone has of a record.
  /// - Returns: how many came back.
  public func recoverLostRows(
    from zone: (_ table: String, _ record: RecordName) -> RecordState, now: Int64, emit: (PendingGroup) throws -> UInt64
  ) throws -> Int {
    precondition(connection.isInTransaction, "recover inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    let ids = try lost()
    try merge(
      ids.compactMap { id in tablesByID[id.table].map { ($0.wire, id.name, zone($0.wire, id.name)) } }, now, &report,
      emit)
    return try ids.count - lost().count
  }
}
