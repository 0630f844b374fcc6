public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// What undoing somebody's writes does, or would do.
public struct UndoReport: Equatable, Sendable {
  public enum Kind: String, Equatable, Sendable {
    /// A row that they deleted is inserted again.
    case inserted
    /// A row that they inserted is deleted.
    case deleted
    /// Values are put back.
    case changed
    /// Left as it is: somebody else went on with it, or what was before is not known.
    case skipped
  }
  public struct Row: Equatable, Sendable {
    public let kind: Kind
    /// The table's wire name.
    public let table: String
    public let record: RecordName
    /// The key under which the row is shown here before; nil if it is not.
    public let key: String?
    /// The columns that change, by wire name.
    public let columns: [String]
    /// Why it is skipped; empty otherwise.
    public let reason: String
  }
  public internal(set) var rows: [Row] = []
  /// How many rows something was done to.
  public var count: Int { rows.count { $0.kind != .skipped } }
}

extension Replica {
  /// Undoes what somebody wrote, by operations of now that every device takes.
  ///
  /// A value goes back to what it was before where it is still theirs; what somebody else wrote since stays. Inside ``transaction(_:)``. What the
  /// app changed is stamped first.
  ///
  /// - Parameters:
  ///   - records: what they wrote to, each with what it would be without that.
  ///   - isTheirs: whether they wrote what has a stamp.
  ///   - isRehearsal: says what would be done and does nothing but stamping.
  public func undo(
    _ records: [(table: String, record: RecordName, before: RecordState)], isTheirs: (Stamp) -> Bool,
    isRehearsal: Bool, now: Int64, emit: (PendingGroup) throws -> UInt64
  ) throws -> UndoReport {
    precondition(connection.isInTransaction || isRehearsal, "undo inside transaction")
    var applied = ApplyReport()
    if !isRehearsal { try stampAll(now, &applied, emit) }
    var report = UndoReport()
    var rewrites: [Rewrite] = []
    for (wire, name, before) in records {
      guard let table = tablesByWire[wire], let row = try loadRow(RecordID(table: table.id, name: name)) else {
        continue
      }
      let step = undoing(row, before, isTheirs)
      guard let kind = step.kind else { continue }
      report.rows.append(
        UndoReport.Row(
          kind: kind, table: wire, record: name, key: row.key.map { $0.map(describe).joined(separator: ",") },
          columns: step.rewrite?.registers.compactMap { if case .cell(let column) = $0.0 { column } else { nil } }
            ?? [],
          reason: step.reason))
      if let rewrite = step.rewrite { rewrites.append(rewrite) }
    }
    if isRehearsal { return report }
    try merge(try rewrite(rewrites, now: now, emit: emit), now, &applied, emit)
    return report
  }

  private struct UndoStep {
    var kind: UndoReport.Kind?
    var rewrite: Rewrite?
    var reason = ""
  }

  private func undoing(_ row: Row, _ before: RecordState, _ isTheirs: (Stamp) -> Bool) -> UndoStep {
    let state = row.state
    if !state.isLive {
      guard let tombstone = state.newestTombstone, isTheirs(tombstone), before.isLive else { return UndoStep() }
      return UndoStep(kind: .inserted, rewrite: Rewrite(inserting: before, row.table, row.name))
    }
    if let born = state.newestBorn, isTheirs(born), !before.isLive {
      if state.cells.contains(where: { !isTheirs($0.stamp) && !$0.stamp.isFilledIn }) {
        return UndoStep(kind: .skipped, reason: "somebody else has edited the row since")
      }
      return UndoStep(kind: .deleted, rewrite: Rewrite(row.table, row.name, [(.tombstone, .life(nil))]))
    }
    var registers: [(Register, RegisterValue)] = []
    var isUnknown = false
    for cell in state.cells where isTheirs(cell.stamp) && !cell.stamp.isFilledIn {
      guard let former = before.cell(cell.column) else {
        isUnknown = true
        continue
      }
      if former != cell.value { registers.append((.cell(cell.column), .cell(former))) }
    }
    if registers.isEmpty {
      return isUnknown ? UndoStep(kind: .skipped, reason: "what was there before is not known") : UndoStep()
    }
    return UndoStep(kind: .changed, rewrite: Rewrite(row.table, row.name, registers))
  }
}
