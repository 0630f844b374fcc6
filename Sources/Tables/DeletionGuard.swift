public import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// When so many rows of a table are deleted at once that a person should say whether that was meant.
enum MassDeletion {
  /// At least so many rows …
  static let rows = 50
  /// … and at least one in so many of the table's …
  static let part = 5
  /// … deleted by one author within so much time, in milliseconds.
  static let time: Int64 = 86_400_000

  /// Which of some deletions belong to a day in which too many were made.
  ///
  /// - Parameters:
  ///   - times: when each was made, in milliseconds, ascending.
  ///   - live: how many rows the table would have without them.
  static func marks(_ times: [Int64], of live: Int) -> [Bool] {
    var marks = [Bool](repeating: false, count: times.count)
    var first = 0
    var marked = 0
    for last in times.indices {
      while times[last] - times[first] > time { first += 1 }
      let count = last - first + 1
      guard count >= rows, count * part >= live else { continue }
      for index in max(first, marked)...last { marks[index] = true }
      marked = last + 1
    }
    return marks
  }

  static func isTooMany(_ count: Int, of all: Int) -> Bool { count >= rows && count * part >= all }
}

/// Deletions of one device that wait for a person: accepted, not merged, so that the rows stay as they are.
public struct HeldDeletions: Equatable, Sendable {
  /// Who deleted.
  public let author: DeviceID
  /// How many rows of each table, by its wire name, in order.
  public let tables: [(name: String, rows: Int)]
  public var rows: Int { tables.reduce(0) { $0 + $1.rows } }

  public static func == (a: Self, b: Self) -> Bool {
    a.author == b.author && a.tables.elementsEqual(b.tables) { $0.name == $1.name && $0.rows == $1.rows }
  }
}

/// Where a group stands in its log.
struct GroupPosition: Hashable {
  let zone: ZoneID
  let origin: Origin
  let sequence: UInt64
}

/// The deletion guard: of at least fifty rows *and* a fifth of a table that one author deleted within a day, nothing is merged until a
/// person has said yes; a no inserts them again, for everybody.
///
/// Held is exactly the tombstone. Everything else of its group is merged, other rows and tables go on, and the row itself stays live here,
/// with whatever is written to it meanwhile. What is held is listed as accepted and not applied, so that digests are not compared for it.
extension Replica {
  /// A record's part of a batch, as ``apply(_:now:emit:)`` merges it.
  typealias Incoming = (table: String, record: RecordName, state: RecordState)

  /// Takes the deletions that must wait out of a batch.
  ///
  /// - Parameters:
  ///   - positions: by index, the group that a deletion came with.
  /// - Returns: the batch without them.
  func guarding(_ changes: [Incoming], _ positions: [Int: GroupPosition], now: Int64, _ report: inout ApplyReport)
    throws -> [Incoming]
  {
    // What the zone had before this file knew it is history.
    guard !positions.isEmpty, try state("importing") == nil else { return changes }
    var byAuthor: [DeletionKey: [Deletion]] = [:]
    for (index, position) in positions {
      guard let tombstone = changes[index].state.newestTombstone else { continue }
      let device = zoneBinding.origin.device
      // Who passes on what others deleted does not do it in this device's name.
      let author = tombstone.origin.device == device ? position.origin.device : tombstone.origin.device
      guard author != device else { continue }
      let table = try table(wire: changes[index].table)
      byAuthor[DeletionKey(table: table.id, author: author), default: []].append(
        Deletion(index: index, hlc: tombstone.hlc, position: position))
    }
    let waiting = Set(
      try connection.rows("SELECT DISTINCT tid, author FROM main.lk_guard").compactMap { raw -> DeletionKey? in
        guard let table = raw[0].integer, let author = raw[1].bytes.flatMap(DeviceID.init) else { return nil }
        return DeletionKey(table: table, author: author)
      })
    // By index.
    var held: [Int: DeletionKey] = [:]
    for (key, deletions) in byAuthor.sorted(by: { $0.key < $1.key }) {
      for index in try tooMany(deletions, key, changes, isWaiting: waiting.contains(key)) { held[index] = key }
    }
    if held.isEmpty { return changes }
    try holdFamilies(&held, byAuthor, changes)
    var changes = changes
    for index in held.keys.sorted() {
      guard let key = held[index], let position = positions[index] else { continue }
      let change = changes[index]
      try hold(change, by: key.author, in: try table(wire: change.table), at: position, now: now)
      changes[index].state = RecordState(change.state.registers.filter { $0.register != .tombstone })
      report.heldDeletions += 1
    }
    return changes
  }

  private struct DeletionKey: Hashable, Comparable {
    let table: Int64
    let author: DeviceID
    static func < (a: Self, b: Self) -> Bool { (a.table, a.author) < (b.table, b.author) }
  }

  private struct Deletion {
    let index: Int
    let hlc: HLC
    let position: GroupPosition
  }

  /// Those of one author's deletions in one table that are too many.
  private func tooMany(
    _ deletions: [Deletion], _ key: DeletionKey, _ changes: [Incoming], isWaiting: Bool
  ) throws -> [Int] {
    guard let table = tablesByID[key.table] else { return [] }
    let earliest = deletions.map(\.hlc.milliseconds).min() ?? 0
    let former = try connection.rows(
      "SELECT hlc FROM main.lk_trash WHERE tid = ? AND device = ? AND hlc >= ?",
      [
        .integer(key.table), .blob(key.author.bytes),
        .integer(Int64(bitPattern: HLC(milliseconds: earliest - MassDeletion.time).rawValue)),
      ]
    ).compactMap { $0[0].integer.map { HLC(rawValue: UInt64(bitPattern: $0)).milliseconds } }
    guard isWaiting || deletions.count + former.count >= MassDeletion.rows else { return [] }
    // Only rows that are there can be missed.
    let real = try deletions.filter { deletion in
      let change = changes[deletion.index]
      guard let row = try loadRow(RecordID(table: table.id, name: change.record)), row.state.isLive else {
        return false
      }
      return !row.state.merging(change.state).isLive
    }
    if isWaiting { return real.map(\.index) }
    let all = (real.map { ($0.hlc.milliseconds, Int?.some($0.index)) } + former.map { ($0, nil) }).sorted {
      ($0.0, $0.1 ?? -1) < ($1.0, $1.1 ?? -1)
    }
    let live = (totals[table.id]?.live ?? 0) + former.count
    return zip(all, MassDeletion.marks(all.map(\.0), of: live)).compactMap { one, isMarked in isMarked ? one.1 : nil }
  }

  /// Rows that refer to a row whose deletion waits, and rows that it refers to, wait with it if the same author deleted them in the same
  /// batch: else the row would come back without them, or be hidden with its parent.
  private func holdFamilies(
    _ held: inout [Int: DeletionKey], _ byAuthor: [DeletionKey: [Deletion]], _ changes: [Incoming]
  ) throws {
    for author in Set(held.values.map(\.author)).sorted() {
      let first = held.filter { $0.value.author == author }
      var names = Set(first.keys.map { changes[$0].record })
      var parents: Set<RecordName> = []
      for (index, key) in first {
        parents.formUnion(
          try loadRow(RecordID(table: key.table, name: changes[index].record))?.state.targets ?? [])
      }
      var candidates: [(index: Int, key: DeletionKey, targets: Set<RecordName>)] = []
      for (key, deletions) in byAuthor where key.author == author {
        for deletion in deletions where held[deletion.index] == nil {
          guard let row = try loadRow(RecordID(table: key.table, name: changes[deletion.index].record)),
            row.state.isLive
          else { continue }
          candidates.append((deletion.index, key, row.state.targets))
        }
      }
      var isGrowing = true
      while isGrowing {
        isGrowing = false
        candidates.removeAll { candidate in
          let name = changes[candidate.index].record
          guard parents.contains(name) || !candidate.targets.isDisjoint(with: names) else { return false }
          held[candidate.index] = candidate.key
          names.insert(name)
          parents.formUnion(candidate.targets)
          isGrowing = true
          return true
        }
      }
    }
  }

  private func hold(
    _ change: Incoming, by author: DeviceID, in table: SyncedTable, at position: GroupPosition, now: Int64
  ) throws {
    guard let tombstone = change.state[.tombstone] else { return }
    try connection.run(
      "INSERT INTO main.lk_guard(at, tid, record, author, registers, zone, device, incarnation, sequence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (record, tid, author) DO UPDATE SET at = excluded.at, registers = excluded.registers, zone = excluded.zone, device = excluded.device, incarnation = excluded.incarnation, sequence = excluded.sequence",
      [
        .integer(now), .integer(table.id), .blob(change.record.bytes), .blob(author.bytes),
        .blob(RegisterBytes.encode([tombstone], of: table.wire, change.record)), .blob(position.zone.bytes),
        .blob(position.origin.device.bytes), .blob(position.origin.incarnation.bytes),
        .integer(Int64(bitPattern: position.sequence)),
      ])
  }

  // MARK: What waits

  /// Whether any deletion waits for a person.
  var holdsDeletions: Bool {
    get throws { try connection.first("SELECT 1 FROM main.lk_guard LIMIT 1") != nil }
  }

  /// Deletions that wait for a person, by author.
  public func heldDeletions() throws -> [HeldDeletions] {
    var counts: [DeviceID: [String: Int]] = [:]
    for raw in try connection.rows(
      "SELECT g.author, g.tid, count(*) FROM main.lk_guard g JOIN main.lk_row r ON r.record = g.record AND r.tid = g.tid WHERE r.hash IS NOT NULL GROUP BY g.author, g.tid"
    ) {
      guard let author = raw[0].bytes.flatMap(DeviceID.init), let table = raw[1].integer.flatMap({ tablesByID[$0] }),
        let count = raw[2].integer
      else { continue }
      counts[author, default: [:]][table.wire] = Int(count)
    }
    return counts.sorted { $0.key < $1.key }.map { author, tables in
      HeldDeletions(author: author, tables: tables.sorted { $0.key < $1.key }.map { (name: $0.key, rows: $0.value) })
    }
  }

  /// Groups of the file's zone that were accepted and of which something is not applied: deletions that wait for a person.
  public func guardedPositions() throws -> [(origin: Origin, sequence: UInt64)] {
    try connection.rows(
      "SELECT DISTINCT device, incarnation, sequence FROM main.lk_guard WHERE zone = ? ORDER BY device, incarnation, sequence LIMIT 1024",
      [.blob(zoneBinding.zone.bytes)]
    ).compactMap { raw in
      guard let device = raw[0].bytes.flatMap(DeviceID.init), let incarnation = raw[1].bytes.flatMap(Incarnation.init),
        let sequence = raw[2].integer
      else { return nil }
      return (Origin(device: device, incarnation: incarnation), UInt64(bitPattern: sequence))
    }
  }

  /// A record's state with those deletions merged about which there is nothing to decide any more: it is deleted anyway, or lives anyway.
  func absorbing(_ record: RecordID, into state: RecordState) throws -> RecordState {
    var state = state
    for raw in try connection.rows(
      "SELECT id, registers FROM main.lk_guard WHERE record = ? AND tid = ? ORDER BY id",
      [.blob(record.name.bytes), .integer(record.table)])
    {
      guard let id = raw[0].integer, let bytes = raw[1].bytes else { continue }
      let whole = state.merging(try RegisterBytes.decode(bytes))
      guard whole.isLive == state.isLive else { continue }
      state = whole
      try connection.run("DELETE FROM main.lk_guard WHERE id = ?", [.integer(id)])
    }
    return state
  }

  // MARK: Deciding

  /// Does what a person decided about the deletions of one author.
  ///
  /// Inside ``transaction(_:)``. What the app changed is stamped first.
  ///
  /// - Parameters:
  ///   - isAllowed: false inserts the rows again as they are here, which every device takes.
  ///   - emit: as in ``stamp(now:limit:emit:)``.
  @discardableResult
  public func settleDeletions(
    by author: DeviceID, isAllowed: Bool, now: Int64, emit: (PendingGroup) throws -> UInt64
  ) throws -> ApplyReport {
    precondition(connection.isInTransaction, "settle inside transaction")
    var report = ApplyReport()
    try stampAll(now, &report, emit)
    var changes: [Incoming] = []
    var again: [Rewrite] = []
    for raw in try connection.rows(
      "SELECT tid, record, registers FROM main.lk_guard WHERE author = ? ORDER BY id", [.blob(author.bytes)])
    {
      guard let table = raw[0].integer.flatMap({ tablesByID[$0] }), let name = raw[1].bytes.flatMap(RecordName.init),
        let bytes = raw[2].bytes
      else { continue }
      changes.append((table.wire, name, try RegisterBytes.decode(bytes)))
      guard !isAllowed, let row = try loadRow(RecordID(table: table.id, name: name)), row.state.isLive else { continue }
      again.append(Rewrite(inserting: row.state, table, name))
    }
    try connection.run("DELETE FROM main.lk_guard WHERE author = ?", [.blob(author.bytes)])
    // The clock has seen the deletions: what is inserted again is newer.
    changes += try rewrite(again, now: now, emit: emit)
    try merge(joined(changes), now, &report, emit)
    return report
  }

  /// The parts of each record joined, in order of first mention.
  func joined(_ changes: [Incoming]) -> [Incoming] {
    var merged = MergedChanges()
    for change in changes {
      merged.merge(RecordChange(table: change.table, record: change.record, state: change.state), from: nil)
    }
    return merged.inOrder
  }
}

extension RecordState {
  /// What the record refers to.
  var targets: Set<RecordName> {
    Set(cells.compactMap { if case .reference(let name) = $0.value { name } else { nil } })
  }
}
