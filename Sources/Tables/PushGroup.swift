public import LatchkeyRecords

/// What changed here, ready to be sealed as one push group.
public struct PendingGroup: Sendable {
  /// The group's own stamp's time.
  public let hlc: HLC
  /// The payloads, in order.
  public let parts: [PayloadPart]
  /// Rows by table, of all parts.
  public let rowsByTable: [(table: String, count: Int)]

  init(hlc: HLC, parts: [PayloadPart]) {
    self.hlc = hlc
    self.parts = parts
    var rows: [(table: String, count: Int)] = []
    for (table, count) in parts.flatMap(\.rowsByTable) {
      if let at = rows.firstIndex(where: { $0.table == table }) {
        rows[at].count += count
      } else {
        rows.append((table, count))
      }
    }
    rowsByTable = rows
  }
}

/// What a pass of stamping found.
public struct StampReport: Equatable, Sendable {
  /// Rows that were stamped.
  public var rows = 0
  /// Push groups that were given out.
  public var groups = 0
  /// Whether there is more: call again, in another transaction if others should get their turn.
  public var more = false
  /// Rows that wait because a value is over the size that is sent: table and key.
  public var tooLarge: [String] = []
  /// Rows of this device that gave way to an older row with the same unique key, and others that were just hidden.
  public var hidden: [String] = []
}
