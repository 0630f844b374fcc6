import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("Epochs: who may leave one, and what leaving does")
struct EpochTests {
  @Test("a rotation gives everybody the new key, and from it all former ones; nobody else reads it")
  func rotation() throws {
    var world = try EpochWorld("rotation")
    let ben = try world.join("Ben", as: .member)
    let next = try world.next(by: ben)
    world.tellAll()
    for actor in [world.ana, ben] {
      let party = world[actor]
      #expect(party.upload == .into(next.hash))
      #expect(party.state.currentEpoch == next.hash && party.state.epochEnds == [next.hash])
      #expect(party.state.unproven.isEmpty && party.ring.keys.count == 3)
    }
    // Ben came in the second epoch; the first one's key reached him under the second one's.
    #expect(world[ben].ring.keys[world.household] == world[world.ana].ring.keys[world.household])
    // A stranger who holds every entry opens nothing.
    let mallory = Actor("Mallory", &world.random)
    world.meet(mallory)
    #expect(world[mallory].ring.keys.isEmpty && world[mallory].holds.contains(.notEnrolled))
  }

  @Test("a device that was away walks forward through every epoch, a newcomer walks back to the first")
  func walking() throws {
    var world = try EpochWorld("walking")
    let ben = try world.join("Ben", as: .member)
    let before = world.written.count
    for _ in 0..<20 { try world.next(by: world.ana) }
    // Ben hears the newest first.
    world.tell(ben, world.written[before...].reversed())
    #expect(world[ben].upload == world[world.ana].upload && world[ben].ring.keys.count == 22)
    let cleo = try world.join("Cleo", as: .reader)
    #expect(world[cleo].ring.keys.count == 23 && world[cleo].ring.keys == world[world.ana].ring.keys)
  }

  @Test("a removed member holding every key it had and every entry opens nothing that came after")
  func removal() throws {
    var world = try EpochWorld("removal")
    let ben = try world.join("Ben", as: .member)
    let cleo = try world.join("Cleo", as: .member)
    let limit = Next.Limit(zone: .zero, incarnation: Incarnation(7), sequence: 12, hash: world.household)
    let next = try world.next(NextChange(removing: [ben.keys.id: [limit]]), by: world.ana)
    world.tellAll()
    #expect(world[ben].ring.keys[next.hash] == nil)
    #expect(world[ben].holds.contains(.notEnrolled) && world[ben].state.device(ben.keys.id) == nil)
    #expect(world[cleo].upload == .into(next.hash))
    let limited = try #require(world[cleo].state.limited.first)
    #expect(limited.device == ben.keys.id && limited.limits == [limit] && limited.isRemoved)
    // His keys are still known, so that what he wrote before is still verified; his rights are gone.
    #expect(world[cleo].roster.keys(of: ben.keys.id) == ben.keys.publicKeys)
    #expect(world[cleo].roster.role(of: ben.keys.id) == nil)
    #expect(throws: RosterRefusal.notEnrolled) { try world.write(.leave, by: ben) }
    // Not even with the device's old keys is he let in again.
    let link = try world.invite(.member, by: world.ana)
    #expect(
      world[world.ana].roster.refusal(of: .admit(claim: world.claim(ben, link).bytes), by: world.ana.origin) == .removed
    )
    // Later epochs stay closed to him, whoever begins them.
    let later = try world.next(by: cleo)
    world.tellAll()
    #expect(world[ben].ring.keys[later.hash] == nil && world[ben].ring.keys.count == 3)
  }

  @Test("members rotate, drop who left and remove devices of their own; all else is for owners")
  func authority() throws {
    var world = try EpochWorld("authority")
    let ben = try world.join("Ben", as: .member)
    let cleo = try world.join("Cleo", as: .reader)
    let phone = try world.add("phone", of: ben)
    for change in [
      NextChange(removing: [cleo.keys.id: []]), NextChange(roles: [cleo.chain.person: .member]),
      NextChange(store: "folder:/x"), NextChange(closes: true),
    ] {
      #expect(throws: RosterRefusal.role) { try world.next(change, by: ben) }
      #expect(throws: RosterRefusal.role) { try world.next(change, by: cleo) }
    }
    #expect(throws: RosterRefusal.role) { try world.next(by: cleo) }
    try world.next(NextChange(removing: [phone.keys.id: []]), by: ben)
    world.tellAll()
    try world.write(.leave, by: cleo)
    world.tellAll()
    #expect(world[ben].state.leaving == [cleo.keys.id])
    #expect(world[ben].holds == [.strangers([cleo.keys.id])])
    let dropping = try world.next(by: ben)
    world.tellAll()
    #expect(world[world.ana].state.devices.map(\.id) == [world.ana.keys.id, ben.keys.id].sorted())
    #expect(world[ben].upload == .into(dropping.hash))
  }

  @Test("whoever leaves does not choose the next key, and a Next that keeps somebody who left is refused (rule 11)")
  func leaving() throws {
    var world = try EpochWorld("leaving")
    let ben = try world.join("Ben", as: .member)
    try world.write(.leave, by: ben)
    world.tellAll()
    // His own Next would have to drop himself.
    let own = try world.next(by: ben)
    #expect(world[ben].ring.keys[own.hash] != nil)
    world.tellAll()
    // It counts, and he is held to know its key: nobody writes to it.
    #expect(world[world.ana].holds == [.strangers([ben.keys.id])])
    try world.settleDown([world.ana])
    #expect(world[world.ana].holds.isEmpty && world[world.ana].state.people.count == 1)
    world.tellAll()
    #expect(world[world.ana].currentKey.map { key in !world[ben].ring.keys.values.contains(key) } == true)
  }

  @Test("an owner leaves only while another owner stays")
  func lastOwner() throws {
    var world = try EpochWorld("last owner")
    let ben = try world.join("Ben", as: .member)
    #expect(throws: RosterRefusal.lastOwner) { try world.write(.leave, by: world.ana) }
    #expect(throws: RosterRefusal.next(.lastOwner)) {
      try world.next(NextChange(removing: [world.ana.keys.id: []]), by: world.ana)
    }
    #expect(throws: RosterRefusal.next(.lastOwner)) {
      try world.next(NextChange(roles: [world.ana.chain.person: .member]), by: world.ana)
    }
    // Handing over, then leaving.
    try world.next(NextChange(roles: [ben.chain.person: .owner]), by: world.ana)
    world.tellAll()
    try world.write(.leave, by: world.ana)
    world.tellAll()
    #expect(throws: RosterRefusal.lastOwner) { try world.write(.leave, by: ben) }
    try world.settleDown([ben])
    #expect(world[ben].state.people.map(\.role) == [.owner])
  }

  @Test("two owners that leave at once, by Leave or by Next: one of them stays (rule 15)")
  func bothOwnersLeave() throws {
    var world = try EpochWorld("both leave")
    let ben = try world.join("Ben", as: .owner)
    try world.write(.leave, by: world.ana)
    try world.write(.leave, by: ben)
    world.tellAll()
    #expect(world[ben].state.leaving.isEmpty && world[ben].state.people.count == 2)
    // The next Next answers both: nobody is dropped months later because a third owner came.
    try world.next(by: ben)
    world.tellAll()
    let cleo = try world.join("Cleo", as: .owner)
    #expect(world[cleo].state.leaving.isEmpty && world[cleo].state.people.count == 3)

    var other = try EpochWorld("both remove themselves")
    let dan = try other.join("Dan", as: .owner)
    // Whom she let in goes with her unless she says otherwise.
    try other.next(NextChange(removing: [other.ana.keys.id: []], confirming: [dan.keys.id]), by: other.ana)
    try other.next(NextChange(removing: [dan.keys.id: []]), by: dan)
    other.tellAll()
    // Ana was there first: her leaving counts, Dan's lapses.
    #expect(other[dan].state.people.map(\.role) == [.owner] && other[dan].state.devices.map(\.id) == [dan.keys.id])
    try other.settleDown([dan])
    #expect(other[dan].holds.isEmpty)
  }

  @Test("a role is set by an owner; of two set at once the narrower holds, until an owner decides again (rule 17)")
  func roles() throws {
    var world = try EpochWorld("roles")
    let ben = try world.join("Ben", as: .owner)
    let cleo = try world.join("Cleo", as: .member)
    try world.next(NextChange(roles: [cleo.chain.person: .owner]), by: world.ana)
    try world.next(NextChange(roles: [cleo.chain.person: .reader]), by: ben)
    world.tellAll()
    #expect(world[world.ana].state.person(cleo.chain.person)?.role == .reader)
    #expect(world[world.ana].state.epochEnds.count == 2)
    try world.settleDown([ben, world.ana, cleo])
    #expect(world[world.ana].state.person(cleo.chain.person)?.role == .reader)
    try world.next(NextChange(roles: [cleo.chain.person: .owner]), by: ben)
    world.tellAll()
    #expect(world[cleo].state.person(cleo.chain.person)?.role == .owner)
  }

  @Test("limits for somebody narrowed to reader are stated without removing the device")
  func narrowing() throws {
    var world = try EpochWorld("narrowing")
    let ben = try world.join("Ben", as: .member)
    let limit = Next.Limit(zone: .zero, incarnation: Incarnation(7), sequence: 3, hash: world.household)
    try world.next(
      NextChange(roles: [ben.chain.person: .reader], narrowing: [ben.keys.id: [limit]]), by: world.ana)
    world.tellAll()
    let limited = try #require(world[ben].state.limited.first)
    #expect(limited.device == ben.keys.id && limited.limits == [limit] && !limited.isRemoved)
    #expect(world[ben].state.device(ben.keys.id)?.role == .reader)
    if case .into = world[ben].upload {} else { Issue.record("a reader still uploads heads and claims") }
    try world.next(NextChange(roles: [ben.chain.person: .member]), by: world.ana)
    #expect(world[world.ana].state.limited.isEmpty)
  }

  @Test("a closed household takes nothing more; closed loses to moved")
  func closing() throws {
    var world = try EpochWorld("closing")
    let ben = try world.join("Ben", as: .member)
    let apart = world[ben].roster.heads
    try world.next(NextChange(closes: true), by: world.ana)
    #expect(world[world.ana].state.isClosed && world[world.ana].state.currentEpoch == nil)
    #expect(world[world.ana].holds == [.closed])
    #expect(world[world.ana].roster.refusal(of: .leave, by: world.ana.origin) == .closed)
    // Ben rotates at the same time.
    #expect(world[ben].roster.heads == apart)
    let moved = try world.next(by: ben)
    world.tellAll()
    #expect(!world[ben].state.isClosed && world[ben].state.currentEpoch == moved.hash)
    #expect(world[ben].state.epochEnds.count == 2)
    let joining = try world.next(by: ben)
    world.tellAll()
    #expect(world[world.ana].state.epochEnds == [joining.hash])
  }

  @Test("another place is named by an owner's Next and shown until another is named")
  func store() throws {
    var world = try EpochWorld("store")
    let ben = try world.join("Ben", as: .member)
    try world.next(NextChange(store: "folder:/new"), by: world.ana)
    world.tellAll()
    #expect(world[ben].state.store == "folder:/new")
    try world.next(by: ben)
    #expect(world[ben].state.store == "folder:/new")
  }

  @Test("the caller that knows one epoch only sees a newer roster, exactly as before")
  func firstEpochOnly() throws {
    var world = try EpochWorld("first epoch only")
    let before = world.written
    try world.next(by: world.ana)
    var roster = Roster(household: world.household)
    for entry in before { roster.add(entry) }
    #expect(!roster.isNewer && roster.state.currentEpoch == world.household)
    roster.add(world.written[before.count])
    #expect(roster.isNewer && roster.state.isNewer && roster.state.currentEpoch == world.household)
    #expect(world[world.ana].state.isNewer == false)
  }

  @Test("what was found well-formed once, and kept by the device itself, is not recomputed")
  func proven() throws {
    var world = try EpochWorld("proven")
    _ = try world.join("Ben", as: .member)
    try world.next(by: world.ana)
    let state = world[world.ana].state
    #expect(state.proven.count == 2 && state.unproven.isEmpty)
    var again = Roster(household: world.household, evaluating: .everyEpoch, proven: state.proven)
    for entry in world.written { again.add(entry) }
    #expect(again.state == state)
  }
}
