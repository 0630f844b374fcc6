internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Writing down which records are one, so that they stay one if a key changes later: by the device that made one of two alike, or that
/// edits what they show as, once.
struct AliasWriter {
  let replica: Replica
  /// The record as whoever calls has it.
  let row: (RecordID) throws -> Row?
  /// Takes a record whose state is new.
  let keep: (Row) throws -> Void

  private struct Wanted {
    let row: Row
    let value: RegisterValue
  }

  /// - Parameters:
  ///   - touched: records that may have become duplicates, or (`areEdited`) that the app edits.
  ///   - milliseconds: when that was.
  ///   - skipped: records that get no alias now.
  /// - Returns: records that may be shown otherwise; empty if no alias was written.
  func write(
    _ touched: [RecordID], areEdited: Bool, skipping skipped: Set<RecordID> = [], at milliseconds: Int64,
    emit: (PendingGroup) throws -> UInt64
  ) throws -> Set<RecordID> {
    var wanted: [Wanted] = []
    var known = skipped
    for record in touched {
      let parts = try replica.duplicateParts(of: record)
      guard parts.count > 1, let table = replica.tablesByID[record.table],
        let best = replica.survivor(parts.flatMap(\.self)),
        let bestRow = try row(RecordID(table: table.id, name: best.name)), let key = best.key.flatMap(RecordName.init)
      else { continue }
      if areEdited, record != bestRow.record { continue }
      for part in parts where !part.contains(where: { $0.row == best.row }) {
        guard let head = replica.survivor(part), let headRow = try row(RecordID(table: table.id, name: head.name))
        else { continue }
        let isMine = [headRow, bestRow].contains {
          replica.keyStamp($0.state, table)?.origin.device == replica.zoneBinding.origin.device
        }
        guard isMine || areEdited, let root = try row(RecordID(table: table.id, name: root(of: head, in: part))),
          known.insert(root.record).inserted
        else { continue }
        wanted.append(
          Wanted(
            row: root,
            value: .alias(Alias(canonical: best.name, keyHash: key.raw, isPreferred: best.isPreferred))))
      }
    }
    if wanted.isEmpty { return [] }
    let origin = replica.zoneBinding.origin
    let hlc = replica.clock.tick(editedAt: milliseconds)
    var builder = PayloadBuilder(origin: origin, hlc: hlc)
    for alias in wanted {
      builder.add(
        table: alias.row.table.wire, record: alias.row.name, [(.alias, alias.value, .own)],
        compress: alias.row.table.compress)
    }
    let tie = try emit(PendingGroup(hlc: hlc, parts: builder.finish()))
    try replica.saveClock()
    let own = Stamp(hlc: hlc, origin: origin, tie: tie)
    var affected: Set<RecordID> = []
    for alias in wanted {
      alias.row.state = alias.row.state.merging(RecordState([RegisterEntry(.alias, own, alias.value)]))
      try keep(alias.row)
      affected.formUnion(try replica.regroup(alias.row))
    }
    return affected
  }

  /// Where aliases lead from a record: a record that is a duplicate already keeps its alias, or what was put together with it would fall
  /// apart.
  private func root(of head: GroupMember, in part: [GroupMember]) -> RecordName {
    var at = head
    var seen: Set<RecordName> = [at.name]
    while let next = at.canonical, seen.insert(next).inserted, let member = part.first(where: { $0.name == next }) {
      at = member
    }
    return at.name
  }
}
