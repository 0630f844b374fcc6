import LatchkeyEncoding
import LatchkeyKeys

/// A household whose devices each have a view of the roster and keys of their own, with real cryptography and without
/// a store: tests say who hears what.
struct EpochWorld {
  struct Party {
    let actor: Actor
    var roster: Roster
    var ring: EpochRing

    /// Opens what opens, adds what arrives, judges.
    mutating func hear(_ entries: some Sequence<RosterEntry>) {
      let list = Array(entries)
      ring.walk(list)
      roster.learn(from: ring)
      for entry in list { roster.add(entry) }
    }

    var state: RosterState { roster.state }
    var upload: UploadPermission { roster.upload(by: actor.keys.id, ring: ring) }
    var holds: [UploadHold] { if case .held(let holds) = upload { holds } else { [] } }
    /// The key of the epoch that it would write to.
    var currentKey: EpochKey? { roster.state.currentEpoch.flatMap { ring.keys[$0] } }
    func knows(_ entry: RosterEntry) -> Bool { roster.contains(entry.hash) }
  }

  struct Link {
    let terms: OpenInvite
    let keys: LinkKeys
    let entry: RosterEntry
    /// The epoch key that its blob hands out.
    let epoch: EpochID
    let key: EpochKey
  }

  enum Failure: Error { case noEpoch, unsettled }

  var random: SeededRandom
  let ana: Actor
  /// Ana's kit from Genesis.
  let kit: Actor?
  let genesis: RosterEntry
  var hlc: UInt64 = 1
  /// Everything that was written, in that order.
  private(set) var written: [RosterEntry]
  private(set) var parties: [DeviceID: Party] = [:]

  var household: HouseholdID { genesis.hash }

  init(_ seed: String, withKit: Bool = false) throws {
    random = SeededRandom(seed)
    ana = Actor("Ana", &random)
    kit = withKit ? try Actor("Ana's kit", of: ana, &random) : nil
    let key = EpochKey(&random)
    guard
      let made = Genesis(
        householdName: "Smith", isPrivate: false, chain: ana.chain, personName: "Ana", deviceName: "laptop", key: key,
        kit: kit?.certificate, random: &random)
    else { throw Failure.noEpoch }
    genesis = entry(.genesis(made), by: ana.origin, sequence: 1, previous: nil, heads: [], hlc: 1)
    written = [genesis]
    meet(ana)
    if let kit {
      meet(kit)
      // Its blob holds a key to begin with.
      parties[kit.keys.id]?.ring.hold(key, of: genesis.hash)
      parties[kit.keys.id]?.hear([])
    }
  }

  /// A new party that has heard of everything, or of what somebody else knows.
  mutating func meet(_ actor: Actor, knowing entries: [RosterEntry]? = nil) {
    var ring = EpochRing(household: household)
    ring.hold(actor.keys.box, of: actor.keys.id)
    var party = Party(actor: actor, roster: Roster(household: household, evaluating: .everyEpoch), ring: ring)
    party.hear(entries ?? written)
    parties[actor.keys.id] = party
  }

  subscript(actor: Actor) -> Party {
    guard let party = parties[actor.keys.id] else { preconditionFailure("\(actor.name) was never met") }
    return party
  }

  // MARK: Hearing

  /// All parties hear of everything.
  mutating func tellAll() {
    for id in parties.keys.sorted() { parties[id]?.hear(written) }
  }

  mutating func tell(_ actor: Actor, _ entries: [RosterEntry]) { parties[actor.keys.id]?.hear(entries) }

  mutating func hold(_ key: EpochKey, of epoch: EpochID, for actor: Actor) {
    parties[actor.keys.id]?.ring.hold(key, of: epoch)
    parties[actor.keys.id]?.hear([])
  }

  // MARK: Writing

  /// An honest entry: judged before it is signed, citing all that its author has seen.
  @discardableResult
  mutating func write(_ operation: RosterOperation, by actor: Actor) throws -> RosterEntry {
    let party = self[actor]
    if let refusal = party.roster.refusal(of: operation, by: actor.origin) { throw refusal }
    return force(operation, by: actor)
  }

  /// Whatever the author likes, as its next entry.
  ///
  /// - Parameters:
  ///   - heads: cited; nil for all that the author has seen.
  ///   - previous: an older entry of its own to fork from; nil for its newest.
  @discardableResult
  mutating func force(
    _ operation: RosterOperation, by actor: Actor, citing heads: [EntryHash]? = nil, after previous: RosterEntry? = nil,
    isTold: Bool = true
  ) -> RosterEntry {
    hlc += 1
    let roster = self[actor].roster
    let (sequence, last) = roster.position(of: actor.origin)
    let made = entry(
      operation, by: actor.origin, sequence: previous.map { $0.sequence + 1 } ?? sequence,
      previous: previous?.hash ?? last, heads: heads ?? roster.heads, hlc: hlc << 16)
    written.append(made)
    if isTold { parties[actor.keys.id]?.hear([made]) }
    return made
  }

  /// An honest `Next`, with a new key.
  @discardableResult
  mutating func next(
    _ change: NextChange = NextChange(), by actor: Actor, isGraceOver: Bool = false
  ) throws -> RosterEntry {
    let key = EpochKey(&random)
    let party = self[actor]
    let made = try party.roster.next(
      change, by: actor.origin, key: change.closes ? nil : key, ring: party.ring, isGraceOver: isGraceOver,
      random: &random)
    let entry = force(.next(made), by: actor)
    if !change.closes { hold(key, of: entry.hash, for: actor) }
    return entry
  }

  /// The `Next` that an honest device would write, altered: what a dishonest one writes.
  @discardableResult
  mutating func forgeNext(
    _ change: NextChange = NextChange(), by actor: Actor, key: EpochKey? = nil, citing heads: [EntryHash]? = nil,
    after previous: RosterEntry? = nil, in view: Roster? = nil, _ alter: (Next, EpochKey) throws -> Next
  ) rethrows -> RosterEntry? {
    let key = key ?? EpochKey(&random)
    let party = self[actor]
    guard
      let honest = try? (view ?? party.roster).next(
        change, by: actor.origin, key: key, ring: party.ring, isGraceOver: true, random: &random)
    else { return nil }
    let entry = force(.next(try alter(honest, key)), by: actor, citing: heads, after: previous)
    hold(key, of: entry.hash, for: actor)
    return entry
  }

  // MARK: What people do

  @discardableResult
  mutating func invite(
    _ role: InviteRole, by actor: Actor, uses: UInt64 = 1, confirm: Bool = false, expiry: UInt64 = 1000
  ) throws -> Link {
    let keys = InviteSecret(&random).keys
    let terms = OpenInvite(
      id: InviteID(random.bytes(16)) ?? .zero, claimKey: keys.claimKey.publicKey, boxKey: keys.boxKey.publicKey,
      role: role, expiry: expiry, uses: uses, confirm: confirm)
    guard let epoch = self[actor].state.currentEpoch, let key = self[actor].ring.keys[epoch] else {
      throw Failure.noEpoch
    }
    let entry = try write(.openInvite(terms), by: actor)
    return Link(terms: terms, keys: keys, entry: entry, epoch: epoch, key: key)
  }

  func claim(_ actor: Actor, _ link: Link, kit: Certificate? = nil) -> Claim {
    Claim(
      household: household, invite: link.terms.id, chain: actor.chain, personName: actor.name, deviceName: actor.name,
      epoch: link.epoch, kit: kit, claimKey: link.keys.claimKey, device: actor.keys)
  }

  /// Somebody who holds a link meets the household with it.
  ///
  /// - Parameter entries: what the store shows to it; nil for everything.
  mutating func arrive(_ actor: Actor, with link: Link, knowing entries: [RosterEntry]? = nil) {
    meet(actor, knowing: [])
    parties[actor.keys.id]?.ring.hold(link.keys.boxKey, of: link.terms.id)
    hold(link.key, of: link.epoch, for: actor)
    parties[actor.keys.id]?.hear(entries ?? written)
  }

  /// Invited, let in, and the epoch that the link opened left behind; everybody hears of it.
  mutating func join(_ name: String, as role: InviteRole, by inviter: Actor? = nil) throws -> Actor {
    let inviter = inviter ?? ana
    let actor = Actor(name, &random)
    let link = try invite(role, by: inviter)
    arrive(actor, with: link)
    try write(.admit(claim: claim(actor, link).bytes), by: inviter)
    try next(by: inviter)
    tellAll()
    return actor
  }

  /// A further device of somebody, with the key of the current epoch; everybody hears of it.
  mutating func add(_ name: String, of other: Actor, isKit: Bool = false, isTold: Bool = true) throws -> Actor {
    let actor = try Actor(name, of: other, &random)
    try write(.addDevice(actor.certificate, name: name, isKit: isKit), by: other)
    let known = self[other]
    meet(actor, knowing: known.roster.entries)
    if let epoch = known.state.currentEpoch, let key = known.ring.keys[epoch] { hold(key, of: epoch, for: actor) }
    if isTold { tellAll() }
    return actor
  }

  // MARK: Duties

  /// One honest device at a sync: hears of everything, does what it owes, joins and rotates if that is due.
  ///
  /// - Returns: whether it wrote.
  mutating func sync(_ actor: Actor, now: UInt64 = 0, isPatient: Bool = false) -> Bool {
    parties[actor.keys.id]?.hear(written)
    var wrote = false
    for _ in 0..<20 {
      let party = self[actor]
      let duties = party.roster.duties(of: actor.origin, ring: party.ring, now: now, random: &random)
      if let operation = duties.operations.first {
        force(operation, by: actor)
        wrote = true
        continue
      }
      guard let reason = duties.next else { break }
      if !isPatient && reason.needsGrace { break }
      guard (try? next(by: actor, isGraceOver: isPatient)) != nil else { break }
      wrote = true
    }
    return wrote
  }

  /// Honest devices sync until there is nothing left to do.
  mutating func settleDown(_ actors: [Actor], now: UInt64 = 0) throws {
    var isPatient = false
    for _ in 0..<20 {
      var wrote = false
      for actor in actors where sync(actor, now: now, isPatient: isPatient) { wrote = true }
      if wrote { continue }
      if isPatient {
        for actor in actors { parties[actor.keys.id]?.hear(written) }
        return
      }
      isPatient = true
    }
    throw Failure.unsettled
  }
}
