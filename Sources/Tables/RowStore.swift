internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Records in and out of the file.
extension Replica {
  // MARK: Reading

  private static let rowColumns = "id, record, tid, key, meta, shown, kept, hash"

  func loadRow(_ record: RecordID, gone: [FieldHash: RecordName] = [:]) throws -> Row? {
    try loadRow(
      "SELECT \(Self.rowColumns) FROM main.lk_row WHERE record = ? AND tid = ?",
      [.blob(record.name.bytes), .integer(record.table)], gone)
  }

  /// The record of a name, where the table is not known: the first, should there be several.
  func loadRow(named name: RecordName) throws -> Row? {
    try loadRow(
      "SELECT \(Self.rowColumns) FROM main.lk_row WHERE record = ? ORDER BY tid LIMIT 1", [.blob(name.bytes)], [:])
  }

  /// - Parameter values: the row that the table shows, if it was just read.
  func loadRow(id: Int64, values: [SQLiteValue]? = nil, gone: [FieldHash: RecordName] = [:]) throws -> Row? {
    try loadRow("SELECT \(Self.rowColumns) FROM main.lk_row WHERE id = ?", [.integer(id)], gone, values)
  }

  private func loadRow(
    _ sql: String, _ parameters: [SQLiteValue], _ gone: [FieldHash: RecordName], _ values: [SQLiteValue]? = nil
  ) throws -> Row? {
    guard let raw = try connection.first(sql, parameters), let id = raw[0].integer,
      let name = raw[1].bytes.flatMap(RecordName.init), let table = raw[2].integer.flatMap({ tablesByID[$0] })
    else { return nil }
    let row = Row(name: name, table: table)
    row.id = id
    row.key = try unpack(key: raw[3], table)
    row.hash = raw[7].bytes.flatMap(Hash32.init)
    if let shown = raw[5].bytes { try RowCodec.decode(shown: shown, into: row) }
    var extra: [RegisterEntry] = []
    if let kept = raw[6].bytes { extra = try decode(kept: kept, into: row) }
    if let key = row.key, table.shape != nil { row.values = try values ?? connection.first(table.selectRow, key) }
    row.wasShown = row.key != nil
    if row.key == nil || hasLost,
      let parked = try connection.first("SELECT kind, detail, target FROM main.lk_park WHERE row = ?", [.integer(id)])
    {
      row.parking = Parking(
        kind: parked[0].integer ?? 0, detail: parked[1].string, target: parked[2].bytes.flatMap(RecordName.init))
      if let target = row.parking?.target { row.waits = [target] }
    }
    for case .reference(let target) in row.kept.values where row.key != nil { row.waits.insert(target) }
    guard let meta = raw[4].bytes, !meta.isEmpty else { return row }
    row.isStamped = true
    row.state = try state(of: row, try RowCodec.decode(meta) { try origins.origin($0, connection) }, extra, gone)
    row.isDeletedBefore = row.hash == nil && row.state.newestTombstone != nil
    return row
  }

  /// Puts a record's registers together: stamps from the bookkeeping, values from what is kept and what is shown.
  private func state(
    of row: Row, _ meta: RowCodec.Meta, _ extra: [RegisterEntry], _ gone: [FieldHash: RecordName]
  ) throws -> RecordState {
    var entries: [RegisterEntry] = extra
    entries.reserveCapacity(meta.cells.count + 2 + extra.count)
    if let born = meta.born { entries.append(RegisterEntry(.born, born, .life(nil))) }
    if let tombstone = meta.tombstone { entries.append(RegisterEntry(.tombstone, tombstone, .life(nil))) }
    for (number, stamp) in meta.cells.enumerated() {
      guard let stamp else { continue }
      let value: Value
      if let kept = row.kept[number] {
        value = kept
      } else if let index = row.table.indexByNumber[number], let values = row.values {
        value = try cellValue(row, index, values[index], gone)
      } else {
        value = .missing(row.targets[number] ?? row.shown[number] ?? .unknown)
        // A table that is away may come back as it was: what it showed stays comparable.
        if row.key == nil || row.table.shape != nil && row.table.indexByNumber[number] == nil {
          row.kept[number] = value
          row.shown[number] = nil
          row.targets[number] = nil
        }
      }
      entries.append(RegisterEntry(.cell(row.table.columnNames[number]), stamp, .cell(value)))
    }
    return RecordState(entries)
  }

  /// What a shown value stands for, given what it stood for when it was last looked at.
  private func cellValue(_ row: Row, _ index: Int, _ raw: SQLiteValue, _ gone: [FieldHash: RecordName]) throws -> Value
  {
    let column = row.table.columns[index]
    guard column.isReference, let before = row.targets[column.number], before != .unknown, let values = row.values
    else {
      return Value(raw)
    }
    let now = try translate(column, in: values, raw)
    if case .reference(let name) = now, FieldHash(target: name) == before { return now }
    if let name = gone[before] { return .reference(name) }
    return now
  }

  private func decode(kept bytes: [UInt8], into row: Row) throws -> [RegisterEntry] {
    var reader = CBORReader(bytes)
    try reader.array(exactly: 2)
    for _ in 0..<(try reader.array()) {
      let isMissing = try reader.array(max: 3) == 3
      let number = try reader.uint(max: 1 << 20)
      if isMissing {
        row.kept[number] = .missing(FieldHash(value: try reader.uint()))
        _ = try reader.null()
      } else {
        row.kept[number] = try Value.read(from: &reader)
      }
    }
    if try reader.null() { return [] }
    return try RegisterBytes.decode(try reader.byteString()).registers
  }

  func unpack(key: SQLiteValue, _ table: SyncedTable) throws -> [SQLiteValue]? {
    if key.isNull { return nil }
    if table.keyCount == 1 { return [key] }
    return try key.bytes.flatMap(unpack(packed:))
  }

  func unpack(packed bytes: [UInt8]) throws -> [SQLiteValue]? {
    var reader = CBORReader(bytes)
    var out: [SQLiteValue] = []
    for _ in 0..<(try reader.array()) { out.append(try Value.read(from: &reader).plain ?? .null) }
    return out
  }

  func pack(key: [SQLiteValue]) -> SQLiteValue {
    if key.count == 1 { return key[0] }
    return .blob(packed(key: key))
  }

  func packed(key: [SQLiteValue]) -> [UInt8] {
    var writer = CBORWriter()
    writer.array(key.count)
    for value in key { Value(value).write(to: &writer) }
    return writer.bytes
  }

  // MARK: Writing

  /// Writes a record's bookkeeping: everything but the map, which follows the app's table.
  func save(_ row: Row) throws {
    let table = row.table
    if !row.kept.isEmpty {
      row.kept = row.kept.filter {
        $0.key < table.columnNames.count && row.state.cell(table.columnNames[$0.key]) != nil
      }
    }
    var keptEntries: [RegisterEntry] = []
    for entry in row.state.registers {
      switch (entry.register, entry.value) {
      case (.born, .life(nil)), (.tombstone, .life(nil)), (.cell, _): break
      case (.born, _), (.tombstone, _), (.home, _), (.alias, _), (.lend, _), (.hide, _), (.additive, _), (.unknown, _):
        keptEntries.append(entry)
      }
    }
    let meta =
      row.state.isEmpty && !row.isStamped
      ? [] : try RowCodec.encode(row.state, table) { try origins.number(of: $0, connection) }
    try saveColumns(table)
    let shown: SQLiteValue = row.key == nil ? .null : .blob(RowCodec.encode(shown: row.shown, targets: row.targets))
    let newHash = recordHash(key: zoneBinding.digestKey, name: row.name, table: table.wire, state: row.state) {
      FieldHash($0).value
    }
    try count(row, newHash)
    row.hash = newHash
    let values: [SQLiteValue] = [
      row.key.map(pack(key:)) ?? .null, .blob(meta), shown, try encodeKept(row, keptEntries),
      newHash.map { .blob($0.bytes) } ?? .null,
    ]
    if let id = row.id {
      try connection.run(
        "UPDATE main.lk_row SET key = ?, meta = ?, shown = ?, kept = ?, hash = ? WHERE id = ?", values + [.integer(id)])
    } else {
      try connection.run(
        "INSERT INTO main.lk_row(key, meta, shown, kept, hash, record, tid) VALUES (?, ?, ?, ?, ?, ?, ?)",
        values + [.blob(row.name.bytes), .integer(table.id)])
      row.id = connection.lastInsertedRow
    }
    row.isStamped = !meta.isEmpty
  }

  private func count(_ row: Row, _ newHash: Hash32?) throws {
    var total = totals[row.table.id] ?? TableTotals()
    if let old = row.hash {
      total.live -= 1
      total.digest = total.digest &- old
    } else if row.isDeletedBefore {
      total.deleted -= 1
    }
    if let new = newHash {
      total.live += 1
      total.digest = total.digest &+ new
    } else if row.state.newestTombstone != nil {
      total.deleted += 1
    }
    row.isDeletedBefore = newHash == nil && row.state.newestTombstone != nil
    totals[row.table.id] = total
  }

  private func encodeKept(_ row: Row, _ entries: [RegisterEntry]) throws -> SQLiteValue {
    if row.kept.isEmpty, entries.isEmpty { return .null }
    var writer = CBORWriter()
    writer.array(2)
    writer.array(row.kept.count)
    for number in row.kept.keys.sorted() {
      let value = row.kept[number] ?? .null
      writer.array(value.isMissing ? 3 : 2)
      writer.uint(number)
      if let lost = value.lostFingerprint {
        writer.uint(lost)
        writer.null()
      } else {
        value.write(to: &writer)
      }
    }
    if entries.isEmpty {
      writer.null()
    } else {
      writer.byteString(RegisterBytes.encode(entries, of: row.table.wire, row.name))
    }
    return .blob(writer.bytes)
  }

  /// Notes that a row is not shown, and why.
  func park(_ id: Int64, _ table: SyncedTable, _ parking: Parking) throws {
    if parking == .lost { hasLost = true }
    var detail: SQLiteValue = .null
    if case .refused(let why) = parking { detail = SQLiteValue(why) }
    try connection.run(
      "INSERT INTO main.lk_park(row, tid, kind, detail, target) VALUES (?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET kind = excluded.kind, detail = excluded.detail, target = excluded.target",
      [
        .integer(id), .integer(table.id), .integer(parking.kind), detail,
        parking.target.map { .blob($0.bytes) } ?? .null,
      ])
  }

  /// Notes that a row does not wait for what it refers to no more: the app has put something else in its place.
  func stopWaiting(_ row: Row) throws {
    guard let id = row.id, !row.waits.isEmpty else { return }
    var still: Set<RecordName> = []
    if let target = row.parking?.target { still.insert(target) }
    for case .reference(let target) in row.kept.values { still.insert(target) }
    for target in row.waits.subtracting(still).sorted() {
      try connection.run("DELETE FROM main.lk_wait WHERE target = ? AND row = ?", [.blob(target.bytes), .integer(id)])
    }
    row.waits.formIntersection(still)
  }

  /// Notes that a row does not wait for anything any more: deleted, or shown by the app itself.
  func unpark(_ row: Row) throws {
    guard let id = row.id, row.parking != nil || !row.waits.isEmpty else { return }
    try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(id)])
    for target in row.waits.sorted() {
      try connection.run("DELETE FROM main.lk_wait WHERE target = ? AND row = ?", [.blob(target.bytes), .integer(id)])
    }
    row.parking = nil
    row.waits = []
  }

  func map(_ table: SyncedTable, _ key: [SQLiteValue], _ id: Int64) throws {
    do {
      try connection.run(table.mapInsert, key + [.integer(id)])
    } catch SQLiteError.constraint {
      // Never taken for the app's own constraint: a row without its record would be lost to everybody.
      throw TablesError.corrupt("two records for one row of \(table.name)")
    }
  }

  func unmap(_ table: SyncedTable, _ key: [SQLiteValue]) throws { try connection.run(table.mapDelete, key) }

  func mapped(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> Int64? {
    try connection.integer(table.mapLookup, key)
  }

  // MARK: Translating

  /// What a value of a column stands for on the wire, in a row of its table.
  func translate(_ column: SyncedColumn, in values: [SQLiteValue], _ raw: SQLiteValue) throws -> Value {
    guard let reference = column.reference(in: values), !raw.isNull, !reference.none.contains(raw),
      let target = tablesByID[reference.table],
      target.shape != nil
    else { return Value(raw) }
    if let name = try recordName(target, reference.column, raw) { return .reference(name) }
    return Value(raw)
  }

  /// The record that a column's value points to: a row that is there, or the name that a row of that key will have.
  private func recordName(_ target: SyncedTable, _ column: String?, _ raw: SQLiteValue) throws -> RecordName? {
    if let column {
      guard let index = target.columns.firstIndex(where: { $0.name == column }),
        let key = try connection.first(target.selectKeys(where: index), [raw])
      else { return nil }
      return try name(of: target, key)
    }
    if let found = try connection.first(target.recordByKey, [raw])?[0].bytes { return RecordName(found) }
    // A row that is not known yet, in a pass that has not come to it, is named now.
    if isNaming, try connection.first(target.selectRow, [raw]) != nil { return try name(of: target, [raw]) }
    return try absentName(target, raw)
  }

  /// The name of a row that is referred to and does not exist: an app that does not enforce its references may insert
  /// it later, and then it has this name. Elsewhere the reference waits; the number would point at another row there.
  /// (A key that is the same on all devices travels as it is.)
  private func absentName(_ target: SyncedTable, _ raw: SQLiteValue) throws -> RecordName? {
    guard target.keyIsLocal, case .integer(let number) = target.columns[target.key[0]].affinity.apply(to: raw) else {
      return nil
    }
    let parameters: [SQLiteValue] = [.integer(target.id), .integer(number)]
    if let known = try connection.first("SELECT record FROM main.lk_absent WHERE tid = ? AND key = ?", parameters)?[0]
      .bytes
    {
      return RecordName(known)
    }
    // SQLite gives no such key: apps write it for "none".
    guard isNaming, number > 0 else { return nil }
    let name = randomName()
    try connection.run(
      "INSERT INTO main.lk_absent(tid, key, record) VALUES (?, ?, ?)", parameters + [.blob(name.bytes)])
    return name
  }

  /// The key under which this device's rows refer to a row that does not exist; nil if none does.
  func absentKey(_ name: RecordName) throws -> (table: SyncedTable, key: SQLiteValue)? {
    guard let raw = try connection.first("SELECT tid, key FROM main.lk_absent WHERE record = ?", [.blob(name.bytes)]),
      let table = raw[0].integer.flatMap({ tablesByID[$0] })
    else { return nil }
    return (table, raw[1])
  }

  /// Whether rows of this device refer to a key that no row has.
  func isAwaited(_ table: SyncedTable, _ key: SQLiteValue) throws -> Bool {
    try connection.first("SELECT 1 FROM main.lk_absent WHERE tid = ? AND key = ?", [.integer(table.id), key]) != nil
  }

  /// The name that rows of this device already use for a key that now gets a row.
  func takeAwaitedName(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> RecordName? {
    guard table.keyIsLocal else { return nil }
    return try connection.first(
      "DELETE FROM main.lk_absent WHERE tid = ? AND key = ? RETURNING record", [.integer(table.id), key[0]])?[0]
      .bytes.flatMap(RecordName.init)
  }

  /// The name of a row by its key, given now if it has none.
  func name(of table: SyncedTable, _ key: [SQLiteValue]) throws -> RecordName? {
    if let id = try mapped(table, key) {
      return try connection.first("SELECT record FROM main.lk_row WHERE id = ?", [.integer(id)])?[0].bytes.flatMap(
        RecordName.init)
    }
    guard isNaming, let values = try connection.first(table.selectRow, key) else { return nil }
    return try nameNewRow(table, values).name
  }

  /// Names a row that the app inserted and maps its key. Nothing is stamped yet.
  func nameNewRow(_ table: SyncedTable, _ values: [SQLiteValue]) throws -> Row {
    let key = table.keyValues(values)
    var name = randomName()
    if let identity = table.identity {
      // A key that refers to itself in a circle names nothing: random.
      let circle = [.integer(table.id)] + table.folded(key)
      if namesInProgress.insert(circle).inserted {
        defer { namesInProgress.remove(circle) }
        let parts = try identity.map {
          table.columns[$0].collation.fold(try translate(table.columns[$0], in: values, values[$0]))
        }
        if let keyed = keyedName(table: table.wire, values: parts) { name = keyed }
      }
    }
    if let awaited = try takeAwaitedName(table, key) { name = awaited }
    if let present = try loadRow(RecordID(table: table.id, name: name)) {
      // The name is free again if its row is not shown: deleted, or received and parked. Else another row has taken
      // it since, under another key.
      if present.key == nil {
        // The app shows it now: what it waited for is over, whoever reads the row next.
        try unpark(present)
        present.key = key
        try connection.run("UPDATE main.lk_row SET key = ? WHERE id = ?", [pack(key: key), .integer(present.id ?? 0)])
        try map(table, key, present.id ?? 0)
        namedNow.append((table, key))
        return present
      }
      name = randomName()
    }
    let row = Row(name: name, table: table)
    row.key = key
    try connection.run(
      "INSERT INTO main.lk_row(record, tid, key, meta) VALUES (?, ?, ?, x'')",
      [.blob(name.bytes), .integer(table.id), pack(key: key)])
    row.id = connection.lastInsertedRow
    try map(table, key, row.id ?? 0)
    namedNow.append((table, key))
    return row
  }
}
