internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// The rows' half of a round: pull log by log, then stamp, seal and send.
struct ZoneExchange {
  private enum Phase {
    case loading
    case listing
    case heads
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
  private let keys: EpochKeys
  private(set) var report = RoundReport()

  private var belief = Belief()
  private var own: OwnLog?
  private var offers: [(name: ObjectName, bytes: [UInt8])] = []
  private var pursuit: Pursuit?
  private var queue: [OutboxItem] = []
  private var hasSent = false
  private var renewals = 0

  init(zone: ZoneID, state: HouseholdState, keys: EpochKeys) {
    self.zone = zone
    self.state = state
    self.keys = keys
  }

  private var prefix: String { keys.prefix(zone) }
  private func object(_ below: ObjectName) -> ObjectName { keys.objectName(zone: zone, below) }
  private var reader: LogReader { state.rowReader(zone: zone, keys: keys) }

  mutating func begin() -> Effect { .database(.load) }

  /// Nil once the zone is done.
  mutating func step(_ event: Event) throws(EngineError) -> Effect? {
    switch (phase, event) {
    case (.loading, .database(.loaded(let belief, let own))):
      self.belief = belief
      self.own = own
      phase = .listing
      return .list(prefix + "/h/")

    case (.listing, .listed(let names)):
      let below = names.compactMap { $0.below(prefix) }
      report.findings += reader.rollbacks(among: below, belief: belief)
      let heads = reader.newHeads(among: below, belief: belief, own: own)
      guard !heads.isEmpty else { return seal() }
      phase = .heads
      return .get(heads.map(object))

    case (.heads, .got(let objects)):
      offers = objects.sorted { $0.key > $1.key }.compactMap { name, bytes in name.below(prefix).map { ($0, bytes) } }
      return nextOffer()

    case (.segments, .got(let objects)):
      guard var reading = pursuit else { throw .outOfOrder("segments without a head") }
      var goesOn = true
      do throws(Finding) {
        for name in reading.wantedSegments(limit: SyncRound.segmentsAtOnce) {
          guard let bytes = objects[object(name)] else { throw Finding.missing(object: name, origin: reading.origin) }
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
      if more { return .database(.seal) }
      phase = .outbox
      return .database(.outbox)

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
      phase = .listing
      return .list(prefix + "/h/")

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

  private mutating func nextOffer() -> Effect? {
    pursuit = nil
    while let offer = offers.popLast() {
      do {
        guard let reading = try reader.pursue(head: offer.name, bytes: offer.bytes, belief: belief, own: own) else {
          continue
        }
        pursuit = reading
        return continueReading()
      } catch .notMine(let origin) where renewals < 3 {
        // The same head again, now as somebody else's.
        offers.append(offer)
        report.findings.append(.notMine(origin: origin))
        renewals += 1
        phase = .renewing(isReading: true)
        return .database(.renew)
      } catch { report.findings.append(error) }
    }
    return seal()
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
      return .get(wanted.map(object))
    }
    do { try reading.takeTail() } catch { report.findings.append(error) }
    pursuit = reading
    return apply(goesOn: false)
  }

  /// Applies what is whole, with the belief that goes with it. A reader's rows are chained, not applied (format §8).
  private mutating func apply(goesOn: Bool) -> Effect? {
    guard var reading = pursuit else { return nextOffer() }
    let (groups, author) = reading.drain()
    pursuit = reading
    let origin = reading.origin
    guard belief.authors[origin] != author else { return goesOn ? continueReading() : nextOffer() }
    belief.authors[origin] = author
    let mayWrite = (state.roster.role(of: origin.device) ?? .reader) >= .member
    if !mayWrite {
      report.findings += groups.map { .notAuthorised(origin: origin, sequence: $0.firstSequence) }
    }
    phase = .applying(goesOn: goesOn)
    return .database(.apply(groups: mayWrite ? groups : [], origin: origin, author: author))
  }

  private mutating func seal() -> Effect {
    phase = .sealing
    return .database(.seal)
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
