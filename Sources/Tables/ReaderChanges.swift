public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// What somebody wrote here as a reader: it counts for nobody else. It stays, is noted, and can be taken back or, once its author may
/// write, published.
extension Replica {
  private static let readerCause = SQLiteValue.integer(JournalEntry.Cause.reader.rawValue)

  /// Notes what a group of this device wrote as a reader. Inside ``transaction(_:)``.
  public func noteKeptHere(_ group: PendingGroup, tie: UInt64, now: Int64) throws {
    for part in group.parts {
      for change in try Payload.decode(part.bytes, origin: zoneBinding.origin, hlc: group.hlc, tie: tie).changes {
        let record = RecordID(table: try table(wire: change.table).id, name: change.record)
        // What is carried was written before.
        for entry in change.state.registers
        where entry.stamp.origin == zoneBinding.origin && entry.stamp.hlc == group.hlc {
          switch (entry.register, entry.value) {
          case (.cell(let column), .cell(let value)): try noteKeptHere(record, column, value, entry.stamp, now)
          case (.tombstone, _): try noteKeptHere(record, nil, .null, entry.stamp, now)
          default: break
          }
        }
      }
    }
  }

  private func noteKeptHere(_ record: RecordID, _ column: String?, _ value: Value, _ stamp: Stamp, _ now: Int64) throws
  {
    try connection.run(
      "DELETE FROM main.lk_journal WHERE cause = ? AND record = ? AND tid = ? AND name IS ?",
      [
        Self.readerCause, .blob(record.name.bytes), .integer(record.table), column.map { SQLiteValue($0) } ?? .null,
      ])
    try journal(record, column, value, .reader, stamp, now: now)
  }

  /// How many rows have something that was written here as a reader and counts for nobody else.
  public func rowsKeptHere() throws -> Int { try keptHere().count }

  /// The records that have something that was written here as a reader, by table's wire name.
  public func recordsKeptHere() throws -> [(table: String, record: RecordName)] {
    try keptHere().keys.sorted().compactMap { id in tablesByID[id.table].map { ($0.wire, id.name) } }
  }

  /// With the readings of the clock of what was written as a reader.
  private func keptHere() throws -> [RecordID: Set<HLC>] {
    var out: [RecordID: Set<HLC>] = [:]
    for raw in try connection.rows("SELECT tid, record, hlc FROM main.lk_journal WHERE cause = ?", [Self.readerCause]) {
      guard let table = raw[0].integer, let name = raw[1].bytes.flatMap(RecordName.init), let hlc = raw[2].integer
      else { continue }
      out[RecordID(table: table, name: name), default: []].insert(HLC(rawValue: UInt64(bitPattern: hlc)))
    }
    return out
  }

  private func isKeptHere(_ stamp: Stamp, _ readings: Set<HLC>) -> Bool {
    stamp.origin.device == zoneBinding.origin.device && readings.contains(stamp.hlc)
  }

  private func forgetKeptHere() throws {
    try connection.run("DELETE FROM main.lk_journal WHERE cause = ?", [Self.readerCause])
  }

  /// Publishes what was written here as a reader, as edits of now: for somebody who may write again.
  ///
  /// Inside ``transaction(_:)``. What the app changed is stamped first.
  /// - Returns: of how many rows.
  public func publishKeptHere(now: Int64, emit: (PendingGroup) throws -> UInt64) throws -> Int {
    precondition(connection.isInTransaction, "publish inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    var rewrites: [Rewrite] = []
    for (id, readings) in try keptHere().sorted(by: { $0.key < $1.key }) {
      guard let row = try loadRow(id) else { continue }
      if row.state.isLive, let born = row.state.newestBorn, isKeptHere(born, readings) {
        rewrites.append(Rewrite(inserting: row.state, row.table, id.name))
        continue
      }
      if let tombstone = row.state.newestTombstone, !row.state.isLive {
        if isKeptHere(tombstone, readings) { rewrites.append(Rewrite(row.table, id.name, [(.tombstone, .life(nil))])) }
        continue
      }
      let cells = row.state.registers.filter { entry in
        guard case .cell = entry.register else { return false }
        return isKeptHere(entry.stamp, readings) && !entry.isMissing
      }
      if !cells.isEmpty { rewrites.append(Rewrite(row.table, id.name, cells.map { ($0.register, $0.value) })) }
    }
    try forgetKeptHere()
    try merge(try rewrite(rewrites, now: now, emit: emit), now, &report, emit)
    return rewrites.count
  }

  /// Takes back what was written here as a reader: the rows become what they are in the zone.
  ///
  /// Inside ``transaction(_:)``. Nothing is told to anybody: for the others it never was. What the app changed is stamped first.
  /// - Parameter zone: what the zone has of a record.
  /// - Returns: how many rows.
  public func revertKeptHere(
    to zone: (_ table: String, _ record: RecordName) -> RecordState, now: Int64, emit: (PendingGroup) throws -> UInt64
  ) throws -> Int {
    precondition(connection.isInTransaction, "revert inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    let kept = try keptHere()
    let materialiser = try Materialiser(replica: self)
    for (id, readings) in kept.sorted(by: { $0.key < $1.key }) {
      guard let row = try loadRow(id) else { continue }
      let others = row.state.registers.filter { !isKeptHere($0.stamp, readings) && !$0.isMissing }
      row.state = RecordState(others).merging(zone(row.table.wire, id.name))
      row.isStamped = true
      materialiser.touched.insert(id.table)
      materialiser.stage(row)
    }
    try forgetKeptHere()
    try materialiser.run()
    return kept.count
  }
}
