import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// Changes bytes as damage or malice would: flips, cuts, insertions, repeated and exchanged parts, huge lengths.
private func mutated(_ bytes: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
  var out = bytes
  for _ in 0...random.number(below: 3) {
    guard !out.isEmpty else { return random.bytes(random.number(below: 40)) }
    let at = random.number(below: out.count)
    switch random.number(below: 6) {
    case 0: out[at] ^= 1 << UInt8(random.number(below: 8))
    case 1: out[at] = random.bytes(1)[0]
    case 2: out = Array(out.prefix(at))
    case 3: out.insert(contentsOf: random.bytes(1 + random.number(below: 9)), at: at)
    case 4:
      out.replaceSubrange(at..<min(at + 4, out.count), with: [0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    default: out += out.suffix(from: at)
    }
  }
  return out
}

@Suite("Decoders of what others wrote")
struct DecoderTests {
  private func cardAndMessage() throws -> (card: [UInt8], message: [UInt8]) {
    var world = try RosterWorld("decoders: cards")
    let phone = try Actor("phone", of: world.ana, &world.random)
    let blob = InviteBlob(
      household: world.household, epoch: world.household, invite: .zero,
      seal: world.key.seal(to: phone.keys.publicKeys.box), rosterHeads: [world.household],
      householdName: "Smith", inviterName: "Ana", role: .member, expiry: 5, zones: [])
    let card = Card(chain: phone.chain, displayName: "A", picture: [1, 2], published: 5, device: phone.keys)
    let message = InboxMessage(
      blob: blob, recipient: phone.chain, locator: "folder:/x", inviter: world.ana.chain, keys: world.ana.keys)
    return (card.encoded, message.encoded)
  }

  private func samples() throws -> (payloads: [[UInt8]], claim: [UInt8], blob: [UInt8], chain: [UInt8]) {
    var world = try RosterWorld("decoders")
    let phone = try Actor("phone", of: world.ana, &world.random)
    let (terms, link) = world.invite(.member)
    let claim = world.claim(phone, terms, link, kit: phone.certificate)
    let seal = try #require(world.key.seal(to: terms.boxKey))
    let next = Next(
      parents: [.zero, world.household], form: .closed, commitment: .zero,
      recipients: [.init(kind: .invite, id: terms.id.bytes, seal: seal)],
      formers: [.init(epoch: .zero, nonce: world.random.bytes(24), box: world.random.bytes(48))],
      removals: [.init(device: phone.keys.id, limits: [])], roles: [.init(person: phone.chain.person, role: .reader)],
      confirmed: [], store: nil)
    let blob = InviteBlob(
      household: world.household, epoch: world.household, invite: terms.id, seal: seal, rosterHeads: [world.household],
      householdName: "Smith", inviterName: "Ana", role: .member, expiry: 5, zones: [.init(id: .zero, name: "z")])
    let access = HouseholdAccess(
      household: .zero, name: "n", epoch: .zero, key: world.key, locator: "folder:/x", checkpoint: [.zero])
    let operations: [RosterOperation] = [
      world.genesis.operation, .zone(.zero, name: "z"), .closeZone(CloseZone(zone: .zero, reason: .deleted)),
      .addDevice(phone.certificate, name: "p", isKit: true), .openInvite(terms), .revokeInvite(terms.id),
      .admit(claim: claim.bytes), .leave, .profile(personName: "a", deviceName: "b"),
      .seal(phone.keys.id, epoch: .zero, seal), .next(next), .household(access),
    ]
    return (operations.map(\.payload), claim.bytes, blob.encoded, phone.chain.encoded)
  }

  @Test("whatever bytes come, a roster payload is read without a trap, and what is read is written back the same")
  func payloads() throws {
    var random = SeededRandom("decoders: payloads")
    var changed = 0
    for payload in try samples().payloads {
      for _ in 0..<150 {
        let bytes = mutated(payload, &random)
        let operation = RosterOperation(payload: bytes)
        #expect(operation.payload == bytes)
        if case .malformed = operation { continue }
        if bytes != payload { changed += 1 }
      }
    }
    #expect(changed > 20, "some changes leave a well-formed operation")
  }

  @Test(
    "claims, invite blobs and certificate chains are read without a trap, and what is read is written back the same")
  func others() throws {
    var random = SeededRandom("decoders: others")
    let (_, claim, blob, chain) = try samples()
    for _ in 0..<400 {
      let bytes = mutated(claim, &random)
      if let read = try? Claim(decoding: bytes) { #expect(read.bytes == bytes) }
      let other = mutated(blob, &random)
      if let read = try? InviteBlob(decoding: other) { #expect(read.encoded == other) }
      let third = mutated(chain, &random)
      if let read = try? CertificateChain.decode(third) { #expect(read.encoded == third && third == chain) }
    }
  }

  @Test("cards and messages are read without a trap, and of changed ones none holds")
  func cards() throws {
    var random = SeededRandom("decoders: cards")
    let (card, message) = try cardAndMessage()
    for _ in 0..<400 {
      let bytes = mutated(card, &random)
      if let read = try? Card(decoding: bytes) { #expect(read.encoded == card && bytes == card) }
      let other = mutated(message, &random)
      if let read = try? InboxMessage(decoding: other) { #expect(read.encoded == message && other == message) }
    }
  }

  @Test("a blob or claim of a newer version is newer, not malformed")
  func newer() throws {
    let (_, claim, blob, _) = try samples()
    var newerBlob = blob
    newerBlob[1] = 2
    #expect(throws: FormatError.newer) { try InviteBlob(decoding: newerBlob) }
    // [body, …]: the array's head, then the head of a string over 255 bytes, then the body's own.
    var newerClaim = claim
    newerClaim[5] = 2
    #expect(throws: FormatError.newer) { try Claim(decoding: newerClaim) }
  }

  @Test("names and lists beyond the format's limits are refused")
  func limits() throws {
    let long = String(repeating: "ä", count: 513)
    for operation in [
      RosterOperation.zone(.zero, name: long), .profile(personName: long, deviceName: ""),
      .profile(personName: "", deviceName: long),
    ] {
      #expect(RosterOperation(payload: operation.payload) == .malformed(payload: operation.payload))
    }
    let fits = RosterOperation.zone(.zero, name: String(repeating: "ä", count: 512))
    #expect(RosterOperation(payload: fits.payload) == fits)
    var random = SeededRandom("limits")
    let heads = (0..<257).map { _ in Hash32(random.bytes(32)) ?? .zero }.sorted()
    func access(_ heads: [Hash32]) -> RosterOperation {
      .household(
        HouseholdAccess(
          household: .zero, name: "", epoch: .zero, key: EpochKey(&random), locator: "", checkpoint: heads))
    }
    let (over, atLimit, unsorted) = (
      access(heads), access(Array(heads.prefix(256))), access(heads.prefix(2).reversed())
    )
    #expect(RosterOperation(payload: over.payload) == .malformed(payload: over.payload))
    #expect(RosterOperation(payload: atLimit.payload) == atLimit)
    #expect(RosterOperation(payload: unsorted.payload) == .malformed(payload: unsorted.payload))
  }

  @Test("random texts after a link's beginning are damaged links")
  func links() {
    var random = SeededRandom("decoders: links")
    for _ in 0..<500 {
      let text = String(decoding: random.bytes(random.number(below: 200)).map { 33 + $0 % 94 }, as: UTF8.self)
      #expect(throws: LinkError.damaged) { try InviteLink(parsing: InviteLink.scheme + text) }
    }
  }
}
