public import LatchkeyEncoding
internal import LatchkeySQLite

extension Replica {
  /// How many rows an object of the outbox makes safe; 0 if it was acknowledged already.
  public func rowsInOutbox(_ id: Int64) throws -> Int {
    guard let bytes = try connection.first("SELECT rows FROM main.lk_outbox WHERE id = ?", [.integer(id)])?[0].bytes
    else {
      return 0
    }
    var reader = CBORReader(bytes)
    var rows = 0
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      _ = try reader.text()
      rows += Int(clamping: try reader.uint())
    }
    return rows
  }

  /// Forgets a zone's outbox: its log was given up, and what it holds goes out anew. Inside ``transaction(_:)``.
  public func discardOutbox(zone: ZoneID) throws {
    try connection.run("DELETE FROM main.lk_outbox WHERE zone = ?", [.blob(zone.bytes)])
  }
}
