import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// A random household over a store that shows everybody something else: people join, add devices, remove, change roles,
/// leave and rotate; some devices turn malicious. In the end the store shows all, and honest devices do what they owe.
struct RandomHousehold {
  /// An honest device was ready to write into this epoch.
  struct Upload {
    let device: DeviceID
    let epoch: EpochID
    /// Whom it knew to be out, and the links that it knew to be closed.
    let gone: Set<DeviceID>
    let closed: Set<InviteID>
  }

  var world: EpochWorld
  var actors: [Actor]
  var malicious: Set<DeviceID> = []
  /// By malicious devices: what these give away is theirs to give.
  var leaks: Set<EntryHash> = []
  var links: [EpochWorld.Link] = []
  var uploads: [Upload] = []
  /// Honest devices whose people left, or were removed: they no longer act.
  var retired: Set<DeviceID> = []

  init(_ seed: String) throws {
    world = try EpochWorld(seed, withKit: SeededRandom(seed).isLucky)
    actors = [world.ana] + (world.kit.map { [$0] } ?? [])
  }

  private mutating func chance(_ percent: Int) -> Bool { world.random.number(below: 100) < percent }
  private mutating func pick<T>(_ list: [T]) -> T? { list.isEmpty ? nil : list[world.random.number(below: list.count)] }

  var honest: [Actor] { actors.filter { !malicious.contains($0.keys.id) && !retired.contains($0.keys.id) } }

  mutating func run(_ steps: Int) {
    for _ in 0..<steps { step() }
  }

  private mutating func step() {
    guard let actor = pick(actors) else { return }
    let heard = world.random.shuffled(world.written).filter { _ in world.random.number(below: 3) > 0 }
    world.tell(actor, heard)
    let isHonest = !malicious.contains(actor.keys.id)
    if isHonest && retired.contains(actor.keys.id) { return }
    let before = world.written.count
    if isHonest {
      act(actor)
      note(actor)
    } else {
      misbehave(actor)
      leaks.formUnion(world.written[before...].map(\.hash))
    }
  }

  private mutating func note(_ actor: Actor) {
    let party = world[actor]
    guard case .into(let epoch) = party.upload else { return }
    let state = party.state
    uploads.append(
      Upload(
        device: actor.keys.id, epoch: epoch, gone: Set(state.limited.filter(\.isRemoved).map(\.device)),
        closed: Set(state.invites.filter { $0.status(now: 0) != .open && !$0.terms.confirm }.map(\.terms.id))))
  }

  private mutating func act(_ actor: Actor) {
    let state = world[actor].state
    guard let own = state.device(actor.keys.id) else { return }
    switch world.random.number(below: 12) {
    case 0, 1, 2: _ = world.sync(actor)
    case 3: _ = try? world.next(by: actor)
    case 4, 5:
      guard actors.count < 12, let link = try? world.invite(chance(40) ? .owner : .member, by: actor) else { return }
      links.append(link)
      let newcomer = Actor("p\(actors.count)", &world.random)
      let known = world[actor].roster.entries
      world.arrive(newcomer, with: link, knowing: known)
      actors.append(newcomer)
      if chance(80) { _ = try? world.write(.admit(claim: world.claim(newcomer, link).bytes), by: actor) }
      if chance(70) { _ = world.sync(actor) }
    case 6:
      guard actors.count < 12, !own.isKit else { return }
      if let device = try? world.add("d\(actors.count)", of: actor, isTold: false) { actors.append(device) }
    case 7, 8:
      let others = state.devices.filter { $0.id != own.id && (own.role == .owner ? true : $0.person == own.person) }
      guard let target = pick(others) else { return }
      let targets =
        chance(50) && target.person != own.person
        ? state.devices.filter { $0.person == target.person } : [target]
      let confirming = Set(state.devices.map(\.id).filter { !malicious.contains($0) })
      let change = NextChange(
        removing: Dictionary(targets.map { ($0.id, []) }) { a, _ in a },
        confirming: own.role == .owner ? confirming : [])
      if (try? world.next(change, by: actor)) != nil {
        let gone = Set(world[actor].state.devices.map(\.id))
        retired.formUnion(targets.map(\.id).filter { !gone.contains($0) })
      }
    case 9:
      guard let person = pick(state.people), own.role == .owner, person.id != own.person else { return }
      let roles: [Role] = [.reader, .member, .owner]
      _ = try? world.next(NextChange(roles: [person.id: roles[world.random.number(below: 3)]]), by: actor)
    case 10:
      guard actor.keys.id != world.ana.keys.id, (try? world.write(.leave, by: actor)) != nil else { return }
      retired.formUnion(state.devices.filter { $0.person == own.person }.map(\.id))
    default:
      if malicious.count < 3 && actors.count > 3 && actor.keys.id != world.ana.keys.id && !own.isFoundingKit {
        malicious.insert(actor.keys.id)
      } else if let link = pick(links) {
        _ = try? world.write(.revokeInvite(link.terms.id), by: actor)
      }
    }
  }

  private mutating func misbehave(_ actor: Actor) {
    let party = world[actor]
    let state = party.state
    switch world.random.number(below: 7) {
    case 0:
      let wrong = KeySeal([UInt8](repeating: UInt8(world.random.number(below: 256)), count: 80))
      guard let victim = pick(state.devices), let wrong else { return }
      world.forgeNext(by: actor) { next, _ in
        next.with(
          recipients: next.recipients.map {
            $0.id == victim.id.bytes ? .init(kind: $0.kind, id: $0.id, seal: wrong) : $0
          })
      }
    case 1:
      guard let victim = pick(state.devices.filter { $0.id != actor.keys.id }) else { return }
      world.forgeNext(by: actor) { next, _ in next.with(recipients: next.recipients.filter { $0.id != victim.id.bytes })
      }
    case 2:
      // A removal of somebody, from an older world of its own.
      guard let target = pick(state.devices.filter { $0.id != actor.keys.id }),
        let at = pick(world.written.filter { $0.origin == actor.origin })
      else { return }
      let older = past(of: at)
      var view = Roster(household: world.household, evaluating: .everyEpoch)
      for entry in older { view.add(entry) }
      world.forgeNext(
        NextChange(removing: [target.id: []], confirming: Set(view.state.devices.map(\.id))), by: actor,
        citing: [], after: at, in: view
      ) { next, _ in next }
    case 3:
      guard actors.count < 12, state.device(actor.keys.id) != nil,
        let mole = try? world.add("m\(actors.count)", of: actor, isKit: chance(50), isTold: false)
      else { return }
      actors.append(mole)
      malicious.insert(mole.keys.id)
    case 4:
      guard let epoch = pick(party.ring.keys.keys.sorted()), let device = pick(state.devices) else { return }
      let wrong = EpochKey(&world.random)
      if let seal = wrong.seal(to: device.keys.box) { world.force(.seal(device.id, epoch: epoch, seal), by: actor) }
    case 5:
      guard let target = pick(state.devices.filter { $0.id != actor.keys.id }) else { return }
      _ = try? world.next(NextChange(removing: [target.id: []]), by: actor)
    default:
      if let epoch = pick(state.epochEnds) { world.force(.deny(epoch), by: actor) }
    }
  }

  private func past(of entry: RosterEntry) -> [RosterEntry] {
    let byHash = Dictionary(world.written.map { ($0.hash, $0) }) { a, _ in a }
    var found: Set<EntryHash> = []
    var open = [entry.hash]
    while let hash = open.popLast() {
      guard found.insert(hash).inserted, let one = byHash[hash] else { continue }
      open += one.heads + (one.previous.map { [$0] } ?? [])
    }
    return world.written.filter { found.contains($0.hash) }
  }

  /// The keys that these devices and links come by, with everything in the store, leaks of others aside.
  func keys(of devices: Set<DeviceID>, _ invites: Set<InviteID>) -> [EpochID: EpochKey] {
    var ring = EpochRing(household: world.household)
    for actor in actors where devices.contains(actor.keys.id) { ring.hold(actor.keys.box, of: actor.keys.id) }
    for link in links where invites.contains(link.terms.id) {
      ring.hold(link.keys.boxKey, of: link.terms.id)
      ring.hold(link.key, of: link.epoch)
    }
    for actor in actors where devices.contains(actor.keys.id) {
      for entry in world.written where entry.origin == actor.origin {
        if let key = world[actor].ring.keys[entry.hash] { ring.hold(key, of: entry.hash) }
      }
    }
    ring.walk(world.written.filter { !leaks.contains($0.hash) })
    return ring.keys
  }
}

extension SeededRandom {
  fileprivate var isLucky: Bool {
    var copy = self
    return copy.number(below: 2) == 0
  }
}

@Suite("Random households over a store that withholds, with malicious devices")
struct EpochPropertyTests {
  @Test(
    "once the store shows all, honest devices agree, hold every key and write to one epoch; nobody removed reads it",
    arguments: Array(0..<12) + [33, 120, 145, 151, 179, 313, 1434])
  func heals(_ seed: Int) throws {
    var household = try RandomHousehold("heals \(seed)")
    household.run(60)
    var world = household.world
    // Links expire, as they do.
    let present = household.honest
    try world.settleDown(present, now: 2000)
    household.world = world
    let live = present.filter { world[$0].state.device($0.keys.id) != nil && !world[$0].state.isClosed }
    guard let first = live.first(where: { world[$0].roster.role(of: $0.keys.id) ?? .reader >= .member }) else { return }
    let state = world[first].state
    for actor in live {
      let other = world[actor].state
      #expect(other.devices == state.devices && other.epochEnds == state.epochEnds, "\(actor.name)")
      #expect(other.currentEpoch == state.currentEpoch && other.limited == state.limited && other.void == state.void)
      let current = try #require(state.currentEpoch)
      #expect(world[actor].upload == .into(current), "\(actor.name)")
    }
    #expect(state.people.contains { $0.role == .owner })
    // What was written is read by all who stay.
    let held = live.map { Set(world[$0].ring.keys.keys) }
    for upload in household.uploads where held.contains(where: { $0.contains(upload.epoch) }) {
      #expect(held.allSatisfy { $0.contains(upload.epoch) })
    }
    // And by nobody whom its writer knew to be out, and who is. Whose removal came to nothing, with the epoch that began with
    // it, may read it.
    let out = Set(state.limited.filter(\.isRemoved).map(\.device))
    let void = Set(state.void.map(\.epoch))
    for upload in household.uploads where !void.contains(upload.epoch) {
      let reach = household.keys(of: upload.gone.intersection(out), upload.closed)
      #expect(reach[upload.epoch] == nil, "\(upload.device.short) wrote to \(upload.epoch.short)")
    }
    // The same entries, in another order, with no keys but this device's: the same.
    var again = EpochWorld.Party(
      actor: first, roster: Roster(household: world.household, evaluating: .everyEpoch), ring: world[first].ring)
    again.hear(world.random.shuffled(world.written))
    #expect(again.state == state)
  }
}
