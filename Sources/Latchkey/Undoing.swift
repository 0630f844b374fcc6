internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyRecords
public import LatchkeyTables

extension Home {
  /// Undoes what one member wrote in a database, by operations of now that every device takes with the next sync: rows that they deleted are
  /// inserted again, rows that they inserted are deleted, values that they wrote go back to what they were. What somebody else wrote
  /// since stays. It concerns what has arrived here; the values of before come from the logs in the store.
  ///
  /// - Parameters:
  ///   - member: a name or the beginning of an id, also of somebody who was removed.
  ///   - since: only what they wrote since, in milliseconds since 1970-01-01 UTC, by their clock; nil for all.
  ///   - isRehearsal: says what would be done, and changes nothing.
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`, `busy`, `store` (not all of the zone's logs are shown), `membership` (a reader),
  ///   `usage` (no such member).
  public func restore(
    _ path: String, by member: String, since: Int64? = nil, isRehearsal: Bool = false
  ) async throws(LatchkeyError) -> UndoReport {
    let path = absolute(path)
    return try await reporting(database: path) {
      let replica = try Replica(path: path, mode: isRehearsal ? .readOnly : .readWrite)
      let membership = try membership(of: replica.binding.household)
      try checkMayWrite(replica)
      let devices = try devices(of: member, membership)
      func isTheirs(_ stamp: Stamp) -> Bool {
        devices.contains(stamp.origin.device) && (since.map { stamp.hlc.milliseconds >= $0 } ?? true)
      }
      let history = try await wholeHistory(of: replica)
      // Only what they wrote to is held in memory.
      var touched: [ZoneHistory.RecordKey: (table: String, record: RecordName)] = [:]
      var order: [ZoneHistory.RecordKey] = []
      func note(_ table: String, _ record: RecordName, _ state: RecordState) {
        guard state.registers.contains(where: { isTheirs($0.stamp) }) else { return }
        let key = ZoneHistory.RecordKey(table, record)
        if touched.updateValue((table, record), forKey: key) == nil { order.append(key) }
      }
      try history.forEach { change, _ in note(change.table, change.record, change.state) }
      try replica.forEachRecord(note)
      let before = try history.states(of: Set(order)) { !isTheirs($0.stamp) }
      let records = order.compactMap { key in
        touched[key].map { (table: $0.table, record: $0.record, before: before[key] ?? .empty) }
      }
      if isRehearsal {
        return try replica.undo(records, isTheirs: isTheirs, isRehearsal: true, now: world.now()) { _ in 0 }
      }
      var performer = try performer(replica, membership)
      return try performer.write { replica, now, emit in
        try replica.undo(records, isTheirs: isTheirs, isRehearsal: false, now: now, emit: emit)
      }
    }
  }
}
