import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeyring
import LatchkeyKeys
import LatchkeyLog
import Synchronization
import Testing

/// Attacks 10 to 16: on what a device believes it was shown.
@Suite("Hostile store: belief")
struct BeliefAttacks {
  /// Every position that was ever signed, with the hashes of what was: more than one is a reused number.
  private func positions(_ village: Village, _ keys: EpochKeys, _ zones: [ZoneID]) throws -> [[String]: Set<EntryHash>]
  {
    var out: [[String]: Set<EntryHash>] = [:]
    for put in village.shelf.puts {
      for zone in zones {
        guard put.name.text.hasPrefix(keys.prefix(zone) + "/h/"),
          let below = ObjectName(String(put.name.text.dropFirst(33))),
          let content = try? Envelope.open(
            put.bytes, at: keys.place(.head, zone: zone, name: below), key: keys.zoneKey(zone))
        else { continue }
        for entry in try HeadContent(decoding: content).tail {
          let body = try EntryBody(decoding: entry.body)
          let place = [
            body.zone.description, body.origin.device.description, body.origin.incarnation.description,
            "\(body.sequence)",
          ]
          out[place, default: []].insert(EntryBody.hash(of: entry.body))
        }
      }
    }
    return out
  }

  @Test(
    "Attack 10: whole-store rollback – alarm, local rows kept, no sequence number used twice, and what was lost comes back"
  )
  func rollback() async throws {
    for isLarge in [false, true] { try await rollback(isLarge) }
  }

  /// - Parameter isLarge: whether segments are lost, too, and with them the entries themselves: then the rows are published again.
  private func rollback(_ isLarge: Bool) async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let old = village.shelf.objects()
    if isLarge { try village.run(ana.file, "INSERT INTO accounts(name) VALUES (hex(randomblob(20000)))") }
    try ana.write("by Ana")
    try ben.write("by Ben")
    try await village.settle(ana, ben)
    let rows = try ana.notes
    village.shelf.replace(with: old)

    #expect(try await ben.warned().contains("rollback"))
    #expect(try await ana.warned().contains("rollback"))
    #expect(try ana.notes == rows && ben.notes == rows)
    // Nobody has to write anything for what was lost to be there again.
    let dan = try await village.join("dan", as: .reader, invitedBy: ana)
    #expect(try dan.notes == rows && dan.accounts == ana.accounts)
    try ana.write("by Ana after")
    try ben.write("by Ben after")
    try await village.settle(ana, ben, rounds: 3)
    #expect(try ana.notes == ben.notes && ana.notes.count == rows.count + 2)
    let insider = try Insider(ana)
    var used: [[String]: Set<EntryHash>] = [:]
    for keys in insider.state.epochs {
      used.merge(try positions(village, keys, [.roster, insider.zone])) { $0.union($1) }
    }
    #expect(used.count > 8 && used.allSatisfy { $0.value.count == 1 }, "\(used.count) positions")
    // A newcomer finds everything again, and nobody has anything left to report.
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    #expect(try cy.notes == ana.notes)
    try await village.settle(ana, ben, cy, rounds: 3)
    if !isLarge {
      for resident in [ana, ben, cy, dan] { #expect(try await resident.warned() == []) }
    }
  }

  @Test("Attack 11: single-log rollback – an older head is refused and reported, the others' data goes on")
  func oneLogRolledBack() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    for number in 1...3 {
      try ana.write("Ana \(number)")
      try await village.settle(ana, ben, rounds: 1)
    }
    let insider = try Insider(ana)
    let newest = (insider.rows.counter - 1...insider.rows.counter).map {
      insider.keys.objectName(
        zone: insider.zone, insider.keys.headName(zone: insider.zone, origin: insider.rows.origin, counter: $0))
    }
    village.shelf.show("ben") { $0.hides = { newest.contains($0) } }
    try cy.write("by Cy")
    _ = try await cy.sync()
    let report = try await ben.sync()
    #expect(report.warnings.contains { $0.code == "rollback" && $0.message.contains(insider.device.id.short) })
    #expect(try ben.notes == ["Ana 1", "Ana 2", "Ana 3", "by Cy", "first", "second"])
    village.shelf.beHonest()
    #expect(try await ben.warned() == [])
  }

  @Test(
    "Attack 12: withholding – what another device has read and the store does not show is named, with who says so, after a day"
  )
  func withholding() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    try ana.write("withheld from Cy")
    _ = try await ana.sync()
    let insider = try Insider(ana)
    let name = insider.keys.objectName(
      zone: insider.zone,
      insider.keys.headName(zone: insider.zone, origin: insider.rows.origin, counter: insider.rows.counter))
    village.shelf.show("cy") { $0.hides = { $0 == name } }
    _ = try await ben.sync()
    try ben.write("by Ben, who has read it")
    _ = try await ben.sync()
    // It may only be late.
    #expect(try await !cy.warned().contains("withheld"))
    #expect(try cy.notes.contains("by Ben, who has read it"))
    village.wait(Village.day + Village.minute)
    let report = try await cy.sync()
    let benID = try Insider(ben).device.id.short
    #expect(
      report.warnings.contains {
        $0.code == "withheld" && $0.message.contains(insider.device.id.short) && $0.message.contains("says \(benID)")
          && $0.message.contains("up to entry \(insider.rows.lastSequence)")
      })
    village.shelf.beHonest()
    _ = try await cy.sync()
    #expect(try cy.notes.contains("withheld from Cy"))
    #expect(try await cy.warned() == [])
  }

  @Test(
    "Attack 13: fork – two histories under one key are found where they meet; what was accepted stays, that log stops, others go on"
  )
  func fork() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    // The store keeps two worlds for a device and its clone, one shown to Ana, one to Cy.
    try village.copy("ben", to: "twin")
    try village.copy("ben.db", to: "twin.db")
    let twin = Resident("twin", village)
    village.shelf.replace("other", with: village.shelf.objects())
    for name in ["twin", "cy"] { village.shelf.show(name) { $0.world = "other" } }
    try ben.write("one history")
    try twin.write("another history")
    try await village.settle(ben, twin, ana, cy, rounds: 1)
    #expect(try ana.notes.contains("one history") && cy.notes.contains("another history"))
    try ben.write("the first goes on")
    try ana.write("by Ana")
    try await village.settle(ben, ana, rounds: 1)

    // They meet: Cy sees Ana's world.
    village.shelf.show("cy") { $0.world = Shelf.truth }
    let report = try await cy.sync()
    let id = try Insider(ben).device.id.short
    #expect(report.warnings.contains { $0.code == "fork" && $0.message.contains(id) })
    #expect(report.hasSetAside)
    #expect(try cy.notes.contains("another history") && cy.notes.contains("by Ana"))
    #expect(try !cy.notes.contains("the first goes on"))
    // As long as it is shown, it is said.
    #expect(try await cy.warned().contains("fork"))
  }

  @Test(
    "Attack 14: stale world for newcomers – a store that shows less than the invite was made from is refused, nothing is kept"
  )
  func staleWorld() async throws {
    let village = try Village()
    let ana = try await village.found()
    try await village.settle(ana)
    let old = village.shelf.objects()
    let invite = try await ana.home.invite(household: "Smith")
    let blob = try InviteLink(parsing: invite.link).secret.keys.objectName
    let bytes = try #require(village.shelf[blob])
    let newest = village.shelf.objects()
    village.shelf.replace(with: old)
    village.shelf.plant(blob, bytes)
    let eve = village.home("eve")
    let options = JoinOptions(database: village.path("eve.db"), name: "Eve", device: "x")
    #expect(
      await refusal { () async throws(LatchkeyError) in
        _ = try await eve.join(link: invite.link, options: options) { _ in true }
      } == "behind-checkpoint")
    #expect(!FileManager.default.fileExists(atPath: village.path("eve.db")))
    #expect(!FileManager.default.fileExists(atPath: village.path("eve/keyring")))
    village.shelf.replace(with: newest)
    _ = try await eve.join(link: invite.link, options: options) { _ in true }
  }

  @Test(
    "Attack 15: replay and cross-protocol – old bytes under a new name, and what was signed for another purpose, zone or household, are refused"
  )
  func replay() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try ana.write("sealed")
    try await village.settle(ana, ben)
    var insider = try Insider(ana)
    let (keys, zone, origin) = (insider.keys, insider.zone, insider.rows.origin)
    func headName(_ counter: UInt64) -> ObjectName {
      keys.objectName(zone: zone, keys.headName(zone: zone, origin: origin, counter: counter))
    }
    let newest = try #require(village.shelf[headName(insider.rows.counter)])
    let next = headName(insider.rows.counter + 1)
    let notes = try ben.notes

    // An old head as a newer one.
    village.shelf.plant(next, newest)
    #expect(try await ben.warned().contains("damaged"))

    // Ana's signed rows as somebody's entries of the roster: Ben may seal what he likes.
    var forger = try Insider(ben)
    let entry = try #require(insider.rows.tail.last)
    let copy = RosterCopy(entries: [entry])
    try forger.lay(copy.encoded(), .rosterCopy, keys.rosterCopyName(content: copy.encoded()), keys)
    #expect(try await ben.warned().contains("damaged"))

    // A head's bytes with the signature of an entry: right key, right bytes, wrong purpose.
    insider.insert(account: "for another purpose")
    let sealed = try #require(try insider.publishRows().last)
    let below = try #require(ObjectName(String(sealed.text.dropFirst(33))))
    let place = keys.place(.head, zone: zone, name: below)
    let content = try HeadContent(
      decoding: try Envelope.open(try #require(village.shelf[sealed]), at: place, key: keys.zoneKey(zone)))
    let crossed = HeadContent(
      body: content.body, signature: insider.device.signing.sign(.entry, content.body).bytes, tail: content.tail)
    village.shelf.plant(
      sealed,
      try Envelope.seal(crossed.encoded(), at: place, key: keys.zoneKey(zone), nonce: EnvelopeNonce(&insider.random)))
    #expect(try await ben.warned().contains("damaged"))
    village.shelf.remove(sealed)

    // Ana's entry of her private household, signed by the same device, in this one's log.
    let contents = try FileKeyring(home: ana.directory).load()
    let own = try #require(contents.households.first { $0.isPrivate })
    let privateState = try HouseholdState(
      decoding: try #require(try FileKeyring(home: ana.directory).state(of: own.id)),
      secrets: HouseholdSecrets(device: contents.device))
    let foreign = RosterCopy(entries: [try #require(privateState.entries.last)])
    try forger.lay(foreign.encoded(), .rosterCopy, keys.rosterCopyName(content: foreign.encoded()), keys)
    #expect(try await ben.warned().contains("damaged"))
    #expect(try ben.notes == notes && !ben.accounts.contains("for another purpose"))
    #expect(try await ben.people() == ["Ana", "Ben"])
  }

  @Test(
    "Attack 16: downgrade – plaintext, older and unknown envelopes, and weaker stretching of the passphrase are refused"
  )
  func downgrade() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try ana.write("sealed")
    _ = try await ana.sync()
    let insider = try Insider(ana)
    let below = insider.keys.headName(zone: insider.zone, origin: insider.rows.origin, counter: insider.rows.counter)
    let name = insider.keys.objectName(zone: insider.zone, below)
    let head = try #require(village.shelf[name])
    let content = try Envelope.open(
      head, at: insider.keys.place(.head, zone: insider.zone, name: below), key: insider.keys.zoneKey(insider.zone))
    let notes = try ben.notes
    func altered(_ index: Int, _ byte: UInt8) -> [UInt8] {
      var bytes = head
      bytes[index] = byte
      return bytes
    }
    for (bytes, code) in [
      (content, "damaged"), (altered(2, 0), "damaged"), (altered(3, 0), "damaged"), (altered(2, 2), "newer"),
      (altered(3, 9), "newer"),
    ] {
      village.shelf.plant(name, bytes)
      #expect(try await ben.warned() == [code])
      #expect(try ben.notes == notes)
    }

    // Whoever may write the keyring's folder asks for less work.
    for (operations, memory) in [(1, 8192), (2, 256 << 20)] {
      var body = CBORWriter()
      body.array(5)
      body.uint(operations)
      body.uint(memory)
      body.byteString([UInt8](repeating: 7, count: 16))
      body.byteString([UInt8](repeating: 8, count: 24))
      body.byteString([UInt8](repeating: 9, count: 300))
      var file = CBORWriter()
      file.array(4)
      file.text("latchkey-keyring")
      file.uint(1)
      file.uint(1)
      file.byteString(body.bytes)
      let bytes = file.bytes + hash32("keyring-file", parts: 1) { $0.byteString(file.bytes) }.bytes
      let path = ben.directory + "/keyring"
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: Data(bytes))
      try handle.close()
      let asked = Asked()
      let keyring = FileKeyring(home: ben.directory) {
        asked.note()
        return SecretBytes(Array("correct horse".utf8))
      }
      #expect(throws: KeyringError.unsafeParameters(path: path)) { try keyring.load() }
      #expect(!asked.wasAsked)
    }
  }
}

/// Whether somebody was asked for a passphrase.
private final class Asked: Sendable {
  private let flag = Mutex(false)
  func note() { flag.withLock { $0 = true } }
  var wasAsked: Bool { flag.withLock { $0 } }
}
