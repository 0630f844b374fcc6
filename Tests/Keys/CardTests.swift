import LatchkeyEncoding
import LatchkeyKeys
import Testing

private func storeID(_ random: inout SeededRandom) -> ZoneID { ZoneID(random.bytes(16)) ?? .zero }

@Suite("Cards")
struct CardTests {
  @Test("a card is found by whoever knows the store, says what its person chose to say, and is read back the same")
  func roundTrip() throws {
    var random = SeededRandom("cards")
    let ben = Actor("Ben", &random)
    let phone = try Actor("phone", of: ben, &random)
    let store = storeID(&random)
    let place = CardPlace(store: store)
    for (name, picture) in [(nil, nil), ("Ben ✓", nil), ("", [UInt8](repeating: 1, count: Limits.picture))] {
      let card = Card(
        chain: phone.chain, displayName: name, picture: picture, published: 1_900_000_000_000, device: phone.keys)
      let object = try place.seal(card, nonce: EnvelopeNonce(&random))
      #expect(object.count >= 4096)
      let read = try CardPlace(store: store).open(object, at: card.name)
      #expect(read == card && read.displayName == name && read.picture == picture)
      #expect(read.person == ben.chain.person && read.chain.keys == phone.keys.publicKeys)
      #expect(place.objectName(card.name).text.hasPrefix(place.prefix + "/d/"))
      // In another store it is not to be read, nor under another name.
      #expect(throws: CardError.envelope(.commitment)) {
        try CardPlace(store: storeID(&random)).open(object, at: card.name)
      }
    }
  }

  @Test("a newer card has a name of its own, and so has one that says something else")
  func names() {
    var random = SeededRandom("card names")
    let ben = Actor("Ben", &random)
    func name(_ displayName: String?, _ published: UInt64) -> ObjectName {
      Card(chain: ben.chain, displayName: displayName, published: published, device: ben.keys).name
    }
    #expect(Set([name(nil, 1), name(nil, 2), name("Ben", 1)]).count == 3)
    #expect(name("Ben", 1) == name("Ben", 1))
  }

  @Test("a card that another device signed, or that lies under a name not its own, is none")
  func forgeries() throws {
    var random = SeededRandom("card forgeries")
    let (ben, eve) = (Actor("Ben", &random), Actor("Eve", &random))
    let place = CardPlace(store: storeID(&random))
    // Eve puts Ben's chain on a card of hers.
    let forged = Card(chain: ben.chain, displayName: "Ben", published: 2, device: eve.keys)
    #expect(throws: CardError.forged) { try Card(decoding: forged.encoded) }
    let mine = Card(chain: eve.chain, displayName: nil, published: 1, device: eve.keys)
    let bens = Card(chain: ben.chain, displayName: nil, published: 1, device: ben.keys)
    // What was sealed for one name opens nowhere else, and its content is not that name's.
    let sealed = try place.seal(mine, nonce: EnvelopeNonce(&random))
    #expect(throws: CardError.envelope(.commitment)) { try place.open(sealed, at: bens.name) }
    #expect(throws: CardError.wrongName) {
      try place.open(try sealedElsewhere(mine, at: bens.name, place, &random), at: bens.name)
    }
  }

  /// A card sealed as if it were another one: whoever sees the store can.
  private func sealedElsewhere(
    _ card: Card, at name: ObjectName, _ place: CardPlace, _ random: inout SeededRandom
  ) throws -> [UInt8] {
    var again = SeededRandom("card forgeries")
    _ = (Actor("Ben", &again), Actor("Eve", &again))
    let key = hash32("card-key", parts: 1) { $0.id(storeID(&again)) }
    return try Envelope.seal(
      card.encoded,
      at: EnvelopePlace(kind: .card, household: .zero, epoch: .zero, zone: .zero, name: name),
      key: ZoneKey(key.bytes), nonce: EnvelopeNonce(&random))
  }

  @Test("every flipped bit of a card is refused, and every cut")
  func flips() throws {
    var random = SeededRandom("card flips")
    let ben = try Actor("phone", of: Actor("Ben", &random), &random)
    let card = Card(chain: ben.chain, displayName: "Ben", published: 7, device: ben.keys)
    for index in card.encoded.indices {
      var altered = card.encoded
      altered[index] ^= 1 << UInt8((index * 3) % 8)
      #expect(throws: CardError.self, "byte \(index)") { try Card(decoding: altered) }
      #expect(throws: CardError.self) { try Card(decoding: Array(card.encoded.prefix(index))) }
    }
    #expect(throws: CardError.format(.newer)) {
      // [body, …]: the array's head, the head of a string over 255 bytes, the body's own head, its version.
      var newer = card.encoded
      newer[5] = 2
      return try Card(decoding: newer)
    }
  }

  @Test("the words of a card are over its keys alone: the same under another name, others for other keys")
  func words() throws {
    var random = SeededRandom("card words")
    let ben = Actor("Ben", &random)
    let phone = try Actor("phone", of: ben, &random)
    let words = ComparisonWords(card: ben.chain)
    #expect(words == ComparisonWords(card: try CertificateChain.decode(ben.chain.encoded)))
    #expect(words.words.count == 10 && words.compare(words.description) == .same)
    #expect(ComparisonWords(card: phone.chain) != words)
    #expect(words.compare(ComparisonWords(card: phone.chain).description) == .different)
  }
}

@Suite("Invites that are sent to a device")
struct InboxTests {
  private struct Sent {
    var world: RosterWorld
    let ben: Actor
    let terms: OpenInvite
    let message: InboxMessage
  }

  private func sent(_ seed: String, _ role: InviteRole = .member) throws -> Sent {
    var world = try RosterWorld(seed)
    let ben = Actor("Ben", &world.random)
    let keys = ben.keys.publicKeys
    let terms = OpenInvite(
      id: InviteID(world.random.bytes(16)) ?? .zero, claimKey: keys.signing, boxKey: keys.box, role: role, expiry: 1000)
    world.write(.openInvite(terms), by: world.ana)
    let message = InboxMessage(
      blob: try blob(world, terms, role), recipient: ben.chain, locator: "folder:/x", inviter: world.ana.chain,
      keys: world.ana.keys)
    return Sent(world: world, ben: ben, terms: terms, message: message)
  }

  private func blob(_ world: RosterWorld, _ terms: OpenInvite, _ role: InviteRole) throws -> InviteBlob {
    InviteBlob(
      household: world.household, epoch: world.household, invite: terms.id,
      seal: world.key.seal(to: terms.boxKey), rosterHeads: world.roster.heads, householdName: "Smith",
      inviterName: "Ana", role: role, expiry: terms.expiry, zones: [.init(id: .zero, name: "dogs")])
  }

  private func claim(_ sent: Sent, _ claimKey: SigningKey? = nil) -> Claim {
    Claim(
      household: sent.world.household, invite: sent.terms.id, chain: sent.ben.chain, personName: "Ben",
      deviceName: "phone", epoch: sent.world.household, claimKey: claimKey ?? sent.ben.keys.signing,
      device: sent.ben.keys)
  }

  @Test("the recipient alone opens it, gets the epoch's key with its own, and is let in by its own signature")
  func wholeWay() throws {
    var sent = try sent("inbox: whole way")
    let object = try #require(sent.message.sealed(to: sent.ben.keys.publicKeys.box, random: &sent.world.random))
    #expect(object.count == 4096)
    let name = sent.message.objectName(&sent.world.random)
    #expect(name.text.hasPrefix(InboxMessage.prefix(of: sent.ben.chain.person) + "/x/"))
    let read = try InboxMessage.open(object, by: sent.ben.keys, of: sent.ben.chain.person)
    #expect(read == sent.message && read.id == sent.message.id && read.locator == "folder:/x")
    #expect(read.inviter.person == sent.world.ana.chain.person)
    #expect(try #require(read.blob.open(with: sent.ben.keys.box)).key == sent.world.key)
    let answer = claim(sent)
    let invite = try sent.world.roster.assess(
      try Claim(decoding: answer.bytes), at: answer.name(sent.world.keys), keys: sent.world.keys, now: 1000)
    #expect(invite.terms == sent.terms)
    #expect(sent.world.write(.admit(claim: answer.bytes), by: sent.world.ana) == .counts)
    #expect(sent.world.roster.role(of: sent.ben.keys.id) == .member)
  }

  @Test("attack 26: re-sealed to another person, or to another device of the same one, it is refused")
  func resealed() throws {
    var sent = try sent("inbox: resealed")
    let eve = Actor("Eve", &sent.world.random)
    let tablet = try Actor("tablet", of: sent.ben, &sent.world.random)
    let bens = try #require(sent.message.sealed(to: sent.ben.keys.publicKeys.box, random: &sent.world.random))
    #expect(throws: InboxError.notForThisDevice) {
      try InboxMessage.open(bens, by: eve.keys, of: eve.chain.person)
    }
    for other in [eve, tablet] {
      let object = try #require(sent.message.sealed(to: other.keys.publicKeys.box, random: &sent.world.random))
      #expect(throws: InboxError.otherRecipient) {
        try InboxMessage.open(object, by: other.keys, of: other.chain.person)
      }
      // And the epoch's key in it is still Ben's phone's.
      #expect(sent.message.blob.open(with: other.keys.box) == nil)
    }
  }

  @Test("attack 26: a message whose role, household or recipient was changed is not the inviter's")
  func changed() throws {
    let sent = try sent("inbox: changed", .reader)
    let bytes = sent.message.encoded
    for index in bytes.indices {
      var altered = bytes
      altered[index] ^= 1 << UInt8((index * 3) % 8)
      #expect(throws: InboxError.self, "byte \(index)") { try InboxMessage(decoding: altered) }
      #expect(throws: InboxError.self) { try InboxMessage(decoding: Array(bytes.prefix(index))) }
    }
    // Ben signs what he would like to have got, in Ana's name.
    let wished = InboxMessage(
      blob: try blob(sent.world, sent.terms, .owner), recipient: sent.ben.chain, locator: "folder:/x",
      inviter: sent.world.ana.chain, keys: sent.ben.keys)
    #expect(throws: InboxError.forged) { try InboxMessage(decoding: wished.encoded) }
    // Nobody's own device comes in by a message.
    let mine = InboxMessage(
      blob: try blob(sent.world, sent.terms, .mine), recipient: sent.ben.chain, locator: "folder:/x",
      inviter: sent.world.ana.chain, keys: sent.world.ana.keys)
    #expect(throws: InboxError.format(.malformed(.unexpected("role of another person")))) {
      try InboxMessage(decoding: mine.encoded)
    }
  }

  @Test("whatever lies in an inbox is told apart without a trap: damaged, newer, padded wrongly, too large, no message")
  func garbage() throws {
    var sent = try sent("inbox: garbage")
    let (box, person) = (sent.ben.keys.publicKeys.box, sent.ben.chain.person)
    let object = try #require(sent.message.sealed(to: box, random: &sent.world.random))
    func altered(_ index: Int, _ byte: UInt8) -> [UInt8] {
      var out = object
      out[index] = byte
      return out
    }
    func error(_ bytes: [UInt8]) -> InboxError? {
      do throws(InboxError) { _ = try InboxMessage.open(bytes, by: sent.ben.keys, of: person) } catch { return error }
      return nil
    }
    #expect(error(object) == nil)
    #expect(error([]) == .notAMessage)
    #expect(error(Array(object.prefix(40))) == .notAMessage)
    #expect(error([UInt8](repeating: 0, count: 5000)) == .notAMessage)
    #expect(error(object + [UInt8](repeating: 0, count: 70_000)) == .notAMessage)
    #expect(error(altered(0, 0)) == .notAMessage)
    #expect(error(altered(4, UInt8(ascii: "d"))) == .notAMessage)
    #expect(error(altered(2, 2)) == .newer)
    #expect(error(altered(3, 2)) == .newer)
    #expect(error(altered(2, 0)) == .notAMessage)
    #expect(error(altered(100, object[100] ^ 1)) == .notForThisDevice)
    #expect(error(Array(object.dropLast())) == .notForThisDevice)
    for _ in 0..<50 {
      let junk = Array(object.prefix(5)) + sent.world.random.bytes(sent.world.random.number(below: 6000))
      #expect(error(junk) != nil)
    }
  }

  @Test("what a device signed to answer a link does not pass for its answer to an invite that was opened for its key")
  func purposes() throws {
    let sent = try sent("inbox: purposes")
    let link = try #require(SigningKey(seed: SecretBytes([UInt8](repeating: 7, count: 32))))
    let answer = claim(sent, link)
    // [body, by the link, by the device]: the device's signature in both places.
    var replayed = answer.bytes
    let own = replayed.suffix(64)
    replayed.replaceSubrange(replayed.count - 130..<replayed.count - 66, with: own)
    let forged = try Claim(decoding: replayed)
    #expect(throws: ClaimError.notFromLink) {
      try forged.verify(
        household: sent.world.household, claimKey: sent.ben.keys.publicKeys.signing, role: .member)
    }
    #expect(sent.world.roster.refusal(of: .admit(claim: replayed), by: sent.world.ana.origin) != nil)
    #expect(throws: Never.self) {
      try claim(sent).verify(
        household: sent.world.household, claimKey: sent.ben.keys.publicKeys.signing, role: .member)
    }
    // Nobody else answers for it.
    #expect(!claim(sent).isFromLink(sent.world.ana.keys.publicKeys.signing))
  }
}
