public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// A value of this device that another value took the place of.
public struct JournalEntry: Equatable, Sendable {
  /// Why the value is not shown.
  public enum Cause: Int64, Equatable, Sendable {
    /// The file came into a zone whose row had another value.
    case paired = 1

    /// For people, and programs.
    public var name: String {
      switch self {
      case .paired: "paired"
      }
    }
  }

  /// Its number in this file.
  public let id: Int64
  /// When it was noted, in milliseconds since 1970-01-01 UTC.
  public let at: Int64
  public let cause: Cause
  /// The table's and the column's wire names.
  public let table: String
  public let column: String
  public let record: RecordName
  /// The key under which the row is shown; nil if it is not.
  public let key: String?
  /// The value that is not shown, and the one that is; nil if the row has none.
  public let value: Value
  public let present: Value?
}

/// Values that gave way are kept for thirty days, on the device whose values they were, and can be put back.
extension Replica {
  /// How long the journal keeps what it has, in milliseconds.
  static let journalTime: Int64 = 30 * 86_400_000

  /// Notes a value that gives way.
  func journal(_ row: Row, _ column: SyncedColumn, _ value: Value, _ cause: JournalEntry.Cause, now: Int64) throws {
    var writer = CBORWriter()
    value.write(to: &writer)
    try connection.run(
      "INSERT INTO main.lk_journal(at, cause, tid, record, name, value) VALUES (?, ?, ?, ?, ?, ?)",
      [
        .integer(now), .integer(cause.rawValue), .integer(row.table.id), .blob(row.name.bytes),
        SQLiteValue(column.wire), .blob(writer.bytes),
      ])
  }

  /// Forgets what is older than thirty days. Inside ``transaction(_:)``.
  public func pruneJournal(now: Int64) throws {
    try connection.run("DELETE FROM main.lk_journal WHERE at < ?", [.integer(now - Self.journalTime)])
  }

  /// What the journal has, newest first.
  public func journal() throws -> [JournalEntry] {
    try connection.rows(
      "SELECT id, at, cause, tid, record, name, value FROM main.lk_journal ORDER BY id DESC"
    ).compactMap { raw in
      guard let id = raw[0].integer, let at = raw[1].integer,
        let cause = raw[2].integer.flatMap(JournalEntry.Cause.init(rawValue:)),
        let table = raw[3].integer.flatMap({ tablesByID[$0] }), let name = raw[4].bytes.flatMap(RecordName.init),
        let column = raw[5].string, let bytes = raw[6].bytes
      else { return nil }
      var reader = CBORReader(bytes)
      let value = try Value.read(from: &reader)
      let row = try loadRow(RecordID(table: table.id, name: name))
      return JournalEntry(
        id: id, at: at, cause: cause, table: table.wire, column: column, record: name,
        key: row?.key.map { $0.map(describe).joined(separator: ",") }, value: value, present: row?.state.cell(column))
    }
  }

  /// Puts a value back, as an edit of now that every device takes, and takes it out of the journal. Inside
  /// ``transaction(_:)``.
  ///
  /// - Throws: ``TablesError/rule(_:)`` if there is no such entry, or its row or what it refers to is not shown.
  public func restore(journalEntry id: Int64) throws {
    guard let entry = try journal().first(where: { $0.id == id }) else {
      throw TablesError.rule("the journal has no entry \(id)")
    }
    guard let table = tables.first(where: { sameBytes($0.wire, entry.table) }),
      let row = try loadRow(RecordID(table: table.id, name: entry.record)), let key = row.key,
      let index = table.columns.firstIndex(where: { sameBytes($0.wire, entry.column) })
    else { throw TablesError.rule("the row of entry \(id) is not shown, so nothing can be put back into it") }
    let value: SQLiteValue
    if case .reference(let name) = entry.value {
      guard let target = try shownKey(name)?.key, target.count == 1, table.columns[index].reference?.column == nil
      else {
        throw TablesError.rule("what the value of entry \(id) refers to is not shown")
      }
      value = target[0]
    } else {
      value = entry.value.plain ?? .null
    }
    // Captured like any edit of the app.
    try connection.run(table.update([index]), [value] + key)
    try connection.run("DELETE FROM main.lk_journal WHERE id = ?", [.integer(id)])
  }
}
