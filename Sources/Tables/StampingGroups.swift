internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Giving out what changed, as push groups.
extension StampPass {
  mutating func emitGroups(_ emit: (PendingGroup) throws -> UInt64) throws {
    changes.sort { ($0.milliseconds, $0.row.table.rank, $0.order) < ($1.milliseconds, $1.row.table.rank, $1.order) }
    var notes = try replica.pendingNotes() + replica.pendingRules()
    let edited = changes.filter { $0.kind == .update && $0.row.table.duplicates != nil }
    if let first = edited.first {
      // What shows as one row is put together before it is edited: else the edit would go should another of them come to be shown.
      if !notes.isEmpty { try emitGroup([], notes, emit) }
      notes = []
      try writeAliases(
        edited.map(\.row.record), areEdited: true, at: first.milliseconds, emit)
    }
    var start = 0
    while start < changes.count {
      var end = start + 1
      while end < changes.count, end - start < Replica.maximumGroupRows,
        changes[end].milliseconds - changes[end - 1].milliseconds <= Replica.clusterGap
      { end += 1 }
      try emitGroup(changes[start..<end], notes, emit)
      notes = []
      start = end
    }
    if !notes.isEmpty { try emitGroup([], notes, emit) }
    if report.groups > 0 { try replica.saveClock() }
  }

  mutating func emitGroup(
    _ changes: ArraySlice<Change>, _ notes: [PendingNote], _ emit: (PendingGroup) throws -> UInt64
  ) throws {
    let origin = replica.zoneBinding.origin
    let hlc = replica.clock.tick(editedAt: changes.last?.milliseconds ?? now)
    var builder = PayloadBuilder(origin: origin, hlc: hlc)
    for note in notes {
      builder.add(
        note: Note(kind: note.kind, key: note.key, value: note.value, stamp: Stamp(hlc: hlc, origin: origin, tie: 0)))
    }
    for change in changes {
      builder.add(
        table: change.row.table.wire, record: change.row.name, registers(change), compress: change.row.table.compress)
    }
    let parts = builder.finish()
    let tie = try emit(PendingGroup(hlc: hlc, parts: parts))
    let own = Stamp(hlc: hlc, origin: origin, tie: tie)
    for note in notes { try replica.keep(own: note, stamp: own) }
    for change in changes { try save(change, own) }
    report.groups += 1
    report.rows += changes.count
  }

  func registers(_ change: Change) -> [(Register, RegisterValue, StampReference)] {
    switch change.kind {
    case .delete:
      var out: [(Register, RegisterValue, StampReference)] = [(.tombstone, .life(nil), .own)]
      if change.row.state[.alias] != nil, replica.canonical(change.row) == nil {
        // Void because it has another key: of a deleted record nobody sees that.
        let itself = Alias(canonical: change.row.name, keyHash: RecordName.zero.raw, isPreferred: false)
        out.append((.alias, .alias(itself), .own))
      }
      return out
    case .insert, .update:
      var out: [(Register, RegisterValue, StampReference)] = change.kind == .insert ? [(.born, .life(nil), .own)] : []
      let born = change.row.born?.hlc ?? .zero
      for cell in change.cells {
        out.append(
          (
            .cell(change.row.table.columns[cell.index].wire), .cell(cell.value),
            cell.isFilledIn ? .filledIn(born) : .own
          ))
      }
      return out
    }
  }

  mutating func save(_ change: Change, _ own: Stamp) throws {
    let row = change.row
    let born = row.born?.hlc ?? .zero
    let entries = registers(change).map { register, value, reference in
      let stamp: Stamp =
        if case .filledIn = reference { Stamp(hlc: born, isFilledIn: true, origin: own.origin, tie: own.tie) } else {
          own
        }
      return RegisterEntry(register, stamp, value)
    }
    if change.kind == .delete { try replica.discard(row, row.state, own, now: now) }
    row.state = row.state.merging(RecordState(entries))
    row.isStamped = true
    if change.kind == .delete, holdsDeletions { row.state = try replica.absorbing(row.record, into: row.state) }
    switch change.kind {
    case .delete:
      row.kept = [:]
      row.shown = [:]
      row.targets = [:]
      try replica.unpark(row)
    case .insert:
      try replica.unpark(row)
      waitersOf.append(row.name)
    case .update: try replica.stopWaiting(row)
    }
    try replica.save(row)
    guard row.table.duplicates != nil else { return }
    affected.formUnion(try replica.regroup(row))
    regrouped.append(row.record)
  }

  /// Writes down what is one now. What is shown otherwise for it is shown with the other consequences.
  mutating func writeAliases(
    _ records: [RecordID], areEdited: Bool, at milliseconds: Int64, _ emit: (PendingGroup) throws -> UInt64
  ) throws {
    if records.isEmpty { return }
    let gone = gone
    let writer = AliasWriter(
      replica: replica, row: { [replica] in try replica.loadRow($0, gone: gone) },
      keep: { [replica] in try replica.save($0) })
    // Whoever is stamped after this would not know of it.
    let skipped = areEdited ? Set(changes.map(\.row.record)) : []
    let shownOtherwise = try writer.write(
      records, areEdited: areEdited, skipping: skipped, at: milliseconds, emit: emit)
    if !shownOtherwise.isEmpty { report.groups += 1 }
    affected.formUnion(shownOtherwise)
  }

  mutating func clearLogs() throws {
    for (table, end) in logEnds.sorted(by: { $0.key < $1.key }) {
      #if LATCHKEY_MUTATIONS
        if Mutation.isOn(.clearQueue) {
          try connection.run("DELETE FROM main.lk_log\(table)")
          continue
        }
      #endif
      try connection.run("DELETE FROM main.lk_log\(table) WHERE id <= ?", [.integer(end)])
    }
    for (sql, values) in held { try connection.run(sql, values) }
  }
}

/// A note that this file has to say.
struct PendingNote: Equatable {
  let kind: UInt64
  let key: String
  let value: [UInt8]
}
