internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Moving a file's rows into another zone.
extension Replica {
  /// Puts the file under another household, zone or origin. Inside ``transaction(_:)``; what was captured must have been
  /// stamped. The digest is made again if its key changes.
  public func rebind(to binding: ZoneBinding) throws {
    let isNewKey = binding.digestKey != zoneBinding.digestKey
    try writeBinding(binding)
    guard isNewKey else { return }
    for table in tables {
      try forEachRow(table) { row in try save(row) }
    }
  }

  /// Gives out every record's registers with their own stamps, and the notes, in groups of bounded size: what a zone needs
  /// that has nothing of them. Inside ``transaction(_:)``.
  /// - Returns: how many groups were given out.
  @discardableResult
  public func carryAll(now: Int64, rowsPerGroup: Int = 20_000, emit: (PendingGroup) throws -> UInt64) throws -> Int {
    let origin = zoneBinding.origin
    var groups = 0
    var builder: PayloadBuilder?
    func flush() throws {
      guard let full = builder, !full.isEmpty else { return }
      _ = try emit(PendingGroup(hlc: full.hlc, parts: full.finish()))
      groups += 1
      builder = nil
    }
    func open() -> PayloadBuilder { PayloadBuilder(origin: origin, hlc: clock.tick(editedAt: now)) }
    for raw in try connection.rows("SELECT kind, key FROM main.lk_note ORDER BY kind, key") {
      guard let kind = raw[0].integer, let key = raw[1].string, let note = try note(UInt64(bitPattern: kind), key)
      else { continue }
      var next = builder ?? open()
      next.add(note: note)
      builder = next
    }
    for table in tables.sorted(by: { ($0.rank, $0.wire) < ($1.rank, $1.wire) }) {
      try forEachRow(table) { row in
        var next = builder ?? open()
        builder = nil
        next.add(
          table: table.wire, record: row.name,
          row.state.registers.filter { !$0.isMissing }.map { ($0.register, $0.value, .other($0.stamp)) },
          compress: table.compress)
        builder = next
        if next.rowCount >= rowsPerGroup { try flush() }
      }
    }
    try flush()
    try saveClock()
    return groups
  }
}
