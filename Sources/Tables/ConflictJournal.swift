internal import LatchkeyEncoding
internal import LatchkeyRecords

/// Finds, while what others wrote is merged, values that lost a true conflict: two edits of which neither author knew the other's.
///
/// That an author did not know of an edit of this device is certain while the store has not confirmed it, and where the author's edit is older
/// than the confirmation. That this device's edit was made without knowing of another's follows from the other arriving after it. Where neither
/// is certain nothing is noted: an edit that was made upon another one loses nothing.
struct ConflictJournal {
  let replica: Replica
  /// Whose own writes are looked at: what is carried for others was seen before.
  let origins: Set<Origin>
  let now: Int64
  private(set) var count = 0

  init(replica: Replica, origins: Set<Origin>, now: Int64) {
    self.replica = replica
    self.origins = origins
    self.now = now
  }

  private var own: DeviceID { replica.zoneBinding.origin.device }

  /// Compares what a record was here, what came in, and what came of it.
  mutating func compare(_ row: Row, before: RecordState, incoming: RecordState, merged: RecordState) throws {
    if origins.isEmpty || before.isEmpty { return }
    if before.isLive, !merged.isLive, let tombstone = merged[.tombstone], isTheirs(tombstone.stamp) {
      for cell in before.registers where isMine(cell) {
        if try wasUnseen(cell.stamp, by: tombstone.stamp) { try note(.deleted, row, cell, winner: tombstone) }
      }
    }
    for theirs in incoming.registers where isTheirs(theirs.stamp) && !theirs.stamp.isFilledIn {
      guard case .cell(let column) = theirs.register else { continue }
      if !merged.isLive {
        // An edit of a row that is deleted here: unless the deletion was made upon it.
        guard !before.isLive, let tombstone = merged[.tombstone],
          theirs.stamp.hlc > tombstone.stamp.hlc || tombstone.stamp.origin.device == own
        else { continue }
        try note(.deleted, row, theirs, winner: tombstone)
        continue
      }
      guard let mine = before[theirs.register], isMine(mine), mine.stamp != theirs.stamp, mine.value != theirs.value,
        !isHint(column, row.table)
      else { continue }
      if mine.stamp < theirs.stamp {
        if try wasUnseen(mine.stamp, by: theirs.stamp) { try note(.overwritten, row, mine, winner: theirs) }
      } else {
        try note(.outdated, row, theirs, winner: mine)
      }
    }
  }

  private func isTheirs(_ stamp: Stamp) -> Bool { origins.contains(stamp.origin) && stamp.origin.device != own }

  private func isMine(_ entry: RegisterEntry) -> Bool {
    guard case .cell = entry.value else { return false }
    return entry.stamp.origin.device == own && !entry.stamp.isFilledIn && !entry.isMissing
  }

  /// The number that a row had on its first device is nobody's edit.
  private func isHint(_ column: String, _ table: SyncedTable) -> Bool {
    guard table.keyIsLocal, let index = table.indexByNumber[table.number(of: column)] else { return false }
    return table.columns[index].isKey
  }

  private func wasUnseen(_ mine: Stamp, by theirs: Stamp) throws -> Bool {
    guard let confirmed = try replica.confirmedAt(mine.hlc) else { return true }
    return theirs.hlc.milliseconds < confirmed
  }

  private mutating func note(
    _ cause: JournalEntry.Cause, _ row: Row, _ loser: RegisterEntry, winner: RegisterEntry
  ) throws {
    guard case .cell(let column) = loser.register, case .cell(let value) = loser.value, !isHint(column, row.table)
    else { return }
    var winning: Value?
    if case .cell(let value) = winner.value { winning = value }
    if row.id == nil { try replica.save(row) }
    try replica.journal(
      row.record, column, value, cause, loser.stamp, winner: winning, winner.stamp, now: now)
    count += 1
  }
}

extension Replica {
  /// Notes that the store has confirmed all own writes up to a reading of the clock.
  func noteSent(upTo hlc: Int64, now: Int64) throws {
    try connection.run(
      "INSERT INTO main.lk_sent(hlc, at) VALUES (?, ?) ON CONFLICT DO NOTHING", [.integer(hlc), .integer(now)])
  }

  /// When the store confirmed an own write; nil if it has not.
  func confirmedAt(_ hlc: HLC) throws -> Int64? {
    try connection.first(
      "SELECT at FROM main.lk_sent WHERE hlc >= ? ORDER BY hlc LIMIT 1", [.integer(Int64(bitPattern: hlc.rawValue))])?[
        0
      ]
      .integer
  }
}
