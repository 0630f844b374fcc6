public import LatchkeyEncoding
internal import LatchkeySQLite

extension Replica {
  /// How many rows an object of the outbox makes safe; 0 if it was acknowledged already.
  public func rowsInOutbox(_ id: Int64) throws -> Int {
    try rowsByTableInOutbox(id).reduce(0) { $0 + $1.count }
  }

  /// The same, by table's wire name.
  public func rowsByTableInOutbox(_ id: Int64) throws -> [(table: String, count: Int)] {
    guard let bytes = try connection.first("SELECT rows FROM main.lk_outbox WHERE id = ?", [.integer(id)])?[0].bytes
    else {
      return []
    }
    var reader = CBORReader(bytes)
    var rows: [(table: String, count: Int)] = []
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      let table = try reader.text()
      rows.append((table, Int(clamping: try reader.uint())))
    }
    return rows
  }

  /// Forgets a zone's outbox: its log was given up, and what it holds goes out anew. Inside ``transaction(_:)``.
  public func discardOutbox(zone: ZoneID) throws {
    try connection.run("DELETE FROM main.lk_outbox WHERE zone = ?", [.blob(zone.bytes)])
  }
}
