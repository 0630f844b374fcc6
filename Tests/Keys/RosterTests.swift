import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("The roster: who may what")
struct RosterTests {
  @Test("Genesis makes a household with one owner, and its seal and commitment are recomputed by who holds the key")
  func genesis() throws {
    var world = try RosterWorld("genesis")
    let state = world.roster.state
    #expect(state.householdName == "Smith" && !state.isPrivate && !state.isNewer)
    #expect(state.people.map(\.name) == ["Ana"] && state.people.map(\.role) == [.owner])
    #expect(state.devices.map(\.name) == ["Ana's laptop"] && state.devices.map(\.enrolment) == [0])
    #expect(world.roster.keys(of: world.ana.keys.id) == world.ana.keys.publicKeys)
    let genesis = try #require(state.genesis)
    #expect(genesis.isMade(with: world.key))
    #expect(!genesis.isMade(with: EpochKey(&world.random)))
    #expect(genesis.seal.open(with: world.ana.keys.box) == world.key)
  }

  @Test("a second Genesis, or one that is not the household's own, counts for nothing")
  func secondGenesis() throws {
    var world = try RosterWorld("genesis")
    let other = try RosterWorld("another")
    #expect(world.write(other.genesis.operation, by: world.ana) == .refused(.notGenesis))
    #expect(world.roster.add(other.genesis) == .refused(.notGenesis))
    #expect(world.roster.state.people.count == 1)
  }

  @Test("roles decide: reader, member and owner may what the format says, and a stranger nothing")
  func roles() throws {
    var world = try RosterWorld("roles")
    let member = world.join("Ben", as: .member)
    let reader = world.join("Cleo", as: .reader)
    let owner = world.join("Dora", as: .owner)
    let stranger = Actor("Mallory", &world.random)
    #expect(world.roster.state.people.map(\.role).sorted() == [.reader, .member, .owner, .owner])

    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    let close = RosterOperation.closeZone(CloseZone(zone: zone, reason: .unshared))
    func refusals(_ operation: RosterOperation) -> [RosterRefusal?] {
      [owner, member, reader, stranger].map { world.roster.refusal(of: operation, by: $0.origin) }
    }
    #expect(refusals(.zone(zone, name: "dogs")) == [nil, nil, .role, .notEnrolled])
    #expect(refusals(.zone(.roster, name: "no")) == [.zone, .zone, .role, .notEnrolled])
    #expect(refusals(close) == [.zone, .role, .role, .notEnrolled])
    world.write(.zone(zone, name: "dogs"), by: member)
    #expect(refusals(close) == [nil, .role, .role, .notEnrolled])
    #expect(refusals(.profile(personName: "x", deviceName: "y")) == [nil, nil, nil, .notEnrolled])
    let wanted: [(InviteRole, [RosterRefusal?])] = [
      (.mine, [nil, nil, nil, .notEnrolled]), (.reader, [nil, nil, .role, .notEnrolled]),
      (.member, [nil, .role, .role, .notEnrolled]), (.owner, [nil, .role, .role, .notEnrolled]),
    ]
    for (role, expected) in wanted {
      let (terms, _) = world.invite(role)
      #expect(refusals(.openInvite(terms)) == expected)
    }
    let access = HouseholdAccess(
      household: zone.bytes.isEmpty ? .zero : world.household, name: "n", epoch: world.household, key: world.key,
      locator: "folder:/x", checkpoint: [])
    #expect(
      refusals(.household(access)) == [.privateHousehold, .privateHousehold, .privateHousehold, .notEnrolled])
  }

  @Test("a link lets one device in; a second claim, a revoked or foreign invite and a reader's admission do not")
  func admission() throws {
    var world = try RosterWorld("admission")
    let (terms, link) = world.invite(.member)
    let ben = Actor("Ben", &world.random)
    let claim = world.claim(ben, terms, link)
    #expect(world.roster.refusal(of: .admit(claim: claim.bytes), by: world.ana.origin) == .claim(.unknownInvite))
    world.write(.openInvite(terms), by: world.ana)
    let reader = world.join("Cleo", as: .reader)
    #expect(world.roster.refusal(of: .admit(claim: claim.bytes), by: reader.origin) == .role)
    #expect(world.write(.admit(claim: claim.bytes), by: world.ana) == .counts)
    #expect(world.roster.state.device(ben.keys.id)?.role == .member)
    #expect(world.roster.state.person(ben.chain.person)?.name == "Ben")
    #expect(world.roster.refusal(of: .admit(claim: claim.bytes), by: world.ana.origin) == .claim(.alreadyEnrolled))
    let eve = Actor("Eve", &world.random)
    let late = world.claim(eve, terms, link)
    #expect(world.roster.refusal(of: .admit(claim: late.bytes), by: world.ana.origin) == .claim(.used))

    let (second, secondLink) = world.invite(.member)
    world.write(.openInvite(second), by: world.ana)
    #expect(world.roster.refusal(of: .revokeInvite(second.id), by: ben.origin) == .invite)
    #expect(world.write(.revokeInvite(second.id), by: world.ana) == .counts)
    let revoked = world.claim(eve, second, secondLink)
    #expect(world.roster.refusal(of: .admit(claim: revoked.bytes), by: world.ana.origin) == .claim(.revoked))
    #expect(world.roster.state.invites.first { $0.terms.id == second.id }?.status(now: 0) == .revoked)
    #expect(world.roster.state.invites.first { $0.terms.id == terms.id }?.status(now: 0) == .used)
  }

  @Test("an invite that asks for confirmation is admitted by owners only")
  func confirmation() throws {
    var world = try RosterWorld("confirmation")
    let ben = world.join("Ben", as: .member)
    let (plain, link) = world.invite(.reader)
    let terms = OpenInvite(
      id: plain.id, claimKey: plain.claimKey, boxKey: plain.boxKey, role: .reader, expiry: 9, confirm: true)
    world.write(.openInvite(terms), by: world.ana)
    let admit = RosterOperation.admit(claim: world.claim(Actor("Cleo", &world.random), terms, link).bytes)
    #expect(world.roster.refusal(of: admit, by: ben.origin) == .role)
    #expect(world.roster.refusal(of: admit, by: world.ana.origin) == nil)
  }

  @Test("two admissions of a single-use invite, made apart, both count and everyone is alarmed")
  func overuse() throws {
    var world = try RosterWorld("overuse")
    let ben = world.join("Ben", as: .member)
    let (terms, link) = world.invite(.reader)
    world.write(.openInvite(terms), by: world.ana)
    let apart = world.roster
    let (cleo, dora) = (Actor("Cleo", &world.random), Actor("Dora", &world.random))
    #expect(world.write(.admit(claim: world.claim(cleo, terms, link).bytes), by: world.ana, in: apart) == .counts)
    #expect(world.roster.state.alarms.isEmpty)
    #expect(world.write(.admit(claim: world.claim(dora, terms, link).bytes), by: ben, in: apart) == .counts)
    let admitted = [cleo.keys.id, dora.keys.id].sorted()
    #expect(world.roster.state.alarms == [.overused(terms.id, admitted: admitted)])
    #expect(world.roster.state.devices.count == 4)
  }

  @Test("two admitters that let in the same device at the same time used the invite once")
  func sameAdmission() throws {
    var world = try RosterWorld("same")
    let ben = world.join("Ben", as: .member)
    let (terms, link) = world.invite(.reader)
    world.write(.openInvite(terms), by: world.ana)
    let apart = world.roster
    let claim = world.claim(Actor("Cleo", &world.random), terms, link)
    #expect(world.write(.admit(claim: claim.bytes), by: world.ana, in: apart) == .counts)
    #expect(world.write(.admit(claim: claim.bytes), by: ben, in: apart) == .counts)
    #expect(world.roster.state.alarms.isEmpty && world.roster.state.people.count == 3)
  }

  @Test("a person admitted twice at the same time, with different roles, has the narrower")
  func narrower() throws {
    var world = try RosterWorld("narrower")
    let ben = world.join("Ben", as: .member)
    let (wide, wideLink) = world.invite(.owner)
    let (narrow, narrowLink) = world.invite(.reader)
    world.write(.openInvite(wide), by: world.ana)
    world.write(.openInvite(narrow), by: world.ana)
    let apart = world.roster
    let cleo = Actor("Cleo", &world.random)
    world.write(.admit(claim: world.claim(cleo, wide, wideLink).bytes), by: world.ana, in: apart)
    #expect(world.roster.role(of: cleo.keys.id) == .owner)
    world.write(.admit(claim: world.claim(cleo, narrow, narrowLink).bytes), by: ben, in: apart)
    #expect(world.roster.role(of: cleo.keys.id) == .reader)
  }

  @Test("a copied invite entry gives its copier no rights: the least offer counts, and only one's own is revoked")
  func copiedInvite() throws {
    var world = try RosterWorld("copied")
    let ben = world.join("Ben", as: .member)
    let (terms, link) = world.invite(.owner)
    world.write(.openInvite(terms), by: world.ana)
    let copy = OpenInvite(
      id: terms.id, claimKey: SigningKey(&world.random).publicKey, boxKey: terms.boxKey, role: .reader, expiry: 9)
    #expect(world.write(.openInvite(copy), by: ben) == .counts)
    #expect(world.write(.revokeInvite(terms.id), by: ben) == .counts)
    let cleo = Actor("Cleo", &world.random)
    #expect(world.write(.admit(claim: world.claim(cleo, terms, link).bytes), by: world.ana) == .counts)
    #expect(world.roster.role(of: cleo.keys.id) == .owner)
  }

  @Test("a person's device brings in another; not for somebody else, not with a forged certificate, at most sixteen")
  func addDevice() throws {
    var world = try RosterWorld("devices")
    let ben = world.join("Ben", as: .member)
    let phone = try Actor("phone", of: ben, &world.random)
    let add = RosterOperation.addDevice(phone.certificate, name: "phone", isKit: false)
    #expect(world.roster.refusal(of: add, by: world.ana.origin) == .certificate)
    #expect(world.write(add, by: ben) == .counts)
    #expect(world.roster.role(of: phone.keys.id) == .member)
    #expect(world.roster.refusal(of: add, by: ben.origin) == .alreadyEnrolled)
    // The phone vouches for a tablet, and the other device may be the one that brings it.
    let tablet = try Actor("tablet", of: phone, &world.random)
    #expect(world.write(.addDevice(tablet.certificate, name: "tablet", isKit: true), by: ben) == .counts)
    let device = try #require(world.roster.state.device(tablet.keys.id))
    #expect(device.chain == tablet.chain && device.isKit && device.name == "tablet")
    #expect(device.enrolment > world.roster.state.device(phone.keys.id)?.enrolment ?? .max)
    // Ana's certificate about Ben's person is worth nothing.
    let request = Certificate(
      request: DeviceKeys(&world.random), person: ben.chain.person, signer: world.ana.keys.id)
    let forged = try #require(request.completed(by: world.ana.keys))
    for author in [ben, world.ana] {
      #expect(
        world.roster.refusal(of: .addDevice(forged, name: "x", isKit: false), by: author.origin) == .certificate)
    }
    for number in 4...16 {
      let more = try Actor("d\(number)", of: ben, &world.random)
      #expect(world.write(.addDevice(more.certificate, name: "d", isKit: false), by: ben) == .counts)
    }
    let last = try Actor("d17", of: ben, &world.random)
    #expect(world.write(.addDevice(last.certificate, name: "d", isKit: false), by: ben) == .refused(.tooManyDevices))
  }

  @Test("a private household takes its person's devices, by links of kind mine, and keeps access to households")
  func privateHousehold() throws {
    var world = try RosterWorld("private", isPrivate: true)
    #expect(world.roster.refusal(of: .openInvite(world.invite(.reader).0), by: world.ana.origin) == .privateHousehold)
    let (terms, link) = world.invite(.mine)
    #expect(world.write(.openInvite(terms), by: world.ana) == .counts)

    let phone = DeviceKeys(&world.random)
    let request = Certificate(request: phone, person: world.ana.chain.person, signer: world.ana.keys.id)
    let claim = Claim(
      household: world.household, invite: terms.id, joining: world.ana.chain, request: request, personName: "Ana",
      deviceName: "phone", epoch: world.household, claimKey: link.claimKey, device: phone)
    let read = try Claim(decoding: claim.bytes)
    let assessed = try world.roster.assess(read, at: claim.name(world.keys), keys: world.keys, now: 1)
    #expect(assessed.terms == terms)
    #expect(world.roster.refusal(of: .admit(claim: claim.bytes), by: world.ana.origin) == .privateHousehold)
    let certificate = try #require(read.request.completed(by: world.ana.keys))
    #expect(world.write(.addDevice(certificate, name: read.deviceName, isKit: false), by: world.ana) == .counts)
    #expect(world.roster.role(of: phone.id) == .owner)
    #expect(throws: ClaimError.alreadyEnrolled) {
      try world.roster.assess(read, at: claim.name(world.keys), keys: world.keys, now: 1)
    }

    func access(_ name: String) -> HouseholdAccess {
      HouseholdAccess(
        household: .zero, name: name, epoch: .zero, key: world.key, locator: "folder:/x", checkpoint: [])
    }
    world.write(.household(access("old name")), by: world.ana)
    world.write(.household(access("new name")), by: world.ana)
    #expect(world.roster.state.households == [access("new name")])
  }

  @Test("names are the newest profile's, and zones keep their first closing")
  func names() throws {
    var world = try RosterWorld("names")
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    world.write(.zone(zone, name: "dogs"), by: world.ana)
    world.write(.zone(zone, name: "pets"), by: world.ana)
    #expect(world.roster.state.zone(zone)?.name == "pets" && world.roster.state.zone(zone)?.closing == nil)
    let closing = CloseZone(
      zone: zone, reason: .moved, successor: .init(household: world.household, zone: zone))
    world.write(.closeZone(closing), by: world.ana)
    world.write(.closeZone(CloseZone(zone: zone, reason: .deleted)), by: world.ana)
    #expect(world.roster.state.zone(zone)?.closing == closing)
    let apart = world.roster
    world.write(.profile(personName: "Anna", deviceName: "desk"), by: world.ana, in: apart)
    #expect(world.roster.state.people.map(\.name) == ["Anna"])
    #expect(world.roster.state.devices.map(\.name) == ["desk"])
    let tooLong = String(repeating: "x", count: 1025)
    #expect(
      world.roster.refusal(of: .profile(personName: tooLong, deviceName: ""), by: world.ana.origin) == .malformed)
  }

  @Test("what this version does not evaluate makes the roster newer, with all that builds on it, and nothing else")
  func newer() throws {
    var world = try RosterWorld("newer")
    let ben = world.join("Ben", as: .member)
    let reader = world.join("Cleo", as: .reader)
    let before = world.roster
    let next = Next(
      parents: [world.household], form: .moved, commitment: .zero, recipients: [], formers: [], removals: [],
      roles: [], confirmed: [], store: nil)
    #expect(world.write(.next(next), by: reader) == .refused(.role))
    #expect(!world.roster.isNewer)
    let unknown = RosterOperation(payload: [0x82, 0x01, 0x18, 0x63])
    #expect(unknown == .unknown(kind: 99, payload: [0x82, 0x01, 0x18, 0x63]))
    #expect(
      world.roster.add(world.make(unknown, by: Actor("Mallory", &world.random), in: before)) == .refused(.notEnrolled))
    #expect(!world.roster.isNewer)
    for operation in [.next(next), .leave, unknown, RosterOperation(payload: [0x83, 0x02, 0x01, 0x01])] {
      var copy = world
      #expect(copy.write(operation, by: ben) == .newer)
      #expect(copy.roster.isNewer && copy.roster.state.isNewer)
      #expect(copy.write(.profile(personName: "after", deviceName: ""), by: copy.ana) == .newer)
      #expect(copy.write(.profile(personName: "beside", deviceName: ""), by: copy.ana, in: before) == .counts)
      #expect(copy.roster.state.people.contains { $0.name == "beside" })
    }
  }

  @Test("whoever has seen its own log fork can do nothing more in that incarnation, and the fork is evidence")
  func forks() throws {
    var world = try RosterWorld("forks")
    let ben = world.join("Ben", as: .member)
    let apart = world.roster
    let one = world.make(.zone(ZoneID(world.random.bytes(16)) ?? .zero, name: "one"), by: ben, in: apart)
    let two = world.make(.zone(ZoneID(world.random.bytes(16)) ?? .zero, name: "two"), by: ben, in: apart)
    #expect(world.roster.add(one) == .counts && world.roster.add(two) == .counts)
    #expect(world.roster.state.alarms == [.fork(ben.origin, sequence: 1, [one.hash, two.hash].sorted())])
    #expect(world.roster.refusal(of: .profile(personName: "B", deviceName: ""), by: ben.origin) == .forked)
    let seen = entry(
      .profile(personName: "B", deviceName: ""), by: ben.origin, sequence: 2, previous: one.hash,
      heads: world.roster.heads, hlc: 9 << 16)
    #expect(world.roster.add(seen) == .refused(.forked))
    // Another incarnation of the device goes on; so does a branch that has not seen the other.
    let unseen = entry(
      .profile(personName: "Bea", deviceName: ""), by: ben.origin, sequence: 2, previous: one.hash, heads: [], hlc: 99)
    #expect(world.roster.add(unseen) == .counts)
    let again = Origin(device: ben.keys.id, incarnation: Incarnation(12_345))
    #expect(world.roster.refusal(of: .profile(personName: "B", deviceName: ""), by: again) == nil)
  }

  @Test("an entry that does not continue its author's log counts for nothing")
  func chain() throws {
    var world = try RosterWorld("chain")
    let profile = RosterOperation.profile(personName: "x", deviceName: "y")
    let wrong: [(UInt64, EntryHash?)] = [(3, world.household), (1, world.household), (2, nil), (.max, world.household)]
    for (sequence, previous) in wrong {
      var roster = world.roster
      let bad = entry(
        profile, by: world.ana.origin, sequence: sequence, previous: previous, heads: roster.heads, hlc: 5)
      #expect(roster.add(bad) == .refused(.chain))
    }
    let ben = world.join("Ben", as: .member)
    let others = entry(
      profile, by: ben.origin, sequence: 2, previous: world.household, heads: world.roster.heads, hlc: 5)
    #expect(world.roster.add(others) == .refused(.chain))
  }

  @Test("entries wait for their ancestors by name, and are judged when these come")
  func waiting() throws {
    var world = try RosterWorld("waiting")
    _ = world.join("Ben", as: .member)
    let all = world.written
    var roster = Roster(household: world.household)
    #expect(roster.add(all[2]) == .waiting([all[1].hash]))
    #expect(roster.missing == [all[1].hash] && !roster.contains(all[2].hash))
    #expect(roster.add(all[1]) == .waiting([all[0].hash]))
    #expect(roster.missing == [all[0].hash])
    #expect(roster.add(all[0]) == .counts)
    #expect(roster.verdict(of: all[2].hash) == .counts && roster.missing.isEmpty)
    #expect(roster.state == world.roster.state && roster.heads == world.roster.heads)
  }

  @Test("somebody who floods the roster cannot make others cite more than 256 heads")
  func flood() throws {
    var world = try RosterWorld("flood")
    let apart = world.roster
    for number in 0..<300 {
      let origin = Origin(device: world.ana.keys.id, incarnation: Incarnation(UInt64(number)))
      let loose = entry(.leave, by: origin, sequence: 2, previous: nil, heads: [world.household], hlc: 1)
      #expect(world.roster.add(loose) == .refused(.chain))
    }
    let mine = world.make(.profile(personName: "A", deviceName: ""), by: world.ana, in: apart)
    world.roster.add(mine)
    let heads = world.roster.heads
    #expect(heads.count == 256 && heads == heads.sorted() && heads.contains(mine.hash))
  }
}
