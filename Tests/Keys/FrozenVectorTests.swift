import Foundation
import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// A JSON value, written with sorted keys so that equal values give equal files.
indirect enum JSON {
  case text(String)
  case number(UInt64)
  case list([JSON])
  case object([String: JSON])

  var plain: Any {
    switch self {
    case .text(let value): value
    case .number(let value): NSNumber(value: value)
    case .list(let values): values.map(\.plain)
    case .object(let values): values.mapValues(\.plain)
    }
  }

  func encoded() throws -> Data {
    try JSONSerialization.data(
      withJSONObject: plain, options: [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]) + Data([10])
  }

  static func hex(_ bytes: [UInt8]) -> JSON { .text(LatchkeyEncoding.hex(bytes)) }
  static func id(_ value: some FixedBytes) -> JSON { .hex(value.bytes) }
}

/// The vectors that this version makes, from seeds.
private struct Vectors {
  static let files: [String: @Sendable () throws -> JSON] = [
    "identity.json": identity, "epochs.json": epochs, "envelopes.json": envelopes, "roster.json": roster,
    "invites.json": invites, "cards.json": cards, "next.json": nextVectors, "words.json": wordVectors,
  ]

  static func identity() throws -> JSON {
    var random = SeededRandom("vectors: identity")
    let first = Actor("laptop", &random)
    let second = try Actor("phone", of: first, &random)
    let third = try Actor("tablet", of: second, &random)
    let stranger = Actor("stranger", &random)
    func device(_ actor: Actor) -> JSON {
      .object([
        "sign_seed": .hex(actor.keys.signing.secret.bytes), "box_secret": .hex(actor.keys.box.secret.bytes),
        "sign_public": .id(actor.keys.publicKeys.signing), "box_public": .id(actor.keys.publicKeys.box),
        "device": .id(actor.keys.id), "person_if_first": .id(actor.keys.publicKeys.foundedPerson),
      ])
    }
    let signatures = SigningPurpose.allCases.map { purpose -> JSON in
      let body = random.bytes(40)
      return .object([
        "purpose": .text(purpose.rawValue), "body": .hex(body), "hash": .id(purpose.hash(of: body)),
        "sign_public": .id(first.keys.publicKeys.signing), "signature": .id(first.keys.signing.sign(purpose, body)),
      ])
    }
    func list(_ certificates: [Certificate]) throws -> [UInt8] {
      var writer = CBORWriter()
      writer.array(certificates.count)
      for certificate in certificates { writer.raw(try single(certificate)) }
      return writer.bytes
    }
    func bad(_ why: String, _ bytes: [UInt8]) -> JSON { .object(["chain": .hex(bytes), "why": .text(why)]) }
    var flipped = third.chain.encoded
    flipped[flipped.count - 1] ^= 1
    let claimed = Certificate(request: stranger.keys, person: first.chain.person, signer: first.keys.id)
    return .object([
      "devices": .list([first, second, third].map(device)),
      "signatures": .list(signatures),
      "chains": .list(
        [first, second, third].map {
          .object(["chain": .hex($0.chain.encoded), "person": .id($0.chain.person), "device": .id($0.keys.id)])
        }),
      "bad_chains": .list([
        bad("no certificate", try list([])),
        bad("does not begin with the person's first", try list([second.certificate])),
        bad("a device twice", try list([first.certificate, second.certificate, second.certificate])),
        bad("two persons", try list([first.certificate, stranger.certificate])),
        bad("signed by the newcomer only", try list([first.certificate, claimed])),
        bad("the signer stands after", try list([first.certificate, third.certificate, second.certificate])),
        bad("a signature is altered", flipped), bad("trailing byte", third.chain.encoded + [0]),
      ]),
    ])
  }

  /// One certificate as it stands in a chain of one.
  private static func single(_ certificate: Certificate) throws -> [UInt8] {
    let payload = RosterOperation.addDevice(certificate, name: "", isKit: false).payload
    // [1, 4, certificate, "", false]: three bytes before, two after.
    return Array(payload.dropFirst(3).dropLast(2))
  }

  static func epochs() throws -> JSON {
    var world = World("vectors: epochs")
    let keys = world.keys
    let recipients = (0..<2).map { _ in BoxKey(&world.random) }
    let invite = InviteID(world.random.bytes(16)) ?? .zero
    func zone(_ zone: ZoneID) -> JSON {
      .object([
        "zone": .id(zone), "prefix": .text(keys.prefix(zone)), "zone_key": .hex(keys.zoneKey(zone).secret.bytes),
        "digest_key": .hex(keys.digestKey(zone: zone)),
        "head": .text(keys.objectName(zone: zone, keys.headName(zone: zone, origin: world.origin, counter: 33)).text),
        "segment": .text(
          keys.objectName(zone: zone, keys.segmentName(zone: zone, origin: world.origin, index: 300)).text),
      ])
    }
    let seals = try recipients.map { recipient -> JSON in
      .object([
        "recipient_secret": .hex(recipient.secret.bytes), "recipient": .id(recipient.publicKey),
        "seal": .id(try #require(keys.key.seal(to: recipient.publicKey))),
      ])
    }
    return .object([
      "household": .id(keys.household), "epoch": .id(keys.epoch), "key": .hex(keys.key.secret.bytes),
      "device": .id(world.origin.device), "incarnation": .id(world.origin.incarnation), "head_counter": .number(33),
      "segment_index": .number(300), "zones": .list([zone(world.zone), zone(.roster)]), "invite": .id(invite),
      "claim": .text(keys.claimName(invite: invite, device: world.origin.device).text), "next_sequence": .number(5),
      "next": .text(keys.nextName(origin: world.origin, sequence: 5).text),
      "commitment_without_parents": .id(keys.key.commitment(parents: [])),
      "commitment_with_parent": .id(keys.key.commitment(parents: [keys.household])), "seals": .list(seals),
    ])
  }

  static func envelopes() throws -> JSON {
    var world = World("vectors: envelopes")
    let (keys, zone) = (world.keys, world.zone)
    let zoneKey = keys.zoneKey(zone)
    func fields(_ place: EnvelopePlace, _ key: ZoneKey) -> [String: JSON] {
      [
        "kind": .text(place.kind.letter), "household": .id(place.household), "epoch": .id(place.epoch),
        "zone": .id(place.zone), "name": .text(place.name.text), "zone_key": .hex(key.secret.bytes),
      ]
    }
    var good: [JSON] = []
    let segment = keys.place(
      .segment, zone: zone, name: keys.segmentName(zone: zone, origin: world.origin, index: 1))
    let head = keys.place(.head, zone: zone, name: keys.headName(zone: zone, origin: world.origin, counter: 1))
    for (place, length) in [(segment, 0), (segment, 5), (segment, 4016), (head, 100), (head, 4016)] {
      let content = world.random.bytes(length)
      let nonce = EnvelopeNonce(&world.random)
      let object = try Envelope.seal(content, at: place, key: zoneKey, nonce: nonce)
      var entry = fields(place, zoneKey)
      entry["nonce"] = .hex(nonce.bytes)
      entry["content"] = .hex(content)
      entry["size"] = .number(UInt64(object.count))
      entry["blake2b_of_object"] = .hex(blake2b(object))
      if length == 5 { entry["object"] = .hex(object) }
      good.append(.object(entry))
    }
    let object = try Envelope.seal([1, 2, 3], at: segment, key: zoneKey, nonce: EnvelopeNonce(&world.random))
    var bad: [JSON] = []
    func add(_ why: String, _ error: String, _ bytes: [UInt8], at place: EnvelopePlace? = nil, key: ZoneKey? = nil) {
      var entry = fields(place ?? segment, key ?? zoneKey)
      entry["object"] = .hex(bytes)
      entry["error"] = .text(error)
      entry["why"] = .text(why)
      bad.append(.object(entry))
    }
    func altered(_ index: Int, to byte: UInt8) -> [UInt8] {
      var out = object
      out[index] = byte
      return out
    }
    add("empty", "truncated", [])
    add("ends in its header", "truncated", Array(object.prefix(60)))
    add("cut", "tag", Array(object.dropLast()))
    add("longer", "tag", object + [0])
    add("other magic", "notLatchkey", altered(0, to: 0x4d))
    add("version 2", "newer", altered(2, to: 2))
    add("suite 2", "newer", altered(3, to: 2))
    add("another kind", "wrongKind", altered(4, to: 0x68))
    add("nonce altered", "commitment", altered(5, to: object[5] ^ 1))
    add("commitment altered", "commitment", altered(40, to: object[40] ^ 1))
    add("ciphertext altered", "tag", altered(61, to: object[61] ^ 1))
    add("tag altered", "tag", altered(4095, to: object[4095] ^ 1))
    let elsewhere = keys.segmentName(zone: zone, origin: world.origin, index: 2)
    add("under another name", "commitment", object, at: keys.place(.segment, zone: zone, name: elsewhere))
    add("in another zone", "commitment", object, at: keys.place(.segment, zone: .roster, name: segment.name))
    add("with another zone's key", "commitment", object, key: keys.zoneKey(.roster))
    return .object(["good": .list(good), "bad": .list(bad)])
  }

  /// BLAKE2b-256 of the bytes as they are.
  private static func blake2b(_ bytes: [UInt8]) -> [UInt8] {
    var hasher = Blake2b(length: 32)
    hasher.update(bytes)
    return hasher.finish()
  }

  static func roster() throws -> JSON {
    var world = try RosterWorld("vectors: roster")
    let phone = try Actor("phone", of: world.ana, &world.random)
    let (terms, link) = world.invite(.member)
    let claim = world.claim(Actor("Ben", &world.random), terms, link)
    let zone = ZoneID(world.random.bytes(16)) ?? .zero
    let seal = try #require(world.key.seal(to: phone.keys.publicKeys.box))
    let next = Next(
      parents: [world.household], form: .moved, commitment: world.key.commitment(parents: [world.household]),
      recipients: [.init(kind: .device, id: phone.keys.id.bytes, seal: seal)],
      formers: [.init(epoch: world.household, nonce: world.random.bytes(24), box: world.random.bytes(48))],
      removals: [
        .init(
          device: world.ana.keys.id,
          limits: [.init(zone: zone, incarnation: Incarnation(9), sequence: 70_000, hash: world.household)])
      ], roles: [.init(person: world.ana.chain.person, role: .member)], confirmed: [phone.keys.id],
      store: "folder:/elsewhere")
    let access = HouseholdAccess(
      household: world.household, name: "Smith", epoch: world.household, key: world.key, locator: "folder:/x",
      checkpoint: [world.household])
    let operations: [(String, RosterOperation)] = [
      ("Genesis", world.genesis.operation), ("Zone", .zone(zone, name: "dogs")),
      ("CloseZone", .closeZone(CloseZone(zone: zone, reason: .unshared))),
      (
        "CloseZone",
        .closeZone(CloseZone(zone: zone, reason: .moved, successor: .init(household: world.household, zone: zone)))
      ),
      ("AddDevice", .addDevice(phone.certificate, name: "phone", isKit: false)),
      ("AddDevice", .addDevice(phone.certificate, name: "on paper", isKit: true)), ("OpenInvite", .openInvite(terms)),
      ("RevokeInvite", .revokeInvite(terms.id)), ("Admit", .admit(claim: claim.bytes)), ("Leave", .leave),
      ("Profile", .profile(personName: "Änne", deviceName: "💻")),
      ("Seal", .seal(phone.keys.id, epoch: world.household, seal)), ("Next", .next(next)),
      ("Household", .household(access)), ("newer: kind 99", RosterOperation(payload: [0x82, 0x01, 0x18, 0x63])),
      ("newer: version 2", RosterOperation(payload: [0x82, 0x02, 0x01])),
    ]
    let leave = RosterOperation.leave.payload
    let zonePayload = RosterOperation.zone(zone, name: "dogs").payload
    var forged = world.genesis.operation.payload
    forged[100] ^= 1
    let malformed: [(String, [UInt8])] = [
      ("empty", []), ("not an array", [0x01]), ("kind 0", [0x82, 0x01, 0x00]), ("version 0", [0x82, 0x00, 0x08]),
      ("longer array than stated", [0x83, 0x01, 0x08, 0x00]), ("trailing byte", leave + [0]),
      ("cut", Array(zonePayload.dropLast())), ("indefinite length", [0x9f, 0x01, 0x08, 0xff]),
      ("head longer than needed", [0x82, 0x18, 0x01, 0x08]), ("a name over 1024 bytes", longName(zone)),
      ("a certificate's key is altered", forged),
    ]
    return .object([
      "operations": .list(
        operations.map { .object(["kind": .text($0.0), "payload": .hex($0.1.payload)]) }),
      "malformed": .list(malformed.map { .object(["why": .text($0.0), "payload": .hex($0.1)]) }),
      "heads": .list([.id(Hash32.zero), .id(world.household)]),
      "checkpoint": .id(Roster.checkpoint([.zero, world.household])),
    ])
  }

  private static func longName(_ zone: ZoneID) -> [UInt8] {
    RosterOperation.zone(zone, name: String(repeating: "x", count: 1025)).payload
  }

  static func invites() throws -> JSON {
    var world = try RosterWorld("vectors: invites")
    let secret = InviteSecret(&world.random)
    let terms = OpenInvite(
      id: InviteID(world.random.bytes(16)) ?? .zero, claimKey: secret.keys.claimKey.publicKey,
      boxKey: secret.keys.boxKey.publicKey, role: .reader, expiry: 1_900_000_000_000)
    world.write(.openInvite(terms), by: world.ana)
    let link = InviteLink(
      secret: secret, household: world.household, checkpoint: Roster.checkpoint(world.roster.heads),
      locator: "folder:/srv/ana/Dropbox/household", expiry: terms.expiry, role: .reader)
    let withCredential = InviteLink(
      secret: secret, household: world.household, checkpoint: link.checkpoint, locator: "s3+https://x/y",
      credential: Credential("id:key"), expiry: terms.expiry, role: .reader)
    let blob = InviteBlob(
      household: world.household, epoch: world.household, invite: terms.id,
      seal: world.key.seal(to: terms.boxKey), rosterHeads: world.roster.heads, householdName: "Smith",
      inviterName: "Ana", role: .reader, expiry: terms.expiry, zones: [.init(id: .zero, name: "dogs")])
    let nonce = EnvelopeNonce(&world.random)
    let object = try Envelope.seal(blob.encoded, at: secret.keys.place, key: secret.keys.blobKey, nonce: nonce)
    let ben = Actor("Ben", &world.random)
    let claim = world.claim(ben, terms, secret.keys)
    let noDevice = Claim(
      household: world.household, invite: terms.id, chain: ben.chain, personName: "Ben", deviceName: "phone",
      epoch: world.household, claimKey: secret.keys.claimKey, device: DeviceKeys(&world.random))
    let noLink = Claim(
      household: world.household, invite: terms.id, chain: ben.chain, personName: "Ben", deviceName: "phone",
      epoch: world.household, claimKey: SigningKey(&world.random), device: ben.keys)
    func bad(_ text: String, _ error: String) -> JSON { .object(["link": .text(text), "error": .text(error)]) }
    let text = link.text
    return .object([
      "link": .text(text), "link_with_credential": .text(withCredential.text), "secret": .hex(secret.secret.bytes),
      "household": .id(link.household), "checkpoint": .id(link.checkpoint), "locator": .text(link.locator),
      "expiry": .number(link.expiry), "claim_public": .id(terms.claimKey), "box_public": .id(terms.boxKey),
      "blob_key": .hex(secret.keys.blobKey.secret.bytes), "blob_object_name": .text(secret.keys.objectName.text),
      "blob": .hex(blob.encoded), "blob_nonce": .hex(nonce.bytes), "blob_object": .hex(object),
      "epoch_key": .hex(world.key.secret.bytes), "invite": .id(terms.id),
      "bad_links": .list([
        bad("", "notALink"), bad("https://example.org/join#\(text.dropFirst(16))", "notALink"),
        bad(String(text.dropLast()), "damaged"), bad(text + "A", "damaged"), bad("latchkey://join#", "damaged"),
        bad(text.replacingOccurrences(of: "join#", with: "join#A"), "damaged"), bad(newerLink(), "newer"),
      ]),
      "claim": .hex(claim.bytes), "claim_name": .text(claim.name(world.keys).text), "device": .id(ben.keys.id),
      "person": .id(ben.chain.person),
      "bad_claims": .list([
        .object(["claim": .hex(noDevice.bytes), "error": .text("notFromDevice")]),
        .object(["claim": .hex(noLink.bytes), "error": .text("notFromLink")]),
      ]),
    ])
  }

  static func cards() throws -> JSON {
    var world = try RosterWorld("vectors: cards")
    let ben = try Actor("phone", of: Actor("Ben", &world.random), &world.random)
    let eve = Actor("Eve", &world.random)
    let store = ZoneID(world.random.bytes(16)) ?? .zero
    let place = CardPlace(store: store)
    let cards = try [nil, "Ben"].map { name -> JSON in
      let card = Card(chain: ben.chain, displayName: name, published: 1_900_000_000_000, device: ben.keys)
      let nonce = EnvelopeNonce(&world.random)
      return .object([
        "content": .hex(card.encoded), "display_name": .text(name ?? ""), "published": .number(card.published),
        "nonce": .hex(nonce.bytes), "object": .hex(try place.seal(card, nonce: nonce)),
        "object_name": .text(place.objectName(card.name).text),
      ])
    }
    let keys = ben.keys.publicKeys
    let terms = OpenInvite(
      id: InviteID(world.random.bytes(16)) ?? .zero, claimKey: keys.signing, boxKey: keys.box, role: .member,
      expiry: 1_900_000_000_000)
    world.write(.openInvite(terms), by: world.ana)
    func blob(_ role: InviteRole) throws -> InviteBlob {
      InviteBlob(
        household: world.household, epoch: world.household, invite: terms.id,
        seal: world.key.seal(to: terms.boxKey), rosterHeads: world.roster.heads, householdName: "Smith",
        inviterName: "Ana", role: role, expiry: terms.expiry, zones: [.init(id: .zero, name: "dogs")])
    }
    func message(_ role: InviteRole, to recipient: Actor, by keys: DeviceKeys) throws -> InboxMessage {
      InboxMessage(
        blob: try blob(role), recipient: recipient.chain, locator: "folder:/srv/ana/Dropbox/household",
        inviter: world.ana.chain, keys: keys)
    }
    let sent = try message(.member, to: ben, by: world.ana.keys)
    func sealed(_ message: InboxMessage) throws -> [UInt8] {
      try #require(message.sealed(to: keys.box, random: &world.random))
    }
    let object = try sealed(sent)
    func bad(_ object: [UInt8], _ error: String) -> JSON {
      .object(["object": .hex(object), "error": .text(error)])
    }
    func altered(_ index: Int, to byte: UInt8) -> [UInt8] {
      var out = object
      out[index] = byte
      return out
    }
    let claim = Claim(
      household: world.household, invite: terms.id, chain: ben.chain, personName: "Ben", deviceName: "phone",
      epoch: world.household, claimKey: ben.keys.signing, device: ben.keys)
    var replayed = claim.bytes
    replayed.replaceSubrange(replayed.count - 130..<replayed.count - 66, with: replayed.suffix(64))
    return .object([
      "store": .id(store), "person": .id(ben.chain.person), "device": .id(ben.keys.id),
      "sign_public": .id(keys.signing), "box_secret": .hex(ben.keys.box.secret.bytes), "box_public": .id(keys.box),
      "sign_seed": .hex(ben.keys.signing.secret.bytes),
      "cards": .list(cards), "words": .text(ComparisonWords(card: ben.chain).description),
      "bad_cards": .list([
        .object([
          "content": .hex(Card(chain: ben.chain, displayName: "Ben", published: 5, device: eve.keys).encoded),
          "error": .text("forged"),
        ])
      ]),
      "inviter": .id(world.ana.chain.person), "invite": .id(terms.id), "epoch_key": .hex(world.key.secret.bytes),
      "inbox_prefix": .text(InboxMessage.prefix(of: ben.chain.person)), "message": .hex(sent.encoded),
      "message_id": .id(sent.id), "message_object": .hex(object),
      "bad_messages": .list([
        bad(try sealed(message(.owner, to: ben, by: ben.keys)), "forged"),
        bad(try sealed(message(.member, to: eve, by: world.ana.keys)), "otherRecipient"),
        bad(altered(2, to: 2), "newer"), bad(altered(4, to: 0x64), "notAMessage"),
        bad(altered(200, to: object[200] ^ 1), "notForThisDevice"),
      ]),
      "claim": .hex(claim.bytes), "bad_claim": .hex(replayed),
    ])
  }

  /// `[2, 0]` with its check bytes.
  private static func newerLink() -> String {
    let payload: [UInt8] = [0x82, 0x02, 0x00]
    let check = hash32("link", parts: 1) { $0.byteString(payload) }.bytes.prefix(4)
    let text = Data(payload + check).base64EncodedString()
    return InviteLink.scheme
      + text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      .replacingOccurrences(of: "=", with: "")
  }
}

@Suite("Frozen vectors (Tests/Vectors)")
struct FrozenVectorTests {
  /// To make a file anew after the format's text has changed, remove it and run the tests twice.
  @Test("the bytes of the format do not change", arguments: Vectors.files.keys.sorted())
  func frozen(_ name: String) throws {
    let make = try #require(Vectors.files[name])
    let made = try make().encoded()
    let file = vectorFile(name)
    guard FileManager.default.fileExists(atPath: file.path) else {
      try made.write(to: file)
      Issue.record("\(name) was not there; it is now: read it before it is committed")
      return
    }
    #expect(try Data(contentsOf: file) == made, "\(name) differs from what this version makes")
  }
}

func readVectors(_ name: String) throws -> [String: Any] {
  let value = try JSONSerialization.jsonObject(with: Data(contentsOf: vectorFile(name)))
  return try #require(value as? [String: Any])
}

/// What is frozen is read as a stranger would: from the file alone.
@Suite("Frozen vectors, read from their files")
struct ReadVectorTests {
  private func read(_ name: String) throws -> [String: Any] { try readVectors(name) }
  private func list(_ value: Any?) throws -> [[String: Any]] { try #require(value as? [[String: Any]]) }
  private func text(_ value: Any?) throws -> String { try #require(value as? String) }
  private func bytes(_ value: Any?) throws -> [UInt8] { try #require(unhex(try text(value))) }
  private func id<ID: FixedBytes>(_ value: Any?) throws -> ID { try #require(ID(try bytes(value))) }

  @Test("devices, signatures and chains hold, and each bad chain is refused")
  func identity() throws {
    let file = try read("identity.json")
    for device in try list(file["devices"]) {
      let keys = DeviceKeys(
        signing: try #require(SigningKey(seed: SecretBytes(try bytes(device["sign_seed"])))),
        box: try #require(BoxKey(secret: SecretBytes(try bytes(device["box_secret"])))))
      let expected: DeviceID = try id(device["device"])
      #expect(keys.id == expected)
    }
    for entry in try list(file["signatures"]) {
      let key: SigningPublicKey = try id(entry["sign_public"])
      let purpose = try #require(SigningPurpose(rawValue: try text(entry["purpose"])))
      let (signature, body): (Signature, [UInt8]) = (try id(entry["signature"]), try bytes(entry["body"]))
      #expect(key.verifies(signature, purpose, body))
    }
    for entry in try list(file["chains"]) {
      let chain = try CertificateChain.decode(try bytes(entry["chain"]))
      let (person, device): (PersonID, DeviceID) = (try id(entry["person"]), try id(entry["device"]))
      #expect(chain.person == person && chain.keys.id == device)
    }
    let bad = try list(file["bad_chains"])
    #expect(bad.count == 8)
    for entry in bad {
      #expect(throws: FormatError.self, "\(entry["why"] ?? "")") {
        try CertificateChain.decode(try bytes(entry["chain"]))
      }
    }
  }

  @Test("envelopes open, and each bad one fails with the stated error")
  func envelopes() throws {
    let file = try read("envelopes.json")
    func place(_ entry: [String: Any]) throws -> (EnvelopePlace, ZoneKey) {
      let letter = try #require(try text(entry["kind"]).utf8.first)
      let place = EnvelopePlace(
        kind: try #require(ObjectKind(rawValue: letter)), household: try id(entry["household"]),
        epoch: try id(entry["epoch"]), zone: try id(entry["zone"]),
        name: try #require(ObjectName(try text(entry["name"]))))
      return (place, ZoneKey(try bytes(entry["zone_key"])))
    }
    var opened = 0
    for entry in try list(file["good"]) where entry["object"] != nil {
      let (place, key) = try place(entry)
      let content = try bytes(entry["content"])
      #expect(try Envelope.open(try bytes(entry["object"]), at: place, key: key) == content)
      opened += 1
    }
    #expect(opened == 1)
    let bad = try list(file["bad"])
    #expect(bad.count == 15)
    for entry in bad {
      let (place, key) = try place(entry)
      let (object, expected) = (try bytes(entry["object"]), try text(entry["error"]))
      do {
        _ = try Envelope.open(object, at: place, key: key)
        Issue.record("opens: \(entry["why"] ?? "")")
      } catch {
        #expect("\(error)".hasPrefix(expected), "\(entry["why"] ?? "")")
      }
    }
  }

  @Test("every roster operation is read and written back to the same bytes, and each malformed one is told")
  func roster() throws {
    let file = try read("roster.json")
    var kinds = Set<UInt8>()
    for entry in try list(file["operations"]) {
      let payload = try bytes(entry["payload"])
      let operation = RosterOperation(payload: payload)
      #expect(operation.payload == payload)
      var isUnknown = false
      switch operation {
      case .malformed: Issue.record("malformed: \(entry["kind"] ?? "")")
      case .unknown: isUnknown = true
      default: kinds.insert(payload[2])
      }
      let kind = try text(entry["kind"])
      #expect(isUnknown == kind.hasPrefix("newer"))
    }
    #expect(kinds == Set(1...12))
    for entry in try list(file["malformed"]) {
      let payload = try bytes(entry["payload"])
      #expect(RosterOperation(payload: payload) == .malformed(payload: payload), "\(entry["why"] ?? "")")
    }
  }

  @Test("cards and messages open, and each bad one is refused for the stated reason")
  func cards() throws {
    let file = try read("cards.json")
    let store: ZoneID = try id(file["store"])
    let place = CardPlace(store: store)
    let person: PersonID = try id(file["person"])
    for entry in try list(file["cards"]) {
      let below = try #require(ObjectName(String(try text(entry["object_name"]).dropFirst(33))))
      let card = try place.open(try bytes(entry["object"]), at: below)
      let content = try bytes(entry["content"])
      #expect(card.encoded == content && card.person == person)
      let words = try text(file["words"])
      #expect(ComparisonWords(card: card.chain).description == words)
    }
    for entry in try list(file["bad_cards"]) {
      let content = try bytes(entry["content"])
      #expect(throws: CardError.forged) { try Card(decoding: content) }
    }
    let keys = DeviceKeys(
      signing: try #require(SigningKey(seed: SecretBytes(try bytes(file["sign_seed"])))),
      box: try #require(BoxKey(secret: SecretBytes(try bytes(file["box_secret"])))))
    let message = try InboxMessage.open(try bytes(file["message_object"]), by: keys, of: person)
    let (inviter, epochKey): (PersonID, [UInt8]) = (try id(file["inviter"]), try bytes(file["epoch_key"]))
    #expect(message.inviter.person == inviter)
    #expect(message.blob.open(with: keys.box)?.key.secret.bytes == epochKey)
    let bad = try list(file["bad_messages"])
    #expect(bad.count == 5)
    for entry in bad {
      let (object, expected) = (try bytes(entry["object"]), try text(entry["error"]))
      do throws(InboxError) {
        _ = try InboxMessage.open(object, by: keys, of: person)
        Issue.record("opens: \(expected)")
      } catch {
        #expect("\(error)" == expected)
      }
    }
    for (name, holds) in [("claim", true), ("bad_claim", false)] {
      let claim = try Claim(decoding: try bytes(file[name]))
      #expect(claim.isFromLink(keys.publicKeys.signing) == holds)
    }
  }

  @Test("a link opens its blob and the epoch key; bad links and claims are refused for the stated reason")
  func invites() throws {
    let file = try read("invites.json")
    let link = try InviteLink(parsing: try text(file["link"]))
    let withCredential = try InviteLink(parsing: try text(file["link_with_credential"]))
    #expect(withCredential.credential == Credential("id:key"))
    let keys = link.secret.keys
    let blob = try InviteBlob(
      decoding: Envelope.open(try bytes(file["blob_object"]), at: keys.place, key: keys.blobKey))
    #expect(blob.belongs(to: link))
    let epoch = try #require(blob.open(with: keys))
    let epochKey = try bytes(file["epoch_key"])
    #expect(epoch.key.secret.bytes == epochKey)
    for entry in try list(file["bad_links"]) {
      let (link, expected) = (try text(entry["link"]), try text(entry["error"]))
      do {
        _ = try InviteLink(parsing: link)
        Issue.record("is a link: \(link)")
      } catch {
        #expect("\(error)" == expected)
      }
    }
    let claim = try Claim(decoding: try bytes(file["claim"]))
    let name = try text(file["claim_name"])
    #expect(claim.name(epoch).text == name)
    let claimKey: SigningPublicKey = try id(file["claim_public"])
    let chain = try claim.verify(household: blob.household, claimKey: claimKey, role: .reader)
    let person: PersonID = try id(file["person"])
    #expect(chain.person == person)
    for entry in try list(file["bad_claims"]) {
      let (bad, expected) = (try Claim(decoding: try bytes(entry["claim"])), try text(entry["error"]))
      do {
        _ = try bad.verify(household: blob.household, claimKey: claimKey, role: .reader)
        Issue.record("holds: \(expected)")
      } catch {
        #expect("\(error)" == expected)
      }
    }
  }
}
