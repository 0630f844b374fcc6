public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// A value that gave way to another, or counts for nobody else.
public struct JournalEntry: Equatable, Sendable {
  /// Why.
  public enum Cause: Int64, Equatable, Sendable, CaseIterable {
    /// The file came into a zone whose row had another value.
    case paired = 1
    /// An edit of this device was beaten by one that was made without knowing of it.
    case overwritten = 2
    /// Another device's edit came in that was made without knowing of a later one of this device.
    case outdated = 3
    /// An edit of a row that somebody deleted without knowing of it.
    case deleted = 4
    /// Written here as a reader: it counts for nobody else.
    case reader = 5

    /// For people, and programs.
    public var name: String {
      switch self {
      case .paired: "paired"
      case .overwritten: "overwritten"
      case .outdated: "outdated"
      case .deleted: "deleted"
      case .reader: "reader"
      }
    }
  }

  /// Who wrote a value, and when.
  public struct Writing: Equatable, Sendable {
    public let author: DeviceID
    /// Milliseconds since 1970-01-01 UTC, by the author's clock.
    public let at: Int64
  }

  /// Its number in this file.
  public let id: Int64
  /// When it was noted, in milliseconds since 1970-01-01 UTC.
  public let at: Int64
  public let cause: Cause
  /// The table's wire name.
  public let table: String
  /// The column's wire name; nil for a row that was deleted as a reader.
  public let column: String?
  public let record: RecordName
  /// The key under which the row is shown; nil if it is not.
  public let key: String?
  /// The value that gave way.
  public let value: Value
  /// Who wrote it; nil where that was not kept: a file's own values when it came into a zone.
  public let written: Writing?
  /// The value that won; nil if it was a deletion, or is not known.
  public let winner: Value?
  public let won: Writing?
  /// The value that the row has now; nil if it has none.
  public let present: Value?
}

/// Values that gave way are kept for thirty days, and can be put back.
extension Replica {
  /// How long the journal and the trash keep what they have, in milliseconds.
  static let journalTime: Int64 = 30 * 86_400_000

  /// Notes a value that gives way.
  func journal(
    _ record: RecordID, _ column: String?, _ value: Value, _ cause: JournalEntry.Cause, _ stamp: Stamp? = nil,
    winner: Value? = nil, _ won: Stamp? = nil, now: Int64
  ) throws {
    func bytes(_ value: Value) -> [UInt8] {
      var writer = CBORWriter()
      value.write(to: &writer)
      return writer.bytes
    }
    func pair(_ stamp: Stamp?) -> [SQLiteValue] {
      guard let stamp else { return [.null, .null] }
      return [.blob(stamp.origin.device.bytes), .integer(Int64(bitPattern: stamp.hlc.rawValue))]
    }
    try connection.run(
      "INSERT INTO main.lk_journal(at, cause, tid, record, name, value, winner, device, hlc, winner_device, winner_hlc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      [
        .integer(now), .integer(cause.rawValue), .integer(record.table), .blob(record.name.bytes),
        column.map { SQLiteValue($0) } ?? .null, .blob(bytes(value)), winner.map { .blob(bytes($0)) } ?? .null,
      ] + pair(stamp) + pair(won))
  }

  /// Forgets what is older than thirty days, in the journal and in the trash. What was written as a reader stays noted for as long as it
  /// is here only. Inside ``transaction(_:)``.
  public func prune(now: Int64) throws {
    let oldest = SQLiteValue.integer(now - Self.journalTime)
    try connection.run(
      "DELETE FROM main.lk_journal WHERE at < ? AND cause <> ?", [oldest, .integer(JournalEntry.Cause.reader.rawValue)])
    try connection.run("DELETE FROM main.lk_trash WHERE at < ?", [oldest])
    // The newest tells of all before it.
    try connection.run(
      "DELETE FROM main.lk_sent WHERE at < ? AND hlc < (SELECT max(hlc) FROM main.lk_sent)", [oldest])
  }

  /// What the journal has, newest first.
  public func journal() throws -> [JournalEntry] {
    func value(_ raw: SQLiteValue) throws -> Value? {
      guard let bytes = raw.bytes else { return nil }
      var reader = CBORReader(bytes)
      return try Value.read(from: &reader)
    }
    func writing(_ device: SQLiteValue, _ hlc: SQLiteValue) -> JournalEntry.Writing? {
      guard let author = device.bytes.flatMap(DeviceID.init), let hlc = hlc.integer else { return nil }
      return JournalEntry.Writing(author: author, at: HLC(rawValue: UInt64(bitPattern: hlc)).milliseconds)
    }
    return try connection.rows(
      "SELECT id, at, cause, tid, record, name, value, winner, device, hlc, winner_device, winner_hlc FROM main.lk_journal ORDER BY id DESC"
    ).compactMap { raw in
      guard let id = raw[0].integer, let at = raw[1].integer,
        let cause = raw[2].integer.flatMap(JournalEntry.Cause.init(rawValue:)),
        let table = raw[3].integer.flatMap({ tablesByID[$0] }), let name = raw[4].bytes.flatMap(RecordName.init),
        let losing = try value(raw[6])
      else { return nil }
      let column = raw[5].string
      let row = try loadRow(RecordID(table: table.id, name: name))
      return JournalEntry(
        id: id, at: at, cause: cause, table: table.wire, column: column, record: name,
        key: row?.key.map { $0.map(describe).joined(separator: ",") }, value: losing,
        written: writing(raw[8], raw[9]), winner: try value(raw[7]), won: writing(raw[10], raw[11]),
        present: column.flatMap { row?.state.cell($0) })
    }
  }

  /// The newest entry's number: what is noted later has a greater one.
  public func lastJournalEntry() throws -> Int64 {
    try connection.integer("SELECT max(id) FROM main.lk_journal") ?? 0
  }

  /// How many values lost a true conflict since an entry was noted.
  public func conflicts(since id: Int64) throws -> Int {
    Int(
      try connection.integer(
        "SELECT count(*) FROM main.lk_journal WHERE id > ? AND cause IN (2, 3, 4)", [.integer(id)]) ?? 0)
  }

  /// Puts a value back, as an edit of now that every device takes, and takes it out of the journal. Inside
  /// ``transaction(_:)``.
  ///
  /// - Throws: ``TablesError/rule(_:)`` if there is no such entry, it was written as a reader, or its row or what it refers to is not
  ///   shown.
  public func restore(journalEntry id: Int64) throws {
    guard let entry = try journal().first(where: { $0.id == id }) else {
      throw TablesError.rule("the journal has no entry \(id)")
    }
    guard entry.cause != .reader, let column = entry.column else {
      throw TablesError.rule(
        "entry \(id) was written as a reader and is shown here: \"latchkey status\" says how it is published or taken back"
      )
    }
    guard let table = tables.first(where: { sameBytes($0.wire, entry.table) }),
      let row = try loadRow(RecordID(table: table.id, name: entry.record)), let key = row.key,
      let index = table.columns.firstIndex(where: { sameBytes($0.wire, column) })
    else {
      throw TablesError.rule(
        "the row of entry \(id) is not shown, so nothing can be put back into it: if it was deleted, restore it first (latchkey trash list)"
      )
    }
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
