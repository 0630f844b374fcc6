package import LatchkeyEncoding
package import LatchkeyEngine
package import LatchkeyKeys
package import LatchkeyLog
internal import LatchkeyRecords
package import LatchkeyTables

/// Performs the engine's database effects on one attached file, each in one transaction.
///
/// Synchronous, and the only code that knows both the log and the tables; the simulator runs it as it is.
package struct DatabasePerformer {
  package let replica: Replica
  /// The household as this device knows it: its roster's ends are cited by what is written, its epochs' keys seal it.
  package var household: HouseholdState
  package let device: DeviceKeys
  package let now: Int64
  /// About how many rows ``DatabaseRequest/seal`` stamps in one transaction.
  package var stampLimit = 20_000
  private var random: any RandomSource & Sendable

  package init(
    replica: Replica, household: HouseholdState, device: DeviceKeys, now: Int64, random: any RandomSource & Sendable
  ) {
    self.replica = replica
    self.household = household
    self.device = device
    self.now = now
    self.random = random
  }

  package var zone: ZoneID { replica.binding.zone }

  /// Keys of the epoch that a log is written into.
  private func keys(of log: OwnLog) throws -> EpochKeys {
    guard let keys = household.keys(of: log.epoch) else { throw EngineError.noKey(log.epoch) }
    return keys
  }

  /// Where the protocol's own state lies among the database's values.
  package enum Key {
    package static func belief(_ zone: ZoneID) -> String { "belief/\(zone)" }
    /// What became of the file's own rows when they were compared with the zone's, until somebody has been told.
    package static let paired = "paired"
    package static func log(_ zone: ZoneID) -> String { "log/\(zone)" }
    /// Everything that the store showed of the zone has been read to its end, once.
    package static let imported = "imported"
    /// When the store last confirmed rows of this file.
    package static let acknowledged = "acknowledged"

    /// Rows were written here by a reader: they stay here, also after it may write.
    package static let keptHere = "kept-here"

    static func time(_ milliseconds: Int64) -> [UInt8] {
      var writer = CBORWriter()
      writer.int(milliseconds)
      return writer.bytes
    }
  }

  /// - Throws: ``TablesError``, `LogError`, `EnvelopeError`; nothing is changed then.
  package mutating func perform(_ request: DatabaseRequest) throws -> DatabaseReply {
    switch request {
    case .load(let enters):
      if enters, let log = try ownLog(), log.epoch != household.epoch {
        try replica.transaction { try enter(household.epoch, log) }
      }
      return .loaded(belief: try belief(), own: try logToWrite())
    case .facts:
      var vector = try belief().vector
      if let log = try ownLog(), log.lastSequence > 0, let hash = log.lastHash {
        vector[log.origin] = Mark(sequence: log.lastSequence, hash: hash)
      }
      return .facts(
        ZoneFacts(
          vector: vector, digest: replica.digest,
          unapplied: Set(
            try unapplied().map { ZoneFacts.Position(origin: $0.origin, sequence: $0.sequence) })))
    case .apply(let groups, let origin, let author):
      return try apply(groups, origin, author)
    case .seal(let isComplete):
      return try writing { performer, log in
        if isComplete, try performer.replica.value(Key.imported) == nil {
          try performer.replica.setValue(Key.imported, Key.time(performer.now))
        }
        if let since = try performer.replica.pairingSince() {
          // What is held back for good must not keep the file's rows from the household for ever.
          guard try performer.replica.knowsZone(), isComplete || performer.now - since > Belief.day else {
            return .sealed(rows: 0, released: 0, more: false)
          }
          let paired = try performer.replica.pair(now: performer.now) { group in try performer.append(group, to: &log) }
          try performer.replica.setValue(Key.paired, paired.encoded)
        }
        let report = try performer.replica.stamp(now: performer.now, limit: performer.stampLimit) { group in
          try performer.append(group, to: &log)
        }
        try performer.replica.prune(now: performer.now)
        // Groups that were stamped ahead of this clock are merged when their time has come, whether or not others come.
        var released = 0
        let now = performer.now
        if !report.more, try performer.replica.heldGroups().contains(where: { $0.due <= now }) {
          released = try performer.replica.apply([], now: now) { group in try performer.append(group, to: &log) }
            .applied
        }
        return .sealed(rows: report.rows, released: released, more: report.more)
      }
    case .outbox:
      return .outbox(
        try replica.outbox(zone: zone).compactMap { item in
          ObjectName(item.name).map { LatchkeyEngine.OutboxItem(id: item.id, name: $0) }
        })
    case .acknowledge(let item):
      return .acknowledged(
        rows: try replica.transaction {
          let rows = try replica.rowsInOutbox(item.id)
          if HeadName(item.name) != nil, var log = try ownLog(),
            let sequence = try replica.outbox(zone: zone).first(where: { $0.id == item.id })?.sequence
          {
            log.confirm(head: sequence)
            try replica.setValue(Key.log(zone), log.encoded())
          }
          try replica.acknowledge(item.id, now: now)
          if rows > 0 { try replica.setValue(Key.acknowledged, Key.time(now)) }
          return rows
        })
    case .renew, .republish:
      var binding = replica.binding
      guard let incarnation = Incarnation(random.bytes(Incarnation.byteCount)) else {
        throw EngineError.outOfOrder("randomness")
      }
      binding.origin = Origin(device: binding.origin.device, incarnation: incarnation)
      try publish(under: binding, household: household)
      return .loaded(belief: try belief(), own: try logToWrite())
    case .announce:
      _ = try writing { _, log in log.announce() }
      return .loaded(belief: try belief(), own: try logToWrite())
    case .supersededHeads:
      guard let log = try ownLog() else { return .superseded([]) }
      let keys = try keys(of: log)
      return .superseded(
        log.superseded(now: now).map { keys.headName(zone: zone, origin: log.origin, counter: $0) })
    case .carry(let origin):
      try replica.transaction {
        // A carried cell must have the stamp of the value that it carries.
        while try stampAll() {}
        _ = try writing { performer, log in
          // More than that log's cells, which changes nothing for those who have them.
          try performer.replica.carryAll(now: performer.now) { group in try performer.append(group, to: &log) }
        }
        var belief = try belief()
        belief.authors[origin]?.isCarried = true
        try replica.setValue(Key.belief(zone), belief.encoded())
      }
      return .done
    case .probed(let epochs):
      try replica.transaction {
        var belief = try belief()
        for epoch in epochs { belief.probed(epoch, now: now) }
        try replica.setValue(Key.belief(zone), belief.encoded())
      }
      return .done
    case .forgetHeads(let names):
      try replica.transaction {
        guard var log = try ownLog() else { return }
        log.forget(heads: names.compactMap { HeadName($0)?.counter })
        try replica.setValue(Key.log(zone), log.encoded())
      }
      return .done
    }
  }

  /// Applies groups and believes them, in one transaction. A group that this version cannot read stops the log before it: what is
  /// believed is what was merged.
  private mutating func apply(_ groups: [LogGroup], _ origin: Origin, _ author: Belief.Author) throws -> DatabaseReply {
    do {
      return try writing { performer, log in
        let incoming = groups.map {
          IncomingGroup(
            zone: $0.zone, origin: $0.origin, hlc: HLC(rawValue: $0.hlc), tie: $0.tie, sequence: $0.firstSequence,
            payloads: $0.payloads)
        }
        let report = try performer.replica.apply(incoming, now: performer.now) { group in
          try performer.append(group, to: &log)
        }
        if let refusal = report.refused.first(where: { $0.origin == origin }) { throw Refused(refusal) }
        var belief = try performer.belief()
        belief.authors[origin] = author
        try performer.replica.setValue(Key.belief(performer.zone), belief.encoded())
        return .applied(rows: report.applied, refused: nil)
      }
    } catch let error as Refused {
      let readable = groups.filter { $0.firstSequence < error.sequence }
      let finding = Finding.unreadable(
        origin: origin, sequence: error.sequence, reason: error.reason, isNewer: error.isNewer)
      guard let last = readable.last else { return .applied(rows: 0, refused: finding) }
      var known = try belief().authors[origin] ?? Belief.Author()
      known.mark = Mark(sequence: last.lastSequence, hash: last.lastHash)
      known.hlc = last.hlc
      guard case .applied(let rows, _) = try apply(readable, origin, known) else {
        return .applied(rows: 0, refused: finding)
      }
      return .applied(rows: rows, refused: finding)
    }
  }

  /// A group whose payload this version cannot read; undoes the transaction.
  private struct Refused: Error {
    let sequence: UInt64
    let reason: String
    let isNewer: Bool

    init(_ refusal: ApplyReport.Refusal) {
      sequence = refusal.sequence
      reason = "\(refusal.error)"
      if case .newer = refusal.error { isNewer = true } else { isNewer = false }
    }
  }

  /// The bytes of a stored object, always the same ones.
  package mutating func bytes(of item: LatchkeyEngine.OutboxItem) throws -> [UInt8] {
    guard let bytes = try replica.outboxBytes(item.id) else {
      throw EngineError.outOfOrder("an object that was acknowledged")
    }
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.resendReseal), let log = try ownLog() {
        let keys = try keys(of: log)
        let kind: ObjectKind = HeadName(item.name) == nil ? .segment : .head
        let place = keys.place(kind, zone: zone, name: item.name)
        let content = try Envelope.open(bytes, at: place, key: keys.zoneKey(zone))
        return try Envelope.seal(content, at: place, key: keys.zoneKey(zone), nonce: EnvelopeNonce(&random))
      }
    #endif
    return bytes
  }

  /// Puts the file under another zone or origin, and publishes everything it holds there, with the stamps and authors it has: sharing,
  /// following a zone that moved, going on after a log was given up. One transaction. From then on this value works for the new place.
  ///
  /// What was captured is stamped first: a carried cell must have the stamp of the value that it carries.
  package mutating func publish(under binding: ZoneBinding, household newHousehold: HouseholdState) throws {
    try replica.transaction {
      if zone == binding.zone {
        // The given-up log ends where it was when it was given up: what is stamped now belongs to the new one.
        var belief = try belief()
        if let log = try ownLog(), log.lastHash != nil { belief.authors[log.origin] = log.asBelieved }
        try replica.setValue(Key.belief(zone), belief.encoded())
        try replica.setValue(Key.log(zone), nil)
      } else {
        while try stampAll() {}
      }
      try replica.discardOutbox(zone: zone)
      try replica.rebind(to: binding)
      household = newHousehold
      while try stampAll() {}
      _ = try writing { performer, log in
        try performer.replica.carryAll(now: performer.now) { group in try performer.append(group, to: &log) }
      }
    }
  }

  /// Goes on in another epoch: what the store has not confirmed is sealed again there, with the bytes that were signed. Inside a transaction.
  private mutating func enter(_ epoch: EpochID, _ former: OwnLog) throws {
    var log = former
    let keys = try keys(of: log)
    var waiting: [StoredEntry] = []
    var rows: [String: Int] = [:]
    for item in try replica.outbox(zone: zone) {
      for (table, count) in try replica.rowsByTableInOutbox(item.id) { rows[table, default: 0] += count }
      guard let name = ObjectName(item.name), HeadName(name) == nil, let bytes = try replica.outboxBytes(item.id) else {
        continue
      }
      let content = try Envelope.open(
        bytes, at: keys.place(.segment, zone: zone, name: name), key: keys.zoneKey(zone))
      waiting += try SegmentContent(decoding: content).entries
    }
    let confirmed = log.confirmed?.mark.sequence ?? 0
    var next = confirmed + 1
    var tail: [StoredEntry] = []
    for entry in waiting + log.tail {
      guard try EntryBody(decoding: entry.body).sequence == next else { continue }
      tail.append(entry)
      next += 1
    }
    guard next == log.lastSequence + 1 else {
      throw EngineError.damagedState("entries \(next) to \(log.lastSequence) are neither confirmed nor kept")
    }
    try replica.discardOutbox(zone: zone)
    log.enter(epoch, after: log.confirmed, isConfirmed: true, tail: tail, announces: true)
    written = [(log.lastSequence, rows.sorted { $0.key < $1.key }.map { (table: $0.key, count: $0.value) })]
    if log.hasUnsealed { try seal(&log) } else { try replica.setValue(Key.log(zone), log.encoded()) }
    written = []
  }

  /// What was accepted and is not applied: groups from the future, and deletions that wait for a person.
  private func unapplied() throws -> [(origin: Origin, sequence: UInt64)] {
    let guarded = try replica.guardedPositions()
    return try replica.heldGroups().map { ($0.origin, $0.sequence) } + guarded
  }

  /// One transaction in which rows are written that no app wrote: what a person decided, restored or undid. They are sent with the next
  /// round.
  package mutating func write<T>(_ body: (Replica, Int64, (PendingGroup) throws -> UInt64) throws -> T) throws -> T {
    try writing { performer, log in
      let (replica, now) = (performer.replica, performer.now)
      return try body(replica, now) { group in try performer.append(group, to: &log) }
    }
  }

  /// - Returns: whether more is waiting.
  private mutating func stampAll() throws -> Bool {
    try writing { performer, log in
      try performer.replica.stamp(now: performer.now) { group in try performer.append(group, to: &log) }.more
    }
  }

  package func belief() throws -> Belief {
    try replica.value(Key.belief(zone)).map { try Belief(decoding: $0) } ?? Belief()
  }

  package func ownLog() throws -> OwnLog? {
    try replica.value(Key.log(zone)).map { try OwnLog(decoding: $0) }
  }

  /// The own log, or the one that the first group begins. A log that the store shows under its name is somebody else's, also
  /// before this file has written: a backup that is restored does not remember what it wrote later.
  private func logToWrite() throws -> OwnLog {
    try ownLog()
      ?? OwnLog(
        household: household.household, epoch: household.epoch, zone: zone, origin: replica.binding.origin)
  }

  /// One transaction in which groups may be written: what was appended is sealed, and stored with the log, before it ends.
  private mutating func writing<T>(_ body: (inout Self, inout OwnLog) throws -> T) throws -> T {
    var performer = self
    let result = try replica.transaction {
      var log = try performer.logToWrite()
      performer.written = []
      let result = try body(&performer, &log)
      if log.hasUnsealed { try performer.seal(&log) }
      return result
    }
    random = performer.random
    return result
  }

  private var keepsHere = false

  /// Rows by table of each group appended in this transaction, with its last sequence.
  private var written: [(sequence: UInt64, rows: [(table: String, count: Int)])] = []

  private mutating func append(_ group: PendingGroup, to log: inout OwnLog) throws -> UInt64 {
    let (tie, _) = log.append(
      parts: group.parts.map { ($0.bytes, $0.compress) }, hlc: group.hlc.rawValue, rosterHeads: household.roster.heads,
      signing: device.signing)
    written.append((log.lastSequence, group.rowsByTable))
    if household.roster.role(of: device.id) == .reader {
      keepsHere = true
      try replica.noteKeptHere(group, tie: tie, now: now)
    }
    return tie
  }

  private mutating func seal(_ log: inout OwnLog) throws {
    let facts = HeadFacts(
      vector: try belief().vector, rosterHeads: household.roster.heads, hlc: log.lastHLC, digest: replica.digest,
      unapplied: try unapplied())
    let objects = try log.seal(facts, keys: keys(of: log), signing: device.signing, now: now, random: &random)
    for object in objects {
      // A row is safe once the head that makes its entry findable is: segments alone are not enough.
      let isHead = HeadName(object.name) != nil
      let rows = isHead ? written.flatMap(\.rows) : []
      try replica.enqueue(
        household: household.household, zone: zone, name: object.name.text, bytes: object.bytes,
        sequence: object.sequence,
        rows: rows)
    }
    try replica.setValue(Key.log(zone), log.encoded())
    if keepsHere { try replica.setValue(Key.keptHere, [1]) }
  }
}
