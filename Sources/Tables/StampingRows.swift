internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What became of each row that may have changed, compared with what the table showed.
extension StampPass {
  mutating func retireDeleted() throws {
    for (id, milliseconds) in deleted {
      guard let row = try replica.loadRow(id: id) else { continue }
      row.reservedKey = row.key
      row.formerShown = row.shown
      row.key = nil
      row.values = nil
      try connection.run("UPDATE main.lk_row SET key = NULL WHERE id = ?", [.integer(id)])
      guard row.isStamped else {
        // Inserted and deleted before anybody saw it.
        try connection.run("DELETE FROM main.lk_row WHERE id = ?", [.integer(id)])
        continue
      }
      gone[FieldHash(target: row.name)] = row.name
      goneRows.append(row)
      deletedRecords.insert(row.record)
      order += 1
      changes.append(Change(row: row, kind: .delete, cells: [], milliseconds: milliseconds, order: order))
      // With a row that stands for several, all of them go.
      for member in try replica.duplicates(of: row.record) where member.isLive && member.name != row.name {
        guard let other = try replica.loadRow(id: member.row), other.key == nil else { continue }
        deletedRecords.insert(other.record)
        changes.append(Change(row: other, kind: .delete, cells: [], milliseconds: milliseconds, order: order))
      }
    }
  }

  mutating func compareRows() throws {
    var seen: Set<[SQLiteValue]> = []
    var waiting = candidates.sorted { ($0.table.rank, $0.order) < ($1.table.rank, $1.order) }
    var at = 0
    while at < waiting.count {
      let candidate = waiting[at]
      at += 1
      // Rows that were named because another refers to them are stamped with it.
      defer {
        for (table, key) in replica.namedNow {
          order += 1
          waiting.append(Candidate(table: table, key: key, milliseconds: candidate.milliseconds, order: order))
        }
        replica.namedNow = []
      }
      let table = candidate.table
      guard seen.insert([.integer(table.id)] + table.folded(candidate.key)).inserted else { continue }
      guard let values = try candidate.values ?? connection.first(table.selectRow, candidate.key) else { continue }
      let row: Row
      if let id = try replica.mapped(table, candidate.key) {
        guard let known = try replica.loadRow(id: id, values: values, gone: gone) else { continue }
        row = known
      } else {
        row = try replica.nameNewRow(table, values)
      }
      row.values = values
      try compare(row, values, candidate)
    }
    // A record that was deleted and is inserted again under its name: the insert alone says so.
    let inserted = Set(changes.lazy.filter { $0.kind == .insert }.map(\.row.record))
    changes.removeAll { $0.kind == .delete && inserted.contains($0.row.record) }
    movedRows += goneRows.filter { inserted.contains($0.record) }
    goneRows.removeAll { inserted.contains($0.record) }
  }

  mutating func compare(_ row: Row, _ values: [SQLiteValue], _ candidate: Candidate) throws {
    let table = row.table
    let isInsert = !row.isStamped || row.shown.isEmpty || deletedRecords.contains(row.record)
    if !isInsert, !row.state.isLive {
      // Deleted elsewhere while the app had no such table here.
      toShow.append(row.record)
      return
    }
    var cells: [(index: Int, value: Value, isFilledIn: Bool)] = []
    var isShownOtherwise = false
    // References whose other column now says another table: the same number means another row.
    let turned = table.columns.indices.filter { index in
      table.columns[index].choice.map { choice in
        row.shown[table.columns[choice.by].number] != FieldHash(values[choice.by])
      } ?? false
    }
    for (index, column) in table.columns.enumerated() {
      let raw = values[index]
      let hash = FieldHash(raw)
      let before = row.shown[column.number]
      if isInsert {
        let value = try replica.translate(column, in: values, raw)
        cells.append((index, value, false))
        note(row, column, hash, value)
        continue
      }
      if table.keyIsLocal, column.isKey {
        // The key is this device's own affair; what travels is the first device's, as a hint.
        if before != hash {
          if row.kept[column.number] == nil, row.state.cell(column.wire) != nil,
            let former = row.id.flatMap({ formerKeys[$0] })
          {
            row.keep(Value(former), at: column)
          }
          row.shown[column.number] = hash
          isShownOtherwise = true
        }
        continue
      }
      if before == hash, !column.isReference { continue }
      if before == hash, row.targets[column.number] == nil, !raw.isNull, !turned.contains(index) {
        // A plain value stays one, unless the rules now say where it points; what a number means, only the device knows
        // that wrote it.
        guard newReferences[table.id]?.contains(column.wire) == true,
          row.state[.cell(column.wire)]?.stamp.origin.device == replica.zoneBinding.origin.device
        else { continue }
        let value = try replica.translate(column, in: values, raw)
        guard case .reference = value else { continue }
        note(row, column, hash, value)
        row.kept[column.number] = nil
        cells.append((index, value, false))
        continue
      }
      let value = try replica.translate(column, in: values, raw)
      let target = target(of: value)
      if before == hash, target == row.targets[column.number] {
        #if LATCHKEY_MUTATIONS
          if Mutation.isOn(.nullReference), raw.isNull, case .reference? = row.kept[column.number] {
            row.kept[column.number] = nil
            cells.append((index, value, false))
          }
        #endif
        continue
      }
      if column.isReference, let former = row.targets[column.number] {
        // The target has another key now: the same reference.
        if target == former {
          note(row, column, hash, value)
          isShownOtherwise = true
          continue
        }
        if let name = gone[former], !(row.id.map(rewritten.contains) ?? false), !turned.contains(index),
          before == hash || raw.isNull && isNulled(column, in: values, name)
        {
          // The target was deleted, and its key perhaps taken by another row; or SET NULL did this. Nobody edited the
          // reference: it stays, and what is shown follows from the target.
          // What a duplicate stands for is kept already.
          if case .reference? = row.kept[column.number] {} else { row.keep(.reference(name), at: column) }
          note(row, column, hash, raw.isNull ? .null : value)
          isShownOtherwise = true
          toShow.append(row.record)
          continue
        }
      }
      if before == nil, let lost = row.kept[column.number]?.lostFingerprint, FieldHash(value).value == lost {
        // The column was away and is as it was.
        row.keep(value, at: column)
        row.kept[column.number] = nil
        note(row, column, hash, value)
        isShownOtherwise = true
        continue
      }
      if before == nil, row.state.cell(column.wire) != nil {
        // The column is new here and its value came before it: what the migration wrote gives way.
        note(row, column, hash, value)
        isShownOtherwise = true
        toShow.append(row.record)
        continue
      }
      if before == nil {
        // A column that this file did not have before: a migration's value loses to anybody's real one.
        note(row, column, hash, value)
        isShownOtherwise = true
        if column.defaultValue == raw { continue }
        cells.append((index, value, true))
        continue
      }
      note(row, column, hash, value)
      row.kept[column.number] = nil
      cells.append((index, value, false))
    }
    if let large = cells.first(where: { $0.value.byteCount > Value.maximumByteCount }) {
      try hold(row, candidate, table.columns[large.index].name)
      return
    }
    if cells.isEmpty {
      if isShownOtherwise { try replica.save(row) }
      return
    }
    if isInsert { row.kept = row.kept.filter { table.indexByNumber[$0.key] == nil } }
    changes.append(
      Change(
        row: row, kind: isInsert ? .insert : .update, cells: cells, milliseconds: candidate.milliseconds,
        order: candidate.order))
  }

  /// Whether a reference shows NULL because its target was deleted.
  private func isNulled(_ column: SyncedColumn, in values: [SQLiteValue], _ name: RecordName) -> Bool {
    guard let reference = column.reference(in: values), reference.action == .null else { return false }
    return deletedRecords.contains(RecordID(table: reference.table, name: name))
  }

  func target(of value: Value) -> FieldHash? {
    if case .reference(let name) = value { FieldHash(target: name) } else { nil }
  }

  func note(_ row: Row, _ column: SyncedColumn, _ hash: FieldHash, _ value: Value) {
    row.shown[column.number] = hash
    row.targets[column.number] = target(of: value)
  }

  /// A row with a value over the size that is sent waits whole, and is looked at again every time.
  mutating func hold(_ row: Row, _ candidate: Candidate, _ column: String) throws {
    let table = candidate.table
    report.tooLarge.append("\(table.name).\(column)")
    let columns = table.key.indices.map { "k\($0)" }.joined(separator: ", ")
    let marks = table.key.map { _ in "?" }.joined(separator: ", ")
    held.append(
      (
        "INSERT INTO main.lk_log\(table.id)(op, ms, \(columns)) VALUES (2, ?, \(marks))",
        [.integer(candidate.milliseconds)] + candidate.key
      ))
  }
}
