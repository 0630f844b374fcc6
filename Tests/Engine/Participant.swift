import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog

/// A store without faults: what was put lies there.
struct Shelf {
  var objects: [ObjectName: [UInt8]] = [:]
  private(set) var puts: [ObjectName] = []
  private(set) var deletes: [ObjectName] = []

  mutating func put(_ name: ObjectName, _ bytes: [UInt8]) {
    puts.append(name)
    objects[name] = bytes
  }

  mutating func delete(_ names: [ObjectName]) {
    deletes += names
    for name in names { objects[name] = nil }
  }

  func list(_ prefix: String) -> [ObjectName] { objects.keys.filter { $0.text.hasPrefix(prefix) }.sorted() }
}

/// A device that performs its rounds' effects on a ``Shelf``, with a database that is a list of payloads.
struct Participant {
  let keys: DeviceKeys
  var chain: CertificateChain
  var state: HouseholdState
  let secrets: HouseholdSecrets
  let zone: ZoneID
  let name: String
  var random: SeededRandom

  // The database.
  var belief = Belief()
  var log: OwnLog?
  var outbox: [(id: Int64, object: SealedObject)] = []
  var applied: [[UInt8]] = []
  /// What its rows come to.
  var digest = Hash32.zero
  /// What the app wrote and nobody has sealed.
  var written: [[UInt8]] = []

  /// What the last round asked for, by kind, in order.
  var effects: [String] = []

  /// - Parameter failsAt: the first effect of this kind takes place, and its answer is lost.
  mutating func round(
    _ shelf: inout Shelf, now: Int64 = 1_000, rosterOnly: Bool = false, failsAt: String? = nil
  ) throws -> RoundReport? {
    effects = []
    var engine = SyncRound(
      state: state, zone: rosterOnly ? nil : zone, device: keys, now: now,
      random: SeededRandom("\(name) \(random.bytes(4))"))
    var event = Event.start
    while true {
      let effect = try engine.step(event)
      let kind = Participant.kind(effect)
      effects.append(kind)
      switch effect {
      case .get(let names):
        event = .got(
          Dictionary(uniqueKeysWithValues: names.compactMap { name in shelf.objects[name].map { (name, $0) } }))
      case .list(let prefix): event = .listed(shelf.list(prefix))
      case .put(let name, let bytes):
        shelf.put(name, bytes)
        event = .put
      case .send(let name, let item):
        shelf.put(name, outbox.first { $0.id == item.id }?.object.bytes ?? [])
        event = .put
      case .delete(let names):
        shelf.delete(names)
        event = .deleted
      case .keep(let state):
        self.state = try HouseholdState(decoding: state.encoded(), secrets: secrets)
        event = .kept
      case .database(let request): event = .database(try perform(request, engine.household, now))
      case .finish(let report): return report
      }
      if kind == failsAt { return nil }
    }
  }

  /// A round to its end.
  mutating func sync(_ shelf: inout Shelf, now: Int64 = 1_000) throws -> RoundReport {
    guard let report = try round(&shelf, now: now) else { throw EngineError.outOfOrder("no end") }
    return report
  }

  private mutating func perform(
    _ request: DatabaseRequest, _ household: HouseholdState, _ now: Int64
  ) throws -> DatabaseReply {
    switch request {
    case .load(let enters):
      if enters, var log, log.epoch != household.epoch {
        log.enter(household.epoch, after: log.confirmed, isConfirmed: true, tail: [], announces: true)
        self.log = log
        try seal(household, now)
      }
      return .loaded(belief: belief, own: log ?? newLog(1, household))
    case .apply(let groups, let origin, let author):
      applied += groups.flatMap(\.payloads)
      belief.authors[origin] = author
      return .applied(rows: groups.count, refused: nil)
    case .seal:
      let rows = written.count
      try seal(household, now)
      return .sealed(rows: rows, released: 0, more: false)
    case .outbox: return .outbox(outbox.map { OutboxItem(id: $0.id, name: $0.object.name) })
    case .acknowledge(let item):
      if HeadName(item.name) != nil, let object = outbox.first(where: { $0.id == item.id })?.object {
        log?.confirm(head: object.sequence)
      }
      outbox.removeAll { $0.id == item.id }
      return .acknowledged(rows: 1)
    case .facts:
      var vector = belief.vector
      if let log, let hash = log.lastHash { vector[log.origin] = Mark(sequence: log.lastSequence, hash: hash) }
      return .facts(ZoneFacts(vector: vector, digest: digest, unapplied: []))
    case .announce:
      log?.announce()
      try seal(household, now)
      return .loaded(belief: belief, own: log ?? newLog(1, household))
    case .renew, .republish: return .loaded(belief: belief, own: newLog(2, household))
    case .carry, .probed: return .done
    case .supersededHeads:
      return .superseded(
        log.map { log in
          log.superseded(now: now).compactMap {
            household.keys(of: log.epoch)?.headName(zone: zone, origin: log.origin, counter: $0)
          }
        } ?? [])
    case .forgetHeads(let names):
      log?.forget(heads: names.compactMap { HeadName($0)?.counter })
      return .done
    }
  }

  private func newLog(_ incarnation: UInt64, _ household: HouseholdState) -> OwnLog {
    OwnLog(
      household: household.household, epoch: household.epoch, zone: zone,
      origin: Origin(device: keys.id, incarnation: Incarnation(incarnation)))
  }

  private mutating func seal(_ household: HouseholdState, _ now: Int64) throws {
    let rosterHeads = household.roster.heads
    guard !written.isEmpty || log?.hasUnsealed == true else { return }
    var log =
      self.log
      ?? OwnLog(
        household: household.household, epoch: household.epoch, zone: zone,
        origin: Origin(device: keys.id, incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1)))
    for payload in written {
      _ = log.append(
        parts: [(payload, false)], hlc: max(UInt64(now) << 16, log.lastHLC + 1), rosterHeads: rosterHeads,
        signing: self.keys.signing)
    }
    written = []
    let facts = HeadFacts(vector: belief.vector, rosterHeads: rosterHeads, hlc: log.lastHLC, digest: digest)
    guard let keys = household.keys(of: log.epoch) else { throw EngineError.noKey(log.epoch) }
    let objects = try log.seal(facts, keys: keys, signing: self.keys.signing, now: now, random: &random)
    for object in objects { outbox.append((Int64(outbox.count + 1) + Int64(log.counter) * 100, object)) }
    self.log = log
  }

  private static func kind(_ effect: Effect) -> String {
    switch effect {
    case .get(let names): names == [.marker] ? "marker" : "get"
    case .list: "list"
    case .put: "put"
    case .send: "send"
    case .delete: "delete"
    case .keep: "keep"
    case .database(let request):
      switch request {
      case .load: "load"
      case .apply: "apply"
      case .seal: "seal"
      case .outbox: "outbox"
      case .acknowledge: "acknowledge"
      case .renew: "renew"
      case .republish: "republish"
      case .announce: "announce"
      case .supersededHeads: "superseded"
      case .forgetHeads: "forget"
      case .carry: "carry"
      case .facts: "facts"
      case .probed: "probed"
      }
    case .finish: "finish"
    }
  }
}

/// A household with its founder, and a way in for others.
struct Household {
  var random: SeededRandom
  var shelf = Shelf()
  var ana: Participant
  let keys: EpochKeys
  let zone: ZoneID

  init(_ seed: String) throws {
    random = SeededRandom(seed)
    let device = DeviceKeys(&random)
    let chain = CertificateChain(first: device)
    let key = EpochKey(&random)
    zone = ZoneID(random.bytes(16)) ?? .zero
    var state = try HouseholdState.found(
      name: "Smith", isPrivate: false, chain: chain, personName: "Ana", deviceName: "laptop", key: key,
      incarnation: Incarnation(7), device: device, now: 500, random: &random)
    keys = EpochKeys(household: state.household, epoch: state.epoch, key: key)
    try state.write(.zone(zone, name: "budget"), now: 500)
    ana = Participant(
      keys: device, chain: chain, state: state, secrets: HouseholdSecrets(device: device), zone: zone, name: "Ana",
      random: SeededRandom("ana"))
    shelf.objects[.marker] = marker(1)
  }

  func marker(_ number: UInt8) -> [UInt8] {
    var writer = CBORWriter()
    writer.array(3)
    writer.text("latchkey-store")
    writer.uint(1)
    writer.byteString([UInt8](repeating: number, count: 16))
    return writer.bytes
  }

  /// Of the epoch that Ana writes into.
  var current: EpochKeys { get throws { try ana.state.currentKeys() } }

  mutating func syncAna() throws -> RoundReport { try ana.sync(&shelf) }

  /// Opens an invite of Ana's, which her next round sends.
  mutating func invite(_ role: InviteRole, expiry: UInt64 = 1 << 40) throws -> (terms: OpenInvite, link: LinkKeys) {
    var inviter = ana
    defer { ana = inviter }
    return try invite(role, by: &inviter, expiry: expiry)
  }

  /// Opens an invite of somebody else's.
  mutating func invite(
    _ role: InviteRole, by inviter: inout Participant, expiry: UInt64 = 1 << 40
  ) throws -> (terms: OpenInvite, link: LinkKeys) {
    let link = InviteSecret(&random).keys
    let terms = OpenInvite(
      id: InviteID(random.bytes(16)) ?? .zero, claimKey: link.claimKey.publicKey, boxKey: link.boxKey.publicKey,
      role: role, expiry: expiry)
    try inviter.state.write(.openInvite(terms), now: 600)
    return (terms, link)
  }

  /// A newcomer who holds a link: knows Genesis, and has its claim in the outbox.
  ///
  /// - Parameter inviter: whose link it is; Ana's if nil.
  mutating func newcomer(
    _ name: String, _ invite: (terms: OpenInvite, link: LinkKeys), by inviter: Participant? = nil
  ) throws -> Participant {
    let device = DeviceKeys(&random)
    let chain = CertificateChain(first: device)
    guard let genesis = ana.state.genesis else { throw EngineError.damagedState("no Genesis") }
    let origin = Origin(device: device.id, incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1))
    let current = try (inviter ?? ana).state.currentKeys()
    let secrets = HouseholdSecrets(
      device: device, held: [current.epoch: current.key],
      link: HouseholdSecrets.Link(invite: invite.terms.id, box: invite.link.boxKey))
    var state = try HouseholdState(
      household: keys.household, epoch: current.epoch, genesis: genesis, origin: origin, secrets: secrets)
    let claim = Claim(
      household: keys.household, invite: invite.terms.id, chain: chain, personName: name, deviceName: name + "'s phone",
      epoch: current.epoch, claimKey: invite.link.claimKey, device: device)
    try state.enqueue(claim, random: &random)
    return Participant(
      keys: device, chain: chain, state: state, secrets: secrets, zone: zone, name: name, random: SeededRandom(name))
  }

  /// Lets somebody in through a link of Ana's; everybody's roster is in the store afterwards.
  mutating func join(_ name: String, as role: InviteRole = .member) throws -> Participant {
    let invite = try invite(role)
    var newcomer = try newcomer(name, invite)
    _ = try newcomer.round(&shelf)
    _ = try ana.round(&shelf)
    _ = try newcomer.round(&shelf)
    return newcomer
  }
}
