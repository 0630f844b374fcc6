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
    var others: [(name: RecordName, state: RecordState)] = []
    /// From when a record's cells are of what the records show as.
    var since: [RecordName: Stamp] = [:]
    for member in group.sorted(by: { $0.name < $1.name }) {
      guard let state = try self.row(RecordID(table: table.id, name: member.name))?.state else { continue }
      if member.name != row.name { others.append((member.name, state)) }
      guard let canonical = member.canonical, let stamp = state[.alias]?.stamp else { continue }
      for name in [member.name, canonical] { since[name] = min(since[name] ?? stamp, stamp) }
    }
    var out: [Int: Value] = [:]
    for (index, column) in table.columns.enumerated() {
      if rule.preferred == index || rule.columns.contains(where: { $0.at == index }) { continue }
      if table.keyIsLocal && column.isKey || table.identity?.contains(index) == true || column.isKey { continue }
      guard let own = row.state[.cell(column.wire)], case .cell(let ownValue) = own.value else { continue }
      var (stamp, value) = (own.stamp, ownValue)
      for (name, state) in others {
        guard let since = since[name], let entry = state[.cell(column.wire)], case .cell(let theirs) = entry.value,
          !theirs.isMissing, entry.stamp > since, entry.stamp > stamp
        else { continue }
        (stamp, value) = (entry.stamp, theirs)
      }
      // NULL that was put there since is an edit and stands.
      if value.isNull, since[row.name].map({ stamp <= $0 }) ?? true {
        value = others.lazy.compactMap { $0.state.cell(column.wire) }.first { !$0.isNull && !$0.isMissing } ?? value
      }
      if value != ownValue { out[column.number] = value }
    }
    return out
  }

  /// The record that is shown where another is meant.
  func meant(_ record: RecordID) throws -> RecordName {
    if let known = survivors[record] { return known }
    let name = try replica.shown(record)
    survivors[record] = name
    return name
  }

  /// Takes records that are grouped otherwise, and who waits for one of them: it may have another now.
  func enqueue(regrouped: Set<RecordID>) throws {
    for record in regrouped.sorted() {
      noteShown(record.name)
      try enqueue(record)
    }
  }

  /// Takes all records that are duplicates of others, if the rules about that have changed.
  func enqueueRegrouped() throws {
    guard try replica.state("regroup") != nil else { return }
    try replica.setState("regroup", nil)
    var all: Set<RecordID> = []
    for raw in try connection.rows(
      """
      SELECT r.record, r.tid FROM main.lk_duplicate d JOIN main.lk_row r ON r.id = d.row
      WHERE d.canonical IS NOT NULL
        OR EXISTS (SELECT 1 FROM main.lk_duplicate o WHERE o.tid = d.tid AND o.key = d.key AND o.row <> d.row)
      """)
    {
      if let record = record(raw) { all.insert(record) }
    }
    try enqueue(regrouped: all)
  }
}
