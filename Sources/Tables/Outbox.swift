public import LatchkeyEncoding
internal import LatchkeySQLite

/// A sealed object that the store has not confirmed yet.
public struct OutboxItem: Equatable, Sendable {
  public let id: Int64
  public let household: HouseholdID
  public let zone: ZoneID
  /// The object's name in the store.
  public let name: String
  public let byteCount: Int
  /// The last entry that is acknowledged with it.
  public let sequence: UInt64
}

/// What is sealed is sent unchanged until it is acknowledged: it lies in the file, committed with the rows it tells of.
extension Replica {
  /// Keeps a sealed object until ``acknowledge(_:)``.
  /// - Parameter rows: how many rows of which table it carries, for counting what waits.
  @discardableResult
  public func enqueue(
    household: HouseholdID, zone: ZoneID, name: String, bytes: [UInt8], sequence: UInt64,
    rows: [(table: String, count: Int)]
  ) throws -> Int64 {
    var writer = CBORWriter()
    writer.array(rows.count)
    for (table, count) in rows {
      writer.array(2)
      writer.text(table)
      writer.uint(count)
    }
    try connection.run(
      "INSERT INTO main.lk_outbox(household, zone, name, bytes, sequence, rows, hlc) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        .blob(household.bytes), .blob(zone.bytes), SQLiteValue(name), .blob(bytes),
        .integer(Int64(bitPattern: sequence)), .blob(writer.bytes), .integer(Int64(bitPattern: clock.last.rawValue)),
      ])
    return connection.lastInsertedRow
  }

  /// What waits, in the order in which it was kept.
  /// - Parameter zone: nil for all.
  public func outbox(zone: ZoneID? = nil) throws -> [OutboxItem] {
    let filter = zone == nil ? "" : " WHERE zone = ?"
    return try connection.rows(
      "SELECT id, household, zone, name, length(bytes), sequence FROM main.lk_outbox\(filter) ORDER BY id",
      zone.map { [.blob($0.bytes)] } ?? []
    ).compactMap { raw in
      guard let id = raw[0].integer, let household = raw[1].bytes.flatMap(HouseholdID.init),
        let zone = raw[2].bytes.flatMap(ZoneID.init),
        let name = raw[3].string, let count = raw[4].integer, let sequence = raw[5].integer
      else { return nil }
      return OutboxItem(
        id: id, household: household, zone: zone, name: name, byteCount: Int(count),
        sequence: UInt64(bitPattern: sequence))
    }
  }

  /// The bytes to send; nil if the item was acknowledged.
  public func outboxBytes(_ id: Int64) throws -> [UInt8]? {
    try connection.first("SELECT bytes FROM main.lk_outbox WHERE id = ?", [.integer(id)])?[0].bytes
  }

  /// Forgets an item once the store has confirmed its bytes.
  /// - Parameter now: the local time, in milliseconds since 1970-01-01 UTC: whoever writes before it cannot have seen what the
  ///   item carries.
  public func acknowledge(_ id: Int64, now: Int64) throws {
    if let hlc = try connection.integer("SELECT hlc FROM main.lk_outbox WHERE id = ?", [.integer(id)]) {
      try noteSent(upTo: hlc, now: now)
    }
    try connection.run("DELETE FROM main.lk_outbox WHERE id = ?", [.integer(id)])
  }

  /// Rows by table's wire name in objects that wait.
  func outboxRows() throws -> [String: Int] {
    var out: [String: Int] = [:]
    for raw in try connection.rows("SELECT rows FROM main.lk_outbox") {
      guard let bytes = raw[0].bytes else { continue }
      var reader = CBORReader(bytes)
      for _ in 0..<(try reader.array()) {
        try reader.array(exactly: 2)
        let table = try reader.text()
        out[table, default: 0] += Int(clamping: try reader.uint())
      }
    }
    return out
  }
}
