import LatchkeyEncoding
import LatchkeyKeys
import Testing

extension SeededRandom {
  mutating func number(below limit: Int) -> Int {
    let raw = bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return Int(raw % UInt64(limit))
  }
  mutating func shuffled<T>(_ list: [T]) -> [T] {
    var out = list
    for at in out.indices.dropFirst() { out.swapAt(at, number(below: at + 1)) }
    return out
  }
}

/// Random households: several devices that have each seen something else, write what they may and may not, and fork.
private struct RandomHistory {
  var world: RosterWorld
  var actors: [Actor]
  var views: [DeviceID: Roster] = [:]
  var links: [(OpenInvite, LinkKeys)] = []
  var claims: [Claim] = []
  var zones: [ZoneID] = []

  init(_ seed: String, isPrivate: Bool) throws {
    world = try RosterWorld(seed, isPrivate: isPrivate)
    actors = [world.ana]
    for name in ["Ben", "Cleo", "Mallory"] { actors.append(Actor(name, &world.random)) }
    actors.append(try Actor("laptop", of: world.ana, &world.random))
    actors.append(try Actor("phone", of: actors[1], &world.random))
    for actor in actors {
      views[actor.keys.id] = world.roster
    }
  }

  /// Goes on until so many entries are written.
  mutating func run(_ entries: Int) {
    var steps = 0
    while world.written.count < entries && steps < 10 * entries {
      step()
      steps += 1
    }
  }

  private mutating func step() {
    let at = world.random.number(below: actors.count)
    let actor = actors[at]
    guard var view = views[actor.keys.id] else { return }
    // Now and then it hears of some of what was written, in whatever order.
    for made in world.random.shuffled(world.written) where world.random.number(below: 4) > 0 { view.add(made) }
    if view.role(of: actor.keys.id) == nil && world.random.number(below: 6) > 0 {
      views[actor.keys.id] = view
      return
    }
    // Mostly something that it may do, now and then whatever comes to mind.
    var operation = self.operation(actor)
    let isBold = world.random.number(below: 3) == 0
    var tries = 0
    while !isBold, tries < 4, view.refusal(of: operation, by: actor.origin) != nil {
      operation = self.operation(actor)
      tries += 1
    }
    if isBold || view.refusal(of: operation, by: actor.origin) == nil {
      let before = view
      if world.random.number(below: 3) == 0 { world.hlc -= 1 }
      view.add(world.make(operation, by: actor, in: before))
      if world.random.number(below: 20) == 0 {
        let twin = world.make(.profile(personName: "twin", deviceName: ""), by: actor, in: before)
        if world.random.number(below: 2) == 0 { view.add(twin) }
        if world.random.number(below: 4) > 0 { actors[at].begin(Incarnation(UInt64(world.written.count))) }
      }
    }
    views[actor.keys.id] = view
  }

  private mutating func operation(_ actor: Actor) -> RosterOperation {
    func pick<T>(_ list: [T], _ random: inout SeededRandom) -> T? {
      list.isEmpty ? nil : list[random.number(below: list.count)]
    }
    switch world.random.number(below: 14) {
    case 0, 1:
      let zone = ZoneID(world.random.bytes(16)) ?? .zero
      zones.append(zone)
      return .zone(zone, name: "zone")
    case 2:
      return .closeZone(CloseZone(zone: pick(zones, &world.random) ?? .zero, reason: .deleted))
    case 3, 4, 5:
      let role = InviteRole.allCases[world.random.number(below: 4)]
      let made = world.invite(role, uses: UInt64(1 + world.random.number(below: 2)))
      links.append(made)
      return .openInvite(made.0)
    case 6, 7, 8, 9:
      if let (terms, link) = pick(links, &world.random), let newcomer = pick(actors, &world.random) {
        claims.append(world.claim(newcomer, terms, link))
      }
      return pick(claims, &world.random).map { .admit(claim: $0.bytes) } ?? .profile(personName: "", deviceName: "")
    case 10:
      return .revokeInvite(pick(links, &world.random)?.0.id ?? .zero)
    case 11:
      let device = actors[4 + world.random.number(below: 2)]
      return .addDevice(device.certificate, name: device.name, isKit: false)
    case 12:
      return world.random.number(below: 60) == 0 ? .leave : .profile(personName: actor.name, deviceName: "d")
    default:
      return .profile(personName: actor.name + "!", deviceName: actor.name)
    }
  }
}

/// All that a roster says.
private struct Outcome: Equatable {
  let state: RosterState
  let heads: [EntryHash]
  let verdicts: [RosterVerdict?]
  init(_ roster: Roster, _ written: [RosterEntry]) {
    state = roster.state
    heads = roster.heads
    verdicts = written.map { roster.verdict(of: $0.hash) }
  }
}

@Suite("The roster is a function of the set of its entries")
struct RosterPropertyTests {
  @Test(
    "every delivery order, with repetitions, gives the same people, devices, zones, invites and verdicts",
    arguments: 0..<12)
  func permutations(_ seed: Int) throws {
    var history = try RandomHistory("history \(seed)", isPrivate: seed % 6 == 0)
    history.run(70)
    let written = history.world.written
    var inOrder = Roster(household: history.world.household)
    for made in written { inOrder.add(made) }
    let expected = Outcome(inOrder, written)
    for _ in 0..<4 {
      var roster = Roster(household: history.world.household)
      for made in history.world.random.shuffled(written + written.prefix(10)) { roster.add(made) }
      #expect(Outcome(roster, written) == expected)
    }
  }

  @Test("an entry's verdict depends on its ancestors and on nothing else")
  func ancestorsOnly() throws {
    var seen = Set<RosterVerdict>()
    for seed in 0..<6 { try check(seed, &seen) }
    #expect(seen.count > 5, "the histories are too tame to prove anything")
  }

  private func check(_ seed: Int, _ seen: inout Set<RosterVerdict>) throws {
    var history = try RandomHistory("ancestors \(seed)", isPrivate: false)
    history.run(60)
    let written = history.world.written
    var whole = Roster(household: history.world.household)
    for made in written { whole.add(made) }
    let byHash = Dictionary(written.map { ($0.hash, $0) }) { a, _ in a }
    for made in written {
      var needed: Set<EntryHash> = []
      var open = [made.hash]
      while let hash = open.popLast() {
        guard needed.insert(hash).inserted, let entry = byHash[hash] else { continue }
        open += entry.heads + (entry.previous.map { [$0] } ?? [])
      }
      var alone = Roster(household: history.world.household)
      for entry in written where needed.contains(entry.hash) { alone.add(entry) }
      let verdict = try #require(alone.verdict(of: made.hash))
      #expect(whole.verdict(of: made.hash) == verdict)
      seen.insert(verdict)
    }
  }

  @Test("nobody gains a right by what arrives later: the roles of a counting entry's author were given before it")
  func noGhosts() throws {
    for seed in 0..<6 {
      var history = try RandomHistory("ghosts \(seed)", isPrivate: false)
      history.run(60)
      var roster = Roster(household: history.world.household)
      var enrolled: Set<DeviceID> = [history.world.ana.keys.id]
      for made in history.world.written {
        let before = Set(roster.state.devices.map(\.id))
        if roster.add(made) == .counts {
          #expect(enrolled.contains(made.origin.device))
          let after = Set(roster.state.devices.map(\.id))
          let brings: Bool
          switch made.operation {
          case .genesis, .admit, .addDevice: brings = true
          default: brings = false
          }
          #expect(brings || after == before)
          enrolled = after
        } else {
          #expect(Set(roster.state.devices.map(\.id)) == before)
        }
      }
    }
  }

  /// What a roster says after two entries that have not seen each other, in both orders.
  private func bothOrders(_ world: RosterWorld, _ one: RosterEntry, _ two: RosterEntry) -> (
    RosterState, [RosterVerdict?]
  ) {
    var (first, second) = (world.roster, world.roster)
    first.add(one)
    first.add(two)
    second.add(two)
    second.add(one)
    #expect(Outcome(first, [one, two]) == Outcome(second, [one, two]))
    return (first.state, [first.verdict(of: one.hash), first.verdict(of: two.hash)])
  }

  @Test("an admission and a revocation that have not seen each other both count, in either order")
  func revokedMeanwhile() throws {
    var world = try RosterWorld("revoked meanwhile")
    let ben = world.join("Ben", as: .member)
    let (terms, link) = world.invite(.reader)
    world.write(.openInvite(terms), by: world.ana)
    let cleo = Actor("Cleo", &world.random)
    let admit = world.make(.admit(claim: world.claim(cleo, terms, link).bytes), by: ben, in: world.roster)
    let revoke = world.make(.revokeInvite(terms.id), by: world.ana, in: world.roster)
    let (state, verdicts) = bothOrders(world, admit, revoke)
    #expect(verdicts == [.counts, .counts])
    #expect(state.device(cleo.keys.id) != nil && state.invites.contains { $0.terms == terms && $0.isRevoked })
  }

  @Test("who was narrowed by somebody whose entry it had not seen keeps what it did before it knew")
  func narrowedMeanwhile() throws {
    var world = try RosterWorld("narrowed meanwhile")
    let ben = world.join("Ben", as: .member)
    let (wide, wideLink) = world.invite(.owner)
    let (narrow, narrowLink) = world.invite(.reader)
    world.write(.openInvite(wide), by: world.ana)
    world.write(.openInvite(narrow), by: world.ana)
    let cleo = Actor("Cleo", &world.random)
    let narrowing = world.make(
      .admit(claim: world.claim(cleo, narrow, narrowLink).bytes), by: ben, in: world.roster)
    world.write(.admit(claim: world.claim(cleo, wide, wideLink).bytes), by: world.ana)
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    let opening = world.make(.zone(zone, name: "hers"), by: cleo, in: world.roster)
    let (state, verdicts) = bothOrders(world, narrowing, opening)
    #expect(verdicts == [.counts, .counts])
    #expect(state.zone(zone) != nil && state.device(cleo.keys.id)?.role == .reader)
    world.roster.add(narrowing)
    #expect(world.roster.refusal(of: .zone(zone, name: "x"), by: cleo.origin) == .role)
  }

  @Test("a device that two brought in at the same time has one name, whoever was heard of first")
  func broughtTwice() throws {
    var world = try RosterWorld("brought twice")
    let ben = world.join("Ben", as: .member)
    let other = try Actor("other", of: ben, &world.random)
    world.write(.addDevice(other.certificate, name: "other", isKit: false), by: ben)
    let phone = try Actor("phone", of: ben, &world.random)
    let one = world.make(.addDevice(phone.certificate, name: "one", isKit: false), by: ben, in: world.roster)
    let two = world.make(.addDevice(phone.certificate, name: "two", isKit: true), by: other, in: world.roster)
    let (state, verdicts) = bothOrders(world, one, two)
    #expect(verdicts == [.counts, .counts])
    let device = try #require(state.device(phone.keys.id))
    #expect(device.name == (one.hash < two.hash ? "one" : "two") && device.isKit == (device.name == "two"))
  }

  @Test("of two names, two zones' names and two household keys with equal clocks one wins, in either order")
  func equalClocks() throws {
    var world = try RosterWorld("equal clocks")
    let ben = world.join("Ben", as: .member)
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    world.write(.zone(zone, name: "first"), by: world.ana)
    func pair(_ one: RosterOperation, _ two: RosterOperation, by second: Actor) -> (RosterEntry, RosterEntry) {
      let hlc = world.hlc
      let made = world.make(one, by: world.ana, in: world.roster)
      world.hlc = hlc
      return (made, world.make(two, by: second, in: world.roster))
    }
    var (one, two) = pair(.zone(zone, name: "a"), .zone(zone, name: "b"), by: ben)
    #expect(one.hlc == two.hlc)
    #expect(bothOrders(world, one, two).0.zone(zone)?.name == (one.hash > two.hash ? "a" : "b"))
    // One device in two incarnations.
    var again = world.ana
    again.begin(Incarnation(77))
    (one, two) = pair(
      .profile(personName: "a", deviceName: "a"), .profile(personName: "b", deviceName: "b"), by: again)
    let state = bothOrders(world, one, two).0
    #expect(state.person(world.ana.chain.person)?.name == (one.hash > two.hash ? "a" : "b"))
    #expect(state.device(world.ana.keys.id)?.name == (one.hash > two.hash ? "a" : "b"))
  }
}
