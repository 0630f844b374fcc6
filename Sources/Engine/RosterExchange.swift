internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// The roster's half of a round: read what others wrote, walk to the newest epoch, admit who claimed, do this device's duties, send what
/// it wrote.
///
/// Keys are walked first and judged afterwards: a `Next` is opened as soon as it is seen, the epoch that it begins is read at once, and
/// only then what all of it amounts to is acted on. Authors become known by reading: an admission lies in somebody else's log. So heads of
/// unknown authors are tried again after every log that brought something, until nothing moves.
struct RosterExchange {
  enum Phase {
    case listing(EpochKeys)
    case objects(EpochKeys, nexts: [ObjectName], copies: [ObjectName], heads: [ObjectName])
    case former(EpochKeys, ObjectName)
    case segments
    case claims([Lying])
    case room(WaitingRoom, others: [WaitingRoom])
    case waiting(WaitingRoom, [ObjectName], others: [WaitingRoom])
    case keeping
    case sending(ObjectName)
    case deleting([ObjectName])
  }

  /// An object below the roster's prefix of an epoch.
  struct Lying: Hashable {
    let epoch: EpochID
    let below: ObjectName
  }

  private struct Offer {
    let keys: EpochKeys
    let name: ObjectName
    let bytes: [UInt8]
    /// The parts of former epochs that were asked for to get here.
    var tried: Set<FormerPart> = []
  }

  var phase: Phase
  let device: DeviceKeys
  let now: Int64
  /// As it was kept when the round began: nothing is written where nothing changed.
  private let kept: [UInt8]
  var state: HouseholdState
  var report = RoundReport()

  /// Epochs whose roster was listed in this round, and what it showed, below its prefix.
  var visited: [EpochID: [ObjectName]] = [:]
  private var offers: [Offer] = []
  private var unknown: [ObjectName: DeviceID] = [:]
  private var pursuit: Pursuit?
  private var deferred: [(groups: [LogGroup], author: Belief.Author, origin: Origin)] = []
  /// Entries that came by themselves and are not in the roster yet, each with where it lay.
  private var pool: [(entry: StoredEntry, name: ObjectName)] = []
  private var openCopies: Set<ObjectName> = []
  private var hasSent = false
  /// How many entries were known when the round began; nil once this device's log was given up.
  var known: Int?
  /// The store shows less of the roster than it did.
  private var hasLost = false
  private var passedOver = 0
  /// Entries that lie in copies under the epoch that is written to.
  var copied: Set<EntryHash> = []
  var random: AnyRandomSource

  init(
    state: HouseholdState, device: DeviceKeys, keys: EpochKeys, now: Int64, random: any RandomSource & Sendable
  ) {
    self.state = state
    self.device = device
    self.now = now
    self.random = AnyRandomSource(random)
    phase = .listing(keys)
    kept = state.encoded()
    known = state.roster.entries.count
  }

  /// Begins with the listing of everything below the roster's prefix in the epoch that is written to. Nil once the roster is done.
  mutating func step(_ event: Event) throws(EngineError) -> Effect? {
    switch (phase, event) {
    case (.listing(let keys), .listed(let names)):
      return try look(names.compactMap { $0.below(keys.prefix(.roster)) }, keys)

    case (.objects(let keys, let nexts, let copies, let heads), .got(let objects)):
      for name in nexts {
        if let bytes = objects[keys.objectName(zone: .roster, name)] { take(next: name, bytes, keys) }
      }
      for name in copies {
        if let bytes = objects[keys.objectName(zone: .roster, name)] { take(copy: name, bytes, keys) }
      }
      offers += heads.compactMap { name in
        objects[keys.objectName(zone: .roster, name)].map { Offer(keys: keys, name: name, bytes: $0) }
      }
      #if LATCHKEY_MUTATIONS
        if !Mutation.isOn(.judgeFirst) { state.walk(pool.map(\.entry)) }
      #else
        state.walk(pool.map(\.entry))
      #endif
      try absorbAll()
      return try nextOffer()

    case (.former(let keys, let name), .got(let objects)):
      if let bytes = objects[keys.objectName(zone: .roster, name)] {
        offers.insert(Offer(keys: keys, name: name, bytes: bytes), at: 0)
      }
      return try nextOffer()

    case (.segments, .got(let objects)):
      guard var reading = pursuit else { throw .outOfOrder("segments without a head") }
      let keys = reading.reader.keys
      do throws(Finding) {
        for name in reading.wantedSegments(limit: SyncRound.segmentsAtOnce) {
          guard let bytes = objects[keys.objectName(zone: .roster, name)] else {
            throw Finding.missing(object: name, origin: reading.origin)
          }
          try reading.take(segment: name, bytes: bytes)
        }
      } catch {
        report.findings.append(error)
        pursuit = reading
        try absorb()
        return try nextOffer()
      }
      pursuit = reading
      return try continueReading()

    case (.claims(let names), .got(let objects)):
      var claims: [(lying: Lying, claim: Claim)] = []
      for lying in names {
        guard let keys = state.keys(of: lying.epoch) else { continue }
        if let bytes = objects[keys.objectName(zone: .roster, lying.below)],
          let claim = open(claim: lying.below, bytes, keys)
        {
          claims.append((lying, claim))
        }
      }
      for (lying, claim) in claims {
        let rivals = Set(
          claims.filter { $0.claim.invite == claim.invite && isGenuine($0.claim) }.map(\.claim.device.id))
        try answer(lying, claim, rivals: rivals.subtracting([claim.device.id]).count)
      }
      return try nextRoom(waitingRooms)

    case (.room(let room, let others), .listed(let names)):
      let claims = names.filter { $0.below(room.prefix)?.text.hasPrefix("c/") == true }.sorted()
        .prefix(SyncRound.claimsInRoom)
      guard !claims.isEmpty else { return try nextRoom(others) }
      phase = .waiting(room, Array(claims), others: others)
      return .get(Array(claims))

    case (.waiting(let room, let names, let others), .got(let objects)):
      for name in names { if let bytes = objects[name] { note(waiting: name, bytes, room) } }
      return try nextRoom(others)

    case (.keeping, .kept):
      return nextToSend()

    case (.sending(let name), .put):
      hasSent = true
      state.acknowledge(name)
      // Each confirmation is kept: a crash sends the same bytes again, which is success.
      phase = .keeping
      return .keep(state)

    case (.sending(let name), .collided):
      if state.outbox.first(where: { $0.name == name })?.isSatisfiedByOthers == true {
        // Named by what it holds: somebody has written the same.
        state.acknowledge(name)
      } else {
        // Somebody else has written under this device's next name since the listing.
        report.findings.append(.notMine(origin: state.log.origin))
        try renew()
        try state.seal(now: now, random: &random)
      }
      phase = .keeping
      return .keep(state)

    case (.deleting(let names), .deleted):
      let prefix = try state.currentKeys().prefix(.roster)
      state.forget(heads: names.compactMap { $0.below(prefix).flatMap(HeadName.init)?.counter })
      return .keep(state)

    case (.deleting, .kept):
      return nil

    default:
      throw .outOfOrder("\(event)")
    }
  }

  // MARK: Walking

  /// Looks at what an epoch's listing shows that is not known.
  private mutating func look(_ below: [ObjectName], _ keys: EpochKeys) throws(EngineError) -> Effect? {
    visited[keys.epoch] = below
    if keys.epoch != state.epoch, state.belief.probes[keys.epoch] != nil { state.probed(keys.epoch, now: now) }
    let reader = state.rosterReader(keys: keys)
    let rollbacks = reader.rollbacks(among: below, belief: state.belief)
    report.findings += rollbacks
    if keys.epoch == state.epoch {
      let isOwnMissing = state.log.isHeadMissing(among: below, keys: keys)
      if isOwnMissing {
        report.findings.append(.rollback(origin: state.log.origin, accepted: state.log.counter, shown: 0))
      }
      hasLost = isOwnMissing || !rollbacks.isEmpty
    }
    let known = Set(
      state.roster.entries.filter(\.operation.beginsEpoch).map {
        keys.nextName(origin: $0.origin, sequence: $0.sequence)
      })
    let nexts = below.filter { $0.text.hasPrefix("n/") && !known.contains($0) }
    let copies = below.filter {
      $0.text.hasPrefix("r/") && !state.readCopies.contains(keys.objectName(zone: .roster, $0))
    }
    let heads = reader.newHeads(among: below, belief: state.belief, own: state.log)
    let wanted = nexts + copies + heads
    guard !wanted.isEmpty else { return try nextEpoch() }
    phase = .objects(keys, nexts: nexts, copies: copies, heads: heads)
    return .get(wanted.map { keys.objectName(zone: .roster, $0) })
  }

  private mutating func take(next name: ObjectName, _ bytes: [UInt8], _ keys: EpochKeys) {
    do {
      let content = try Envelope.open(
        bytes, at: keys.place(.next, zone: .roster, name: name), key: keys.zoneKey(.roster))
      let entry = try StoredEntry(decoding: content)
      let body = try EntryBody(decoding: entry.body)
      guard keys.nextName(origin: body.origin, sequence: body.sequence) == name,
        RosterOperation(payload: try entry.payload(body)).beginsEpoch
      else { throw LogError.misplaced("the entry belongs elsewhere") }
      pool.append((entry, keys.objectName(zone: .roster, name)))
    } catch { report.findings.append(finding(error, name)) }
  }

  private mutating func take(copy name: ObjectName, _ bytes: [UInt8], _ keys: EpochKeys) {
    do {
      let content = try Envelope.open(
        bytes, at: keys.place(.rosterCopy, zone: .roster, name: name), key: keys.zoneKey(.roster))
      guard keys.rosterCopyName(content: content) == name else {
        throw LogError.misplaced("the copy belongs elsewhere")
      }
      let full = keys.objectName(zone: .roster, name)
      let entries = try RosterCopy(decoding: content).entries
      pool += entries.map { ($0, full) }
      if keys.epoch == state.epoch { copied.formUnion(entries.map { EntryBody.hash(of: $0.body) }) }
      openCopies.insert(full)
    } catch { report.findings.append(finding(error, name)) }
  }

  func finding(_ error: any Error, _ name: ObjectName) -> Finding {
    switch error {
    case EnvelopeError.newer(let version, let suite):
      .newer(object: name, reason: "envelope version \(version), suite \(suite)")
    case LogError.newer(let what): .newer(object: name, reason: what)
    default: .damaged(object: name, reason: "\(error)")
    }
  }

  /// The next epoch to look at: one that was found in this round, or one that was left lately.
  private mutating func nextEpoch() throws(EngineError) -> Effect? {
    for keys in state.epochs where visited[keys.epoch] == nil {
      let isDue = state.belief.probes[keys.epoch] != nil && state.belief.isDue(keys.epoch, now: now)
      // What an epoch held when another followed it lies in the other's copies.
      guard isDue || !visited.keys.contains(where: { state.roster.isBefore(keys.epoch, $0) }) else { continue }
      phase = .listing(keys)
      return .list(keys.prefix(.roster) + "/")
    }
    // Epochs that were found and cannot be judged yet, and those whose key came from outside: their beginnings lie in them.
    for epoch in Set(state.ring.keys.keys).union(state.heldEpochs).sorted()
    where visited[epoch] == nil && !state.roster.contains(epoch) {
      guard let keys = state.keys(of: epoch) else { continue }
      phase = .listing(keys)
      return .list(keys.prefix(.roster) + "/")
    }
    return try finishReading()
  }

  // MARK: Reading

  private mutating func nextOffer() throws(EngineError) -> Effect? {
    pursuit = nil
    var index = 0
    while index < offers.count {
      let offer = offers[index]
      do throws(Finding) {
        switch try state.rosterReader(keys: offer.keys).pursue(
          head: offer.name, bytes: offer.bytes, belief: state.belief, own: state.log)
        {
        case .nothing:
          offers.remove(at: index)
        case .more(let reading):
          offers.remove(at: index)
          pursuit = reading
        case .former(let part, let origin):
          guard part.counter > 0, let keys = state.keys(of: part.epoch), offers[index].tried.insert(part).inserted
          else {
            // Its entries lie in a copy that has not come.
            index += 1
            continue
          }
          let name = keys.headName(zone: .roster, origin: origin, counter: part.counter)
          phase = .former(keys, name)
          return .get([keys.objectName(zone: .roster, name)])
        }
      } catch .notMine(let origin) {
        // The same head again, now as somebody else's.
        report.findings.append(.notMine(origin: origin))
        try renew()
        continue
      } catch .unknownAuthor(let author, let name) {
        unknown[name] = author
        index += 1
      } catch {
        report.findings.append(error)
        offers.remove(at: index)
        if case .damaged = error, passedOver < SyncRound.headsPassedOver,
          let lower = state.rosterReader(keys: offer.keys).head(
            below: offer.name, among: visited[offer.keys.epoch] ?? [], belief: state.belief)
        {
          passedOver += 1
          phase = .former(offer.keys, lower)
          return .get([offer.keys.objectName(zone: .roster, lower)])
        }
      }
      if pursuit != nil { return try continueReading() }
    }
    return try nextEpoch()
  }

  private mutating func finishReading() throws(EngineError) -> Effect? {
    for offer in offers {
      if let author = unknown[offer.name] {
        report.findings.append(.unknownAuthor(device: author, object: offer.name))
      } else if let head = try? state.rosterReader(keys: offer.keys).open(head: offer.name, bytes: offer.bytes) {
        report.findings.append(.rosterBehind(origin: head.body.origin))
      }
    }
    for item in deferred { report.findings.append(.rosterBehind(origin: item.origin)) }
    for (entry, _) in pool {
      guard let body = try? EntryBody(decoding: entry.body) else { continue }
      if let next = try? HouseholdState.rosterEntry(entry), case .next(let next) = next.operation,
        state.roster.keys(of: body.origin.device).map({ entry.isSigned(by: $0.signing) }) == true,
        state.roster.role(of: body.origin.device) ?? .reader >= .member
      {
        report.unjudged.append(EntryBody.hash(of: entry.body))
        // A member may remove none but its own: only an owner's word is taken for it before it can be judged.
        if state.roster.role(of: body.origin.device) == .owner, next.roles.isEmpty,
          next.removals.contains(where: { $0.device == device.id })
        {
          report.isRemoved = true
        }
      } else {
        report.findings.append(.rosterBehind(origin: body.origin))
      }
    }
    report.unjudged = state.note(unjudged: report.unjudged, now: now)
    return try claims()
  }

  private mutating func renew() throws(EngineError) {
    known = nil
    guard let incarnation = Incarnation(random.bytes(Incarnation.byteCount)) else { return }
    try state.renew(incarnation, now: now)
  }

  private mutating func continueReading() throws(EngineError) -> Effect? {
    guard var reading = pursuit else { return try nextOffer() }
    let wanted = reading.wantedSegments(limit: SyncRound.segmentsAtOnce)
    if !wanted.isEmpty {
      pursuit = reading
      phase = .segments
      let keys = reading.reader.keys
      return .get(wanted.map { keys.objectName(zone: .roster, $0) })
    }
    do { try reading.takeTail() } catch { report.findings.append(error) }
    pursuit = reading
    try absorb()
    return try nextOffer()
  }

  /// Takes what the log that is being read has brought.
  private mutating func absorb() throws(EngineError) {
    guard var reading = pursuit else { return }
    let (groups, author) = reading.drain()
    pursuit = reading
    deferred.append((groups, author, reading.origin))
    try absorbAll()
  }

  /// Takes the groups that are whole, and entries from copies; those whose ancestors are not here yet wait for what else this round brings.
  private mutating func absorbAll() throws(EngineError) {
    var moved = true
    while moved {
      moved = false
      for index in deferred.indices.reversed() {
        let item = deferred[index]
        let before = state.entries.count
        switch try state.accept(item.groups) {
        case .all:
          let known = state.belief.authors[item.origin]?.mark?.sequence ?? 0
          if item.author.mark?.sequence ?? 0 >= known { state.believe(item.author, of: item.origin) }
          deferred.remove(at: index)
          moved = moved || state.entries.count > before
        case .waiting:
          guard state.entries.count > before else { continue }
          let accepted = state.belief.authors[item.origin]?.mark?.sequence ?? 0
          deferred[index].groups.removeAll { $0.lastSequence <= accepted }
          moved = true
        case .stopped(let finding):
          report.findings.append(finding)
          deferred.remove(at: index)
          moved = moved || state.entries.count > before
        }
      }
      if try absorbPool() { moved = true }
    }
    for copy in openCopies where !pool.contains(where: { $0.name == copy }) {
      state.finishCopy(copy)
      openCopies.remove(copy)
    }
  }

  private mutating func absorbPool() throws(EngineError) -> Bool {
    var rest: [(entry: StoredEntry, name: ObjectName)] = []
    var moved = false
    var todo = pool[...]
    while let item = todo.popFirst() {
      switch try state.take(item.entry) {
      case .known: continue
      case .added: moved = true
      case .waiting: rest.append(item)
      case .notMine(let origin):
        report.findings.append(.notMine(origin: origin))
        try renew()
        todo.insert(item, at: todo.startIndex)
      case .refused(let reason):
        report.findings.append(.damaged(object: item.name, reason: "roster entry: \(reason)"))
      }
    }
    pool = rest
    return moved
  }

  // MARK: Duties

  /// What is owed the others, then whatever waits to be sent.
  mutating func finishRoster() throws(EngineError) -> Effect? {
    if hasLost { try state.restore(shown: visited[state.epoch] ?? [], random: &random) }
    if report.unjudged.isEmpty { try doDuties() }
    try state.seal(now: now, random: &random)
    report.holds = state.holds
    let roster = state.roster.state
    report.alarms = roster.alarms
    report.flawed = roster.flawed
    guard state.encoded() != kept else { return nextToSend() }
    phase = .keeping
    return .keep(state)
  }

  /// More than this in one round is left for the next one.
  private static let dutiesAtOnce = 256

  private mutating func doDuties() throws(EngineError) {
    var reason: RosterDuties.NextReason?
    for _ in 0..<Self.dutiesAtOnce {
      let duties = state.roster.duties(
        of: state.log.origin, ring: state.ring, now: UInt64(max(now, 0)), random: &random)
      reason = duties.next
      guard let operation = duties.operations.first else { break }
      try state.write(operation, now: now)
    }
    guard let reason else {
      state.setNextDue(nil)
      return
    }
    // Whose rows count how far is not known here: whoever has the database writes a `Next` that drops somebody.
    guard state.roster.state.leaving.isEmpty else {
      report.hasLeavers = true
      return
    }
    if !state.hasCausedNext || reason.needsGrace {
      let wait = reason.needsGrace ? Belief.day : 60_000 + Int64(random.bytes(2).reduce(0) { $0 << 8 | Int($1) }) * 13
      guard let due = state.nextDue else { return state.setNextDue(now + wait) }
      guard now >= due else { return }
    }
    do {
      try state.writeNext(NextChange(), isGraceOver: reason.needsGrace, now: now, random: &random)
    } catch .refused {
      // Not for this device to write: somebody else will.
      state.setNextDue(nil)
    }
  }

  // MARK: Sending

  private mutating func nextToSend() -> Effect? {
    // Somebody who was removed has nothing to say; what a newcomer owes is its claim.
    if let object = report.isRemoved ? nil : state.outbox.first {
      phase = .sending(object.name)
      return .put(object.name, object.bytes)
    }
    let old = hasSent ? state.log.superseded(now: now) : []
    guard !old.isEmpty, let keys = state.keys(of: state.epoch) else { return nil }
    let names = old.map {
      keys.objectName(zone: .roster, keys.headName(zone: .roster, origin: state.log.origin, counter: $0))
    }
    phase = .deleting(names)
    return .delete(names)
  }
}
