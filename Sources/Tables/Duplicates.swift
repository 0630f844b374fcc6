public import LatchkeyEncoding
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
  /// When it was inserted, as an HLC's raw value, and by which device; nil for a record whose insert is not here.
  let born: Int64
  let maker: DeviceID?
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
    duplicateKey(table) { state.cell(table.columns[$0].wire) }
  }

  func duplicateKey(_ table: SyncedTable, _ cell: (Int) -> Value?) -> [UInt8]? {
    guard let rule = table.duplicates else { return nil }
    var values: [Value] = []
    for part in rule.columns {
      guard let value = cell(part.at), !value.isNull, !value.isMissing else { return nil }
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

  /// The record that a record is a duplicate of, by an alias that holds: it is void once the duplicate was given another key.
  func canonical(_ row: Row) -> RecordName? {
    guard let entry = row.state[.alias], case .alias(let alias) = entry.value, alias.canonical != row.name else {
      return nil
    }
    let isRekeyed =
      duplicateKey(row.state, row.table) != RecordName(raw: alias.keyHash).bytes
      && (keyStamp(row.state, row.table).map { $0 > entry.stamp } ?? false)
    return isRekeyed ? nil : alias.canonical
  }

  /// Notes by what a record is grouped. It must have been saved.
  func noteDuplicate(_ row: Row) throws {
    guard let id = row.id, row.table.duplicates != nil else { return }
    let state = row.state
    try connection.run(
      "INSERT INTO main.lk_duplicate(row, tid, key, preferred, live, canonical, born, maker) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET key = excluded.key, preferred = excluded.preferred, live = excluded.live, canonical = excluded.canonical, born = excluded.born, maker = excluded.maker",
      [
        .integer(id), .integer(row.table.id),
        state.isLive ? duplicateKey(state, row.table).map { .blob($0) } ?? .null : .null,
        .integer(isPreferred(state, row.table) ? 1 : 0), .integer(state.isLive ? 1 : 0),
        canonical(row).map { .blob($0.bytes) } ?? .null,
        .integer(Int64(bitPattern: state.newestBorn?.hlc.rawValue ?? 0)),
        state.newestBorn.map { .blob($0.origin.device.bytes) } ?? .null,
      ])
  }

  /// Notes by what a saved record is grouped now.
  ///
  /// - Returns: all records that may be shown otherwise for it, itself included: what was one with it, what is, and what is or was one
  ///   with any of these.
  func regroup(_ row: Row) throws -> Set<RecordID> {
    guard row.table.duplicates != nil else { return [] }
    let table = row.table.id
    var affected: Set<RecordID> = [row.record]
    var seen: Set<RecordID> = []
    func take(_ record: RecordID) throws {
      if seen.contains(record) { return }
      for member in try cluster(of: record).flatMap(\.self) {
        seen.insert(RecordID(table: table, name: member.name))
        affected.insert(RecordID(table: table, name: member.name))
      }
    }
    try take(row.record)
    if let entry = row.state[.alias], case .alias(let alias) = entry.value {
      try take(RecordID(table: table, name: alias.canonical))
    }
    try noteDuplicate(row)
    seen = []
    for record in affected.sorted() { try take(record) }
    return affected
  }

  // MARK: Groups

  /// So many rows that one device made with one key become one with the first row of that key; what it makes after that stays by
  /// itself: an app that makes its first rows anew at each start would go on for ever.
  static let maximumMerges = 2

  private static let memberColumns =
    "SELECT d.row, r.record, d.key, d.preferred, d.live, d.canonical, d.born, d.maker FROM main.lk_duplicate d JOIN main.lk_row r ON r.id = d.row"

  private func members(_ condition: String, _ values: [SQLiteValue]) throws -> [GroupMember] {
    try connection.rows("\(Self.memberColumns) WHERE \(condition) ORDER BY r.record", values).compactMap { raw in
      guard let row = raw[0].integer, let name = raw[1].bytes.flatMap(RecordName.init) else { return nil }
      return GroupMember(
        row: row, name: name, key: raw[2].bytes, isPreferred: raw[3].integer == 1, isLive: raw[4].integer == 1,
        canonical: raw[5].bytes.flatMap(RecordName.init), born: raw[6].integer ?? 0,
        maker: raw[7].bytes.flatMap(DeviceID.init))
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
  func survivor(_ members: [GroupMember]) -> GroupMember? { members.filter(\.isLive).min(by: isBetter) }

  private func isBetter(_ a: GroupMember, _ b: GroupMember) -> Bool {
    (a.isPreferred ? 0 : 1, a.name) < (b.isPreferred ? 0 : 1, b.name)
  }

  /// What aliases put together with a record, and, in parts of their own, what aliases put together with others whose best has the
  /// same key as the best of these. The record's own part is the first.
  private func cluster(of record: RecordID) throws -> [[GroupMember]] {
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

  /// All records that show as one with a record, in parts that aliases hold together; empty if the table has no such rule, or
  /// nothing is known of the record.
  func duplicateParts(of record: RecordID) throws -> [[GroupMember]] {
    let parts = try cluster(of: record)
    guard parts.count > 1, let rule = tablesByID[record.table]?.duplicates, !rule.columns.isEmpty else { return parts }
    func first(_ part: [GroupMember]) -> GroupMember? {
      part.filter(\.isLive).min { ($0.born, $0.name) < ($1.born, $1.name) }
    }
    let inOrder = parts.compactMap { part in first(part).map { (first: $0, part: part) } }
      .sorted { ($0.first.born, $0.first.name) < ($1.first.born, $1.first.name) }
    var made: [DeviceID: Int] = [:]
    var joined: [[GroupMember]] = []
    for (first, part) in inOrder {
      if !joined.isEmpty, let maker = first.maker, made[maker, default: 0] >= Self.maximumMerges { continue }
      for member in part where member.isLive && member.row != inOrder[0].first.row {
        if let maker = member.maker { made[maker, default: 0] += 1 }
      }
      joined.append(part)
    }
    return joined.contains { $0.contains { $0.name == record.name } } ? joined : [parts[0]]
  }

  func duplicates(of record: RecordID) throws -> [GroupMember] { try duplicateParts(of: record).flatMap(\.self) }

  /// The record that is shown where another is meant.
  func shown(_ record: RecordID) throws -> RecordName {
    guard tablesByID[record.table]?.duplicates != nil else { return record.name }
    let group = try duplicates(of: record)
    return group.count > 1 ? survivor(group)?.name ?? record.name : record.name
  }

  /// Tables in which a device makes rows of one key again and again, so that they are shown beside each other: (table, device).
  public func repeatedlyMade() throws -> [(table: String, maker: DeviceID)] {
    var out: [(table: String, maker: DeviceID)] = []
    for table in tables where table.shape != nil && table.duplicates?.columns.isEmpty == false {
      for raw in try connection.rows(
        "SELECT DISTINCT maker FROM main.lk_duplicate WHERE tid = ? AND live = 1 AND key IS NOT NULL AND maker IS NOT NULL GROUP BY key, maker HAVING count(*) > ? ORDER BY maker",
        [.integer(table.id), .integer(Int64(Self.maximumMerges))])
      {
        guard let maker = raw[0].bytes.flatMap(DeviceID.init) else { continue }
        for member in try members(
          "d.tid = ? AND d.maker = ? AND d.live = 1 AND d.key IS NOT NULL", [.integer(table.id), .blob(maker.bytes)])
        {
          let record = RecordID(table: table.id, name: member.name)
          if try cluster(of: record).count > duplicateParts(of: record).count {
            out.append((table.name, maker))
            break
          }
        }
      }
    }
    return out
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
}
