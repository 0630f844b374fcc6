internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// What became of a file's own rows when it came into a zone that had rows.
public struct PairingReport: Equatable, Sendable {
  /// Rows of the file that are rows of the zone.
  public var paired = 0
  /// Those of them in which something differed: the zone's values are shown, the file's are in the journal.
  public var differing = 0
  /// Rows that only the file had: they are the zone's now too.
  public var added = 0
  /// Rows that only the zone had.
  public var received = 0

  public init(paired: Int = 0, differing: Int = 0, added: Int = 0, received: Int = 0) {
    self.paired = paired
    self.differing = differing
    self.added = added
    self.received = received
  }

  public var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(4)
    for count in [paired, differing, added, received] { writer.uint(count) }
    return writer.bytes
  }

  /// - Throws: `CBORError` for other bytes than ``encoded`` gives.
  public init(decoding bytes: [UInt8]) throws {
    var reader = CBORReader(bytes)
    try reader.array(exactly: 4)
    paired = try reader.uint(max: Int.max)
    differing = try reader.uint(max: Int.max)
    added = try reader.uint(max: Int.max)
    received = try reader.uint(max: Int.max)
    try reader.finish()
  }
}

/// A file with rows comes into a zone with rows: those that are the same are found and become one record, so that two copies
/// of one file do not double.
///
/// From attaching until the zone's rows have arrived, nothing of the file is stamped and nothing of the zone is shown
/// (``Replica/isPairing``). Then, parents before children, a row of the file is the zone's record that has its name, made
/// of its key; else the one that the rules take for the same; else the one that has the same unique key; else one with the same content, references translated; else, in a table of
/// which most rows are the same under the same number, the one with that number and half its fields. What is left on either side is
/// new to the other. No row is deleted, and no value is lost: where the two differ, the zone's is shown and the file's kept in the journal.
extension Replica {
  /// Whether the file's own rows wait to be compared with the zone's.
  public var isPairing: Bool {
    get throws { try state("pairing") != nil }
  }

  /// Since when, in milliseconds since 1970-01-01 UTC; nil if there is nothing to compare.
  public func pairingSince() throws -> Int64? { try state("pairing")?.integer }

  /// Notes that the file's rows must be paired before anything is said of them.
  func beginPairing(now: Int64) throws { try setState("pairing", .integer(now)) }

  /// Whether the zone has described itself: else it cannot have arrived.
  public func knowsZone() throws -> Bool { try note(DatabaseNote.kind, DatabaseNote.key) != nil }

  /// Keeps records that arrive, without showing them.
  func keepForPairing(_ changes: [(table: String, record: RecordName, state: RecordState)], _ report: inout ApplyReport)
    throws
  {
    for (wire, name, incoming) in changes {
      let table = try table(wire: wire)
      let row = try loadRow(RecordID(table: table.id, name: name)) ?? Row(name: name, table: table)
      let merged = row.state.merging(incoming)
      if merged == row.state, row.isStamped { continue }
      row.state = merged
      row.isStamped = true
      row.kept = [:]
      for cell in merged.cells { row.kept[table.number(of: cell.column)] = cell.value }
      try save(row)
      try noteDuplicate(row)
      report.applied += 1
      guard let id = row.id else { continue }
      if merged.isLive {
        try park(id, table, .pairing)
      } else {
        try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(id)])
      }
    }
  }

  /// Pairs the file's rows with the zone's, stamps what only the file has and shows what only the zone has.
  ///
  /// Inside ``transaction(_:)``, once all that the zone has is here.
  ///
  /// - Parameters:
  ///   - now: the local time, in milliseconds since 1970-01-01 UTC.
  ///   - emit: as in ``stamp(now:limit:emit:)``.
  public func pair(now: Int64, emit: (PendingGroup) throws -> UInt64) throws -> PairingReport {
    precondition(connection.isInTransaction, "pair inside transaction")
    var pairing = Pairing(replica: self, now: now)
    try pairing.run()
    try setState("pairing", nil)
    var report = pairing.report
    // The file's own rows first: what is shown after them meets rows that are known.
    let known = try recordCount()
    report.received = Int(
      try connection.integer(
        "SELECT count(*) FROM main.lk_park WHERE kind = ?", [.integer(Parking.pairing.kind)]) ?? 0)
    while try stamp(now: now, emit: emit).more {}
    report.added = try recordCount() - known
    try showAfterPairing(pairing.differing)
    return report
  }

  private func recordCount() throws -> Int {
    Int(try connection.integer("SELECT count(*) FROM main.lk_row WHERE length(meta) > 0") ?? 0)
  }

  /// Shows what only the zone has, and the zone's values where the two differed: parents first, so many rows at a time.
  private func showAfterPairing(_ differing: [RecordID]) throws {
    let limit = 20_000
    var isFirst = true
    for table in tables.sorted(by: { ($0.rank, $0.id) < ($1.rank, $1.id) }) {
      while true {
        let page = try connection.rows(
          "SELECT r.record FROM main.lk_park p JOIN main.lk_row r ON r.id = p.row WHERE p.kind = ? AND p.tid = ? ORDER BY r.id LIMIT ?",
          [.integer(Parking.pairing.kind), .integer(table.id), .integer(Int64(limit))])
        if page.isEmpty, !isFirst { break }
        let materialiser = try Materialiser(replica: self)
        if isFirst { for record in differing { try materialiser.enqueue(record) } }
        isFirst = false
        for raw in page {
          guard let name = raw[0].bytes.flatMap(RecordName.init) else { continue }
          try materialiser.enqueue(RecordID(table: table.id, name: name))
        }
        try materialiser.run()
        if page.count < limit { break }
      }
    }
    if tables.contains(where: { $0.duplicates != nil }) {
      let materialiser = try Materialiser(replica: self)
      try setState("regroup", .integer(1))
      try materialiser.enqueueRegrouped()
      try materialiser.run()
    }
  }
}

/// One run of ``Replica/pair(now:emit:)``.
private struct Pairing {
  let replica: Replica
  let now: Int64
  var report = PairingReport()
  /// Records that are paired with rows in which something differs.
  var differing: [RecordID] = []

  /// The rows of `lk_row` that were paired.
  private var paired: [Int64] = []
  /// How many rows have the number that their record was made under, and the greatest of these by table.
  private var sameCount = 0
  private var lastSame: [Int64: Int64] = [:]

  /// Chains of rows that refer to rows of their own table are followed so far.
  private static let maximumPasses = 128

  init(replica: Replica, now: Int64) {
    self.replica = replica
    self.now = now
  }

  private var connection: Connection { replica.connection }

  /// A row of the file that is no record yet.
  private struct Candidate {
    let key: [SQLiteValue]
    let values: [SQLiteValue]
    let cells: [Value]
  }

  mutating func run() throws {
    let tables = replica.tables.filter { $0.shape != nil }.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) }
    try fixpoint(tables)
    for table in tables {
      for _ in 0..<Self.maximumPasses {
        guard try pairCopies(table) else { break }
        try fixpoint(tables)
      }
    }
    try compare()
  }

  /// Pairs until nothing more is found: what a row refers to must be paired before it can be equal.
  private mutating func fixpoint(_ tables: [SyncedTable]) throws {
    for pass in 0..<Self.maximumPasses {
      var isChanged = false
      for table in tables where pass == 0 || table.columns.contains(where: \.isReference) {
        if try pairByName(table) { isChanged = true }
        if try pairByDuplicate(table) { isChanged = true }
        for index in table.uniqueIndexes where try pairByUnique(table, index) { isChanged = true }
        if try pairByContent(table) { isChanged = true }
      }
      if !isChanged { return }
    }
  }

  // MARK: What there is to pair

  /// Calls `body` with every row of the file that is no record yet.
  private func forEachCandidate(_ table: SyncedTable, _ body: (Candidate) throws -> Void) throws {
    var after: [SQLiteValue]?
    while true {
      let page =
        try after.map { try connection.rows(table.selectNextPage, $0 + [.integer(1_000)]) }
        ?? connection.rows(table.selectFirstPage, [.integer(1_000)])
      for values in page {
        let key = table.keyValues(values)
        if key.contains(where: \.isNull) { continue }
        after = key
        guard try replica.mapped(table, key) == nil else { continue }
        let cells = try table.columns.indices.map {
          try replica.translate(table.columns[$0], in: values, values[$0])
        }
        try body(Candidate(key: key, values: values, cells: cells))
      }
      if page.count < 1_000 { return }
    }
  }

  /// Calls `body` with every record of the zone that is no row yet.
  private func forEachRecord(_ table: SyncedTable, _ body: (Int64, RecordState) throws -> Void) throws {
    var after: Int64 = 0
    while true {
      let page = try connection.rows(
        "SELECT row FROM main.lk_park WHERE tid = ? AND kind = ? AND row > ? ORDER BY row LIMIT 1000",
        [.integer(table.id), .integer(Parking.pairing.kind), .integer(after)])
      for raw in page {
        guard let id = raw[0].integer else { continue }
        after = id
        if let row = try replica.loadRow(id: id) { try body(id, row.state) }
      }
      if page.count < 1_000 { return }
    }
  }

  private func isEmpty(_ table: SyncedTable) throws -> Bool {
    try connection.first(
      "SELECT 1 FROM main.lk_park WHERE tid = ? AND kind = ? LIMIT 1",
      [.integer(table.id), .integer(Parking.pairing.kind)]) == nil
  }

  /// What a record would show in a column.
  private func value(_ state: RecordState, _ column: SyncedColumn) -> Value {
    state.cell(column.wire) ?? column.defaultValue.map { Value($0) } ?? .null
  }

  // MARK: Which are the same

  private mutating func pairByName(_ table: SyncedTable) throws -> Bool {
    guard let identity = table.identity, try !isEmpty(table) else { return false }
    var found: [(Candidate, Int64)] = []
    try forEachCandidate(table) { candidate in
      let parts = identity.map { table.columns[$0].collation.fold(candidate.cells[$0]) }
      guard let name = keyedName(table: table.wire, values: parts),
        let id = try connection.integer(
          "SELECT r.id FROM main.lk_row r JOIN main.lk_park p ON p.row = r.id WHERE r.record = ? AND r.tid = ? AND p.kind = ?",
          [.blob(name.bytes), .integer(table.id), .integer(Parking.pairing.kind)])
      else { return }
      found.append((candidate, id))
    }
    return try pair(table, found)
  }

  /// Of what shows as one row, the row that the zone shows is the one that stays: what the household refers to is no newcomer's.
  private mutating func pairByDuplicate(_ table: SyncedTable) throws -> Bool {
    guard table.duplicates != nil, try !isEmpty(table) else { return false }
    var records: [[UInt8]: Int64] = [:]
    try forEachRecord(table) { id, state in
      guard let key = replica.duplicateKey(state, table), records[key] == nil,
        let name = try connection.first("SELECT record FROM main.lk_row WHERE id = ?", [.integer(id)])?[0].bytes
          .flatMap(RecordName.init),
        let best = replica.survivor(try replica.duplicates(of: RecordID(table: table.id, name: name)))
      else { return }
      records[key] = best.row
    }
    var found: [(Candidate, Int64)] = []
    try forEachCandidate(table) { candidate in
      if let key = replica.duplicateKey(table, { candidate.cells[$0] }), let id = records.removeValue(forKey: key) {
        found.append((candidate, id))
      }
    }
    return try pair(table, found)
  }

  private mutating func pairByUnique(_ table: SyncedTable, _ index: IndexShape) throws -> Bool {
    guard !index.isPartial, !index.hasExpressions, index.origin != .primaryKey || !table.keyIsLocal,
      try !isEmpty(table)
    else { return false }
    var columns: [(at: Int, collation: Collation)] = []
    for part in index.parts {
      guard let name = part.column, let at = table.columns.firstIndex(where: { $0.name == name }) else { return false }
      columns.append((at, Collation(name: part.collation)))
    }
    func key(_ cell: (Int) -> Value) -> [Value]? {
      let key = columns.map { $0.collation.fold(cell($0.at)) }
      return key.contains(where: \.isNull) ? nil : key
    }
    var records: [[Value]: Int64] = [:]
    try forEachRecord(table) { id, state in
      if let key = key({ value(state, table.columns[$0]) }) { records[key] = id }
    }
    var found: [(Candidate, Int64)] = []
    try forEachCandidate(table) { candidate in
      if let key = key({ candidate.cells[$0] }), let id = records.removeValue(forKey: key) {
        found.append((candidate, id))
      }
    }
    return try pair(table, found)
  }

  /// Of several with the same content those with the same number first.
  private mutating func pairByContent(_ table: SyncedTable) throws -> Bool {
    guard try !isEmpty(table) else { return false }
    let columns = table.columns.indices.filter { !(table.keyIsLocal && table.columns[$0].isKey) }
    let keyColumn = table.keyIsLocal ? table.columns[table.key[0]] : nil
    var records: [[UInt64]: [(id: Int64, hint: Value?)]] = [:]
    try forEachRecord(table) { id, state in
      let content = columns.map { value(state, table.columns[$0]).fingerprint }
      records[content, default: []].append((id, keyColumn.flatMap { state.cell($0.wire) }))
    }
    var found: [(Candidate, Int64)] = []
    var others: [(Candidate, [UInt64])] = []
    try forEachCandidate(table) { candidate in
      let content = columns.map { candidate.cells[$0].fingerprint }
      guard let same = records[content] else { return }
      if let at = same.firstIndex(where: { $0.hint == Value(candidate.key[0]) }) {
        found.append((candidate, same[at].id))
        records[content]?.remove(at: at)
      } else {
        others.append((candidate, content))
      }
    }
    for (candidate, content) in others where records[content]?.isEmpty == false {
      if let first = records[content]?.removeFirst() { found.append((candidate, first.id)) }
    }
    return try pair(table, found, onlyEqual: true)
  }

  /// Where most rows are the same under the same number, the file is a copy: a row with the number of a record, and half its
  /// fields, is that record, edited since. Not if its number is beyond those of all rows that are the same: rows that were added on both
  /// sides since have equal numbers too.
  private mutating func pairCopies(_ table: SyncedTable) throws -> Bool {
    guard table.keyIsLocal, let last = lastSame[table.id], try !isEmpty(table) else { return false }
    let keyColumn = table.columns[table.key[0]]
    var records: [SQLiteValue: (id: Int64, state: RecordState)] = [:]
    try forEachRecord(table) { id, state in
      if let hint = state.cell(keyColumn.wire)?.plain { records[hint] = (id, state) }
    }
    let fields = table.columns.indices.filter { !table.columns[$0].isKey }
    var found: [(Candidate, Int64)] = []
    try forEachCandidate(table) { candidate in
      guard let number = candidate.key[0].integer, number < last, isResolved(candidate, table),
        let (id, state) = records[candidate.key[0]]
      else { return }
      let equal = fields.count { value(state, table.columns[$0]) == candidate.cells[$0] }
      if equal * 2 >= fields.count, equal > 0 { found.append((candidate, id)) }
    }
    guard sameCount >= 3 * found.count else { return false }
    return try pair(table, found)
  }

  /// Whether all that a row refers to is a record already.
  private func isResolved(_ candidate: Candidate, _ table: SyncedTable) -> Bool {
    table.columns.indices.allSatisfy { index in
      guard let reference = table.columns[index].reference(in: candidate.values),
        replica.tablesByID[reference.table]?.keyIsLocal == true
      else { return true }
      if case .reference = candidate.cells[index] { return true }
      return candidate.values[index].isNull || reference.none.contains(candidate.values[index])
    }
  }

  // MARK: Making them one

  private mutating func pair(_ table: SyncedTable, _ found: [(Candidate, Int64)], onlyEqual: Bool = false) throws
    -> Bool
  {
    var isChanged = false
    var taken: Set<Int64> = []
    for (candidate, id) in found where taken.insert(id).inserted {
      guard let row = try replica.loadRow(id: id), row.key == nil else { continue }
      if onlyEqual, !isEqual(row.state, candidate, table) { continue }
      isChanged = true
      try pair(row, candidate)
    }
    return isChanged
  }

  /// Fingerprints that are equal could have been made so.
  private func isEqual(_ state: RecordState, _ candidate: Candidate, _ table: SyncedTable) -> Bool {
    table.columns.indices.allSatisfy { index in
      let column = table.columns[index]
      return table.keyIsLocal && column.isKey || value(state, column) == candidate.cells[index]
    }
  }

  private mutating func pair(_ row: Row, _ candidate: Candidate) throws {
    let table = row.table
    try replica.map(table, candidate.key, row.id ?? 0)
    row.key = candidate.key
    if table.keyIsLocal, let number = candidate.key[0].integer,
      row.state.cell(table.columns[table.key[0]].wire) == .integer(number)
    {
      sameCount += 1
      lastSame[table.id] = max(lastSame[table.id] ?? number, number)
    }
    try connection.run("DELETE FROM main.lk_park WHERE row = ?", [.integer(row.id ?? 0)])
    row.parking = nil
    try replica.save(row)
    report.paired += 1
    if let id = row.id { paired.append(id) }
  }

  /// What differs is told once all rows are paired: what a row refers to may have been paired after it.
  private mutating func compare() throws {
    for id in paired {
      guard let row = try replica.loadRow(id: id), let values = row.values else { continue }
      let table = row.table
      var isDiffering = false
      for (index, column) in table.columns.enumerated() {
        // A column that the zone does not have is compared as one that this file gained.
        guard let cell = row.state.cell(column.wire) else { continue }
        let own = try replica.translate(column, in: values, values[index])
        row.shown[column.number] = FieldHash(values[index])
        if case .reference(let name) = own { row.targets[column.number] = FieldHash(target: name) }
        if cell == own {
          row.kept[column.number] = nil
          continue
        }
        row.kept[column.number] = cell
        if table.keyIsLocal, column.isKey { continue }
        isDiffering = true
        try replica.journal(row.record, column.wire, own, .paired, now: now)
      }
      try replica.save(row)
      if isDiffering {
        report.differing += 1
        differing.append(row.record)
      }
    }
  }
}
