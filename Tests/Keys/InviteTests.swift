import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("Invite links")
struct InviteLinkTests {
  private func link(_ seed: String, credential: Credential? = nil) -> InviteLink {
    var random = SeededRandom(seed)
    return InviteLink(
      secret: InviteSecret(&random), household: Hash32(random.bytes(32)) ?? .zero,
      checkpoint: Hash32(random.bytes(32)) ?? .zero, locator: "folder:/srv/ana/Dropbox/Lätch key",
      credential: credential, expiry: 1_900_000_000_000, role: .member)
  }

  @Test("a link survives being written and read, with white space around it")
  func roundTrip() throws {
    for made in [link("a"), link("b", credential: Credential("user:pass word"))] {
      #expect(made.text.hasPrefix("latchkey://join#"))
      #expect(try InviteLink(parsing: made.text) == made)
      #expect(try InviteLink(parsing: " \n\t\(made.text)\r\n") == made)
      #expect(try InviteLink(parsing: made.text).text == made.text)
    }
  }

  @Test("other texts are no links; a cut or mistyped link is damaged, at every place")
  func damaged() throws {
    for text in ["", "hello", "https://example.org/#x", "latchkey://join", "Latchkey://join#AAAA"] {
      #expect(throws: LinkError.notALink) { try InviteLink(parsing: text) }
    }
    let text = link("a").text
    for length in 0..<text.utf8.count {
      let cut = String(text.prefix(length))
      let expected: LinkError = cut.hasPrefix(InviteLink.scheme) ? .damaged : .notALink
      #expect(throws: expected) { try InviteLink(parsing: cut) }
    }
    let scalars = Array(text.utf8)
    for index in InviteLink.scheme.utf8.count..<scalars.count {
      for replacement in [UInt8(ascii: "A"), UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "=")] {
        var typed = scalars
        if typed[index] == replacement { continue }
        typed[index] = replacement
        #expect(throws: LinkError.damaged) { try InviteLink(parsing: String(decoding: typed, as: UTF8.self)) }
      }
    }
    #expect(throws: LinkError.damaged) { try InviteLink(parsing: text + "A") }
    #expect(throws: LinkError.damaged) { try InviteLink(parsing: text + "%20") }
  }

  @Test("every key of a link differs from the others, and from another link's")
  func keys() throws {
    let (one, two) = (link("a").secret.keys, link("b").secret.keys)
    #expect(one.claimKey.publicKey.bytes != one.boxKey.publicKey.bytes)
    #expect(one.objectName != two.objectName && one.blobKey != two.blobKey)
    #expect(one.claimKey != two.claimKey && one.boxKey != two.boxKey)
    #expect(one.objectName.text == one.blobPrefix + "/" + one.blobName.text)
    #expect(one.blobName.text.hasPrefix("i/"))
  }
}

@Suite("Joining by a link")
struct JoiningTests {
  @Test("with nothing but the link and the store, a newcomer opens the household, checks it, and is let in")
  func join() throws {
    var world = try RosterWorld("joining")
    let secret = InviteSecret(&world.random)
    let terms = OpenInvite(
      id: InviteID(world.random.bytes(16)) ?? .zero, claimKey: secret.keys.claimKey.publicKey,
      boxKey: secret.keys.boxKey.publicKey, role: .member, expiry: 1000)
    world.write(.openInvite(terms), by: world.ana)
    let zone = InviteBlob.Zone(id: ZoneID(world.random.bytes(16)) ?? .zero, name: "dogs")
    let blob = InviteBlob(
      household: world.household, epoch: world.household, invite: terms.id,
      seal: world.key.seal(to: terms.boxKey), rosterHeads: world.roster.heads, householdName: "Smith",
      inviterName: "Ana", role: .member, expiry: 1000, zones: [zone])
    let object = try Envelope.seal(
      blob.encoded, at: secret.keys.place, key: secret.keys.blobKey, nonce: EnvelopeNonce(&world.random))
    let link = InviteLink(
      secret: secret, household: world.household, checkpoint: Roster.checkpoint(world.roster.heads),
      locator: "folder:/x", expiry: 1000, role: .member)
    let store = [secret.keys.objectName: object]

    // The other side.
    let received = try InviteLink(parsing: link.text)
    let found = try #require(store[received.secret.keys.objectName])
    let opened = try InviteBlob(
      decoding: Envelope.open(found, at: received.secret.keys.place, key: received.secret.keys.blobKey))
    #expect(opened == blob && opened.belongs(to: received))
    let keys = try #require(opened.open(with: received.secret.keys))
    #expect(keys.key == world.key && keys.household == world.household)
    var roster = Roster(household: opened.household)
    for made in world.written { roster.add(made) }
    #expect(opened.rosterHeads.allSatisfy(roster.contains))
    #expect(try #require(roster.state.genesis).isMade(with: keys.key))
    let ben = Actor("Ben", &world.random)
    let claim = world.claim(ben, terms, received.secret.keys)

    // And back.
    let read = try Claim(decoding: claim.bytes)
    #expect(read == claim)
    let invite = try world.roster.assess(read, at: claim.name(world.keys), keys: world.keys, now: 1000)
    #expect(invite.terms == terms && invite.inviter == world.ana.chain.person)
    #expect(world.write(.admit(claim: read.bytes), by: world.ana) == .counts)
    #expect(world.roster.role(of: ben.keys.id) == .member)
  }

  @Test("a blob of another household, checkpoint or role does not belong to the link")
  func foreignBlob() throws {
    var world = try RosterWorld("foreign blob")
    let secret = InviteSecret(&world.random)
    let seal = try #require(world.key.seal(to: secret.keys.boxKey.publicKey))
    func blob(_ household: HouseholdID, _ heads: [EntryHash], _ role: InviteRole) -> InviteBlob {
      InviteBlob(
        household: household, epoch: household, invite: .zero, seal: seal, rosterHeads: heads, householdName: "",
        inviterName: "", role: role, expiry: 1, zones: [])
    }
    let link = InviteLink(
      secret: secret, household: world.household, checkpoint: Roster.checkpoint([world.household]),
      locator: "folder:/x", expiry: 1, role: .reader)
    #expect(blob(world.household, [world.household], .reader).belongs(to: link))
    #expect(!blob(.zero, [world.household], .reader).belongs(to: link))
    #expect(!blob(world.household, [], .reader).belongs(to: link))
    #expect(!blob(world.household, [world.household], .owner).belongs(to: link))
    let other = InviteSecret(&world.random)
    #expect(blob(world.household, [world.household], .reader).open(with: other.keys) == nil)
  }
}

@Suite("Claims")
struct ClaimTests {
  @Test("a claim holds only whole: by the link, by the device, for this household, under its own name, in time")
  func forgeries() throws {
    var world = try RosterWorld("claims")
    let (terms, link) = world.invite(.member, uses: 3)
    world.write(.openInvite(terms), by: world.ana)
    let roster = world.roster
    let ben = Actor("Ben", &world.random)
    let good = world.claim(ben, terms, link)
    let name = good.name(world.keys)
    func assess(_ claim: Claim, at place: ObjectName? = nil, now: UInt64 = 5) throws {
      _ = try roster.assess(claim, at: place ?? claim.name(world.keys), keys: world.keys, now: now)
    }
    #expect(throws: Never.self) { try assess(good) }
    #expect(throws: Never.self) { try assess(good, now: terms.expiry) }
    #expect(throws: ClaimError.expired) { try assess(good, now: terms.expiry + 1) }
    let eve = Actor("Eve", &world.random)
    #expect(throws: ClaimError.wrongName) { try assess(world.claim(eve, terms, link), at: name) }

    func claim(
      household: HouseholdID? = nil, invite: InviteID? = nil, chain: CertificateChain? = nil,
      claimKey: SigningKey? = nil, device: DeviceKeys? = nil, kit: Certificate? = nil
    ) -> Claim {
      Claim(
        household: household ?? world.household, invite: invite ?? terms.id, chain: chain ?? ben.chain,
        personName: "Ben", deviceName: "phone", epoch: world.household, kit: kit,
        claimKey: claimKey ?? link.claimKey, device: device ?? ben.keys)
    }
    let noLink = SigningKey(&world.random)
    #expect(throws: ClaimError.otherHousehold) { try assess(claim(household: .zero)) }
    #expect(throws: ClaimError.unknownInvite) { try assess(claim(invite: .zero)) }
    #expect(throws: ClaimError.notFromLink) { try assess(claim(claimKey: noLink)) }
    // Eve has the link and would like to come in as Ben's device.
    #expect(throws: ClaimError.notFromDevice) { try assess(claim(device: eve.keys)) }
    #expect(throws: ClaimError.alreadyEnrolled) {
      try assess(claim(chain: world.ana.chain, device: world.ana.keys))
    }
    // A kit is vouched for by the claimant's own device.
    let kit = try Actor("kit", of: ben, &world.random)
    #expect(throws: Never.self) { try assess(claim(kit: kit.certificate)) }
    #expect(throws: ClaimError.certificates(.otherPerson)) { try assess(claim(kit: eve.certificate)) }
  }

  @Test("a kit that comes with a claim is admitted with it")
  func kit() throws {
    var world = try RosterWorld("kit")
    let (terms, link) = world.invite(.member)
    world.write(.openInvite(terms), by: world.ana)
    let ben = Actor("Ben", &world.random)
    let kit = try Actor("kit", of: ben, &world.random)
    world.write(.admit(claim: world.claim(ben, terms, link, kit: kit.certificate).bytes), by: world.ana)
    #expect(world.roster.state.device(kit.keys.id)?.isKit == true)
    #expect(world.roster.state.device(ben.keys.id)?.isKit == false)
    #expect(world.roster.state.invites.last?.admitted == [ben.keys.id])
  }

  @Test("every flipped bit of a claim is refused, and every cut")
  func flips() throws {
    var world = try RosterWorld("claim flips")
    let (terms, link) = world.invite(.reader)
    world.write(.openInvite(terms), by: world.ana)
    let good = world.claim(Actor("Ben", &world.random), terms, link)
    for index in good.bytes.indices {
      var altered = good.bytes
      altered[index] ^= 1 << UInt8((index * 3) % 8)
      let refusal = world.roster.refusal(of: .admit(claim: altered), by: world.ana.origin)
      #expect(refusal != nil, "byte \(index)")
      #expect(throws: FormatError.self) { try Claim(decoding: Array(good.bytes.prefix(index))) }
    }
  }

  @Test("only the inviter's person gains a device by a mine claim, vouched for by the device that was asked")
  func mine() throws {
    var world = try RosterWorld("mine")
    let ben = world.join("Ben", as: .member)
    let (terms, link) = world.invite(.mine)
    world.write(.openInvite(terms), by: ben)
    let phone = DeviceKeys(&world.random)
    func claim(_ inviter: Actor, person: PersonID, signer: DeviceID) -> Claim {
      Claim(
        household: world.household, invite: terms.id, joining: inviter.chain,
        request: Certificate(request: phone, person: person, signer: signer), personName: "", deviceName: "phone",
        epoch: world.household, claimKey: link.claimKey, device: phone)
    }
    func assess(_ claim: Claim) throws {
      _ = try world.roster.assess(claim, at: claim.name(world.keys), keys: world.keys, now: 1)
    }
    let good = claim(ben, person: ben.chain.person, signer: ben.keys.id)
    #expect(throws: Never.self) { try assess(good) }
    #expect(throws: ClaimError.otherPerson) {
      try assess(claim(world.ana, person: world.ana.chain.person, signer: world.ana.keys.id))
    }
    #expect(throws: ClaimError.otherPerson) {
      try assess(claim(ben, person: world.ana.chain.person, signer: ben.keys.id))
    }
    #expect(throws: ClaimError.otherPerson) {
      try assess(claim(ben, person: ben.chain.person, signer: world.ana.keys.id))
    }
    // An ordinary claim does not pass for a mine one, nor the reverse.
    #expect(throws: ClaimError.self) { try assess(world.claim(Actor("Eve", &world.random), terms, link)) }
    #expect(world.roster.refusal(of: .admit(claim: good.bytes), by: world.ana.origin) == .invite)
    #expect(good.request.completed(by: world.ana.keys) == nil)
    let certificate = try #require(good.request.completed(by: ben.keys))
    #expect(world.write(.addDevice(certificate, name: "phone", isKit: false), by: ben) == .counts)
    #expect(world.roster.role(of: phone.id) == .member)
  }
}

@Suite("Waiting rooms")
struct WaitingRoomTests {
  /// Seeds and ids of ascending bytes, so that another implementation can repeat it from the format's text.
  private func room(_ byte: UInt8 = 0) throws -> WaitingRoom {
    let invite = try #require(InviteID((0..<16).map { UInt8($0) }))
    let key = try #require(SigningKey(seed: SecretBytes((0..<32).map { UInt8($0) ^ byte })))
    return WaitingRoom(invite: invite, claimKey: key.publicKey)
  }

  // Computed from docs/format.md by Tests/Vectors/latchkeyformat.py.
  private static let prefix = "kfdi5di2dforlcuc9u3bei5mm6veg8kr"
  private static let claim = "c/2r/jf6rb6nv79k5686p3pc7qer4fo3gfc"
  private static let welcome = "i/30/2m5gmrrh085jgjph69eh0ideffe9hj"
  private static let key = "8883841ccbb6d180b2125a2005be0d5b12c134fda913b731a4d73ef14b15f6cc"

  @Test("names follow from the invite's id and public key alone, as the format says")
  func names() throws {
    let room = try room()
    let device = try #require(DeviceID((16..<32).map { UInt8($0) }))
    #expect(room.prefix == WaitingRoomTests.prefix)
    #expect(room.claimName(device).text == WaitingRoomTests.claim)
    #expect(room.welcomeName(device).text == WaitingRoomTests.welcome)
    #expect(hex(room.key.secret.bytes) == WaitingRoomTests.key)
    #expect(try self.room(1).prefix != room.prefix)
  }
}
