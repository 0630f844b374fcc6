internal import LatchkeyEngine
internal import LatchkeyRecords
public import LatchkeyTables

/// Deleted rows are kept for thirty days and can come back.
extension Home {
  /// The rows in a database's trash, whoever deleted them, the one deleted last first.
  ///
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`.
  public nonisolated func trash(_ path: String) throws(LatchkeyError) -> [TrashEntry] {
    let path = absolute(path)
    do { return try Replica(path: path, mode: .readOnly).trash() } catch { throw LatchkeyError(error, database: path) }
  }

  /// Inserts deleted rows again, which every device takes with the next sync: with the rows that were deleted together with them and refer to
  /// them, and those that they cannot be without. Rows that were only hidden come back by themselves.
  ///
  /// The store is asked only for values that this file does not have: of rows that the app here deleted.
  ///
  /// - Parameter entries: their numbers, as ``trash(_:)`` gives them.
  /// - Returns: how many rows came back.
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`, `busy`, `store`, `membership` (a reader), `usage` (no such row, or nobody has its
  ///   values).
  @discardableResult
  public func restoreTrash(_ path: String, entries: [Int64]) async throws(LatchkeyError) -> Int {
    let path = absolute(path)
    return try await reporting(database: path) {
      let replica = try Replica(path: path)
      try checkMayWrite(replica)
      // What was deleted since the last sync is in the trash once it has been stamped.
      let lacking = try replica.lackingValues(toRestore: entries)
      if !lacking.isEmpty {
        let history = try await wholeHistory(of: replica)
        let wanted = Set(lacking.map { ZoneHistory.RecordKey($0.table, $0.record) })
        let states = try history.states(of: wanted) { $0.register != .tombstone }
        try replica.transaction {
          try replica.fillTrash(
            lacking.map { ($0.table, $0.record, states[ZoneHistory.RecordKey($0.table, $0.record)] ?? .empty) })
        }
      }
      var performer = try performer(replica, membership(of: replica.binding.household))
      return try performer.write { replica, now, emit in
        try replica.restoreTrash(entries, now: now, emit: emit).count
      }
    }
  }
}
