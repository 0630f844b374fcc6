internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// The rows' half of a round: pull log by log, then stamp, seal and send.
struct ZoneExchange {
  private enum Phase {
    case loading
    case carrying
    case listing(EpochKeys)
    case heads(EpochKeys)
    case former(EpochKeys, ObjectName)
    case ownHead(EpochKeys, heads: [ObjectName])
    case ownSegments(EpochKeys, heads: [ObjectName])
    case announcing(EpochKeys, heads: [ObjectName])
    case probing
    case comparing
    case segments
    case applying(goesOn: Bool)
    case sealing
    case outbox
    case sending(OutboxItem)
    case acknowledging
    case superseded
    case deleting([ObjectName])
    case forgetting
    case renewing(isReading: Bool)
  }

  private var phase = Phase.loading
  private let zone: ZoneID
  private let state: HouseholdState
  /// Of the epoch that is written to.
  private let keys: EpochKeys
  private let now: Int64
  private let mayUpload: Bool
  /// How far the logs of removed and narrowed devices count.
  private let limit: @Sendable (Origin) -> UInt64?
  private(set) var report = RoundReport()

  private var belief = Belief()
  private var own: OwnLog?
  private var offers: [Offer] = []
  /// Epochs to list, the one that is written to last.
  private var epochs: [EpochKeys] = []
  private var probed: [EpochID] = []
  private var carries: [Origin] = []
  private var authority: [Citing: Bool] = [:]
  private var pursuit: Pursuit?
  private var queue: [OutboxItem] = []
  private var hasSent = false
  /// Heads that were read whole in this round.
  private var read: [HeadBody] = []
  private var renewals = 0
  /// What the epochs' listings showed.
  private var listed: [EpochID: [ObjectName]] = [:]
  private var passedOver = 0
  private var hasRestored = false

  private struct Offer {
    let keys: EpochKeys
    let name: ObjectName
    let bytes: [UInt8]
    var tried: Set<FormerPart> = []
  }

  private struct Citing: Hashable {
    let device: DeviceID
    let heads: [EntryHash]
  }

  init(zone: ZoneID, state: HouseholdState, keys: EpochKeys, now: Int64, mayUpload: Bool) {
    self.zone = zone
    self.state = state
    self.keys = keys
    self.now = now
    self.mayUpload = mayUpload
    limit = state.rowLimits(zone)
  }

  private var prefix: String { keys.prefix(zone) }
  private func object(_ below: ObjectName) -> ObjectName { keys.objectName(zone: zone, below) }
  private func reader(_ keys: EpochKeys) -> LogReader { state.rowReader(zone: zone, keys: keys) }

  private var isWriter: Bool { state.roster.role(of: state.log.origin.device) ?? .reader >= .member }

  mutating func begin() -> Effect { .database(.load(enters: mayUpload)) }

  /// Nil once the zone is done.
  mutating func step(_ event: Event) throws(EngineError) -> Effect? {
    switch (phase, event) {
    case (.loading, .database(.loaded(let belief, let own))):
      self.belief = belief
      self.own = own
      // Of somebody who is not in, or reads only, it would not count; it is done when that changes.
      carries = belief.authors.filter { origin, author in
        guard isWriter, !author.isCarried, let mark = author.mark, let limit = limit(origin) else { return false }
        return mark.sequence > limit
      }.keys.sorted()
      epochs = state.epochs.filter { $0.epoch != keys.epoch && belief.isDue($0.epoch, now: now) } + [keys]
      return nextCarry()

    case (.carrying, .database(.done)):
      return nextCarry()

    case (.listing(let keys), .listed(let names)):
      let prefix = keys.prefix(zone)
      let below = names.compactMap { $0.below(prefix) }
      if keys.epoch != self.keys.epoch, belief.needsProbe(keys.epoch, now: now) { probed.append(keys.epoch) }
      let reader = reader(keys)
      report.findings += reader.rollbacks(among: below, belief: belief)
      listed[keys.epoch] = below
      let heads = reader.newHeads(among: below, belief: belief, own: own)
      if mayUpload, !hasRestored, keys.epoch == self.keys.epoch, let own, own.isHeadMissing(among: below, keys: keys) {
        // Listings lag: it is looked up by name before anything is concluded.
        hasRestored = true
        phase = .ownHead(keys, heads: heads)
        return .get([object(keys.headName(zone: zone, origin: own.origin, counter: own.counter))])
      }
      return look(at: heads, keys)

    case (.ownHead(let keys, let heads), .got(let objects)):
      guard objects.isEmpty, let own else { return look(at: heads, keys) }
      report.findings.append(.rollback(origin: own.origin, accepted: own.counter, shown: 0))
      phase = .ownSegments(keys, heads: heads)
      return .list(prefix + "/l/")

    case (.ownSegments(let keys, let heads), .listed(let names)):
      guard let own else { throw .outOfOrder("segments of no log") }
      let segments =
        own.lastSegment == 0
        ? []
        : (1...own.lastSegment).map {
          object(keys.segmentName(zone: zone, origin: own.origin, index: $0))
        }
      // What lies in no segment is in the head. Else only the rows are left, not the entries: they are published again, with their stamps.
      guard Set(segments).isSubset(of: names) else {
        phase = .renewing(isReading: false)
        return .database(.republish)
      }
      phase = .announcing(keys, heads: heads)
      return .database(.announce)

    case (.announcing(let keys, let heads), .database(.loaded(let belief, let own))):
      self.belief = belief
      self.own = own
      return look(at: heads, keys)

    case (.heads(let keys), .got(let objects)):
      let prefix = keys.prefix(zone)
      offers += objects.sorted { $0.key > $1.key }.compactMap { name, bytes in
        name.below(prefix).map { Offer(keys: keys, name: $0, bytes: bytes) }
      }
      return nextOffer()

    case (.former(let keys, let name), .got(let objects)):
      if let bytes = objects[keys.objectName(zone: zone, name)] {
        offers.append(Offer(keys: keys, name: name, bytes: bytes))
      }
      return nextOffer()

    case (.segments, .got(let objects)):
      guard var reading = pursuit else { throw .outOfOrder("segments without a head") }
      var goesOn = true
      do throws(Finding) {
        for name in reading.wantedSegments(limit: SyncRound.segmentsAtOnce) {
          guard let bytes = objects[reading.reader.keys.objectName(zone: zone, name)] else {
            throw Finding.missing(object: name, origin: reading.origin)
          }
          try reading.take(segment: name, bytes: bytes)
        }
      } catch {
        report.findings.append(error)
        goesOn = false
      }
      pursuit = reading
      return apply(goesOn: goesOn)

    case (.applying(let goesOn), .database(.applied(let rows, let refused))):
      report.received += rows
      if let refused {
        report.findings.append(refused)
        return nextOffer()
      }
      return goesOn ? continueReading() : nextOffer()

    case (.sealing, .database(.sealed(let rows, let released, let more))):
      report.stamped += rows
      report.received += released
      if more { return .database(.seal(isComplete: isComplete)) }
      guard mayUpload else { return nil }
      phase = .outbox
      return .database(.outbox)

    case (.probing, .database(.done)):
      return compare()

    case (.comparing, .database(.facts(let facts))):
      for head in read where ZoneFacts(head).diverges(from: facts) {
        report.findings.append(.divergence(origin: head.origin))
      }
      return seal()

    case (.outbox, .database(.outbox(let items))):
      queue = items.reversed()
      return nextToSend()

    case (.sending(let item), .put):
      hasSent = true
      phase = .acknowledging
      return .database(.acknowledge(item))

    case (.sending, .collided):
      guard let own else { throw .outOfOrder("a collision without a log") }
      report.findings.append(.notMine(origin: own.origin))
      return try renew(isReading: false)

    case (.renewing(let isReading), .database(.loaded(let belief, let own))):
      self.belief = belief
      self.own = own
      if isReading { return nextOffer() }
      epochs = [keys]
      return nextEpoch()

    case (.acknowledging, .database(.acknowledged(let rows))):
      report.sent += rows
      return nextToSend()

    case (.superseded, .database(.superseded(let names))):
      guard !names.isEmpty else { return nil }
      phase = .deleting(names)
      return .delete(names.map(object))

    case (.deleting(let names), .deleted):
      phase = .forgetting
      return .database(.forgetHeads(names))

    case (.forgetting, .database(.done)):
      return nil

    default:
      throw .outOfOrder("\(event)")
    }
  }

  private mutating func look(at heads: [ObjectName], _ keys: EpochKeys) -> Effect {
    guard !heads.isEmpty else { return nextEpoch() }
    phase = .heads(keys)
    return .get(heads.map { keys.objectName(zone: zone, $0) })
  }

  private mutating func nextCarry() -> Effect {
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.omitCarry) { return nextEpoch() }
    #endif
    guard let origin = carries.popLast() else { return nextEpoch() }
    phase = .carrying
    return .database(.carry(origin))
  }

  /// Whether no log waits for something that was not shown, or could not be read.
  private var isComplete: Bool {
    report.findings.allSatisfy { if case .notAuthorised = $0 { true } else { false } }
  }

  private mutating func nextEpoch() -> Effect {
    guard !epochs.isEmpty else {
      guard !probed.isEmpty else { return compare() }
      phase = .probing
      return .database(.probed(probed))
    }
    let keys = epochs.removeFirst()
    phase = .listing(keys)
    return .list(keys.prefix(zone) + "/h/")
  }

  private mutating func nextOffer() -> Effect? {
    pursuit = nil
    while var offer = offers.popLast() {
      do {
        switch try reader(offer.keys).pursue(head: offer.name, bytes: offer.bytes, belief: belief, own: own) {
        case .nothing: continue
        case .more(let reading):
          pursuit = reading
          return continueReading()
        case .former(let part, let origin):
          // What comes before this head lies in an epoch that its author has left.
          guard part.counter > 0, let keys = state.keys(of: part.epoch), offer.tried.insert(part).inserted else {
            report.findings.append(.missing(object: offer.name, origin: origin))
            continue
          }
          offers.append(offer)
          let name = keys.headName(zone: zone, origin: origin, counter: part.counter)
          phase = .former(keys, name)
          return .get([keys.objectName(zone: zone, name)])
        }
      } catch .notMine(let origin) where renewals < 3 {
        // The same head again, now as somebody else's.
        offers.append(offer)
        report.findings.append(.notMine(origin: origin))
        renewals += 1
        phase = .renewing(isReading: true)
        return .database(.renew)
      } catch {
        report.findings.append(error)
        if case .damaged = error, passedOver < SyncRound.headsPassedOver,
          let lower = reader(offer.keys).head(
            below: offer.name, among: listed[offer.keys.epoch] ?? [], belief: belief)
        {
          passedOver += 1
          phase = .former(offer.keys, lower)
          return .get([offer.keys.objectName(zone: zone, lower)])
        }
      }
    }
    return nextEpoch()
  }

  private mutating func renew(isReading: Bool) throws(EngineError) -> Effect {
    renewals += 1
    guard renewals <= 3 else { throw .outOfOrder("a new log collides") }
    phase = .renewing(isReading: isReading)
    return .database(.renew)
  }

  private mutating func continueReading() -> Effect? {
    guard var reading = pursuit else { return nextOffer() }
    let wanted = reading.wantedSegments(limit: SyncRound.segmentsAtOnce)
    if !wanted.isEmpty {
      phase = .segments
      let keys = reading.reader.keys
      return .get(wanted.map { keys.objectName(zone: zone, $0) })
    }
    var isWhole = true
    do { try reading.takeTail() } catch {
      report.findings.append(error)
      isWhole = false
    }
    pursuit = reading
    return apply(goesOn: false, isWhole: isWhole)
  }

  /// Applies what is whole, with the belief that goes with it. A reader's rows are chained, not applied (format §8).
  private mutating func apply(goesOn: Bool, isWhole: Bool = false) -> Effect? {
    guard var reading = pursuit else { return nextOffer() }
    var (groups, author) = reading.drain()
    pursuit = reading
    if isWhole {
      read.append(reading.body)
      author = belief.noting(citations: reading.body.vector, of: author, now: now, except: isNotCited)
    }
    let origin = reading.origin
    guard belief.authors[origin] != author else { return goesOn ? continueReading() : nextOffer() }
    belief.authors[origin] = author
    let counted = groups.filter { counts($0, origin) }
    report.findings += groups.filter { !counts($0, origin) }.map {
      .notAuthorised(origin: origin, sequence: $0.firstSequence)
    }
    phase = .applying(goesOn: goesOn)
    return .database(.apply(groups: counted, origin: origin, author: author))
  }

  /// Logs that nobody can say are withheld: this device's own, and those that end at a limit.
  private func isNotCited(_ origin: Origin) -> Bool {
    origin.device == own?.origin.device || limit(origin) != nil
  }

  /// Whether rows count: their author might write by what the entry cites. A newcomer's entries do not cite its admission: then what that made
  /// of it counts. What a removed device wrote behind its limit was not read.
  private mutating func counts(_ group: LogGroup, _ origin: Origin) -> Bool {
    let citing = Citing(device: origin.device, heads: group.rosterHeads)
    if let known = authority[citing] { return known }
    let role =
      state.roster.role(of: origin.device, at: group.rosterHeads) ?? state.roster.roleAtEnrolment(of: origin.device)
    let may = (role ?? .reader) >= .member
    authority[citing] = may
    return may
  }

  /// Whoever has merged exactly what the author of a head had must hold the same rows. Those who are readers, or were, need not: what they
  /// changed then stays with them.
  private mutating func compare() -> Effect {
    let roster = state.roster
    read.removeAll { roster.wasReader($0.origin.device) }
    guard !read.isEmpty, !roster.wasReader(state.log.origin.device) else { return seal() }
    phase = .comparing
    return .database(.facts)
  }

  private mutating func seal() -> Effect {
    let roster = state.roster
    report.findings += belief.withheld(
      now: now, counts: { roster.role(of: $0) ?? .reader >= .member }, except: isNotCited)
    phase = .sealing
    return .database(.seal(isComplete: isComplete))
  }

  private mutating func nextToSend() -> Effect? {
    if let item = queue.popLast() {
      phase = .sending(item)
      return .send(object(item.name), item)
    }
    guard hasSent else { return nil }
    phase = .superseded
    return .database(.supersededHeads)
  }
}
