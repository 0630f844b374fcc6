import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeyring
import LatchkeyKeys
import LatchkeyLog
import Testing

/// Attacks 1 to 9: on what an object is and where it lies.
@Suite("Hostile store: objects")
struct ObjectAttacks {
  @Test(
    "Attack 1: tampered key blob – one refusal whatever byte was altered, nothing is kept or sent, the whole one still works"
  )
  func tamperedKeyBlob() async throws {
    let village = try Village()
    let ana = try await village.found()
    let invite = try await ana.home.invite(household: "Smith")
    let keys = try InviteLink(parsing: invite.link).secret.keys
    let blob = try #require(village.shelf[keys.objectName])
    let puts = village.shelf.puts.count
    let eve = village.home("eve")
    let options = JoinOptions(name: "Eve", device: "x")
    for index in stride(from: 5, to: blob.count, by: 89) {
      var altered = blob
      altered[index] ^= 1 << UInt8(index % 8)
      village.shelf.plant(keys.objectName, altered)
      #expect(
        await refusal { () async throws(LatchkeyError) in
          _ = try await eve.join(link: invite.link, options: options) { _ in true }
        } == "damaged-invite", "byte \(index)")
    }
    for index in blob.indices {
      var altered = blob
      altered[index] ^= 1 << UInt8(index % 8)
      #expect(throws: EnvelopeError.self) { try Envelope.open(altered, at: keys.place, key: keys.blobKey) }
    }
    #expect(village.shelf.puts.count == puts)
    #expect(!FileManager.default.fileExists(atPath: village.path("eve/keyring")))
    village.shelf.plant(keys.objectName, blob)
    _ = try await eve.join(link: invite.link, options: options) { _ in true }
  }

  @Test(
    "Attack 2: replaced key – a Next or Seal with another key, signed by nobody entitled, is ignored; nothing is encrypted to it"
  )
  func replacedKey() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let rita = try await village.join("rita", as: .reader, invitedBy: ana)
    try await village.settle(ana, ben)
    let epoch = try await ana.epoch()
    var insider = try Insider(rita)
    let key = EpochKey(&insider.random)
    // What an owner would write, with a key of the reader's own.
    let owner = try Insider(ana)
    let next = try owner.state.roster.next(
      NextChange(), by: owner.roster.origin, key: key, ring: owner.state.ring, random: &insider.random)
    try insider.publish(next, key: key)
    let target = try Insider(ben)
    let seal = try #require(key.seal(to: target.device.box.publicKey))
    try insider.sign(.seal(target.device.id, epoch: owner.keys.epoch, seal))
    try insider.publishRoster()
    let begun = EpochKeys(household: owner.state.household, epoch: owner.keys.epoch, key: key)
    let before = village.shelf.puts.count
    try ana.write("by Ana")
    try ben.write("by Ben")
    try await village.settle(ana, ben)
    #expect(try ana.notes == ben.notes && ana.notes.contains("by Ben"))
    #expect(try await ana.epoch() == epoch)
    #expect(try await ben.epoch() == epoch)
    let sent = village.shelf.puts.dropFirst(before)
    #expect(!sent.isEmpty)
    #expect(!sent.contains { insider.opens($0.name, $0.bytes, with: [begun.epoch: key]) })
  }

  @Test(
    "Attack 3: public-key substitution – a claim under other keys than the link's is refused; the true one is admitted beside it"
  )
  func substitutedKey() async throws {
    let village = try Village()
    let ana = try await village.found()
    let rita = try await village.join("rita", as: .reader, invitedBy: ana)
    let invite = try await ana.home.invite(household: "Smith")
    _ = try await rita.sync()
    let cy = try await village.claim(invite.link, "cy")
    var insider = try Insider(rita)
    // The store hides Cy's claim, and a reader puts one for its own keys in its place.
    let prefix = insider.keys.prefix(.roster) + "/c/"
    let hidden = village.shelf.names.filter { $0.text.hasPrefix(prefix) }
    village.shelf.show("ana") { $0.hides = { name in hidden.contains(name) } }
    let mallory = DeviceKeys(&insider.random)
    let id = try #require(insider.state.roster.state.invites.first { $0.terms.id.description == invite.id }).terms.id
    let forged = Claim(
      household: insider.state.household, invite: id, chain: CertificateChain(first: mallory), personName: "Cy",
      deviceName: "phone", epoch: insider.keys.epoch, claimKey: mallory.signing, device: mallory)
    try insider.lay(forged.bytes, .claim, forged.name(insider.keys), insider.keys)
    #expect(try await ana.warned().contains("damaged"))
    #expect(try await ana.people() == ["Ana", "Rita"])
    village.shelf.beHonest()
    #expect(try await ana.warned().contains("admitted"))
    #expect(try await ana.people() == ["Ana", "Cy", "Rita"])
    _ = try await cy.sync()
    let devices = try Insider(ana).state.roster.state.devices.map(\.id)
    #expect(!devices.contains(mallory.id) && devices.count == 3)
  }

  @Test(
    "Attack 4: ghost member – operations of unknown keys, and a device without its own counter-signature, change nobody's members"
  )
  func ghost() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let members = try Insider(ana).state.roster.state.devices.map(\.id)
    var insider = try Insider(ben)
    let ghost = DeviceKeys(&insider.random)
    var stranger = insider.stranger(ghost)
    try stranger.sign(.profile(personName: "Ghost", deviceName: "ghost"))
    try stranger.publishRoster()
    #expect(try await ana.warned().contains("unknown-author"))

    // Ben vouches for keys whose holder has signed nothing: his own signature stands in both places.
    let asked = Certificate(
      request: ghost, person: try #require(insider.state.roster.state.device(insider.device.id)).person,
      signer: insider.device.id)
    let signature = insider.device.signing.sign(.certificate, asked.body)
    var payload = CBORWriter()
    payload.array(5)
    payload.uint(1)
    payload.uint(4)
    payload.array(3)
    payload.byteString(asked.body)
    payload.id(signature)
    payload.id(signature)
    payload.text("ghost")
    payload.bool(false)
    let hash = try insider.sign(.malformed(payload: payload.bytes))
    try insider.publishRoster()
    _ = try await ana.sync()
    let state = try Insider(ana).state
    #expect(state.roster.verdict(of: hash) == .refused(.certificate))
    #expect(state.roster.state.devices.map(\.id) == members)
    #expect(try await ana.people() == ["Ana", "Ben"])
  }

  @Test(
    "Attack 5: two-key ciphertext – an object whose tag holds under two keys is refused on its commitment, before it is decrypted"
  )
  func twoKeys() async throws {
    struct File: Decodable {
      struct Made: Decodable {
        let household, epoch, zone, name: String
        let zoneKeys: [String]
        let objectCommittedToFirst, objectCommittedToSecond: String
      }
      let twoKeyObject: Made
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Vectors/hostile.json")
    let made = try decoder.decode(File.self, from: Data(contentsOf: url)).twoKeyObject
    let place = EnvelopePlace(
      kind: .segment, household: try #require(unhex(made.household).flatMap(Hash32.init)),
      epoch: try #require(unhex(made.epoch).flatMap(Hash32.init)),
      zone: try #require(unhex(made.zone).flatMap(ZoneID.init)), name: try #require(ObjectName(made.name)))
    let keys = try made.zoneKeys.map { ZoneKey(try #require(unhex($0))) }
    let objects = try [made.objectCommittedToFirst, made.objectCommittedToSecond].map { try #require(unhex($0)) }
    for (index, object) in objects.enumerated() {
      // Under the key that it is committed to its tag holds, whatever is inside.
      do { _ = try Envelope.open(object, at: place, key: keys[index]) } catch { #expect(error == .padding) }
      #expect(throws: EnvelopeError.commitment) { try Envelope.open(object, at: place, key: keys[1 - index]) }
    }

    // The same between people: a member seals a head for a reader of another key.
    let village = try Village()
    let (ana, ben) = try await village.couple()
    var insider = try Insider(ben)
    insider.insert(account: "under another key")
    let other = EpochKeys(household: insider.state.household, epoch: insider.keys.epoch, key: EpochKey(&insider.random))
    var elsewhere = insider
    let names = try elsewhere.publishRows(in: other)
    let bytes = try #require(names.last.flatMap { village.shelf[$0] })
    let name = insider.keys.objectName(
      zone: insider.zone,
      insider.keys.headName(zone: insider.zone, origin: insider.rows.origin, counter: insider.rows.counter + 1))
    village.shelf.plant(name, bytes)
    let report = try await ana.sync()
    #expect(report.warnings.contains { $0.code == "damaged" && $0.message.contains("commitment") })
    #expect(try !ana.accounts.contains("under another key"))
  }

  @Test(
    "Attack 6: swapped objects – whatever two of them change places, nothing false is believed, and all is well once they are back"
  )
  func swapped() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    // Where Ben starts from each time, and what he reads then: heads of two devices and zones, a roster log, copies, a Next, a claim.
    try village.copy("ben", to: "ben.before")
    try village.copy("ben.db", to: "ben.db.before")
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try cy.write("by Cy")
    try ana.write("by Ana")
    try await village.settle(ana, cy)
    let honest = village.shelf.objects()
    let first = try ben.notes
    let expected = try ana.notes
    let names = honest.all.map(\.name).filter { $0 != .marker }
    var cases = 0
    for (index, one) in names.enumerated() {
      for other in names.dropFirst(index + 1) where (one.text + other.text).utf8.reduce(0, { $0 &+ Int($1) }) % 5 == 0 {
        cases += 1
        try village.copy("ben.before", to: "ben")
        try village.copy("ben.db.before", to: "ben.db")
        village.shelf.exchange(one, other)
        let restored = Resident("ben", village)
        _ = try await restored.sync()
        let shown = try restored.notes
        #expect(
          Set(shown).isSubset(of: expected) && Set(first).isSubset(of: shown), "\(one) and \(other)")
        #expect(Set(try await restored.people()).isSubset(of: ["Ana", "Ben", "Cy"]))
        village.shelf.replace(with: honest)
        _ = try await restored.sync()
        #expect(try restored.notes == expected, "\(one) and \(other) back in their places")
        village.shelf.replace(with: honest)
      }
    }
    #expect(cases > 20)
  }

  @Test(
    "Attack 7: reordered or cut chunks – of a large change nothing is applied unless all of its segments are there, in order"
  )
  func chunks() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let before = Set(village.shelf.names)
    try village.run(
      ana.file,
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12) INSERT INTO accounts(name) SELECT randomblob(500000) FROM n"
    )
    _ = try await ana.sync()
    let insider = try Insider(ana)
    let segments = (1...insider.rows.lastSegment).map {
      insider.keys.objectName(
        zone: insider.zone,
        insider.keys.segmentName(zone: insider.zone, origin: insider.rows.origin, index: $0))
    }
    let shelf = village.shelf
    let honest = shelf.objects()
    #expect(segments.count >= 2 && segments.allSatisfy { shelf[$0] != nil && !before.contains($0) })
    let (one, two) = (segments[0], segments[1])
    let attacks: [(String, () -> Void)] = [
      ("dropped", { shelf.remove(two) }),
      ("the first dropped", { shelf.remove(one) }),
      ("exchanged", { shelf.exchange(one, two) }),
      ("repeated", { if let bytes = shelf[one] { shelf.plant(two, bytes) } }),
      ("cut", { if let bytes = shelf[two] { shelf.plant(two, Array(bytes.dropLast(4096))) } }),
      ("longer", { if let bytes = shelf[two] { shelf.plant(two, bytes + [UInt8](repeating: 0, count: 4096)) } }),
    ]
    for (what, attack) in attacks {
      attack()
      let codes = try await ben.warned()
      #expect(!codes.isDisjoint(with: ["missing", "damaged"]), "\(what)")
      #expect(try village.rows(ben.file, "SELECT count(*) FROM accounts") == ["2"], "\(what)")
      shelf.replace(with: honest)
    }
    // Appended after the last: nobody asks for it.
    let next = insider.keys.objectName(
      zone: insider.zone,
      insider.keys.segmentName(
        zone: insider.zone, origin: insider.rows.origin, index: insider.rows.lastSegment + 1))
    shelf.plant(next, try #require(shelf[one]))
    _ = try await ben.sync()
    #expect(try village.rows(ben.file, "SELECT count(*) FROM accounts") == ["14"])
  }

  @Test("Attack 8: malleable mode – every flipped bit is refused, and nothing unauthenticated is read at all")
  func malleable() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try ana.write("sealed")
    _ = try await ana.sync()
    let insider = try Insider(ana)
    let below = insider.keys.headName(zone: insider.zone, origin: insider.rows.origin, counter: insider.rows.counter)
    let name = insider.keys.objectName(zone: insider.zone, below)
    let head = try #require(village.shelf[name])
    let place = insider.keys.place(.head, zone: insider.zone, name: below)
    let key = insider.keys.zoneKey(insider.zone)
    let content = try Envelope.open(head, at: place, key: key)
    for index in head.indices {
      for bit in [UInt8(index % 8), UInt8((index + 3) % 8)] {
        var altered = head
        altered[index] ^= 1 << bit
        #expect(throws: EnvelopeError.self, "byte \(index)") { try Envelope.open(altered, at: place, key: key) }
      }
    }
    let before = try ben.notes
    var altered = head
    altered[1000] ^= 4
    for bytes in [altered, content, Array(head.prefix(5)) + content, []] {
      village.shelf.plant(name, bytes)
      let report = try await ben.sync()
      #expect(report.warnings.contains { $0.code == "damaged" && $0.message.contains(below.text) })
      #expect(report.hasSetAside)
      #expect(try ben.notes == before)
    }
    village.shelf.plant(name, head)
    _ = try await ben.sync()
    #expect(try ben.notes == ana.notes)
  }

  @Test("Attack 9: framing – what a member signs in another's name is refused and named, and the other's data goes on")
  func framing() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    // Ben has the zone's key, and Ana's log as far as it goes, but not her signing key.
    var forger = try Insider(ana)
    let signing = try Insider(ben).device.signing
    // Something that Cy has not read yet lies below what is forged.
    try ana.write("before the forgery")
    _ = try await ana.sync()
    forger = try Insider(ana)
    forger.insert(account: "forged", signedBy: signing)
    let name = try #require(try forger.publishRows(signedBy: signing).last)
    let report = try await cy.sync()
    #expect(report.warnings.contains { $0.code == "damaged" && $0.message.contains(name.text.dropFirst(33)) })
    #expect(try !cy.accounts.contains("forged") && cy.notes.contains("before the forgery"))
    try ana.write("by Ana herself")
    try ben.write("by Ben")
    try await village.settle(ana, ben, cy)
    for resident in [ana, ben, cy] {
      #expect(try resident.notes == ["before the forgery", "by Ana herself", "by Ben", "first", "second"])
      #expect(try !resident.accounts.contains("forged"))
    }
  }
}
