import LatchkeyEncoding
import LatchkeyKeys
import Testing

extension Next {
  /// A copy with something else in it.
  func with(
    parents: [EpochID]? = nil, commitment: Hash32? = nil, recipients: [Recipient]? = nil, formers: [Former]? = nil,
    removals: [Removal]? = nil, confirmed: [DeviceID]? = nil
  ) -> Next {
    Next(
      parents: parents ?? self.parents, form: form, commitment: commitment ?? self.commitment,
      recipients: recipients ?? self.recipients, formers: formers ?? self.formers, removals: removals ?? self.removals,
      roles: roles, confirmed: confirmed ?? self.confirmed, store: store)
  }

  func without(_ actor: Actor) -> Next { with(recipients: recipients.filter { $0.id != actor.keys.id.bytes }) }
}

extension EpochKey {
  func seal(for actor: Actor) throws -> KeySeal { try #require(seal(to: actor.keys.publicKeys.box)) }
}

@Suite("Rules of the roster: concurrent Nexts, removals, recipients")
struct RosterRuleTests {
  @Test("rule 1: a key is carried only if its Next is judged in the author's own view")
  func onlyJudgedKeys() throws {
    var world = try EpochWorld("rule 1")
    let ben = try world.join("Ben", as: .member)
    let base = try #require(world[ben].state.currentEpoch)
    // Ana removes Cleo in an epoch of which Ben sees the key (a box opened early), but not yet the entry's ancestors.
    let zone = try world.write(.zone(ZoneID(world.random.bytes(16)) ?? .zero, name: "z"), by: world.ana)
    let hidden = try world.next(by: world.ana)
    world.tell(ben, [hidden])
    #expect(!world[ben].knows(zone) && !world[ben].knows(hidden))
    #expect(world[ben].ring.keys[hidden.hash] != nil, "walked first, although it cannot be judged")
    let next = try world.next(by: ben)
    guard case .next(let made) = next.operation else { return }
    #expect(made.formers.map(\.epoch).contains(base) && !made.formers.map(\.epoch).contains(hidden.hash))
  }

  @Test("rule 2: mutual removal: the senior's counts whoever is heard first, the junior's is read and never written")
  func mutualRemoval() throws {
    var world = try EpochWorld("mutual removal")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    let byAna = try world.next(
      NextChange(removing: [ben.keys.id: []], confirming: [cleo.keys.id]), by: world.ana)
    let byBen = try world.next(
      NextChange(removing: [world.ana.keys.id: []], confirming: [ben.keys.id, cleo.keys.id]), by: ben)
    for order in [[byAna, byBen], [byBen, byAna]] {
      var copy = world
      for entry in order { copy.tell(cleo, [entry]) }
      let state = copy[cleo].state
      #expect(state.devices.map(\.id) == [world.ana.keys.id, cleo.keys.id].sorted())
      #expect(state.currentEpoch == byAna.hash && state.epochEnds == [byAna.hash])
      let void = try #require(state.void.first)
      #expect(void.epoch == byBen.hash && void.author == ben.keys.id && void.removals == [world.ana.keys.id])
      // Read: its key is here. Never written.
      #expect(copy[cleo].ring.keys[byBen.hash] != nil && copy[cleo].upload == .into(byAna.hash))
    }
    // The void epoch's key is not lost: it goes under the next one.
    world.tellAll()
    try world.settleDown([world.ana, cleo])
    let next = try world.next(by: world.ana)
    guard case .next(let made) = next.operation else { return }
    #expect(made.formers.map(\.epoch).contains(byBen.hash))
  }

  @Test("rule 2: what was decided among concurrent Nexts stays decided, whoever signs the one that joins them")
  func decidedStaysDecided() throws {
    var world = try EpochWorld("decided", withKit: true)
    let kit = try #require(world.kit)
    let senior = try world.add("senior", of: world.ana)
    let junior = try world.add("junior", of: world.ana)
    try world.next(by: world.ana)
    world.tellAll()
    // The senior's Next lies deeper in the graph than the junior's.
    for name in ["a", "b", "c"] { try world.write(.profile(personName: "Ana", deviceName: name), by: senior) }
    try world.next(NextChange(removing: [junior.keys.id: []]), by: senior)
    try world.next(NextChange(removing: [senior.keys.id: []]), by: junior)
    world.tellAll()
    let before = world[kit].state.devices.map(\.id)
    #expect(before.contains(senior.keys.id) && !before.contains(junior.keys.id))
    // The kit outranks both, and its Next is taken first, after its ancestors: in the order in which it knew them.
    try world.next(by: kit)
    world.tellAll()
    #expect(world[world.ana].state.devices.map(\.id) == before)
    #expect(world[world.ana].state.void.count == 1)
  }

  @Test("rule 2: all removals of concurrent Nexts count; the following one names all as parents and carries all keys")
  func allRemovalsCount() throws {
    var world = try EpochWorld("all removals")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    let dora = try world.join("Dora", as: .member)
    let one = try world.next(NextChange(removing: [cleo.keys.id: []]), by: world.ana)
    let two = try world.next(NextChange(removing: [dora.keys.id: []]), by: ben)
    world.tellAll()
    for actor in [world.ana, ben] {
      #expect(world[actor].state.devices.count == 2 && world[actor].state.currentEpoch == one.hash)
      #expect(world[actor].holds == [.strangers([dora.keys.id])], "Dora was given the better Next's key")
    }
    try world.settleDown([ben])
    world.tellAll()
    let joined = try #require(world[ben].state.epochEnds.first)
    let entry = try #require(world.written.first { $0.hash == joined })
    guard case .next(let next) = entry.operation else { return }
    #expect(next.parents == [one.hash, two.hash].sorted() && world[world.ana].upload == .into(joined))
    let carried = Set(next.formers.map(\.epoch))
    #expect(carried.isSuperset(of: [one.hash, two.hash, world.household]))
    for gone in [cleo, dora] { #expect(world[gone].ring.keys[joined] == nil) }
  }

  @Test("rule 2: rank is by kit, role, enrolment and device; no hash can be ground to win")
  func rankGrinding() throws {
    var world = try EpochWorld("grinding")
    let ben = try world.join("Ben", as: .owner)
    let byAna = try world.next(NextChange(removing: [ben.keys.id: []]), by: world.ana)
    // Ben tries many keys, and so many hashes.
    for _ in 0..<40 {
      var copy = world
      let byBen = try copy.next(NextChange(removing: [copy.ana.keys.id: []], confirming: [ben.keys.id]), by: ben)
      copy.tellAll()
      #expect(copy[copy.ana].state.currentEpoch == byAna.hash)
      #expect(copy[copy.ana].state.void.map(\.epoch) == [byBen.hash])
    }
  }

  @Test(
    "rule 3: what a removed device does beside its removal falls, with whatever it brought in, and with whatever that did"
  )
  func strongRemoval() throws {
    var world = try EpochWorld("strong removal")
    let phone = try world.add("phone", of: world.ana)
    try world.next(by: world.ana)
    world.tellAll()
    // The phone is stolen. Ana removes it; the thief, who does not know, goes on.
    try world.next(NextChange(removing: [phone.keys.id: []]), by: world.ana)
    let mole = try world.add("mole", of: phone, isTold: false)
    let link = try world.invite(.owner, by: mole)
    let mallory = Actor("Mallory", &world.random)
    world.arrive(mallory, with: link)
    let admission = try world.write(.admit(claim: world.claim(mallory, link).bytes), by: mole)
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    let opening = try world.write(.zone(zone, name: "mine"), by: mole)
    world.tellAll()
    let state = world[world.ana].state
    #expect(state.devices.map(\.id) == [world.ana.keys.id] && state.people.count == 1)
    #expect(state.zones.isEmpty && state.invites.isEmpty)
    #expect(Set(state.fallen).isSuperset(of: [admission.hash, opening.hash, link.entry.hash]))
    // They were right when they were made: the verdict on an entry never changes.
    #expect(world[world.ana].roster.verdict(of: admission.hash) == .counts)
    #expect(world[world.ana].holds.isEmpty)
  }

  @Test("rule 3: what a removed device did before its removal was written counts")
  func ancestorsOfTheRemoval() throws {
    var world = try EpochWorld("before removal")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member, by: ben)
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    try world.write(.zone(zone, name: "dogs"), by: ben)
    world.tellAll()
    try world.next(NextChange(removing: [ben.keys.id: []], confirming: [cleo.keys.id]), by: world.ana)
    world.tellAll()
    #expect(world[cleo].state.zone(zone) != nil && world[cleo].state.device(cleo.keys.id) != nil)
    #expect(world[cleo].state.fallen.isEmpty)
  }

  @Test("rule 3: backdated operations of a removed owner count for nothing, on every device and in every order")
  func backdated() throws {
    var world = try EpochWorld("backdated")
    let ben = try world.join("Ben", as: .owner)
    let old = world[ben].roster.heads
    let link = try world.invite(.reader, by: ben)
    world.tellAll()
    try world.next(NextChange(removing: [ben.keys.id: []]), by: world.ana)
    world.tellAll()
    // Ben forks his log before the invite and cites the old world.
    let previous = world.written.last { $0.origin == ben.origin && $0.hash != link.entry.hash }
    let zone = world.force(
      .zone(ZoneID(world.random.bytes(16)) ?? .zero, name: "late"), by: ben, citing: old, after: previous, isTold: false
    )
    let closing = world.force(.closeZone(CloseZone(zone: .zero, reason: .deleted)), by: ben, citing: old, after: zone)
    world.tellAll()
    let state = world[world.ana].state
    #expect(state.zones.isEmpty && state.people.count == 1)
    #expect(state.fallen.contains(zone.hash) || world[world.ana].roster.verdict(of: zone.hash) != .counts)
    #expect(world[world.ana].roster.verdict(of: closing.hash) != .counts)
  }

  @Test("rule 3: a demoted member's acts that need the lost right fall if they are beside the narrowing; others stay")
  func demoted() throws {
    var world = try EpochWorld("demoted")
    let ben = try world.join("Ben", as: .owner)
    let seen = ZoneID(world.random.bytes(16)) ?? .zero
    try world.write(.zone(seen, name: "seen"), by: ben)
    world.tellAll()
    try world.next(NextChange(roles: [ben.chain.person: .reader]), by: world.ana)
    // Ben has not heard. Later he cites only the old heads, on purpose.
    let unseen = ZoneID(world.random.bytes(16)) ?? .zero
    let opening = try world.write(.zone(unseen, name: "unseen"), by: ben)
    let link = try world.invite(.owner, by: ben)
    let mallory = Actor("Mallory", &world.random)
    let admission = try world.write(.admit(claim: world.claim(mallory, link).bytes), by: ben)
    let profile = try world.write(.profile(personName: "Benjamin", deviceName: "b"), by: ben)
    world.tellAll()
    let state = world[world.ana].state
    #expect(state.fallen == [opening.hash, link.entry.hash, admission.hash].sorted())
    #expect(state.zones.map(\.id) == [seen] && state.device(mallory.keys.id) == nil)
    #expect(world[world.ana].roster.verdict(of: profile.hash) == .counts)
    #expect(state.people.contains { $0.name == "Benjamin" && $0.role == .reader })
  }

  @Test("rule 4: a Next that leaves somebody out without removing it, or lets a ghost in, is refused")
  func recipients() throws {
    var world = try EpochWorld("recipients")
    let ben = try world.join("Ben", as: .member)
    let cleo = try world.join("Cleo", as: .member)
    let mallory = Actor("Mallory", &world.random)
    let omittingMade = world.forgeNext(by: ben) { next, _ in next.without(cleo) }
    let omitting = try #require(omittingMade)
    #expect(world[ben].roster.verdict(of: omitting.hash) == .refused(.next(.recipients)))
    var other = world
    let forged = try other.forgeNext(by: ben) { next, key in
      let seal = Next.Recipient(kind: .device, id: mallory.keys.id.bytes, seal: try key.seal(for: mallory))
      return next.with(recipients: (next.recipients + [seal]).sorted { $0.id.lexicographicallyPrecedes($1.id) })
    }
    let ghost = try #require(forged)
    #expect(other[ben].roster.verdict(of: ghost.hash) == .refused(.next(.recipients)))
    other.tellAll()
    #expect(other[cleo].state.epochEnds.count == 1 && other[cleo].holds.isEmpty)
  }

  @Test("rule 5: a stolen device can neither enrol a kit that outranks its owner nor outrank its own removal")
  func seniority() throws {
    var world = try EpochWorld("seniority", withKit: true)
    let kit = try #require(world.kit)
    let phone = try world.add("phone", of: world.ana)
    try world.next(by: world.ana)
    world.tellAll()
    #expect(world[world.ana].state.device(kit.keys.id)?.isFoundingKit == true)
    // The thief makes a kit of its own, beside the removal, and answers with it.
    let removal = try world.next(NextChange(removing: [phone.keys.id: []]), by: world.ana)
    let paper = try world.add("paper", of: phone, isKit: true, isTold: false)
    #expect(world[phone].state.device(paper.keys.id)?.isKit == true)
    #expect(world[phone].state.device(paper.keys.id)?.isFoundingKit == false)
    let answer = try world.next(
      NextChange(removing: [world.ana.keys.id: []], confirming: [phone.keys.id, paper.keys.id, kit.keys.id]), by: paper)
    world.tellAll()
    for actor in [world.ana, kit] {
      #expect(world[actor].state.devices.map(\.id) == [world.ana.keys.id, kit.keys.id].sorted())
      #expect(world[actor].state.void.map(\.epoch) == [answer.hash])
      #expect(world[actor].state.currentEpoch == removal.hash)
    }
    // A kit that a founding kit adds ranks as one.
    let second = try world.add("second kit", of: kit, isKit: true)
    #expect(world[world.ana].state.device(second.keys.id)?.isFoundingKit == true)
  }

  @Test("rule 5: the kit's removal of an owner's first device stands against anything that device signs")
  func kitOutranks() throws {
    var world = try EpochWorld("kit outranks", withKit: true)
    let kit = try #require(world.kit)
    let ben = try world.join("Ben", as: .owner)
    let byKit = try world.next(
      NextChange(removing: [world.ana.keys.id: []], confirming: [ben.keys.id, kit.keys.id]), by: kit)
    try world.next(NextChange(removing: [kit.keys.id: [], ben.keys.id: []]), by: world.ana)
    world.tellAll()
    #expect(world[ben].state.currentEpoch == byKit.hash)
    #expect(world[ben].state.devices.map(\.id) == [kit.keys.id, ben.keys.id].sorted())
  }

  @Test("rule 6: after an admission or revocation nothing is uploaded before a Next that knows it")
  func closedLinks() throws {
    var world = try EpochWorld("closed links")
    let ben = try world.join("Ben", as: .member)
    let link = try world.invite(.reader, by: world.ana)
    world.tellAll()
    #expect(world[ben].holds.isEmpty, "an open link does no harm")
    try world.write(.revokeInvite(link.terms.id), by: world.ana)
    world.tellAll()
    #expect(world[ben].holds == [.closedInvites([link.terms.id])])
    // A Next beside the revocation does not help, even if it was not sealed to the link.
    var apart = try EpochWorld("apart")
    let dan = try apart.join("Dan", as: .member)
    let second = try apart.invite(.reader, by: apart.ana)
    apart.tellAll()
    try apart.next(NextChange(leavingOut: [second.terms.id]), by: dan)
    try apart.write(.revokeInvite(second.terms.id), by: apart.ana)
    apart.tellAll()
    #expect(apart[dan].holds == [.closedInvites([second.terms.id])])
    try apart.settleDown([dan])
    #expect(apart[dan].holds.isEmpty)
    // A revoked link's holder, with everything in the store, does not read on.
    let thief = Actor("Thief", &apart.random)
    apart.arrive(thief, with: second)
    #expect(apart[dan].currentKey.map { key in !apart[thief].ring.keys.values.contains(key) } == true)
  }

  @Test("rule 6: a removing Next closes every invite opened among its ancestors")
  func removalClosesInvites() throws {
    var world = try EpochWorld("removal closes")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    let early = try world.invite(.member, by: ben)
    world.tellAll()
    try world.next(NextChange(removing: [cleo.keys.id: []]), by: world.ana)
    let beside = try world.invite(.member, by: ben)
    world.tellAll()
    let invites = world[ben].state.invites
    #expect(invites.first { $0.opened == early.entry.hash }?.status(now: 0) == .revoked)
    #expect(invites.first { $0.opened == beside.entry.hash }?.status(now: 0) == .open)
    guard case .next(let next) = world.written[world.written.count - 2].operation else { return }
    #expect(!next.recipients.contains { $0.kind == .invite })
  }

  @Test("rule 7: any role seals the key to a device that was enrolled beside the Next")
  func sealing() throws {
    var world = try EpochWorld("sealing")
    let ben = try world.join("Ben", as: .member)
    let cleo = try world.join("Cleo", as: .reader)
    // Ben's phone comes in beside Ana's rotation.
    let next = try world.next(by: world.ana)
    let phone = try world.add("phone", of: ben, isTold: false)
    world.tellAll()
    #expect(world[phone].ring.keys[next.hash] == nil)
    #expect(world[phone].holds == [.noKey(next.hash), .unproven([next.hash])])
    #expect(world[ben].holds.isEmpty)
    _ = world.sync(cleo)
    world.tellAll()
    #expect(world[phone].upload == .into(next.hash), "a reader sealed it")
    // Nobody needs to do it twice.
    let written = world.written.count
    try world.settleDown([world.ana, ben, cleo, phone])
    #expect(world.written.count == written)
  }

  @Test("rule 7: a garbage Seal gives nothing, and does not keep others from sealing the right one")
  func garbageSeal() throws {
    var world = try EpochWorld("garbage Seal")
    let ben = try world.join("Ben", as: .member)
    let mallory = try world.join("Mallory", as: .reader)
    let next = try world.next(by: world.ana)
    let phone = try world.add("phone", of: ben, isTold: false)
    let wrong = EpochKey(&world.random)
    world.tell(mallory, world.written)
    let garbage = RosterOperation.seal(phone.keys.id, epoch: next.hash, try wrong.seal(for: phone))
    world.force(garbage, by: mallory)
    world.tellAll()
    #expect(world[phone].ring.keys[next.hash] == nil)
    _ = world.sync(world.ana)
    world.tellAll()
    #expect(world[phone].ring.keys[next.hash] != nil)
    // An honest device does not sign what others would find wrong.
    #expect(world[ben].roster.refusal(of: garbage, by: ben.origin) == .seal)
  }

  @Test(
    "rule 10: a Next with one wrong seal is void for all: its recipients tell, and show its key to those who cannot")
  func garbageInNext() throws {
    var world = try EpochWorld("garbage in Next")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    let base = try #require(world[cleo].state.currentEpoch)
    // Ben's Next has garbage for Cleo; Cleo's phone is enrolled beside it and cannot tell.
    let phone = try world.add("phone", of: cleo, isTold: false)
    let garbage = try EpochKey(&world.random).seal(for: world.ana)
    let made = world.forgeNext(by: ben) { next, _ in
      next.with(
        recipients: next.recipients.map {
          $0.id == cleo.keys.id.bytes ? .init(kind: $0.kind, id: $0.id, seal: garbage) : $0
        })
    }
    let split = try #require(made)
    world.tellAll()
    for actor in [world.ana, cleo] {
      #expect(world[actor].roster.verdict(of: split.hash) == .refused(.next(.seal)))
      #expect(world[actor].state.flawed.map(\.epoch) == [split.hash] && world[actor].state.currentEpoch == base)
    }
    #expect(world[phone].state.unproven == [split.hash] && world[phone].holds.contains(.unproven([split.hash])))
    _ = world.sync(world.ana)
    world.tellAll()
    #expect(world[phone].state.unproven.isEmpty && world[phone].state.currentEpoch == base)
    #expect(world[phone].state.flawed == world[world.ana].state.flawed)
    try world.settleDown([world.ana, cleo, phone])
    #expect(world[phone].upload == world[world.ana].upload && world[phone].holds.isEmpty)
  }

  @Test("a Next whose commitment no key fits is void: the key that its seals open to proves it to non-recipients")
  func wrongCommitment() throws {
    var world = try EpochWorld("wrong commitment")
    let ben = try world.join("Ben", as: .owner)
    let phone = try world.add("phone", of: world.ana, isTold: false)
    let splitMade = world.forgeNext(by: ben) { next, _ in next.with(commitment: .zero) }
    let split = try #require(splitMade)
    world.tellAll()
    #expect(world[world.ana].roster.verdict(of: split.hash) != .counts)
    #expect(world[phone].state.unproven == [split.hash])
    try world.settleDown([world.ana, phone])
    #expect(world[phone].state.unproven.isEmpty && world[phone].state == world[world.ana].state)
  }

  @Test("keys that somebody makes up for an epoch hide neither its right key nor the proof that it is flawed")
  func madeUpKeys() throws {
    var world = try EpochWorld("made up")
    let ben = try world.join("Ben", as: .owner)
    let base = try #require(world[ben].state.currentEpoch)
    let outer = try #require(world[ben].ring.keys[base])
    let phone = try world.add("phone", of: world.ana, isTold: false)
    let splitMade = world.forgeNext(by: ben) { next, _ in next.with(commitment: .zero) }
    let split = try #require(splitMade)
    // Before anybody can show the key that its seals hold, Ben shows others for it and for the next epoch.
    func flood(_ epoch: EpochID) {
      for _ in 0..<30 {
        let box = KeyBox(EpochKey(&world.random), of: epoch, under: outer, random: &world.random)
        world.force(.carryKey(epoch, under: base, box), by: ben)
      }
    }
    flood(split.hash)
    world.tellAll()
    #expect(world[phone].state.unproven == [split.hash], "made-up keys prove nothing")
    try world.settleDown([world.ana, phone])
    #expect(world[phone].state.unproven.isEmpty && world[phone].state == world[world.ana].state)
    let tablet = try world.add("tablet", of: phone, isTold: false)
    let next = try world.next(by: world.ana)
    world.tell(ben, world.written)
    flood(next.hash)
    world.tell(tablet, world.written.reversed())
    #expect(world[tablet].ring.keys[next.hash] == nil)
    _ = world.sync(world.ana)
    world.tell(tablet, world.written.reversed())
    #expect(world[tablet].ring.keys[next.hash] == world[world.ana].ring.keys[next.hash] && world[tablet].holds.isEmpty)
  }

  @Test(
    "a Next of which no seal opens: its recipients say so, and the others believe them until somebody shows the key")
  func unopenableEverywhere() throws {
    var world = try EpochWorld("unopenable")
    let ben = try world.join("Ben", as: .owner)
    let phone = try world.add("phone", of: world.ana, isTold: false)
    let garbage = try #require(KeySeal([UInt8](repeating: 9, count: 80)))
    let made = world.forgeNext(by: ben) { next, _ in
      next.with(recipients: next.recipients.map { .init(kind: $0.kind, id: $0.id, seal: garbage) })
    }
    let split = try #require(made)
    world.tellAll()
    #expect(world[world.ana].roster.verdict(of: split.hash) == .refused(.next(.seal)))
    #expect(world[phone].state.unproven == [split.hash])
    try world.settleDown([world.ana, phone])
    #expect(world[phone].roster.verdict(of: split.hash) == .refused(.next(.denied)))
    #expect(world[phone].state.currentEpoch == world[world.ana].state.currentEpoch && world[phone].holds.isEmpty)
  }

  @Test("who falsely denies a right Next misleads nobody who holds its key, and others only until they do")
  func falseDenial() throws {
    var world = try EpochWorld("false denial")
    let mallory = try world.join("Mallory", as: .reader)
    let phone = try world.add("phone", of: world.ana, isTold: false)
    let next = try world.next(by: world.ana)
    world.tell(mallory, world.written)
    world.force(.deny(next.hash), by: mallory)
    world.tellAll()
    // The phone is a recipient: it is not misled.
    #expect(world[phone].roster.verdict(of: next.hash) == .counts)
    // A tablet enrolled beside the Next is, until somebody seals the key to it.
    var other = try EpochWorld("denied beside")
    let eve = try other.join("Eve", as: .reader)
    let ben = try other.join("Ben", as: .member)
    let right = try other.next(by: other.ana)
    let tablet = try other.add("tablet", of: ben, isTold: false)
    other.tell(eve, other.written)
    other.force(.deny(right.hash), by: eve)
    other.tellAll()
    #expect(other[tablet].roster.verdict(of: right.hash) == .refused(.next(.denied)))
    _ = other.sync(other.ana)
    other.tellAll()
    #expect(other[tablet].roster.verdict(of: right.hash) == .counts && other[tablet].upload == .into(right.hash))
  }

  @Test("a former key that is not its epoch's makes a Next void")
  func wrongFormer() throws {
    var world = try EpochWorld("wrong former")
    let ben = try world.join("Ben", as: .owner)
    let first = world.household
    let lieMade = world.forgeNext(by: ben) { next, key in
      var random = SeededRandom("lie")
      let wrong = EpochKey(&random)
      let box = KeyBox(wrong, of: first, under: key, random: &random)
      return next.with(
        formers: next.formers.map { $0.epoch == first ? .init(epoch: first, nonce: box.nonce, box: box.box) : $0 })
    }
    let lie = try #require(lieMade)
    world.tellAll()
    #expect(world[world.ana].roster.verdict(of: lie.hash) == .refused(.next(.former)))
  }

  @Test("rule 13: a Next or a Seal may name only epochs among its ancestors")
  func ancestorsOnly() throws {
    var world = try EpochWorld("rule 13")
    let ben = try world.join("Ben", as: .member)
    let beside = try world.next(by: world.ana)
    let key = try #require(world[world.ana].ring.keys[beside.hash])
    let lieMade = world.forgeNext(by: ben) { next, own in
      var random = SeededRandom("beside")
      let box = KeyBox(key, of: beside.hash, under: own, random: &random)
      return next.with(
        formers: (next.formers + [.init(epoch: beside.hash, nonce: box.nonce, box: box.box)])
          .sorted { $0.epoch < $1.epoch })
    }
    let lie = try #require(lieMade)
    #expect(world[ben].roster.verdict(of: lie.hash) == .refused(.next(.unknownFormer)))
    let seal = RosterOperation.seal(ben.keys.id, epoch: .zero, try key.seal(for: ben))
    #expect(world[ben].roster.refusal(of: seal, by: ben.origin) == .unknownEpoch)
    // Parents are exactly the ends of the ancestors.
    var other = try EpochWorld("parents")
    let dan = try other.join("Dan", as: .member)
    let first = other.household
    let jumpMade = other.forgeNext(by: dan) { next, key in
      next.with(parents: [first], commitment: key.commitment(parents: [first]))
    }
    let jump = try #require(jumpMade)
    #expect(other[dan].roster.verdict(of: jump.hash) == .refused(.next(.parents)))
  }

  @Test("rule 14: the outbox is held while anyone who was given the key is not in, its maker included")
  func makerIncluded() throws {
    var world = try EpochWorld("maker")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    // Cleo rotates while Ana removes her: Cleo's epoch is worse ranked, Ana's does not hold her.
    try world.next(by: cleo)
    let removal = try world.next(NextChange(removing: [cleo.keys.id: []]), by: world.ana)
    world.tellAll()
    #expect(world[ben].upload == .into(removal.hash))
    #expect(world[ben].state.void.count == 1, "made by somebody removed")
  }

  @Test("rule 16: whoever is removed takes along whom it invited, admitted or vouched for, unless they are confirmed")
  func introducers() throws {
    var world = try EpochWorld("introducers")
    let ben = try world.join("Ben", as: .owner)
    // Ben invites, Ana admits.
    let link = try world.invite(.member, by: ben)
    let cleo = Actor("Cleo", &world.random)
    world.tellAll()
    world.arrive(cleo, with: link)
    try world.write(.admit(claim: world.claim(cleo, link).bytes), by: world.ana)
    try world.next(by: world.ana)
    world.tellAll()
    let lax = NextChange(removing: [ben.keys.id: []])
    let strict = try world.next(lax, by: world.ana)
    guard case .next(let next) = strict.operation else { return }
    #expect(next.removals.map(\.device) == [ben.keys.id, cleo.keys.id].sorted())
    // Written by somebody who forgets her, it is refused.
    var other = world
    other.tellAll()
    let before = world.written.dropLast()
    var party = EpochWorld.Party(
      actor: world.ana, roster: Roster(household: world.household, evaluating: .everyEpoch),
      ring: EpochRing(household: world.household))
    party.hear(Array(before))
    let forgetful = next.with(
      recipients: next.recipients
        + [.init(kind: .device, id: cleo.keys.id.bytes, seal: try EpochKey(&world.random).seal(for: cleo))],
      removals: next.removals.filter { $0.device == ben.keys.id })
    let sorted = forgetful.with(recipients: forgetful.recipients.sorted { $0.id.lexicographicallyPrecedes($1.id) })
    #expect(
      party.roster.refusal(of: .next(sorted), by: world.ana.origin) == .next(.introduced([cleo.keys.id])))
    #expect(party.roster.refusal(of: .next(sorted.with(confirmed: [cleo.keys.id])), by: world.ana.origin) == nil)
  }

  @Test("rule 19: a device judges its own operation before it signs it; each Next carries all former keys that it may")
  func judgedBeforeSigning() throws {
    var world = try EpochWorld("rule 19")
    let ben = try world.join("Ben", as: .member)
    #expect(throws: RosterRefusal.next(.removals)) {
      try world.next(NextChange(removing: [DeviceID.zero: []]), by: world.ana)
    }
    #expect(throws: RosterRefusal.next(.roles)) {
      try world.next(NextChange(roles: [PersonID.zero: .reader]), by: world.ana)
    }
    for _ in 0..<3 { try world.next(by: ben) }
    world.tellAll()
    let newest = try world.next(by: world.ana)
    guard case .next(let next) = newest.operation else { return }
    // The first one, the one after Ben's admission, and his three.
    #expect(next.formers.count == world[world.ana].ring.keys.count - 1)
  }

  @Test("a device of small-order box key cannot keep the others from rotating: its seal is zeros")
  func smallOrder() throws {
    let zeros = try #require(BoxPublicKey([UInt8](repeating: 0, count: 32)))
    var random = SeededRandom("small order")
    #expect(EpochKey(&random).seal(to: zeros) == nil)
  }

  @Test(
    "whoever sees its own roster log forked loses nothing that both branches did, and goes on under a new incarnation")
  func forkedRemover() throws {
    var world = try EpochWorld("forks")
    let ben = try world.join("Ben", as: .member)
    let before = world[world.ana].roster
    let tip = try #require(world.written.last { $0.origin == world.ana.origin })
    let one = try world.next(by: world.ana)
    // A twin of Ana's device writes another Next at the same position.
    let twinMade = world.forgeNext(by: world.ana, citing: before.heads, after: tip, in: before) { next, _ in next }
    let twin = try #require(twinMade)
    world.tellAll()
    let state = world[ben].state
    #expect(state.epochEnds == [one.hash, twin.hash].sorted())
    #expect(state.alarms.contains { if case .fork(world.ana.origin, _, _) = $0 { true } else { false } })
    try world.settleDown([ben])
    #expect(world[ben].holds.isEmpty && world[ben].state.epochEnds.count == 1)
  }
}
