internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Makes the app's tables show what the records say.
///
/// What the tables show is a function of the merged records, the schema and the rules, the same on every device but for
/// local integer keys: however and in whatever order records arrive, the same rows are shown in the end. Foreign keys
/// are off on this connection: every reference action is done here.
final class Materialiser {
  let replica: Replica
  /// Records that lost their row in this pass, by the hash under which referring rows know them.
  var gone: [FieldHash: RecordName]
  var rows: [RecordID: Row] = [:]
  var pending: Set<RecordID> = []
  var queue: [RecordID] = []
  var inProgress: Set<RecordID> = []
  /// Rows that used the key of a row that was only about to be shown.
  var borrowers: [RecordID: Set<RecordID>] = [:]
  /// Rows whose referrers must be looked at.
  var orphaning: [Orphaning] = []
  /// Records that are shown now and were not before.
  var appeared: [RecordName] = []
  /// Keys that lost their row in this pass: nobody else gets them before referrers were looked at.
  var retired: [Int64: Set<[SQLiteValue]>] = [:]
  var reserved: [Int64: Set<[SQLiteValue]>] = [:]
  var nextKeys: [Int64: Int64] = [:]
  var hasWaiting: Bool
  var isChanged = false
  /// Tables in which something changed, so that a unique key may have become free.
  var touched: Set<Int64> = []
  /// Rows that were shown and are not any more: table and key, for people.
  var hidden: [String] = []
  /// What is shown for what is meant, as far as it was asked: no record is grouped otherwise while this runs.
  var survivors: [RecordID: RecordName] = [:]

  struct Orphaning {
    let name: RecordName
    let table: SyncedTable
    let key: [SQLiteValue]
    /// Nil where the app deleted the row itself.
    let values: [SQLiteValue]?
    let shown: FieldHashes
  }

  init(replica: Replica, gone: [FieldHash: RecordName] = [:]) throws {
    self.replica = replica
    self.gone = gone
    hasWaiting = try replica.connection.first("SELECT 1 FROM main.lk_wait LIMIT 1") != nil
  }

  var connection: Connection { replica.connection }

  // MARK: What to look at

  /// Takes a row whose merged state is new.
  func stage(_ row: Row) {
    rows[row.record] = row
    if pending.insert(row.record).inserted { queue.append(row.record) }
  }

  /// A row that was staged.
  func staged(_ record: RecordID) -> Row? { rows[record] }

  /// A row that was staged, or else the stored one.
  func row(_ record: RecordID) throws -> Row? {
    if let known = rows[record] { return known }
    guard let loaded = try replica.loadRow(record, gone: gone) else { return nil }
    rows[record] = loaded
    return loaded
  }

  func enqueue(_ record: RecordID) throws {
    guard !inProgress.contains(record), let row = try row(record), row.isStamped else { return }
    stage(row)
  }

  func record(_ raw: [SQLiteValue]?) -> RecordID? {
    guard let raw, let name = raw[0].bytes.flatMap(RecordName.init), let table = raw[1].integer else { return nil }
    return RecordID(table: table, name: name)
  }

  func enqueueAllKept() throws {
    for raw in try connection.rows(
      "SELECT record, tid FROM main.lk_row WHERE kept IS NOT NULL AND length(meta) > 0 ORDER BY id")
    {
      if let record = record(raw) { try enqueue(record) }
    }
  }

  /// A row that the app deleted: `row` as it was, its key in ``Row/reservedKey``.
  func noteGone(_ row: Row) {
    guard let key = row.reservedKey else { return }
    row.reservedKey = nil
    orphaning.append(Orphaning(name: row.name, table: row.table, key: key, values: nil, shown: row.formerShown))
    row.formerShown = [:]
    touched.insert(row.table.id)
  }

  /// A row to which the app gave another key: the former one in ``Row/reservedKey``.
  func noteMoved(_ row: Row) {
    guard let key = row.reservedKey else { return }
    orphaning.append(Orphaning(name: row.name, table: row.table, key: key, values: nil, shown: row.formerShown))
  }

  /// A row that the app inserted.
  func noteShown(_ name: RecordName) { appeared.append(name) }

  // MARK: Running

  func run() throws {
    if queue.isEmpty, try !hasConsequences() { return }
    try replica.withoutCapture { try settle() }
  }

  func hasConsequences() throws -> Bool {
    if !orphaning.isEmpty, orphaning.contains(where: { !$0.table.referrers.isEmpty }) { return true }
    if !appeared.isEmpty, hasWaiting { return true }
    return try !touched.isEmpty
      && connection.first(
        "SELECT 1 FROM main.lk_park WHERE kind = ? LIMIT 1", [.integer(Parking.unique(by: .zero).kind)]) != nil
  }

  func settle() throws {
    var rounds = 0
    repeat {
      while !queue.isEmpty || !orphaning.isEmpty || !appeared.isEmpty {
        let batch = queue
        queue = []
        for record in inOrder(batch) {
          guard pending.contains(record), let row = rows[record] else { continue }
          try show(row, depth: 0)
        }
        try lookAtReferrers()
        try lookAtWaiting()
      }
      retired = [:]
      isChanged = false
      try retryUnique()
      rounds += 1
    } while isChanged && rounds < 1_000
  }

  func inOrder(_ records: [RecordID]) -> [RecordID] {
    if records.count < 2 { return records }
    return records.compactMap { record in rows[record].map { (record, $0.table.rank) } }.enumerated()
      .sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }.map(\.element.0)
  }

  func lookAtWaiting() throws {
    let names = appeared
    appeared = []
    guard hasWaiting else { return }
    for name in names {
      for raw in try connection.rows("SELECT row FROM main.lk_wait WHERE target = ? ORDER BY row", [.blob(name.bytes)])
      {
        guard let id = raw[0].integer,
          let record = record(try connection.first("SELECT record, tid FROM main.lk_row WHERE id = ?", [.integer(id)]))
        else { continue }
        try enqueue(record)
      }
    }
  }

  /// Rows that refer to a row that is gone or hidden show something else now.
  func lookAtReferrers() throws {
    let batch = orphaning
    orphaning = []
    for lost in batch { gone[FieldHash(target: lost.name)] = lost.name }
    var byTable: [Int64: [Orphaning]] = [:]
    for lost in batch { byTable[lost.table.id, default: []].append(lost) }
    for id in byTable.keys.sorted() {
      guard let lost = byTable[id], let table = replica.tablesByID[id] else { continue }
      for (referrer, column) in table.referrers where referrer.shape != nil {
        for key in try referring(referrer, column, to: lost) {
          guard let row = try mappedRow(referrer, key), let target = row.targets[referrer.columns[column].number],
            gone[target] != nil
          else { continue }
          try enqueue(row.record)
        }
      }
    }
  }

  func referring(_ referrer: SyncedTable, _ column: Int, to lost: [Orphaning]) throws -> [[SQLiteValue]] {
    guard let table = lost.first?.table else { return [] }
    var values: [SQLiteValue] = []
    var hashes: Set<FieldHash> = []
    if let name = referrer.columns[column].reference(to: table.id)?.column {
      guard let index = table.columns.firstIndex(where: { $0.name == name }) else { return [] }
      for one in lost {
        if let known = one.values {
          values.append(known[index])
        } else if let hash = one.shown[table.columns[index].number] {
          hashes.insert(hash)
        }
      }
    } else {
      values = lost.compactMap(\.key.first)
    }
    var out: [[SQLiteValue]] = []
    if values.count > 16 {
      // One pass over the referring table, whether or not the app has an index.
      try connection.execute("CREATE TEMP TABLE IF NOT EXISTS lk_lost(k)")
      try connection.run("DELETE FROM temp.lk_lost")
      for value in values { try connection.run("INSERT INTO temp.lk_lost VALUES (?)", [value]) }
      let keys = referrer.key.map { quoted(referrer.columns[$0].name) }.joined(separator: ", ")
      let name = referrer.compared(column)
      out = try connection.rows(
        "SELECT \(keys) FROM main.\(quoted(referrer.name)) WHERE \(name) IN (SELECT k FROM temp.lk_lost)")
    } else {
      for value in values { out += try connection.rows(referrer.selectKeys(where: column), [value]) }
    }
    if !hashes.isEmpty {
      try connection.forEach(referrer.selectKeysAndValue(column)) { row in
        if hashes.contains(FieldHash(row.value(referrer.key.count))) {
          out.append((0..<referrer.key.count).map(row.value))
        }
      }
    }
    return out
  }

  func mappedRow(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> Row? {
    guard let id = try replica.mapped(table, key),
      let record = record(try connection.first("SELECT record, tid FROM main.lk_row WHERE id = ?", [.integer(id)]))
    else { return nil }
    return try row(record)
  }

  /// Rows that an older row's unique key kept hidden try again, oldest first: the greedy choice in that order is the one
  /// that every device comes to.
  func retryUnique() throws {
    var candidates: [Row] = []
    for id in touched.sorted() {
      for raw in try connection.rows(
        "SELECT r.record, r.tid FROM main.lk_park p JOIN main.lk_row r ON r.id = p.row WHERE p.kind = ? AND p.tid = ?",
        [.integer(Parking.unique(by: .zero).kind), .integer(id)])
      {
        if let record = record(raw), let row = try row(record) { candidates.append(row) }
      }
    }
    for row in candidates.sorted(by: isOlder) {
      stage(row)
      queue.removeAll { $0 == row.record }
      try show(row, depth: 0)
    }
  }

  func isOlder(_ a: Row, _ b: Row) -> Bool {
    guard let x = a.born, let y = b.born, x != y else { return a.name < b.name }
    return x < y
  }
}
