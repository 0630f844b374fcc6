import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeys
import LatchkeyLog
import LatchkeyStorage
import Testing

/// Attacks 27 to 32: on clocks, identities, listings, sizes and whoever reads.
@Suite("Hostile store: devices")
struct DeviceAttacks {
  @Test(
    "Attack 27: clock poisoning – a row of 2099 waits and its clock is named, the local clock stays, and everybody else's rows go on"
  )
  func clock() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    var poisoner = try Insider(ben)
    poisoner.insert(account: "of 2099", at: 4_070_908_800_000)
    try poisoner.publishRows()
    let report = try await ana.sync()
    #expect(report.warnings.contains { $0.code == "clock-ahead" && $0.message.contains("phone") })
    #expect(try !ana.accounts.contains("of 2099"))
    // What Ana writes now bears her own time: nobody holds it.
    try ana.write("after the poison")
    try await village.settle(ana, cy)
    #expect(try cy.notes.contains("after the poison"))
    #expect(try !cy.accounts.contains("of 2099"))
    try cy.write("by Cy")
    try await village.settle(cy, ana)
    #expect(try ana.notes.contains("by Cy"))
  }

  @Test(
    "Attack 28: cloned identity – two installs with one key are told apart; one goes on under a new log, and no upload replaces another"
  )
  func clone() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try village.copy("ben", to: "twin")
    try village.copy("ben.db", to: "twin.db")
    let twin = Resident("twin", village)
    try ben.write("by the first")
    _ = try await ben.sync()
    try twin.write("by the second")
    let warnings = try await twin.warned()
    #expect(warnings.contains("not-mine"))
    try await village.settle(ben, twin, ana, rounds: 3)
    try ben.write("by the first again")
    try await village.settle(ben, twin, ana, rounds: 3)
    for resident in [ana, ben, twin] {
      #expect(try resident.notes == ["by the first", "by the first again", "by the second", "first", "second"])
      #expect(try await resident.warned() == [])
    }
    #expect(try Insider(ben).rows.origin != Insider(twin).rows.origin)
    // Nothing was ever put over something else.
    var bytes: [ObjectName: [UInt8]] = [:]
    for object in village.shelf.objects().all { bytes[object.name] = object.bytes }
    for put in village.shelf.puts where put.by == "ben" && bytes[put.name] != nil {
      #expect(bytes[put.name] == put.bytes)
    }
  }

  @Test(
    "Attack 29: empty or cut listings – nothing is deleted, here or there, whatever is left out, and all is well afterwards"
  )
  func listings() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    for number in 0..<4 {
      try ana.write("Ana \(number)")
      _ = try await ana.sync()
    }
    try await village.settle(ana, ben)
    let rows = try ben.notes
    let (count, deleted) = (village.shelf.names.count, village.shelf.deletes.count)
    let lies: [@Sendable (inout Shelf.View) -> Void] = [
      { $0.listingLimit = 0 }, { $0.listingLimit = 1 }, { $0.listingLimit = 3 }, { $0.unlisted = { _ in true } },
      { $0.hides = { $0 != .marker } }, { $0.hides = { $0.text.contains("/h/") } },
      { $0.hides = { $0.text.contains("/l/") } }, { $0.hides = { $0.text.contains("/r/") } },
    ]
    for (index, lie) in lies.enumerated() {
      for name in ["ana", "ben"] { village.shelf.show(name, lie) }
      _ = try? await ben.sync()
      _ = try? await ana.sync()
      #expect(try ben.notes == rows && ana.notes == rows, "lie \(index)")
    }
    for name in ["ana", "ben"] { village.shelf.show(name) { $0.hides = { _ in true } } }
    #expect(await refusal { () async throws(LatchkeyError) in _ = try await ben.sync() } == "store-missing")
    #expect(village.shelf.deletes.count == deleted && village.shelf.names.count >= count)
    village.shelf.beHonest()
    try ana.write("afterwards")
    try await village.settle(ana, ben, rounds: 3)
    #expect(try ben.notes == ana.notes && ben.notes.count == rows.count + 1)
    #expect(try await ben.warned() == [])
  }

  @Test(
    "Attack 30: hostile compaction – a base in another's place replaces nothing: it is refused by this version, and no row goes"
  )
  func compaction() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    try ana.write("by Ana")
    try await village.settle(ana, ben)
    let rows = try ana.notes
    let deleted = village.shelf.deletes.count
    var insider = try Insider(ben)
    // An object of kind base, well sealed, and a head that points to one.
    let below = try #require(ObjectName("b/aa/" + String(repeating: "b", count: 30)))
    village.shelf.plant(
      insider.keys.objectName(zone: insider.zone, below),
      try Envelope.seal(
        [0x80], at: insider.keys.place(.base, zone: insider.zone, name: below), key: insider.keys.zoneKey(insider.zone),
        nonce: EnvelopeNonce(&insider.random)))
    insider.insert(account: "beside a base")
    let name = try #require(try insider.publishRows().last)
    let at = try #require(ObjectName(String(name.text.dropFirst(33))))
    let place = insider.keys.place(.head, zone: insider.zone, name: at)
    let key = insider.keys.zoneKey(insider.zone)
    let content = try HeadContent(decoding: try Envelope.open(try #require(village.shelf[name]), at: place, key: key))
    var body = try HeadBody(decoding: content.body)
    var pointer = CBORWriter()
    pointer.array(1)
    pointer.text(below.text)
    body.base = pointer.bytes
    let pointing = HeadContent(
      body: body.encoded(), signature: insider.device.signing.sign(.head, body.encoded()).bytes, tail: content.tail)
    village.shelf.plant(
      name, try Envelope.seal(pointing.encoded(), at: place, key: key, nonce: EnvelopeNonce(&insider.random)))
    let report = try await ana.sync()
    #expect(report.warnings.contains { $0.code == "newer" && $0.message.contains(at.text) })
    #expect(try ana.notes == rows && !ana.accounts.contains("beside a base"))
    #expect(village.shelf.deletes.count == deleted)
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try cy.write("by Cy")
    try await village.settle(cy, ana)
    #expect(try ana.notes.contains("by Cy") && cy.notes.contains("by Ana"))
  }

  @Test(
    "Attack 31: parser bombs – lengths that lie, deep nesting and thousands of junk objects cost no more than their bytes"
  )
  func bombs() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    let honest = try Insider(ben)
    let bombs: [[UInt8]] = [
      // [1, <an array that says it has 2^60 elements>
      [0x85, 0x01, 0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0],
      [0x85, 0x01, 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      [UInt8](repeating: 0x81, count: 200_000), [0x85, 0x01] + [UInt8](repeating: 0x81, count: 100_000), [], [0xff],
      [0x9f], [0xa1, 0x01],
    ]
    for (index, bomb) in bombs.enumerated() {
      var insider = honest
      insider.sign([bomb], hlc: max(UInt64(village.now) << 16, insider.rows.lastHLC + 1))
      let names = try insider.publishRows()
      let report = try await ana.sync()
      #expect(report.warnings.contains { ["unreadable", "newer"].contains($0.code) }, "bomb \(index)")
      for name in names { village.shelf.remove(name) }
    }
    // A frame of a few bytes that says it opens to 32 MiB, and one that does.
    for payload in [[UInt8](repeating: 0, count: 32 << 20)] {
      var insider = honest
      insider.sign([payload], hlc: max(UInt64(village.now) << 16, insider.rows.lastHLC + 1))
      let names = try insider.publishRows()
      #expect(try await ana.warned().contains("unreadable"))
      for name in names { village.shelf.remove(name) }
    }
    // Junk of every kind, also under names that heads have.
    let prefixes = [honest.keys.prefix(.roster), honest.keys.prefix(honest.zone)]
    var random = SeededRandom("junk")
    for number in 0..<2_000 {
      let prefix = prefixes[number % 2]
      let digits = Base32.encode(random.bytes(20))
      let name =
        number % 3 == 0
        ? "\(prefix)/h/\(digits)-\(Base32.encode(counter: UInt64(number)))"
        : "\(prefix)/\(["l", "c", "n", "r", "b", "q"][number % 6])/\(digits.prefix(2))/\(digits.dropFirst(2))"
      village.shelf.plant(try #require(ObjectName(name)), random.bytes(number % 200))
    }
    try cy.write("among the junk")
    try await village.settle(cy, ana)
    #expect(try ana.notes.contains("among the junk"))
  }

  @Test("Attack 32: size leak – yes or no, one row changed or another: the same number of objects, of the same sizes")
  func sizes() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    var shapes: [[Int]] = []
    for change in [
      "UPDATE entries SET note = 'yes' WHERE id = 1", "UPDATE entries SET note = 'no' WHERE id = 1",
      "UPDATE entries SET note = NULL WHERE id = 2", "UPDATE accounts SET name = 'another name' WHERE id = 2",
      "INSERT INTO entries(account, note) VALUES (1, 'a longer note than any of the others')",
      "DELETE FROM entries WHERE id = 1",
    ] {
      let before = village.shelf.puts.count
      try village.run(ana.file, change)
      _ = try await ana.sync()
      shapes.append(village.shelf.puts.dropFirst(before).map(\.bytes.count))
    }
    #expect(Set(shapes).count == 1 && shapes[0] == [4096], "\(shapes)")
    try await village.settle(ana, ben)
    #expect(try ben.notes == ana.notes)
  }
}
