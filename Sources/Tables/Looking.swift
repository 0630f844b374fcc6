public import LatchkeyEncoding
public import LatchkeyRecords
public import LatchkeySQLite

/// Counts of one table, comparable between devices.
public struct TableCounts: Equatable, Sendable {
  /// Its wire name.
  public let name: String
  /// Rows that the app's table has here.
  public let local: Int
  /// Records that exist.
  public let live: Int
  /// Records known to be deleted.
  public let deleted: Int
  /// Rows changed here and not acknowledged by the store: not stamped yet, or in the outbox.
  public let waiting: Int
  /// Records that exist and are not shown, but those that are shown as another.
  public let parked: Int
  /// Records that are duplicates of others and shown as these.
  public let merged: Int
  /// Of the live records (format §9).
  public let digest: Hash32
}

/// A record that exists and is not shown, and why.
public struct ParkedRow: Equatable, Sendable {
  public let table: String
  public let record: RecordName
  /// One sentence for people.
  public let reason: String
  /// The record that it waits for, if it is one.
  public let target: RecordName?
}

/// What is known of one row, field by field.
public struct Explanation: Equatable, Sendable {
  public struct Field: Equatable, Sendable {
    public let column: String
    /// The merged value.
    public let value: Value
    public let stamp: Stamp
    /// Whether the table shows something else: its target is missing, or the schema takes it differently.
    public let isShownDifferently: Bool
  }

  public let table: String
  public let record: RecordName
  public let isLive: Bool
  public let isShown: Bool
  public let born: Stamp?
  public let tombstone: Stamp?
  public let fields: [Field]
  /// Why it is not shown.
  public let reason: String?
  /// The row that shows it, if it is a duplicate: record and key.
  public let mergedInto: Row?
  /// The records that are duplicates of it and are shown as it.
  public let duplicates: [RecordName]

  /// A row that a table shows.
  public struct Row: Equatable, Sendable {
    public let record: RecordName
    /// For people, its parts with commas between them; nil if it is not shown itself.
    public let key: String?
  }
}

extension Replica {
  /// What is known of a record.
  public func record(_ name: RecordName) throws -> RecordState? {
    guard let row = try loadRow(named: name), row.isStamped else { return nil }
    return row.state
  }

  /// The record of a row, by its key's values; nil if it was not stamped yet.
  public func recordName(table: String, key: [SQLiteValue]) throws -> RecordName? {
    guard let found = tables.first(where: { $0.shape != nil && $0.name.lowercased() == table.lowercased() }) else {
      throw TablesError.noTable(table)
    }
    guard key.count == found.key.count, let id = try mapped(found, key) else { return nil }
    return try connection.first("SELECT record FROM main.lk_row WHERE id = ? AND length(meta) > 0", [.integer(id)])?[0]
      .bytes.flatMap(RecordName.init)
  }

  /// Where a record is shown: table and key; nil if it is not.
  public func shownKey(_ name: RecordName) throws -> (table: String, key: [SQLiteValue])? {
    guard let row = try loadRow(named: name), let key = row.key else { return nil }
    return (row.table.name, key)
  }

  /// Every field of a row with its value and stamp, by the key's values; nil if there is no such row.
  public func explain(table: String, key: [SQLiteValue]) throws -> Explanation? {
    guard let name = try recordName(table: table, key: key) else { return nil }
    return try explain(name)
  }

  public func explain(_ name: RecordName) throws -> Explanation? {
    guard let row = try loadRow(named: name), row.isStamped else { return nil }
    var into: Explanation.Row?
    if case .merged(let best)? = row.parking {
      let shown = try loadRow(RecordID(table: row.table.id, name: best))
      into = Explanation.Row(record: best, key: shown?.key.map { $0.map(describe).joined(separator: ",") })
    }
    let duplicates = row.key == nil ? [] : try duplicates(of: row.record).filter { $0.isLive && $0.name != name }
    return Explanation(
      table: row.table.wire, record: name, isLive: row.state.isLive, isShown: row.key != nil,
      born: row.state.newestBorn,
      tombstone: row.state.newestTombstone,
      fields: row.state.cells.map { cell in
        let number = row.table.number(of: cell.column)
        let isLocalKey =
          row.table.keyIsLocal && row.table.indexByNumber[number].map { row.table.columns[$0].isKey } == true
        return Explanation.Field(
          column: cell.column, value: cell.value, stamp: cell.stamp,
          isShownDifferently: row.kept[number] != nil && !isLocalKey)
      },
      reason: try row.parking.map { try sentence($0) }, mergedInto: into, duplicates: duplicates.map(\.name))
  }

  private func sentence(_ parking: Parking) throws -> String {
    func named(_ target: RecordName) throws -> String {
      let table = try connection.first("SELECT tid FROM main.lk_row WHERE record = ?", [.blob(target.bytes)])?[0]
        .integer.flatMap { tablesByID[$0]?.name }
      return "\(table.map { "\($0) " } ?? "")\(target.short)"
    }
    switch parking {
    case .waiting(let target): return "waits for \(try named(target)), which has not arrived or is not shown"
    case .parentDeleted(let target): return "hidden with \(try named(target)), which was deleted"
    case .unique(let by): return "an older row, \(try named(by)), has the same unique value"
    case .refused(let why): return "the database refuses it: \(why)"
    case .noTable: return "this file has no such table, or keeps it to itself"
    case .newerValue: return "it has a kind of value of a newer version"
    case .tooLarge: return "a value is over the size that is sent"
    case .keyless: return "the app made its key NULL here; it is the same row again once it has a key"
    case .merged(let into): return "it is a duplicate of \(try named(into)), which is shown"
    case .pairing: return "the file's own rows have not been compared with it yet"
    case .lost: return "the app threw its table away; its values are in the store"
    }
  }

  /// Records that exist and are not shown, by table and name; without duplicates, which are shown as others.
  public func parkedRows() throws -> [ParkedRow] {
    var out: [ParkedRow] = []
    for raw in try connection.rows(
      "SELECT r.record, p.tid, p.kind, p.detail, p.target FROM main.lk_park p JOIN main.lk_row r ON r.id = p.row WHERE p.kind <> ? ORDER BY p.tid, r.record",
      [.integer(Parking.merged(into: .zero).kind)])
    {
      guard let name = raw[0].bytes.flatMap(RecordName.init), let table = raw[1].integer.flatMap({ tablesByID[$0] }),
        let kind = raw[2].integer,
        let parking = Parking(kind: kind, detail: raw[3].string, target: raw[4].bytes.flatMap(RecordName.init))
      else { continue }
      out.append(ParkedRow(table: table.wire, record: name, reason: try sentence(parking), target: parking.target))
    }
    return out
  }

  /// Counts by table, in byte order of wire names.
  public func counts() throws -> [TableCounts] {
    try refresh()
    let sent = try outboxRows()
    return try inOrder.map { table in
      var local = 0
      var waiting = sent[table.wire] ?? 0
      if table.shape != nil {
        local = Int(try connection.integer("SELECT count(*) FROM main.\(quoted(table.name))") ?? 0)
        let keys = table.key.indices.map { "k\($0)" }.joined(separator: ", ")
        waiting += Int(
          try connection.integer("SELECT count(*) FROM (SELECT DISTINCT \(keys) FROM main.lk_log\(table.id))") ?? 0)
        if try
          !(connection.first("SELECT scan FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0].isNull ?? true)
        {
          waiting += max(0, local - Int(try connection.integer("SELECT count(*) FROM main.lk_map\(table.id)") ?? 0))
        }
      }
      let total = totals[table.id] ?? TableTotals()
      let merged = try connection.integer(
        "SELECT count(*) FROM main.lk_park WHERE tid = ? AND kind = ?",
        [.integer(table.id), .integer(Parking.merged(into: .zero).kind)])
      let parked = try connection.integer("SELECT count(*) FROM main.lk_park WHERE tid = ?", [.integer(table.id)])
      return TableCounts(
        name: table.wire, local: local, live: total.live, deleted: total.deleted, waiting: waiting,
        parked: Int((parked ?? 0) - (merged ?? 0)), merged: Int(merged ?? 0),
        digest: total.digest)
    }
  }

  /// The zone's digest (format §9): equal on two devices iff they hold the same records.
  public var digest: Hash32 { totals.values.reduce(Hash32.zero) { $0 &+ $1.digest } }

  /// Whether the app changed something that is not stamped yet.
  public func hasUnstampedChanges() throws -> Bool {
    for table in tables where table.shape != nil {
      if try connection.first("SELECT 1 FROM main.lk_log\(table.id) LIMIT 1") != nil { return true }
    }
    return try connection.first("SELECT 1 FROM main.lk_table WHERE scan IS NOT NULL AND name IS NOT NULL LIMIT 1")
      != nil
      || state("notes")?.integer == 1 || hasOwnRules()
  }

  /// Calls `body` with every live record's merged cells, shown or parked, in byte order of tables' wire names, then record names.
  public func export(
    _ body: (_ table: String, _ record: RecordName, _ cells: [(column: String, value: Value)]) throws -> Void
  ) throws {
    // One snapshot: another process may sync meanwhile.
    let isOwn = !connection.isInTransaction
    if isOwn { try connection.run("BEGIN") }
    defer { if isOwn { try? connection.run("ROLLBACK") } }
    try refresh()
    for table in inOrder {
      try forEachRow(table) { row in
        guard row.state.isLive else { return }
        try body(table.wire, row.name, row.state.cells.filter { !$0.value.isMissing }.map { ($0.column, $0.value) })
      }
    }
  }

  /// Strings would compare as their composed forms do, which is not the order of their bytes.
  private var inOrder: [SyncedTable] { tables.sorted { $0.wire.utf8.lexicographicallyPrecedes($1.wire.utf8) } }

  /// Calls `body` with every stamped record of a table, in order of names, a page at a time.
  func forEachRow(_ table: SyncedTable, _ body: (Row) throws -> Void) throws {
    var after: [UInt8] = []
    while true {
      let page = try connection.rows(
        "SELECT record FROM main.lk_row WHERE tid = ? AND record > ? AND length(meta) > 0 ORDER BY record LIMIT 1000",
        [.integer(table.id), .blob(after)])
      for raw in page {
        guard let bytes = raw[0].bytes, let name = RecordName(bytes),
          let row = try loadRow(RecordID(table: table.id, name: name))
        else { continue }
        after = bytes
        try body(row)
      }
      if page.count < 1_000 { return }
    }
  }
}

extension Replica {
  /// The key under which a record is shown, for people; nil if it is not.
  public func shownKeyText(_ name: RecordName) throws -> String? {
    try shownKey(name)?.key.map(describe).joined(separator: ",")
  }

  /// Calls `body` with every record that this file knows, deleted ones too, with all its registers.
  public func forEachRecord(_ body: (_ table: String, _ record: RecordName, _ state: RecordState) throws -> Void) throws
  {
    for table in tables.sorted(by: { $0.wire.utf8.lexicographicallyPrecedes($1.wire.utf8) }) {
      try forEachRow(table) { row in try body(table.wire, row.name, row.state) }
    }
  }
}
