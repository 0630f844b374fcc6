internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// By what rows of a table are duplicates of each other, as the rules say it.
struct DuplicateRule {
  /// Where the key's columns are among the table's, and how their texts are compared; none for a table that has one row.
  let columns: [(at: Int, fold: DedupColumn.Fold)]
  /// The column that says which of several survives.
  let preferred: Int?
}

/// A record as grouping sees it.
struct GroupMember: Equatable {
  let row: Int64
  let name: RecordName
  /// The hash of its key; nil if a column of the key is NULL.
  let key: [UInt8]?
  let isPreferred: Bool
  let isLive: Bool
  /// The record that it is an alias of, if that still holds.
  let canonical: RecordName?
}

extension DedupColumn.Fold {
  /// The one form that stands for all texts that are taken for equal. Other values stay as they are.
  func fold(_ value: Value) -> Value {
    guard self != .exact, case .text(let bytes) = value, let text = String(validating: bytes, as: UTF8.self) else {
      return value
    }
    let trimmed = text.unicodeScalars.drop { $0.properties.isWhitespace }.reversed()
      .drop { $0.properties.isWhitespace }.reversed()
    var plain = String.UnicodeScalarView()
    plain.append(contentsOf: trimmed)
    return .text(Array((self == .nocase ? String(plain).lowercased() : String(plain)).utf8))
  }
}

/// Which records are duplicates of each other (rules `dedup` and `singleton`): a function of the merged records, the same on every
/// device. Records are one where an alias says so, or where the best of what aliases put together have equal keys.
extension Replica {
  // MARK: Keys

  /// The hash of a record's key (format §5, alias); nil if a column of it is NULL: such rows are nobody's duplicate.
  func duplicateKey(_ state: RecordState, _ table: SyncedTable) -> [UInt8]? {
    guard let rule = table.duplicates else { return nil }
    var values: [Value] = []
    for part in rule.columns {
      guard let value = state.cell(table.columns[part.at].wire), !value.isNull, !value.isMissing else { return nil }
      values.append(part.fold.fold(value))
    }
    return blake2b(16, "dedup-key", parts: 2) { writer in
      writer.text(table.wire)
      writer.array(values.count)
      for value in values { value.write(to: &writer) }
    }
  }

  private func isPreferred(_ state: RecordState, _ table: SyncedTable) -> Bool {
    guard let at = table.duplicates?.preferred else { return false }
    switch state.cell(table.columns[at].wire) {
    case .integer(let x)?: return x != 0
    case .real(let x)?: return x != 0
    case .text(let bytes)?: return !bytes.isEmpty && bytes != [48]
    case .null?, .blob?, .reference?, .together?, .unknown?, nil: return false
    }
  }

  /// The newest write of a record's key.
  func keyStamp(_ state: RecordState, _ table: SyncedTable) -> Stamp? {
    guard let rule = table.duplicates else { return nil }
    if rule.columns.isEmpty { return state.newestBorn }
    return rule.columns.compactMap { state[.cell(table.columns[$0.at].wire)]?.stamp }.max()
  }

  /// Notes by what a record is grouped. It must have been saved.
  func noteDuplicate(_ row: Row) throws {
    guard let id = row.id, row.table.duplicates != nil else { return }
    let key = duplicateKey(row.state, row.table)
    var canonical: RecordName?
    if let entry = row.state[.alias], case .alias(let alias) = entry.value {
      // Void once the duplicate was given another key.
      let isRekeyed =
        row.state.isLive && key != RecordName(raw: alias.keyHash).bytes
        && (keyStamp(row.state, row.table).map { $0 > entry.stamp } ?? false)
      if !isRekeyed, alias.canonical != row.name { canonical = alias.canonical }
    }
    try connection.run(
      "INSERT INTO main.lk_duplicate(row, tid, key, preferred, live, canonical) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET key = excluded.key, preferred = excluded.preferred, live = excluded.live, canonical = excluded.canonical",
      [
        .integer(id), .integer(row.table.id), row.state.isLive ? key.map { SQLiteValue.blob($0) } ?? .null : .null,
        .integer(isPreferred(row.state, row.table) ? 1 : 0), .integer(row.state.isLive ? 1 : 0),
        canonical.map { .blob($0.bytes) } ?? .null,
      ])
  }

  // MARK: Groups

  private static let memberColumns =
    "SELECT d.row, r.record, d.key, d.preferred, d.live, d.canonical FROM main.lk_duplicate d JOIN main.lk_row r ON r.id = d.row"

  private func members(_ condition: String, _ values: [SQLiteValue]) throws -> [GroupMember] {
    try connection.rows("\(Self.memberColumns) WHERE \(condition) ORDER BY r.record", values).compactMap { raw in
      guard let row = raw[0].integer, let name = raw[1].bytes.flatMap(RecordName.init) else { return nil }
      return GroupMember(
        row: row, name: name, key: raw[2].bytes, isPreferred: raw[3].integer == 1, isLive: raw[4].integer == 1,
        canonical: raw[5].bytes.flatMap(RecordName.init))
    }
  }

  /// What aliases put together with a record, itself included.
  private func aliased(_ start: GroupMember, _ table: Int64) throws -> [GroupMember] {
    var known = [start]
    var at = 0
    while at < known.count {
      let member = known[at]
      at += 1
      var next = try members(
        "d.tid = ? AND d.canonical = ?", [.integer(table), .blob(member.name.bytes)])
      if let canonical = member.canonical {
        next += try members("r.record = ? AND d.tid = ?", [.blob(canonical.bytes), .integer(table)])
      }
      for one in next where !known.contains(where: { $0.row == one.row }) { known.append(one) }
    }
    return known
  }

  /// The one that is shown: of the live ones a preferred one, else the one of lowest name.
  func survivor(_ members: [GroupMember]) -> GroupMember? {
    members.filter(\.isLive).min { ($0.isPreferred ? 0 : 1, $0.name) < ($1.isPreferred ? 0 : 1, $1.name) }
  }

  /// All records that show as one with a record, in parts that aliases hold together; empty if the table has no such rule, or
  /// nothing is known of the record.
  func duplicateParts(of record: RecordID) throws -> [[GroupMember]] {
    guard tablesByID[record.table]?.duplicates != nil,
      let start = try members(
        "r.record = ? AND d.tid = ?", [.blob(record.name.bytes), .integer(record.table)]
      ).first
    else { return [] }
    var parts = [try aliased(start, record.table)]
    guard let key = survivor(parts[0])?.key else { return parts }
    for other in try members("d.tid = ? AND d.key = ?", [.integer(record.table), .blob(key)])
    where !parts.contains(where: { $0.contains { $0.row == other.row } }) {
      let part = try aliased(other, record.table)
      if survivor(part)?.key == key { parts.append(part) }
    }
    return parts
  }

  func duplicates(of record: RecordID) throws -> [GroupMember] { try duplicateParts(of: record).flatMap(\.self) }

  /// The record that is shown where another is meant.
  func shown(_ record: RecordID) throws -> RecordName {
    guard tablesByID[record.table]?.duplicates != nil else { return record.name }
    let group = try duplicates(of: record)
    return group.count > 1 ? survivor(group)?.name ?? record.name : record.name
  }

  // MARK: Rules that change

  /// Groups a table's records anew where the rule is another than it was.
  func followDuplicates() throws {
    for table in tables where table.shape != nil {
      let rule = settings.rules[table.name]
      let said =
        table.duplicates == nil
        ? nil
        : (rule.isSingleton ? ["singleton"] : rule.dedup.map { "\($0.fold.rawValue) \($0.column)" }).joined(
          separator: "\u{1f}") + "\u{1f}\u{1f}\(rule.preferred ?? "")"
      let name = "duplicates \(table.id)"
      if try state(name)?.string == said { continue }
      try setState(name, said.map { SQLiteValue($0) })
      try connection.run("DELETE FROM main.lk_duplicate WHERE tid = ?", [.integer(table.id)])
      if said != nil { try forEachRow(table) { try noteDuplicate($0) } }
      try setState("retry", .integer(1))
      try setState("regroup", .integer(1))
    }
  }

  // MARK: Aliases

  /// Writes down which records are one, so that they stay one if a key changes later: by the device that made one of two alike, or
  /// that edits what they show as, once.
  ///
  /// - Returns: how many aliases were written.
  func writeAliases(_ touched: [RecordID], areEdited: Bool, now: Int64, emit: (PendingGroup) throws -> UInt64) throws
    -> Int
  {
    let device = zoneBinding.origin.device
    var wanted: [(loser: Row, best: GroupMember)] = []
    var isWanted: Set<RecordID> = []
    for record in touched {
      let parts = try duplicateParts(of: record)
      guard parts.count > 1, let table = tablesByID[record.table], let best = survivor(parts.flatMap(\.self)),
        let bestRow = try loadRow(id: best.row)
      else { continue }
      for part in parts where !part.contains(where: { $0.row == best.row }) {
        guard let loser = survivor(part), let row = try loadRow(id: loser.row),
          duplicateKey(row.state, table) != nil, !isWanted.contains(row.record)
        else { continue }
        let isMine = [row, bestRow].contains { keyStamp($0.state, table)?.origin.device == device }
        guard isMine || areEdited && record == bestRow.record else { continue }
        isWanted.insert(row.record)
        wanted.append((row, best))
      }
    }
    if wanted.isEmpty { return 0 }
    let origin = zoneBinding.origin
    let hlc = clock.tick(editedAt: now)
    var builder = PayloadBuilder(origin: origin, hlc: hlc)
    var values: [RegisterValue] = []
    for (row, best) in wanted {
      let key = duplicateKey(row.state, row.table).flatMap(RecordName.init) ?? .zero
      let value = RegisterValue.alias(Alias(canonical: best.name, keyHash: key.raw, isPreferred: best.isPreferred))
      values.append(value)
      builder.add(
        table: row.table.wire, record: row.name, [(.alias, value, .own)], compress: row.table.compress)
    }
    let tie = try emit(PendingGroup(hlc: hlc, parts: builder.finish()))
    try saveClock()
    let own = Stamp(hlc: hlc, origin: origin, tie: tie)
    for ((row, _), value) in zip(wanted, values) {
      row.state = row.state.merging(RecordState([RegisterEntry(.alias, own, value)]))
      try save(row)
      try noteDuplicate(row)
    }
    // From when a duplicate's later values count has changed with its alias.
    let materialiser = try Materialiser(replica: self)
    for (row, _) in wanted {
      for member in try duplicates(of: row.record) {
        materialiser.noteShown(member.name)
        try materialiser.enqueue(RecordID(table: row.table.id, name: member.name))
      }
    }
    try materialiser.run()
    return wanted.count
  }
}
