public import LatchkeyEncoding
public import LatchkeyRecords
internal import LatchkeySQLite

/// A push group of another device, accepted, ready to be merged.
public struct IncomingGroup: Sendable {
  public let zone: ZoneID
  public let origin: Origin
  public let hlc: HLC
  public let tie: UInt64
  /// Of the group's last entry.
  public let sequence: UInt64
  /// The payloads of all its entries, in plain form and in order.
  public let payloads: [[UInt8]]

  public init(zone: ZoneID, origin: Origin, hlc: HLC, tie: UInt64, sequence: UInt64, payloads: [[UInt8]]) {
    self.zone = zone
    self.origin = origin
    self.hlc = hlc
    self.tie = tie
    self.sequence = sequence
    self.payloads = payloads
  }
}

/// What applying did.
public struct ApplyReport: Equatable, Sendable {
  /// A group that cannot be read: nothing of it or of later groups of its origin was applied.
  public struct Refusal: Equatable, Sendable {
    public let zone: ZoneID
    public let origin: Origin
    public let sequence: UInt64
    public let error: PayloadError
  }

  /// Records whose merged state changed.
  public var applied = 0
  /// Groups stamped too far ahead, kept until their time.
  public var held = 0
  /// Live records that are not shown, afterwards.
  public var parked = 0
  /// Tables whose rows changed, ascending.
  public var tables: [String] = []
  /// Devices whose changes came in, ascending.
  public var authors: [DeviceID] = []
  public var refused: [Refusal] = []
  /// Rows that another device deleted and that were inserted again, because rows of this device must have them: table and
  /// key, for people.
  public var insertedAgain: [String] = []
  /// Deletions that wait for a person now (``Replica/heldDeletions()``).
  public var heldDeletions = 0
  /// Values that were noted in the journal.
  public var conflicts = 0
  /// What was stamped before merging.
  public var stamped = StampReport()
  /// Rows that were shown and are not any more, though not deleted: table and key, for people.
  public var hidden: [String] = []
}

extension Replica {
  /// Merges push groups of other devices and shows the outcome.
  ///
  /// Inside ``transaction(_:)``. What the app changed is stamped first, all of it, so that nothing unseen is overwritten.
  /// Groups may come in any order and more than once. Those stamped more than ten minutes ahead of `now` are kept and
  /// merged when their time has come, by a later call (also one without groups).
  ///
  /// - Parameters:
  ///   - now: the local time, in milliseconds since 1970-01-01 UTC.
  ///   - emit: as in ``stamp(now:limit:emit:)``.
  /// - Throws: ``TablesError/needsTemplate(_:)`` if the file's tables were to be made from the zone's description and cannot.
  @discardableResult
  public func apply(_ groups: [IncomingGroup], now: Int64, emit: (PendingGroup) throws -> UInt64) throws -> ApplyReport
  {
    precondition(connection.isInTransaction, "apply inside transaction")
    var report = ApplyReport()
    if try isUnpublished() {
      // How the zone calls what this file has, before anything is said under another name.
      let notes = groups.filter { !Clock.isAhead($0.hlc, now: now) }.flatMap { group in
        group.payloads.flatMap { bytes in
          (try? Payload.decode(bytes, origin: group.origin, hlc: group.hlc, tie: group.tie).notes) ?? []
        }
      }
      if !notes.isEmpty { try apply(notes) }
    }
    try stampAll(now, &report, emit)

    var authors: Set<DeviceID> = []
    var stopped: Set<Origin> = []
    var changes = MergedChanges()
    var notes: [Note] = []
    var newest = HLC.zero
    var origins: Set<Origin> = []
    for (group, isReleased) in try dueGroups(now).map({ ($0, true) }) + groups.map({ ($0, false) }) {
      if stopped.contains(group.origin) { continue }
      var payloads: [Payload] = []
      do {
        for bytes in group.payloads {
          payloads.append(try Payload.decode(bytes, origin: group.origin, hlc: group.hlc, tie: group.tie))
        }
      } catch {
        report.refused.append(
          ApplyReport.Refusal(zone: group.zone, origin: group.origin, sequence: group.sequence, error: error))
        stopped.insert(group.origin)
        continue
      }
      let latest = payloads.reduce(group.hlc) { max($0, $1.newest) }
      if Clock.isAhead(latest, now: now) {
        if !isReleased { try hold(group, until: latest) }
        report.held += 1
        continue
      }
      newest = max(newest, latest)
      authors.insert(group.origin.device)
      origins.insert(group.origin)
      let position = GroupPosition(zone: group.zone, origin: group.origin, sequence: group.sequence)
      for payload in payloads {
        notes += payload.notes
        for change in payload.changes { changes.merge(change, from: position) }
      }
      if isReleased {
        try connection.run(
          "DELETE FROM main.lk_held WHERE device = ? AND incarnation = ? AND zone = ? AND sequence = ?",
          [
            .blob(group.origin.device.bytes), .blob(group.origin.incarnation.bytes), .blob(group.zone.bytes),
            .integer(Int64(bitPattern: group.sequence)),
          ])
      }
    }
    if newest > clock.last {
      clock.saw(newest)
      try saveClock()
    }
    if !notes.isEmpty { try apply(notes) }
    if try isPairing {
      try keepForPairing(changes.inOrder, &report)
    } else {
      let incoming = try guarding(changes.inOrder, changes.deletions, now: now, &report)
      try merge(incoming, from: origins, now, &report, emit)
    }
    report.authors = authors.sorted()
    report.parked = Int(
      try connection.integer(
        "SELECT count(*) FROM main.lk_park WHERE kind <> ?", [.integer(Parking.merged(into: .zero).kind)]) ?? 0)
    return report
  }

  /// Stamps all that the app changed: nothing may be merged before.
  func stampAll(_ now: Int64, _ report: inout ApplyReport, _ emit: (PendingGroup) throws -> UInt64) throws {
    repeat {
      let pass = try stamp(now: now, emit: emit)
      report.stamped.rows += pass.rows
      report.stamped.groups += pass.groups
      report.stamped.tooLarge = pass.tooLarge
      report.stamped.hidden += pass.hidden
      report.stamped.more = pass.more
    } while report.stamped.more
  }

  /// Whether the file has an app's rows that nobody knows yet, and nothing else.
  private func isUnpublished() throws -> Bool {
    try !settings.adopts
      && (isPairing || connection.first("SELECT 1 FROM main.lk_row WHERE length(meta) > 0 LIMIT 1") == nil)
  }

  /// Merges what others wrote, or a person decided, and shows the outcome.
  /// - Parameter origins: whose groups these are: what they write that meets edits of this device is noted in the journal.
  func merge(
    _ changes: [Incoming], from origins: Set<Origin> = [], _ now: Int64, _ report: inout ApplyReport,
    _ emit: (PendingGroup) throws -> UInt64
  ) throws {
    let holds = try holdsDeletions
    var journal = ConflictJournal(replica: self, origins: origins, now: now)
    let materialiser = try Materialiser(replica: self)
    var keeper = ParentKeeper(replica: self)
    var touched: Set<Int64> = []
    var regrouped: [RecordID] = []
    var affected: Set<RecordID> = []
    for (wire, name, incoming) in changes {
      let table = try table(wire: wire)
      let row = try loadRow(RecordID(table: table.id, name: name)) ?? Row(name: name, table: table)
      let before = row.state.recovering(from: incoming)
      var merged = before.merging(incoming)
      if holds { merged = try absorbing(row.record, into: merged) }
      try journal.compare(row, before: before, incoming: incoming, merged: merged)
      if merged == before, row.isStamped { continue }
      if before.isLive, !merged.isLive { try discard(row, before, merged.newestTombstone, now: now) }
      row.state = merged
      row.isStamped = true
      report.applied += 1
      touched.insert(row.table.id)
      keeper.note(row, before: before)
      if table.duplicates != nil {
        if row.id == nil { try save(row) }
        affected.formUnion(try regroup(row))
        regrouped.append(row.record)
      }
      materialiser.stage(row)
    }
    if !regrouped.isEmpty {
      let aliases = AliasWriter(replica: self, row: materialiser.row) { materialiser.stage($0) }
      affected.formUnion(try aliases.write(regrouped, areEdited: false, at: now, emit: emit))
    }
    try materialiser.enqueue(regrouped: affected)
    report.conflicts += journal.count
    report.insertedAgain = try keeper.keep(now: now, state: { materialiser.staged($0)?.state }, emit: emit)
    if !report.insertedAgain.isEmpty {
      for record in regrouped {
        if let row = materialiser.staged(record) { try materialiser.enqueue(regrouped: regroup(row)) }
      }
    }
    if try state("retry") != nil {
      try setState("retry", nil)
      try materialiser.enqueueAllKept()
    }
    try materialiser.enqueueRegrouped()
    materialiser.touched.formUnion(touched)
    try materialiser.run()
    report.hidden = materialiser.hidden
    report.tables = materialiser.touched.compactMap { tablesByID[$0]?.name }.sorted()
  }

  // MARK: Groups from the future

  private func hold(_ group: IncomingGroup, until latest: HLC) throws {
    var writer = CBORWriter()
    writer.array(group.payloads.count)
    for payload in group.payloads { writer.byteString(payload) }
    let identity: [SQLiteValue] = [
      .blob(group.zone.bytes), .blob(group.origin.device.bytes), .blob(group.origin.incarnation.bytes),
      .integer(Int64(bitPattern: group.sequence)),
    ]
    if try connection.first(
      "SELECT 1 FROM main.lk_held WHERE zone = ? AND device = ? AND incarnation = ? AND sequence = ?", identity) != nil
    {
      return
    }
    try connection.run(
      "INSERT INTO main.lk_held(zone, device, incarnation, sequence, due, hlc, tie, payloads) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      identity + [
        .integer(latest.milliseconds - Clock.limit), .integer(Int64(bitPattern: group.hlc.rawValue)),
        .integer(Int64(bitPattern: group.tie)),
        .blob(writer.bytes),
      ])
  }

  private func dueGroups(_ now: Int64) throws -> [IncomingGroup] {
    try connection.rows(
      "SELECT zone, device, incarnation, sequence, hlc, tie, payloads FROM main.lk_held WHERE due <= ? ORDER BY hlc, id",
      [.integer(now)]
    ).compactMap { raw in
      guard let zone = raw[0].bytes.flatMap(ZoneID.init), let device = raw[1].bytes.flatMap(DeviceID.init),
        let incarnation = raw[2].bytes.flatMap(Incarnation.init), let sequence = raw[3].integer,
        let hlc = raw[4].integer,
        let tie = raw[5].integer, let bytes = raw[6].bytes
      else { return nil }
      var reader = CBORReader(bytes)
      var payloads: [[UInt8]] = []
      for _ in 0..<(try reader.array()) { payloads.append(try reader.byteString()) }
      return IncomingGroup(
        zone: zone, origin: Origin(device: device, incarnation: incarnation),
        hlc: HLC(rawValue: UInt64(bitPattern: hlc)),
        tie: UInt64(bitPattern: tie), sequence: UInt64(bitPattern: sequence), payloads: payloads)
    }
  }

  /// Groups that are kept until their time: origin, sequence and when they are due, in milliseconds.
  public func heldGroups() throws -> [(origin: Origin, sequence: UInt64, due: Int64)] {
    try connection.rows("SELECT device, incarnation, sequence, due FROM main.lk_held ORDER BY id").compactMap { raw in
      guard let device = raw[0].bytes.flatMap(DeviceID.init), let incarnation = raw[1].bytes.flatMap(Incarnation.init),
        let sequence = raw[2].integer, let due = raw[3].integer
      else { return nil }
      return (Origin(device: device, incarnation: incarnation), UInt64(bitPattern: sequence), due)
    }
  }
}

/// What the groups of one batch say of each record, joined, in order of first mention.
struct MergedChanges {
  private struct Key: Hashable {
    let table: [UInt8]
    let name: RecordName
  }

  private var indexes: [Key: Int] = [:]
  private(set) var inOrder: [(table: String, record: RecordName, state: RecordState)] = []
  /// By index in ``inOrder``, the group that the newest deletion of the record came with.
  private(set) var deletions: [Int: GroupPosition] = [:]

  mutating func merge(_ change: RecordChange, from position: GroupPosition?) {
    let key = Key(table: Array(change.table.utf8), name: change.record)
    let tombstone = change.state.newestTombstone
    let index: Int
    if let known = indexes[key] {
      index = known
      if let tombstone, inOrder[index].state.newestTombstone.map({ $0 < tombstone }) ?? true {
        deletions[index] = position
      }
      inOrder[index].state = inOrder[index].state.merging(change.state)
    } else {
      index = inOrder.count
      indexes[key] = index
      inOrder.append((change.table, change.record, change.state))
      if tombstone != nil { deletions[index] = position }
    }
  }
}
