internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// A reference that must have its row, with no action for the case that the row is deleted, is a promise: the app could
/// not have deleted the row had it seen the reference. So the device that wrote the reference inserts the row again, from
/// its own copy, before the other device's delete would hide what refers to it.
struct ParentKeeper {
  let replica: Replica
  /// Rows of this batch that were live and shown (without key and values: as another one of which they were duplicates) and now
  /// are not live, with what they were.
  private var lost: [RecordID: (row: Row, before: RecordState, key: [SQLiteValue], values: [SQLiteValue])] = [:]
  private var order: [RecordID] = []

  init(replica: Replica) { self.replica = replica }

  /// Takes note of a row whose merged state is new.
  mutating func note(_ row: Row, before: RecordState) {
    guard before.isLive, !row.state.isLive, row.table.referrers.contains(where: { isPromise($0, to: row.table) }) else {
      return
    }
    if let key = row.key, let values = row.values {
      lost[row.record] = (row, before, key, values)
    } else if case .merged? = row.parking {
      lost[row.record] = (row, before, [], [])
    } else {
      return
    }
    order.append(row.record)
  }

  private func isPromise(_ referrer: (table: SyncedTable, column: Int), to table: SyncedTable) -> Bool {
    let column = referrer.table.columns[referrer.column]
    return referrer.table.shape != nil && column.isRequired && column.reference(to: table.id)?.action == .keep
  }

  /// Inserts again what rows of this device need.
  /// - Parameters:
  ///   - state: the merged state of a record of this batch, or nil.
  /// - Returns: the rows inserted again: table and key, for people.
  func keep(
    now: Int64, state: (RecordID) throws -> RecordState?, emit: (PendingGroup) throws -> UInt64
  ) throws -> [String] {
    var needed: [RecordID] = []
    var isNeeded: Set<RecordID> = []
    for name in order where try isReferredTo(name, state) { if isNeeded.insert(name).inserted { needed.append(name) } }
    // What is inserted again needs its own parents.
    var at = 0
    while at < needed.count {
      guard let (row, before, _, _) = lost[needed[at]] else { break }
      at += 1
      for column in row.table.columns where column.isRequired {
        guard let table = row.table.reference(of: column, in: before)?.table,
          case .reference(let name)? = before.cell(column.wire),
          case let parent = RecordID(table: table, name: name), lost[parent] != nil, isNeeded.insert(parent).inserted
        else { continue }
        needed.append(parent)
      }
    }
    let whole = needed.reversed().filter { name in
      !(lost[name].map { $0.row.lacksShownValue(in: $0.before) } ?? true)
    }
    if whole.isEmpty { return [] }
    let rewritten = try replica.rewrite(
      whole.compactMap { name in lost[name].map { Replica.Rewrite(inserting: $0.before, $0.row.table, $0.row.name) } },
      now: now, emit: emit)
    return zip(whole, rewritten).compactMap { name, written in
      guard let (row, _, key, _) = lost[name] else { return nil }
      row.state = row.state.merging(written.state)
      return "\(row.table.name) \(key.isEmpty ? row.name.short : key.map(describe).joined(separator: ", "))"
    }
  }

  /// Whether a row that this device pointed at it is live and shown.
  private func isReferredTo(_ record: RecordID, _ state: (RecordID) throws -> RecordState?) throws -> Bool {
    guard let (row, _, key, values) = lost[record] else { return false }
    if key.isEmpty { return try isReferredToAsDuplicate(row, state) }
    for (table, index) in row.table.referrers where isPromise((table, index), to: row.table) {
      let column = table.columns[index]
      let target: SQLiteValue
      if let name = column.reference(to: row.table.id)?.column {
        guard let at = row.table.columns.firstIndex(where: { $0.name == name }) else { continue }
        target = values[at]
      } else {
        target = key[0]
      }
      for child in try replica.connection.rows(table.selectKeys(where: index), [target]) {
        guard let id = try replica.mapped(table, child), let loaded = try replica.loadRow(id: id),
          try isOwn(loaded, column, row.name, state)
        else { continue }
        return true
      }
    }
    return false
  }

  private func isReferredToAsDuplicate(_ row: Row, _ state: (RecordID) throws -> RecordState?) throws -> Bool {
    for raw in try replica.connection.rows(
      "SELECT row FROM main.lk_wait WHERE target = ? ORDER BY row", [.blob(row.name.bytes)])
    {
      guard let id = raw[0].integer, let child = try replica.loadRow(id: id), child.key != nil else { continue }
      for (table, index) in row.table.referrers
      where table === child.table && isPromise((table, index), to: row.table) {
        if try isOwn(child, table.columns[index], row.name, state) { return true }
      }
    }
    return false
  }

  /// Whether a row is live and this device made its column refer to a record.
  private func isOwn(
    _ child: Row, _ column: SyncedColumn, _ target: RecordName, _ state: (RecordID) throws -> RecordState?
  ) throws -> Bool {
    let merged = try state(child.record) ?? child.state
    guard merged.isLive, let cell = merged[.cell(column.wire)], cell.value == .cell(.reference(target)) else {
      return false
    }
    return cell.stamp.origin.device == replica.zoneBinding.origin.device
  }
}

/// A key's value for people.
func describe(_ value: SQLiteValue) -> String {
  switch value {
  case .null: "NULL"
  case .integer(let x): String(x)
  case .real(let x): "\(x)"
  case .text(let x): String(decoding: x, as: UTF8.self)
  case .blob(let x): hex(x)
  }
}
