internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Operations that Latchkey writes for a person, where the app wrote none: rows that are inserted again, values that are put
/// back. Every device takes them as it takes an edit.
extension Replica {
  /// What one operation does to a record.
  struct Rewrite {
    let table: SyncedTable
    let record: RecordName
    /// Registers and values, each register once: all get the stamp of now.
    let registers: [(Register, RegisterValue)]

    init(_ table: SyncedTable, _ record: RecordName, _ registers: [(Register, RegisterValue)]) {
      (self.table, self.record, self.registers) = (table, record, registers)
    }

    /// A re-insert: every value that is known.
    init(inserting cells: RecordState, _ table: SyncedTable, _ record: RecordName) {
      self.init(
        table, record,
        [(.born, .life(nil))]
          + cells.cells.filter { !$0.value.isMissing }.map { (Register.cell($0.column), RegisterValue.cell($0.value)) })
    }
  }

  /// Gives operations out as push groups of now, and returns what they come to.
  func rewrite(
    _ rewrites: [Rewrite], now: Int64, emit: (PendingGroup) throws -> UInt64
  ) throws -> [(table: String, record: RecordName, state: RecordState)] {
    let origin = zoneBinding.origin
    var out: [(table: String, record: RecordName, state: RecordState)] = []
    for start in stride(from: 0, to: rewrites.count, by: Self.maximumGroupRows) {
      let page = rewrites[start..<min(start + Self.maximumGroupRows, rewrites.count)]
      let hlc = clock.tick(editedAt: now)
      var builder = PayloadBuilder(origin: origin, hlc: hlc)
      for one in page {
        builder.add(
          table: one.table.wire, record: one.record, one.registers.map { ($0.0, $0.1, .own) },
          compress: one.table.compress)
      }
      let tie = try emit(PendingGroup(hlc: hlc, parts: builder.finish()))
      let own = Stamp(hlc: hlc, origin: origin, tie: tie)
      out += page.map { one in
        (one.table.wire, one.record, RecordState(one.registers.map { RegisterEntry($0.0, own, $0.1) }))
      }
    }
    if !rewrites.isEmpty { try saveClock() }
    return out
  }
}
