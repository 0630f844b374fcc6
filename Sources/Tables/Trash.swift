public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// A row that was deleted, and can come back.
public struct TrashEntry: Equatable, Sendable {
  /// Its number in this file.
  public let id: Int64
  /// When it was deleted, by its author's clock, in milliseconds since 1970-01-01 UTC.
  public let deletedAt: Int64
  /// The device that deleted it.
  public let author: DeviceID
  /// The table's wire name.
  public let table: String
  public let record: RecordName
  /// The key that the row had here, for people.
  public let key: String?
  /// Its values by the columns' wire names; nil where this file does not have them: an app's own DELETE leaves none, and the store
  /// is asked when the row is restored.
  public let cells: [(column: String, value: Value)]?

  public static func == (a: Self, b: Self) -> Bool {
    guard a.id == b.id, a.deletedAt == b.deletedAt, a.author == b.author, a.table == b.table, a.record == b.record,
      a.key == b.key, (a.cells == nil) == (b.cells == nil)
    else { return false }
    return (a.cells ?? []).elementsEqual(b.cells ?? []) { sameBytes($0.column, $1.column) && $0.value == $1.value }
  }
}

/// Deleted rows are kept for thirty days, whoever deleted them.
extension Replica {
  /// Keeps a row that is being deleted.
  /// - Parameters:
  ///   - before: its state while it was live.
  ///   - tombstone: the deletion's stamp.
  func discard(_ row: Row, _ before: RecordState, _ tombstone: Stamp?, now: Int64) throws {
    guard let tombstone else { return }
    // What was deleted long before this file was filled concerns nobody here.
    var at = now
    if try state("importing") != nil { at = min(now, tombstone.hlc.milliseconds) }
    if at < now - Self.journalTime { return }
    let entries = before.registers.filter {
      switch $0.register {
      case .born, .cell: true
      case .tombstone, .home, .alias, .lend, .hide, .additive, .unknown: false
      }
    }
    let isWhole = !entries.contains(where: \.isMissing)
    let key = (row.key ?? row.reservedKey).map { $0.map(describe).joined(separator: ",") }
    try connection.run(
      "INSERT INTO main.lk_trash(at, tid, record, device, hlc, key, cells) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (record, tid) DO UPDATE SET at = excluded.at, device = excluded.device, hlc = excluded.hlc, key = excluded.key, cells = excluded.cells",
      [
        .integer(at), .integer(row.table.id), .blob(row.name.bytes), .blob(tombstone.origin.device.bytes),
        .integer(Int64(bitPattern: tombstone.hlc.rawValue)), key.map { SQLiteValue($0) } ?? .null,
        isWhole ? .blob(RegisterBytes.encode(entries, of: row.table.wire, row.name)) : .null,
      ])
  }

  private static let trashColumns = "t.id, t.tid, t.record, t.device, t.hlc, t.key, t.cells"
  private static let trashRows =
    "SELECT \(trashColumns) FROM main.lk_trash t JOIN main.lk_row r ON r.record = t.record AND r.tid = t.tid WHERE r.hash IS NULL"

  /// The rows in the trash, the one deleted last first. Rows that are there again are not.
  public func trash() throws -> [TrashEntry] {
    try connection.rows("\(Self.trashRows) ORDER BY t.hlc DESC, t.id DESC").compactMap { raw in
      guard let discarded = try Discarded(raw, self) else { return nil }
      return TrashEntry(
        id: discarded.id, deletedAt: discarded.hlc.milliseconds, author: discarded.author, table: discarded.table.wire,
        record: discarded.record, key: raw[5].string,
        cells: discarded.state.map { $0.cells.map { ($0.column, $0.value) } })
    }
  }

  /// One row of the trash, read.
  private struct Discarded {
    let id: Int64
    let table: SyncedTable
    let record: RecordName
    let author: DeviceID
    let hlc: HLC
    let state: RecordState?

    init?(_ raw: [SQLiteValue], _ replica: Replica) throws {
      guard let id = raw[0].integer, let table = raw[1].integer.flatMap({ replica.tablesByID[$0] }),
        let record = raw[2].bytes.flatMap(RecordName.init), let author = raw[3].bytes.flatMap(DeviceID.init),
        let hlc = raw[4].integer
      else { return nil }
      self.id = id
      self.table = table
      self.record = record
      self.author = author
      self.hlc = HLC(rawValue: UInt64(bitPattern: hlc))
      state = try raw[6].bytes.map { try RegisterBytes.decode($0) }
    }

    /// Rows of one act of deleting have it in common.
    var act: [UInt8] {
      var bytes = author.bytes
      bytes.append(word: hlc.rawValue)
      return bytes
    }
    var recordID: RecordID { RecordID(table: table.id, name: record) }
  }

  private func discarded(_ condition: String, _ parameters: [SQLiteValue]) throws -> [Discarded] {
    try connection.rows("\(Self.trashRows) AND \(condition) ORDER BY t.id", parameters).compactMap {
      try Discarded($0, self)
    }
  }

  private func deleted(with entry: Discarded) throws -> [Discarded] {
    try discarded(
      "t.device = ? AND t.hlc = ?",
      [.blob(entry.author.bytes), .integer(Int64(bitPattern: entry.hlc.rawValue))])
  }

  private func discarded(numbered ids: [Int64]) throws -> [Discarded] {
    try ids.map { id in
      guard let entry = try discarded("t.id = ?", [.integer(id)]).first else {
        throw TablesError.rule("the trash has no row \(id)")
      }
      return entry
    }
  }

  /// Rows of the trash whose values are needed to restore some, and are not in this file: by table's wire name and record.
  ///
  /// - Throws: ``TablesError/rule(_:)`` if one of them is not in the trash.
  public func lackingValues(toRestore ids: [Int64]) throws -> [(table: String, record: RecordName)] {
    var seen: Set<[UInt8]> = []
    var out: [(table: String, record: RecordName)] = []
    for entry in try discarded(numbered: ids) where seen.insert(entry.act).inserted {
      out += try deleted(with: entry).filter { $0.state == nil }.map { ($0.table.wire, $0.record) }
    }
    return out
  }

  /// Completes rows of the trash from what others have of them. Inside ``transaction(_:)``.
  public func fillTrash(_ states: [(table: String, record: RecordName, state: RecordState)]) throws {
    for (wire, record, state) in states where !state.cells.isEmpty {
      let table = try table(wire: wire)
      let entries = state.registers.filter { if case .cell = $0.register { true } else { $0.register == .born } }
      try connection.run(
        "UPDATE main.lk_trash SET cells = ? WHERE record = ? AND tid = ? AND cells IS NULL",
        [.blob(RegisterBytes.encode(entries, of: wire, record)), .blob(record.bytes), .integer(table.id)])
    }
  }

  /// Inserts deleted rows again, as an act of now that every device takes: with the rows that were deleted together with them and
  /// refer to them, and with those that they cannot be without.
  ///
  /// Inside ``transaction(_:)``. What the app changed is stamped first. Rows that were only hidden with a deleted row come back by
  /// themselves, and so do references that showed NULL.
  ///
  /// - Returns: what came back, by table's wire name and record; the rows asked for first.
  /// - Throws: ``TablesError/rule(_:)`` if one of them is not in the trash, or nobody has its values.
  public func restoreTrash(_ ids: [Int64], now: Int64, emit: (PendingGroup) throws -> UInt64) throws -> [(
    table: String, record: RecordName
  )] {
    precondition(connection.isInTransaction, "restore inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    var chosen: [Discarded] = []
    var isChosen: Set<RecordID> = []
    var byAct: [[UInt8]: [RecordName: [Discarded]]] = [:]
    var queue = try discarded(numbered: ids)
    while !queue.isEmpty {
      let entry = queue.removeFirst()
      guard isChosen.insert(entry.recordID).inserted else { continue }
      guard let state = entry.state else {
        if ids.contains(entry.id) { throw TablesError.rule("nobody has the values of the deleted row \(entry.id)") }
        continue
      }
      chosen.append(entry)
      if byAct[entry.act] == nil {
        var children: [RecordName: [Discarded]] = [:]
        for other in try deleted(with: entry) {
          for target in (other.state ?? .empty).targets { children[target, default: []].append(other) }
        }
        byAct[entry.act] = children
      }
      queue += byAct[entry.act]?[entry.record] ?? []
      queue += try neededParents(of: entry.table, state)
    }
    let rewritten = try rewrite(
      chosen.map { entry in
        // What was edited after the deletion counts, too.
        let edits = try loadRow(entry.recordID)?.state.registers.filter {
          if case .cell = $0.register { !$0.isMissing } else { false }
        }
        return Rewrite(
          inserting: (entry.state ?? .empty).merging(RecordState(edits ?? [])), entry.table, entry.record)
      }, now: now, emit: emit)
    for entry in chosen { try connection.run("DELETE FROM main.lk_trash WHERE id = ?", [.integer(entry.id)]) }
    try merge(rewritten, now, &report, emit)
    return chosen.map { ($0.table.wire, $0.record) }
  }

  /// Deleted rows without which a row is not shown.
  private func neededParents(of table: SyncedTable, _ state: RecordState) throws -> [Discarded] {
    var out: [Discarded] = []
    for column in table.columns {
      guard case .reference(let name)? = state.cell(column.wire) else { continue }
      let reference = table.reference(of: column, in: state)
      guard column.isRequired || reference?.action == .cascade else { continue }
      out += try discarded("t.record = ?", [.blob(name.bytes)])
    }
    return out
  }
}
