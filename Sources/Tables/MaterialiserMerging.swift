internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Duplicates that show as one row.
extension Materialiser {
  /// What the survivor of duplicates shows other than its own values, by column number: what a duplicate was given after they had
  /// become one, and what the survivor has NULL for since before that. Keys and flags are the survivor's own.
  func values(merging group: [GroupMember], into row: Row) throws -> [Int: Value] {
    let table = row.table
    guard let rule = table.duplicates else { return [:] }
    var others: [(state: RecordState, since: Stamp?)] = []
    /// When the first duplicate was made one with the survivor.
    var first: Stamp?
    for member in group where member.name != row.name {
      guard let state = try self.row(RecordID(table: table.id, name: member.name))?.state else { continue }
      let since = member.canonical == nil ? nil : state[.alias]?.stamp
      if member.canonical == row.name, let since { first = min(first ?? since, since) }
      others.append((state, since))
    }
    var out: [Int: Value] = [:]
    for (index, column) in table.columns.enumerated() {
      if rule.preferred == index || rule.columns.contains(where: { $0.at == index }) { continue }
      if table.keyIsLocal && column.isKey || table.identity?.contains(index) == true || column.isKey { continue }
      guard let own = row.state[.cell(column.wire)], case .cell(let ownValue) = own.value else { continue }
      var (stamp, value) = (own.stamp, ownValue)
      for (state, since) in others {
        guard let since, let entry = state[.cell(column.wire)], case .cell(let theirs) = entry.value, !theirs.isMissing,
          entry.stamp > since, entry.stamp > stamp
        else { continue }
        (stamp, value) = (entry.stamp, theirs)
      }
      // NULL that was put there since is an edit and stands.
      if value.isNull, first.map({ stamp <= $0 }) ?? true {
        value = others.lazy.compactMap { $0.state.cell(column.wire) }.first { !$0.isNull && !$0.isMissing } ?? value
      }
      if value != ownValue { out[column.number] = value }
    }
    return out
  }

  /// Takes all records that are duplicates of others, if the rules about that have changed.
  func enqueueRegrouped() throws {
    guard try replica.state("regroup") != nil else { return }
    try replica.setState("regroup", nil)
    for raw in try connection.rows(
      """
      SELECT r.record, r.tid FROM main.lk_duplicate d JOIN main.lk_row r ON r.id = d.row
      WHERE d.canonical IS NOT NULL
        OR EXISTS (SELECT 1 FROM main.lk_duplicate o WHERE o.tid = d.tid AND o.key = d.key AND o.row <> d.row) ORDER BY r.id
      """)
    {
      if let record = record(raw) { try enqueue(record) }
    }
  }
}
