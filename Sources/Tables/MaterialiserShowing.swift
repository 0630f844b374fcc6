internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What a table shows of one record.
extension Materialiser {
  /// What a reference comes to.
  enum Resolution {
    case value(SQLiteValue)
    /// Not here, or hidden for a reason that may pass.
    case waiting
    case deleted
  }

  /// Deeper chains of parents are completed from the list of waiting rows instead.
  static let maximumDepth = 128

  func show(_ row: Row, depth: Int) throws {
    guard pending.remove(row.record) != nil else { return }
    inProgress.insert(row.record)
    defer {
      inProgress.remove(row.record)
      if let key = row.reservedKey { reserved[row.table.id]?.remove(key) }
      row.reservedKey = nil
    }
    let table = row.table
    if table.shape == nil, row.key != nil {
      // The app dropped the table. What it showed is compared if it comes back.
      row.kept = allCells(row).filter { !$0.value.isMissing }
      try setParking(row, row.state.isLive ? .lost : nil, waits: [])
      return try replica.save(row)
    }
    guard row.state.isLive else {
      try hide(row)
      row.kept = allCells(row)
      try setParking(row, nil, waits: [])
      try replica.save(row)
      return
    }
    guard table.shape != nil else { return try park(row, .noTable) }
    var merged: [Int: Value] = [:]
    if table.duplicates != nil {
      let group = try replica.duplicates(of: row.record)
      if group.count > 1, let best = replica.survivor(group) {
        if best.name != row.name { return try park(row, .merged(into: best.name)) }
        merged = try self.values(merging: group, into: row)
      }
    }
    if row.parking == .keyless { return try park(row, .keyless) }
    if row.key == nil, row.lacksShownValue(in: row.state) { return try park(row, .lost) }
    if let key = row.key {
      row.reservedKey = key
    } else if table.keyIsLocal {
      row.reservedKey = [.integer(try chooseKey(row))]
    }
    var values = [SQLiteValue?](repeating: nil, count: table.columns.count)
    var kept: [Int: Value] = [:]
    var targets: FieldHashes = [:]
    var waits: Set<RecordName> = []
    for cell in row.state.cells {
      let number = table.number(of: cell.column)
      guard let index = table.indexByNumber[number] else {
        kept[number] = cell.value
        continue
      }
      let column = table.columns[index]
      if table.keyIsLocal, column.isKey { continue }
      if cell.value.isMissing {
        // A column that was away: missing is not NULL, and what the app shows meanwhile is not taken for an edit.
        values[index] = row.values?[index] ?? column.defaultValue
        kept[number] = cell.value
        continue
      }
      let reference = table.reference(of: column, in: row.state)
      let value = merged[number] ?? cell.value
      switch value {
      case .reference where reference == nil && column.isKey:
        // Rules that are missing here: what a key would show differs per device.
        return try park(row, .newerValue)
      case .reference(let target):
        let meant = try reference.map { try self.meant(RecordID(table: $0.table, name: target)) } ?? target
        switch try resolve(meant, reference, for: row, depth: depth) {
        case .value(let value):
          // Without a rule of its own the column shows this device's number, as its app expects, and keeps the reference.
          values[index] = value
          if reference == nil { kept[number] = cell.value } else { targets[number] = FieldHash(target: meant) }
          if meant != target {
            // A duplicate of what is shown: should it be shown by itself again, this row follows it.
            kept[number] = cell.value
            waits.insert(target)
          }
        case .waiting:
          if column.isRequired { return try park(row, .waiting(target: meant)) }
          values[index] = .null
          kept[number] = cell.value
          waits.insert(target)
        case .deleted:
          if column.isRequired || reference?.action == .cascade {
            return try park(row, .parentDeleted(target: target))
          }
          values[index] = .null
          kept[number] = cell.value
          waits.insert(target)
        }
      case .together, .unknown:
        if column.isRequired { return try park(row, .newerValue) }
        values[index] = .null
        kept[number] = cell.value
      case .null, .integer, .real, .text, .blob:
        let plain = value.plain ?? .null
        if pointsElsewhere(reference, plain) {
          if column.isRequired {
            return try park(
              row, .refused("\(table.name).\(column.name) refers by a number that means another row on each device"))
          }
          values[index] = .null
          kept[number] = cell.value
        } else {
          values[index] = plain
        }
      }
      if merged[number] != nil { kept[number] = cell.value }
    }
    if table.keyIsLocal, let key = row.reservedKey {
      let column = table.columns[table.key[0]]
      values[table.key[0]] = key[0]
      if let hint = row.state.cell(column.wire), hint != Value(key[0]) { kept[column.number] = hint }
    }
    for index in table.key where values[index]?.isNull ?? true {
      return try park(row, .refused("the row has no \(table.columns[index].name)"))
    }
    guard let written = try write(row, values) else { return }
    var shown: FieldHashes = [:]
    for (index, column) in table.columns.enumerated() {
      shown[column.number] = FieldHash(written[index])
      if let cell = row.state.cell(column.wire), kept[column.number] == nil, targets[column.number] == nil,
        cell != Value(written[index])
      {
        kept[column.number] = cell
      }
    }
    let isNew = !row.wasShown
    row.kept = kept
    row.shown = shown
    row.targets = targets
    row.values = written
    try setParking(row, nil, waits: waits)
    try replica.save(row)
    if isNew {
      appeared.append(row.name)
      isChanged = true
      row.wasShown = true
    }
  }

  func resolve(_ target: RecordName, _ reference: SyncedColumn.Reference?, for row: Row, depth: Int) throws
    -> Resolution
  {
    guard let record = try self.record(of: target, reference) else { return try absent(target, reference) }
    if rows[record] == nil {
      // The usual case, without reading the whole row.
      guard
        let raw = try connection.first(
          "SELECT key, hash FROM main.lk_row WHERE record = ? AND tid = ?",
          [.blob(target.bytes), .integer(record.table)])
      else { return try absent(target, reference) }
      if let table = replica.tablesByID[record.table], let key = try replica.unpack(key: raw[0], table), !raw[1].isNull
      {
        return try value(of: table, key, nil, reference)
      }
    }
    guard let parent = try self.row(record) else { return .waiting }
    if parent === row, let key = row.reservedKey { return try value(of: row.table, key, row, reference) }
    if pending.contains(record), depth < Self.maximumDepth { try show(parent, depth: depth + 1) }
    if inProgress.contains(record) {
      guard let key = parent.reservedKey, parent.state.isLive else { return .waiting }
      borrowers[record, default: []].insert(row.record)
      return try value(of: parent.table, key, parent, reference)
    }
    if !parent.state.isLive { return parent.state.newestTombstone == nil ? .waiting : .deleted }
    if let key = parent.key, !pending.contains(record) || !parent.isOff {
      return try value(of: parent.table, key, parent, reference)
    }
    if case .parentDeleted? = parent.parking { return reference?.action == .cascade ? .deleted : .waiting }
    return .waiting
  }

  /// Which record a reference means: of the parent table, or of any if the rules here name none.
  func record(of target: RecordName, _ reference: SyncedColumn.Reference?) throws -> RecordID? {
    if let table = reference?.table { return RecordID(table: table, name: target) }
    if let staged = replica.tables.map({ RecordID(table: $0.id, name: target) }).first(where: { rows[$0] != nil }) {
      return staged
    }
    return record(
      try connection.first(
        "SELECT record, tid FROM main.lk_row WHERE record = ? ORDER BY tid LIMIT 1", [.blob(target.bytes)]))
  }

  /// A row that does not exist: only this device may know the key that it meant.
  func absent(_ target: RecordName, _ reference: SyncedColumn.Reference?) throws -> Resolution {
    guard let (table, key) = try replica.absentKey(target), reference?.table == table.id else { return .waiting }
    return try value(of: table, [key], nil, reference)
  }

  /// What a column shows for a row of its parent table.
  func value(of table: SyncedTable, _ key: [SQLiteValue], _ row: Row?, _ reference: SyncedColumn.Reference?) throws
    -> Resolution
  {
    if let name = reference?.column {
      guard let index = table.columns.firstIndex(where: { $0.name == name }) else { return .waiting }
      if let row, inProgress.contains(row.record) || row.isOff {
        guard let value = row.state.cell(table.columns[index].wire)?.plain, !value.isNull else { return .waiting }
        return .value(value)
      }
      guard let values = try connection.first(table.selectRow, key), !values[index].isNull else { return .waiting }
      return .value(values[index])
    }
    return key.count == 1 ? .value(key[0]) : .waiting
  }

  /// Whether a plain number stands where each device has its own: its writer, whose rules did not take it for a
  /// reference, meant a row that has another number here.
  func pointsElsewhere(_ reference: SyncedColumn.Reference?, _ value: SQLiteValue) -> Bool {
    guard let reference, let target = replica.tablesByID[reference.table], target.keyIsLocal,
      !reference.none.contains(value),
      case .integer(let number) = target.columns[target.key[0]].affinity.apply(to: value)
    else { return false }
    return number > 0
  }

  func allCells(_ row: Row) -> [Int: Value] {
    var out: [Int: Value] = [:]
    for cell in row.state.cells { out[row.table.number(of: cell.column)] = cell.value }
    return out
  }
}
