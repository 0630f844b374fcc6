internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// The roster's half of a round: read what others wrote, admit who claimed, send what this device wrote.
///
/// Authors become known by reading: an admission lies in somebody else's log. So heads of unknown authors are tried again after
/// every log that brought something, until nothing moves.
struct RosterExchange {
  private enum Phase {
    case listing
    case heads
    case segments
    case claims([ObjectName])
    case keeping
    case sending(ObjectName)
    case deleting([ObjectName])
  }

  private var phase = Phase.listing
  private let device: DeviceKeys
  private let keys: EpochKeys
  private let now: Int64
  /// As it was kept when the round began: nothing is written where nothing changed.
  private let kept: [UInt8]
  private(set) var state: HouseholdState
  private(set) var report = RoundReport()

  private var listed: [ObjectName] = []
  private var offers: [(name: ObjectName, bytes: [UInt8])] = []
  private var unknown: [ObjectName: DeviceID] = [:]
  private var pursuit: Pursuit?
  private var groups: [LogGroup] = []
  private var deferred: [(groups: [LogGroup], author: Belief.Author, origin: Origin)] = []
  private var hasSent = false
  private var random: any RandomSource & Sendable

  init(
    state: HouseholdState, device: DeviceKeys, keys: EpochKeys, now: Int64, random: any RandomSource & Sendable
  ) {
    self.state = state
    self.device = device
    self.keys = keys
    self.now = now
    self.random = random
    kept = state.encoded()
  }

  private var prefix: String { keys.prefix(.roster) }
  private func object(_ below: ObjectName) -> ObjectName { keys.objectName(zone: .roster, below) }

  /// Begins with the listing of everything below the roster's prefix. Nil once the roster is done.
  mutating func step(_ event: Event) throws(EngineError) -> Effect? {
    switch (phase, event) {
    case (.listing, .listed(let names)):
      listed = names.compactMap { $0.below(prefix) }
      report.findings += state.rosterReader(keys: keys).rollbacks(among: listed, belief: state.belief)
      let heads = state.rosterReader(keys: keys).newHeads(among: listed, belief: state.belief, own: state.log)
      guard !heads.isEmpty else { return try claims() }
      phase = .heads
      return .get(heads.map(object))

    case (.heads, .got(let objects)):
      offers = objects.sorted { $0.key < $1.key }.compactMap { name, bytes in name.below(prefix).map { ($0, bytes) } }
      return try nextOffer()

    case (.segments, .got(let objects)):
      guard var reading = pursuit else { throw .outOfOrder("segments without a head") }
      do throws(Finding) {
        for name in reading.wantedSegments(limit: SyncRound.segmentsAtOnce) {
          guard let bytes = objects[object(name)] else { throw Finding.missing(object: name, origin: reading.origin) }
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
      var claims: [(name: ObjectName, claim: Claim)] = []
      for name in names {
        if let bytes = objects[object(name)], let claim = open(claim: name, bytes) { claims.append((name, claim)) }
      }
      for (name, claim) in claims {
        let rivals = claims.count { $0.claim.invite == claim.invite && $0.claim.device.id != claim.device.id }
        try answer(name, claim, rivals: rivals)
      }
      return try sealAndSend()

    case (.keeping, .kept):
      return nextToSend()

    case (.sending(let name), .put):
      hasSent = true
      state.acknowledge(name)
      // Each confirmation is kept: a crash sends the same bytes again, which is success.
      phase = .keeping
      return .keep(state)

    case (.sending, .collided):
      // Somebody else has written under this device's next name since the listing.
      report.findings.append(.notMine(origin: state.log.origin))
      try renew()
      try state.seal(keys: keys, device: device, now: now, random: &random)
      phase = .keeping
      return .keep(state)

    case (.deleting(let names), .deleted):
      state.forget(heads: names.compactMap { $0.below(prefix).flatMap(HeadName.init)?.counter })
      return .keep(state)

    case (.deleting, .kept):
      return nil

    default:
      throw .outOfOrder("\(event)")
    }
  }

  // MARK: Reading

  private mutating func nextOffer() throws(EngineError) -> Effect? {
    pursuit = nil
    var index = 0
    while index < offers.count {
      let offer = offers[index]
      do throws(Finding) {
        let reading = try state.rosterReader(keys: keys).pursue(
          head: offer.name, bytes: offer.bytes, belief: state.belief, own: state.log)
        offers.remove(at: index)
        pursuit = reading
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
      }
      if pursuit != nil { return try continueReading() }
    }
    for offer in offers {
      report.findings.append(.unknownAuthor(device: unknown[offer.name] ?? .zero, object: offer.name))
    }
    for item in deferred { report.findings.append(.rosterBehind(origin: item.origin)) }
    return try claims()
  }

  private mutating func renew() throws(EngineError) {
    guard let incarnation = Incarnation(random.bytes(Incarnation.byteCount)) else { return }
    try state.renew(incarnation, keys: keys, device: device, now: now)
  }

  private mutating func continueReading() throws(EngineError) -> Effect? {
    guard var reading = pursuit else { return try nextOffer() }
    let wanted = reading.wantedSegments(limit: SyncRound.segmentsAtOnce)
    if !wanted.isEmpty {
      pursuit = reading
      phase = .segments
      return .get(wanted.map(object))
    }
    do { try reading.takeTail() } catch { report.findings.append(error) }
    pursuit = reading
    try absorb()
    phase = .heads
    return try nextOffer()
  }

  /// Takes the groups that are whole; those whose ancestors are not here yet wait for the other logs of this round.
  private mutating func absorb() throws(EngineError) {
    guard var reading = pursuit else { return }
    let (groups, author) = reading.drain()
    pursuit = reading
    deferred.append((groups, author, reading.origin))
    var moved = true
    while moved {
      moved = false
      for index in deferred.indices.reversed() {
        let item = deferred[index]
        let before = state.entries.count
        switch try state.accept(item.groups, author: item.author) {
        case .all:
          state.believe(item.author, of: item.origin)
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
    }
  }

  // MARK: Claims

  private mutating func claims() throws(EngineError) -> Effect? {
    let roster = state.roster.state
    report.isProvisional = roster.device(device.id) == nil
    let answered = Set(
      roster.invites.flatMap { invite in invite.admitted.map { keys.claimName(invite: invite.terms.id, device: $0) } })
    let open = listed.filter {
      $0.text.hasPrefix("c/") && !answered.contains($0) && !state.ignoredClaims.contains($0)
    }
    guard !open.isEmpty, !report.isProvisional else { return try sealAndSend() }
    phase = .claims(open)
    return .get(open.map(object))
  }

  private mutating func open(claim name: ObjectName, _ bytes: [UInt8]) -> Claim? {
    do {
      let place = keys.place(.claim, zone: .roster, name: name)
      let claim = try Claim(decoding: try Envelope.open(bytes, at: place, key: keys.zoneKey(.roster)))
      if claim.name(keys) == name { return claim }
      report.findings.append(.damaged(object: name, reason: "the claim belongs elsewhere"))
    } catch {
      report.findings.append(.damaged(object: name, reason: "\(error)"))
    }
    return nil
  }

  /// Admits a claim if this device may and nothing needs a person (format §8, model rule 18).
  ///
  /// - Parameter rivals: other devices' claims on the same invite that are open at the same time.
  private mutating func answer(_ name: ObjectName, _ claim: Claim, rivals: Int) throws(EngineError) {
    let roster = state.roster.state
    guard let invite = roster.invites.first(where: { $0.terms.id == claim.invite }) else { return }
    let who = "\(claim.personName) (\(claim.deviceName))"
    guard roster.device(claim.device.id) == nil else { return }
    let status = invite.status(now: UInt64(max(now, 0)))
    guard status == .open else {
      state.ignore(claim: name)
      report.refusedClaims.append("\(who): the invite is \(status)")
      return
    }
    guard invite.terms.uses > UInt64(rivals) else {
      report.openClaims.append(who)
      return
    }
    let operation: RosterOperation
    do {
      let chain = try claim.verify(household: state.household, claimKey: invite.terms.claimKey, role: invite.terms.role)
      if invite.terms.role == .mine {
        // Only the device that was asked completes the certificate: the newcomer named it.
        guard let certificate = claim.request.completed(by: device) else { return }
        operation = .addDevice(certificate, name: claim.deviceName, isKit: false)
      } else {
        _ = chain
        operation = .admit(claim: claim.bytes)
      }
    } catch {
      state.ignore(claim: name)
      report.findings.append(.damaged(object: name, reason: "claim: \(error)"))
      return
    }
    guard state.roster.refusal(of: operation, by: state.log.origin) == nil else {
      report.openClaims.append(who)
      return
    }
    try state.write(operation, device: device, now: now)
    // The roster does not count the uses of an invite for own devices: whoever answers it ends it.
    if invite.terms.role == .mine { try state.write(.revokeInvite(invite.terms.id), device: device, now: now) }
    report.admitted.append(who)
  }

  // MARK: Sending

  private mutating func sealAndSend() throws(EngineError) -> Effect? {
    try state.seal(keys: keys, device: device, now: now, random: &random)
    guard state.encoded() != kept else { return nextToSend() }
    phase = .keeping
    return .keep(state)
  }

  private mutating func nextToSend() -> Effect? {
    if let object = state.outbox.first {
      phase = .sending(object.name)
      return .put(self.object(object.name), object.bytes)
    }
    let old = hasSent ? state.log.superseded(now: now) : []
    guard !old.isEmpty else { return nil }
    let names = old.map { object(keys.headName(zone: .roster, origin: state.log.origin, counter: $0)) }
    phase = .deleting(names)
    return .delete(names)
  }
}

extension ObjectName {
  /// The name below a prefix; nil if it is not below it.
  func below(_ prefix: String) -> ObjectName? {
    guard text.hasPrefix(prefix + "/") else { return nil }
    return ObjectName(String(text.dropFirst(prefix.count + 1)))
  }
}
