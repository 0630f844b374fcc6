internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Makes the app's tables show what the records say.
///
/// What the tables show is a function of the merged records, the schema and the rules, the same on every device but for
/// local integer keys: however and in whatever order records arrive, the same rows are shown in the end. Foreign keys
/// are off on this connection: every reference action is done here.
final class Materialiser {
  private let replica: Replica
  /// Records that lost their row in this pass, by the hash under which referring rows know them.
  private var gone: [FieldHash: RecordName]
  private var rows: [RecordID: Row] = [:]
  private var pending: Set<RecordID> = []
  private var queue: [RecordID] = []
  private var inProgress: Set<RecordID> = []
  /// Rows that used the key of a row that was only about to be shown.
  private var borrowers: [RecordID: Set<RecordID>] = [:]
  /// Rows whose referrers must be looked at.
  private var orphaning: [Orphaning] = []
  /// Records that are shown now and were not before.
  private var appeared: [RecordName] = []
  /// Keys that lost their row in this pass: nobody else gets them before referrers were looked at.
  private var retired: [Int64: Set<[SQLiteValue]>] = [:]
  private var reserved: [Int64: Set<[SQLiteValue]>] = [:]
  private var nextKeys: [Int64: Int64] = [:]
  private var hasWaiting: Bool
  private var isChanged = false
  /// Tables in which something changed, so that a unique key may have become free.
  var touched: Set<Int64> = []
  /// Rows that were shown and are not any more: table and key, for people.
  private(set) var hidden: [String] = []

  private struct Orphaning {
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

  private var connection: Connection { replica.connection }

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

  private func record(_ raw: [SQLiteValue]?) -> RecordID? {
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
    orphaning.append(Orphaning(name: row.name, table: row.table, key: key, values: nil, shown: [:]))
  }

  /// A row that the app inserted.
  func noteShown(_ name: RecordName) { appeared.append(name) }

  // MARK: Running

  func run() throws {
    if queue.isEmpty, try !hasConsequences() { return }
    try replica.withoutCapture { try settle() }
  }

  private func hasConsequences() throws -> Bool {
    if !orphaning.isEmpty, orphaning.contains(where: { !$0.table.referrers.isEmpty }) { return true }
    if !appeared.isEmpty, hasWaiting { return true }
    return try !touched.isEmpty
      && connection.first(
        "SELECT 1 FROM main.lk_park WHERE kind = ? LIMIT 1", [.integer(Parking.unique(by: .zero).kind)]) != nil
  }

  private func settle() throws {
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

  private func inOrder(_ records: [RecordID]) -> [RecordID] {
    if records.count < 2 { return records }
    return records.compactMap { record in rows[record].map { (record, $0.table.rank) } }.enumerated()
      .sorted { ($0.element.1, $0.offset) < ($1.element.1, $1.offset) }.map(\.element.0)
  }

  private func lookAtWaiting() throws {
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
  private func lookAtReferrers() throws {
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

  private func referring(_ referrer: SyncedTable, _ column: Int, to lost: [Orphaning]) throws -> [[SQLiteValue]] {
    guard let table = lost.first?.table else { return [] }
    var values: [SQLiteValue] = []
    var hashes: Set<FieldHash> = []
    if let name = referrer.columns[column].reference?.column {
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

  private func mappedRow(_ table: SyncedTable, _ key: [SQLiteValue]) throws -> Row? {
    guard let id = try replica.mapped(table, key),
      let record = record(try connection.first("SELECT record, tid FROM main.lk_row WHERE id = ?", [.integer(id)]))
    else { return nil }
    return try row(record)
  }

  /// Rows that an older row's unique key kept hidden try again, oldest first: the greedy choice in that order is the one
  /// that every device comes to.
  private func retryUnique() throws {
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

  private func isOlder(_ a: Row, _ b: Row) -> Bool {
    guard let x = a.born, let y = b.born, x != y else { return a.name < b.name }
    return x < y
  }

  // MARK: Showing one row

  /// What a reference comes to.
  private enum Resolution {
    case value(SQLiteValue)
    /// Not here, or hidden for a reason that may pass.
    case waiting
    case deleted
  }

  /// Deeper chains of parents are completed from the list of waiting rows instead.
  private static let maximumDepth = 128

  private func show(_ row: Row, depth: Int) throws {
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
      switch cell.value {
      case .reference where column.reference == nil && column.isKey:
        // Rules that are missing here: what a key would show differs per device.
        return try park(row, .newerValue)
      case .reference(let target):
        switch try resolve(target, column, for: row, depth: depth) {
        case .value(let value):
          // Without a rule of its own the column shows this device's number, as its app expects, and keeps the reference.
          values[index] = value
          if column.reference == nil { kept[number] = cell.value } else { targets[number] = FieldHash(target: target) }
        case .waiting:
          if column.isRequired { return try park(row, .waiting(target: target)) }
          values[index] = .null
          kept[number] = cell.value
          waits.insert(target)
        case .deleted:
          if column.isRequired || column.reference?.action == .cascade {
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
        let value = cell.value.plain ?? .null
        if pointsElsewhere(column, value) {
          if column.isRequired {
            return try park(
              row, .refused("\(table.name).\(column.name) refers by a number that means another row on each device"))
          }
          values[index] = .null
          kept[number] = cell.value
        } else {
          values[index] = value
        }
      }
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

  private func resolve(_ target: RecordName, _ column: SyncedColumn, for row: Row, depth: Int) throws -> Resolution {
    guard let record = try self.record(of: target, column) else { return try absent(target, column) }
    if rows[record] == nil {
      // The usual case, without reading the whole row.
      guard
        let raw = try connection.first(
          "SELECT key, hash FROM main.lk_row WHERE record = ? AND tid = ?",
          [.blob(target.bytes), .integer(record.table)])
      else { return try absent(target, column) }
      if let table = replica.tablesByID[record.table], let key = try replica.unpack(key: raw[0], table), !raw[1].isNull
      {
        return try value(of: table, key, nil, column)
      }
    }
    guard let parent = try self.row(record) else { return .waiting }
    if parent === row, let key = row.reservedKey { return try value(of: row.table, key, row, column) }
    if pending.contains(record), depth < Self.maximumDepth { try show(parent, depth: depth + 1) }
    if inProgress.contains(record) {
      guard let key = parent.reservedKey, parent.state.isLive else { return .waiting }
      borrowers[record, default: []].insert(row.record)
      return try value(of: parent.table, key, parent, column)
    }
    if !parent.state.isLive { return parent.state.newestTombstone == nil ? .waiting : .deleted }
    if let key = parent.key, !pending.contains(record) || !parent.isOff {
      return try value(of: parent.table, key, parent, column)
    }
    if case .parentDeleted? = parent.parking { return column.reference?.action == .cascade ? .deleted : .waiting }
    return .waiting
  }

  /// Which record a column's reference means: of the parent table, or of any if the rules here name none.
  private func record(of target: RecordName, _ column: SyncedColumn) throws -> RecordID? {
    if let table = column.reference?.table { return RecordID(table: table, name: target) }
    if let staged = replica.tables.map({ RecordID(table: $0.id, name: target) }).first(where: { rows[$0] != nil }) {
      return staged
    }
    return record(
      try connection.first(
        "SELECT record, tid FROM main.lk_row WHERE record = ? ORDER BY tid LIMIT 1", [.blob(target.bytes)]))
  }

  /// A row that does not exist: only this device may know the key that it meant.
  private func absent(_ target: RecordName, _ column: SyncedColumn) throws -> Resolution {
    guard let (table, key) = try replica.absentKey(target), column.reference?.table == table.id else { return .waiting }
    return try value(of: table, [key], nil, column)
  }

  /// What a column shows for a row of its parent table.
  private func value(of table: SyncedTable, _ key: [SQLiteValue], _ row: Row?, _ column: SyncedColumn) throws
    -> Resolution
  {
    if let name = column.reference?.column {
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
  private func pointsElsewhere(_ column: SyncedColumn, _ value: SQLiteValue) -> Bool {
    guard let reference = column.reference, let target = replica.tablesByID[reference.table], target.keyIsLocal,
      !reference.none.contains(value),
      case .integer(let number) = target.columns[target.key[0]].affinity.apply(to: value)
    else { return false }
    return number > 0
  }

  private func allCells(_ row: Row) -> [Int: Value] {
    var out: [Int: Value] = [:]
    for cell in row.state.cells { out[row.table.number(of: cell.column)] = cell.value }
    return out
  }

  // MARK: Writing the app's table

  /// Writes a row and returns what the table then shows; nil if it was parked instead.
  private func write(_ row: Row, _ values: [SQLiteValue?]) throws -> [SQLiteValue]? {
    for _ in 0..<64 {
      do {
        return try attempt(row, values)
      } catch SQLiteError.constraint(let kind, let message) where kind == .unique || kind == .primaryKey {
        let others = try conflicts(row, values, message)
        if others.isEmpty {
          try park(row, .refused(message))
          return nil
        }
        var elder: Row?
        for other in others {
          if pending.contains(other.record) {
            // It is about to change: it stands aside until it is its turn.
            try standAside(other)
          } else if isOlder(row, other) {
            try park(other, .unique(by: row.name))
          } else {
            elder = other
          }
        }
        if let elder {
          try park(row, .unique(by: elder.name))
          return nil
        }
      } catch SQLiteError.constraint(_, let message) {
        try park(row, .refused(message))
        return nil
      } catch SQLiteError.tooBig {
        try park(row, .refused("a value is too large for this database"))
        return nil
      }
    }
    try park(row, .refused("it cannot be shown together with other rows"))
    return nil
  }

  private func attempt(_ row: Row, _ values: [SQLiteValue?]) throws -> [SQLiteValue] {
    let table = row.table
    var isExact = true
    if let key = row.key, let before = row.values, !row.isOff {
      var indexes: [Int] = []
      var parameters: [SQLiteValue] = []
      for index in table.columns.indices {
        guard let wanted = values[index] ?? table.columns[index].defaultValue, wanted != before[index] else { continue }
        indexes.append(index)
        parameters.append(wanted)
        if !table.columns[index].affinity.keeps(wanted) { isExact = false }
      }
      if indexes.isEmpty { return before }
      try connection.run(table.update(indexes), parameters + key)
      var after = before
      for (index, value) in zip(indexes, parameters) { after[index] = value }
      touched.insert(table.id)
      isChanged = true
      let newKey = table.keyValues(after)
      if !isExact { after = try connection.first(table.selectRow, newKey) ?? after }
      if newKey != key {
        try replica.unmap(table, key)
        try replica.map(table, newKey, row.id ?? 0)
        row.key = newKey
        orphaning.append(Orphaning(name: row.name, table: table, key: key, values: before, shown: row.shown))
      }
      return after
    }
    var indexes: [Int] = []
    var parameters: [SQLiteValue] = []
    for index in table.columns.indices {
      guard let wanted = values[index] else {
        isExact = false
        continue
      }
      indexes.append(index)
      parameters.append(wanted)
      if !table.columns[index].affinity.keeps(wanted) { isExact = false }
    }
    try connection.run(table.insert(indexes), parameters)
    if connection.changes != 1 {
      throw SQLiteError.constraint(.trigger, message: "a trigger of the app does not take the row")
    }
    var after = values.map { $0 ?? .null }
    let key = table.keyValues(after)
    if !isExact { after = try connection.first(table.selectRow, key) ?? after }
    let stored = table.keyValues(after)
    if row.id == nil { try replica.save(row) }
    try replica.map(table, stored, row.id ?? 0)
    if row.isOff, let former = row.key, former != stored {
      orphaning.append(Orphaning(name: row.name, table: table, key: former, values: row.values, shown: row.shown))
    }
    row.key = stored
    row.isOff = false
    touched.insert(table.id)
    return after
  }

  /// The shown rows with which a row collides in a unique key.
  private func conflicts(_ row: Row, _ values: [SQLiteValue?], _ message: String) throws -> [Row] {
    let table = row.table
    let full = table.columns.indices.map { values[$0] ?? table.columns[$0].defaultValue ?? .null }
    let ownKey = row.isOff ? nil : row.key
    var keys: [[SQLiteValue]] = []
    let keyList = table.key.map { quoted(table.columns[$0].name) }.joined(separator: ", ")
    if let raw = try connection.first(table.selectRow, table.keyValues(full)) { keys.append(table.keyValues(raw)) }
    for index in table.uniqueIndexes where !index.hasExpressions {
      var terms: [String] = []
      var parameters: [SQLiteValue] = []
      for part in index.parts {
        guard let name = part.column, let at = table.columns.firstIndex(where: { $0.name == name }), !full[at].isNull
        else { break }
        terms.append("\(quoted(name)) = ? COLLATE \(part.collation)")
        parameters.append(full[at])
      }
      guard terms.count == index.parts.count, !terms.isEmpty else { continue }
      if index.isPartial,
        !message.contains(index.parts.map { "\(table.name).\($0.column ?? "")" }.joined(separator: ", "))
      {
        continue
      }
      let condition = index.condition.map { " AND (\($0))" } ?? ""
      keys += try connection.rows(
        "SELECT \(keyList) FROM main.\(quoted(table.name)) WHERE \(terms.joined(separator: " AND "))\(condition)",
        parameters)
    }
    if table.uniqueIndexes.contains(where: { $0.hasExpressions && message.contains($0.name) }) {
      keys += try replacedBy(row, full)
    }
    var out: [Row] = []
    for key in keys {
      if let ownKey, table.folded(key) == table.folded(ownKey) { continue }
      guard let other = try mappedRow(table, key), other !== row, !out.contains(where: { $0 === other }) else {
        continue
      }
      out.append(other)
    }
    return out
  }

  /// The keys of the rows that would make room for a row if it replaced them: for unique keys over expressions, which
  /// only SQLite can evaluate.
  private func replacedBy(_ row: Row, _ full: [SQLiteValue]) throws -> [[SQLiteValue]] {
    let table = row.table
    let names = table.columns.map { quoted($0.name) }.joined(separator: ", ")
    let marks = Array(repeating: "?", count: full.count).joined(separator: ", ")
    var keys: [[SQLiteValue]] = []
    try connection.run("SAVEPOINT lk_try")
    do {
      if let key = row.key, !row.isOff { try connection.run(table.deleteRow, key) }
      let before = try connection.rows("SELECT row FROM main.lk_map\(table.id)").count
      try connection.run("INSERT OR REPLACE INTO main.\(quoted(table.name)) (\(names)) VALUES (\(marks))", full)
      if before > 0 {
        for raw in try connection.rows(table.lostRows) {
          guard let id = raw[0].integer, id != row.id else { continue }
          if let packed = try connection.first("SELECT key FROM main.lk_row WHERE id = ?", [.integer(id)])?[0],
            let key = try replica.unpack(key: packed, table)
          {
            keys.append(key)
          }
        }
      }
    } catch is SQLiteError {
      keys = []
    }
    try connection.run("ROLLBACK TO lk_try")
    try connection.run("RELEASE lk_try")
    return keys
  }

  private func standAside(_ row: Row) throws {
    guard let key = row.key, !row.isOff else { return }
    try connection.run(row.table.deleteRow, key)
    // Its key may be what the other needs.
    try replica.unmap(row.table, key)
    gone[FieldHash(target: row.name)] = row.name
    row.isOff = true
  }

  // MARK: Hiding

  private func hide(_ row: Row) throws {
    guard let key = row.key else { return }
    if !row.isOff {
      try connection.run(row.table.deleteRow, key)
      try replica.unmap(row.table, key)
    }
    row.isOff = false
    row.key = nil
    gone[FieldHash(target: row.name)] = row.name
    retired[row.table.id, default: []].insert(key)
    orphaning.append(Orphaning(name: row.name, table: row.table, key: key, values: row.values, shown: row.shown))
    touched.insert(row.table.id)
    isChanged = true
    row.wasShown = false
    row.values = nil
    row.shown = [:]
    row.targets = [:]
  }

  private func park(_ row: Row, _ parking: Parking) throws {
    if row.key != nil {
      if row.state.isLive {
        hidden.append("\(row.table.name) \(row.key.map { $0.map(describe).joined(separator: ", ") } ?? "")")
      }
      try hide(row)
    }
    row.kept = allCells(row)
    try setParking(row, parking, waits: parking.target.map { [$0] } ?? [])
    try replica.save(row)
    if let users = borrowers.removeValue(forKey: row.record) { for user in users.sorted() { try enqueueAgain(user) } }
  }

  private func enqueueAgain(_ record: RecordID) throws {
    guard let row = try row(record) else { return }
    stage(row)
  }

  /// Notes why a row is not shown, and for whom it or its references wait.
  private func setParking(_ row: Row, _ parking: Parking?, waits: Set<RecordName>) throws {
    if row.id == nil { try replica.save(row) }
    guard let id = row.id else { return }
    if row.parking != parking {
      if let parking {
        try replica.park(id, row.table, parking)
      } else {
        try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(id)])
      }
      row.parking = parking
    }
    for target in row.waits.subtracting(waits).sorted() {
      try connection.run("DELETE FROM main.lk_wait WHERE target = ? AND row = ?", [.blob(target.bytes), .integer(id)])
    }
    for target in waits.sorted() {
      try connection.run(
        "INSERT INTO main.lk_wait(target, row) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [.blob(target.bytes), .integer(id)])
    }
    row.waits = waits
    if !waits.isEmpty { hasWaiting = true }
  }

  // MARK: Keys of this device

  /// The origin's key if it is free here, else a new one.
  private func chooseKey(_ row: Row) throws -> Int64 {
    let table = row.table
    let column = table.columns[table.key[0]]
    func isFree(_ key: Int64) throws -> Bool {
      let values: [SQLiteValue] = [.integer(key)]
      return try retired[table.id]?.contains(values) != true && reserved[table.id]?.contains(values) != true
        && !replica.isAwaited(table, .integer(key)) && replica.mapped(table, values) == nil
        && connection.first(table.selectRow, values) == nil
    }
    var chosen: Int64?
    // Near the greatest key there would be none left for the app's own rows.
    if case .integer(let hint)? = row.state.cell(column.wire), hint < Int64.max - 1 << 32, try isFree(hint) {
      chosen = hint
    }
    while chosen == nil {
      var next = try nextKeys[table.id] ?? firstNewKey(table)
      if next == .max { next = 1 }
      nextKeys[table.id] = next + 1
      if try isFree(next) { chosen = next }
    }
    let key = chosen ?? 1
    reserved[table.id, default: []].insert([.integer(key)])
    return key
  }

  private func firstNewKey(_ table: SyncedTable) throws -> Int64 {
    let name = quoted(table.columns[table.key[0]].name)
    var greatest = max(try connection.integer("SELECT max(\(name)) FROM main.\(quoted(table.name))") ?? 0, 0)
    greatest = max(greatest, try connection.integer("SELECT max(k0) FROM main.lk_map\(table.id)") ?? 0)
    if table.shape?.isAutoincrement == true {
      greatest = max(
        greatest,
        try connection.integer("SELECT seq FROM main.sqlite_sequence WHERE name = ?", [SQLiteValue(table.name)]) ?? 0)
    }
    return greatest == .max ? 1 : greatest + 1
  }
}
