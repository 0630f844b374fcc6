import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// Vectors of `Next` and what goes with it: bytes that a second implementation has to make and to judge alike.
func nextVectors() throws -> JSON {
  var world = try EpochWorld("vectors: next", withKit: true)
  let ben = try world.join("Ben", as: .member)
  let link = try world.invite(.reader, by: world.ana)
  world.tellAll()
  let party = world[world.ana]
  let key = EpochKey(&world.random)
  let rotation = try party.roster.next(
    NextChange(), by: world.ana.origin, key: key, ring: party.ring, random: &world.random)
  let limit = Next.Limit(zone: .zero, incarnation: Incarnation(7), sequence: 70_000, hash: world.household)
  let removal = try party.roster.next(
    NextChange(removing: [ben.keys.id: [limit]], store: "folder:/elsewhere"), by: world.ana.origin, key: key,
    ring: party.ring, random: &world.random)

  func boxKey(_ recipient: Next.Recipient) throws -> JSON {
    switch recipient.kind {
    case .invite: .id(link.terms.boxKey)
    case .device, .kit: .id(try #require(DeviceID(recipient.id).flatMap { party.roster.keys(of: $0) }).box)
    }
  }
  func list(_ next: Next) throws -> JSON {
    .object([
      "payload": .hex(RosterOperation.next(next).payload), "parents": .list(next.parents.map { .id($0) }),
      "recipients": .list(
        try next.recipients.map {
          .object(["kind": .number(UInt64($0.kind.rawValue)), "id": .hex($0.id), "box_public": try boxKey($0)])
        }),
      "formers": .list(
        try next.formers.map {
          .object([
            "epoch": .id($0.epoch), "key": .hex(try #require(party.ring.keys[$0.epoch]).secret.bytes),
            "nonce": .hex($0.nonce),
          ])
        }), "commitment": .id(next.commitment),
    ])
  }
  let other = EpochKey(&world.random)
  let first = try #require(rotation.recipients.first)
  let wrongSeal = rotation.with(
    recipients: [.init(kind: first.kind, id: first.id, seal: try other.seal(for: ben))]
      + rotation.recipients.dropFirst())
  let former = try #require(rotation.formers.first)
  let lie = KeyBox(other, of: former.epoch, under: key, random: &world.random)
  let wrongFormer = rotation.with(
    formers: [.init(epoch: former.epoch, nonce: lie.nonce, box: lie.box)] + rotation.formers.dropFirst())
  let flawed: [(String, Next)] = [
    ("commitment", rotation.with(commitment: other.commitment(parents: rotation.parents))), ("seal", wrongSeal),
    ("former", wrongFormer),
  ]
  let malformed: [(String, Next)] = [
    ("recipients do not ascend", rotation.with(recipients: rotation.recipients.reversed())),
    (
      "a recipient twice",
      rotation.with(recipients: rotation.recipients + [rotation.recipients[rotation.recipients.count - 1]])
    ),
    ("formers do not ascend", rotation.with(formers: rotation.formers.reversed())),
  ]
  let carried = KeyBox(other, of: world.household, under: key, random: &world.random)
  let parent = try #require(rotation.parents.first)
  let withKit = try #require(world.written.first)
  return .object([
    "household": .id(world.household), "key": .hex(key.secret.bytes), "rotation": try list(rotation),
    "removal": try list(removal), "closing": .hex(RosterOperation.next(.closing(parents: rotation.parents)).payload),
    "flawed": .list(flawed.map { .object(["why": .text($0.0), "payload": .hex(RosterOperation.next($0.1).payload)]) }),
    "malformed": .list(
      malformed.map { .object(["why": .text($0.0), "payload": .hex(RosterOperation.next($0.1).payload)]) }),
    "seal": .object([
      "device": .id(ben.keys.id), "box_public": .id(ben.keys.publicKeys.box), "epoch": .id(parent),
      "payload": .hex(RosterOperation.seal(ben.keys.id, epoch: parent, try key.seal(for: ben)).payload),
    ]),
    "carry_key": .object([
      "epoch": .id(world.household), "epoch_key": .hex(other.secret.bytes), "outer": .id(parent),
      "nonce": .hex(carried.nonce),
      "payload": .hex(RosterOperation.carryKey(world.household, under: parent, carried).payload),
    ]), "deny": .hex(RosterOperation.deny(parent).payload), "leave": .hex(RosterOperation.leave.payload),
    "genesis_with_kit": .hex(withKit.operation.payload),
    "entries": .list(
      world.written.map {
        .object(["hash": .id($0.hash), "author": .id($0.origin.device), "payload": .hex($0.operation.payload)])
      }),
  ])
}

/// Vectors of words, recovery phrases and kits.
func wordVectors() throws -> JSON {
  var random = SeededRandom("vectors: words")
  var world = try RosterWorld("vectors: words")
  let (terms, link) = world.invite(.member)
  let claim = world.claim(Actor("Ben", &world.random), terms, link)
  let heads = (0..<3).map { _ in EpochKey(&random).commitment(parents: []) }.sorted()
  let phrases = try [
    [UInt8](repeating: 0, count: 32), [UInt8](repeating: 255, count: 32), random.bytes(32),
  ].map { try #require(RecoveryPhrase(seed: SecretBytes($0))) }
  let phrase = phrases[2]
  let kit = KitKeys(phrase)
  let blob = KitBlob(
    household: world.household, epoch: world.household,
    seal: try #require(world.key.seal(to: kit.device.box.publicKey)),
    rosterHeads: heads, householdName: "Smith", isPrivate: true)
  let nonce = EnvelopeNonce(&random)
  let name = blob.name(kit.place)
  let object = try Envelope.seal(blob.encoded, at: kit.place.place(name), key: kit.place.key, nonce: nonce)
  func bad(_ words: [String], _ error: String) -> JSON {
    .object(["text": .text(words.joined(separator: " ")), "error": .text(error)])
  }
  var typo = phrase.words
  typo[6].removeLast()
  var swapped = phrase.words
  swapped.swapAt(3, 4)
  return .object([
    "words_hash": .id(hash32("word-list", parts: 1) { $0.text(WordList.words.joined(separator: " ")) }),
    "household": .id(world.household), "heads": .list(heads.map { .id($0) }),
    "roster_words": .text(ComparisonWords(household: world.household, roster: heads).description),
    "claim": .hex(claim.bytes), "claim_words": .text(ComparisonWords(claim: claim).description),
    "phrases": .list(
      phrases.map { .object(["seed": .hex($0.seed.bytes), "words": .text($0.words.joined(separator: " "))]) }),
    "bad_phrases": .list([
      bad(Array(phrase.words.dropLast()), "count 23"), bad(typo, "word 7"), bad(swapped, "checksum"),
    ]),
    "kit": .object([
      "seed": .hex(phrase.seed.bytes), "sign_public": .id(kit.device.publicKeys.signing),
      "box_public": .id(kit.device.publicKeys.box), "device": .id(kit.device.id), "prefix": .text(kit.place.prefix),
      "epoch_key": .hex(world.key.secret.bytes), "blob": .hex(blob.encoded), "blob_name": .text(name.text),
      "blob_nonce": .hex(nonce.bytes), "blob_object": .hex(object), "blob_key": .hex(kit.place.blobs.bytes),
    ]),
  ])
}

@Suite("Frozen vectors of epochs and words, read from their files")
struct ReadEpochVectorTests {
  private func read(_ name: String) throws -> [String: Any] { try readVectors(name) }
  private func bytes(_ value: Any?) throws -> [UInt8] {
    let text = try #require(value as? String)
    return try #require(unhex(text))
  }

  @Test(
    "every Next is read and written back to the same bytes, each malformed one is told, each flawed one has its flaw")
  func next() throws {
    let file = try read("next.json")
    for name in ["rotation", "removal"] {
      let payload = try bytes((file[name] as? [String: Any])?["payload"])
      guard case .next(let next) = RosterOperation(payload: payload) else {
        Issue.record("\(name) is no Next")
        continue
      }
      #expect(RosterOperation.next(next).payload == payload)
    }
    for entry in try #require(file["malformed"] as? [[String: Any]]) {
      let payload = try bytes(entry["payload"])
      #expect(RosterOperation(payload: payload) == .malformed(payload: payload), "\(entry["why"] ?? "")")
    }
    let key = try #require(EpochKey(SecretBytes(try bytes(file["key"]))))
    let wrong = try #require(file["flawed"] as? [[String: Any]])
    #expect(wrong.count == 3)
    // Judged where it was made.
    var world = try EpochWorld("vectors: next", withKit: true)
    _ = try world.join("Ben", as: .member)
    _ = try world.invite(.reader, by: world.ana)
    let refusals: [String: NextRefusal] = ["commitment": .commitment, "seal": .seal, "former": .former]
    for entry in wrong {
      let operation = RosterOperation(payload: try bytes(entry["payload"]))
      let why = try #require(entry["why"] as? String)
      let expected = try #require(refusals[why])
      #expect(world[world.ana].roster.refusal(of: operation, by: world.ana.origin, key: key) == .next(expected))
    }
  }

  @Test("phrases give their seeds, bad ones their reason, and a kit opens its blob with nothing else")
  func words() throws {
    let file = try read("words.json")
    for entry in try #require(file["phrases"] as? [[String: Any]]) {
      let phrase = try RecoveryPhrase(parsing: try #require(entry["words"] as? String))
      let seed = try bytes(entry["seed"])
      #expect(phrase.seed.bytes == seed)
    }
    for entry in try #require(file["bad_phrases"] as? [[String: Any]]) {
      let expected = try #require(entry["error"] as? String)
      let text = try #require(entry["text"] as? String)
      do {
        _ = try RecoveryPhrase(parsing: text)
        Issue.record("is a phrase: \(expected)")
      } catch {
        switch error {
        case .count(let count): #expect(expected == "count \(count)")
        case .unknownWord(let position, _, _): #expect(expected == "word \(position)")
        case .checksum: #expect(expected == "checksum")
        }
      }
    }
    let kit = try #require(file["kit"] as? [String: Any])
    let phrase = try #require(RecoveryPhrase(seed: SecretBytes(try bytes(kit["seed"]))))
    let keys = KitKeys(phrase)
    let blobName = try #require(kit["blob_name"] as? String)
    let name = try #require(ObjectName(blobName))
    let blob = try KitBlob(
      decoding: Envelope.open(try bytes(kit["blob_object"]), at: keys.place.place(name), key: keys.place.key))
    #expect(blob.name(keys.place) == name)
    let epochKey = try bytes(kit["epoch_key"])
    #expect(blob.open(with: keys.device)?.key.secret.bytes == epochKey)
  }
}
