import Foundation
import Latchkey
import LatchkeyKeys
import Testing

@Suite("Recovery kits and one's own devices")
struct RecoveryTests {
  private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
    do throws(LatchkeyError) { try await body() } catch { return error.code }
    return nil
  }

  private func phrase(_ kit: RecoveryKit) throws -> RecoveryPhrase {
    try RecoveryPhrase(parsing: kit.words.joined(separator: " "))
  }

  /// A second device of Ana's, in all her households.
  private func second(_ name: String, of ana: Home, _ place: Place) async throws -> Home {
    let invite = try await ana.addDevice()
    let home = place.home(name)
    _ = try await home.join(link: invite.link, options: JoinOptions(device: name)) { _ in true }
    for _ in 0..<3 {
      _ = try await ana.sync()
      _ = try await home.sync()
    }
    return home
  }

  @Test("from words and store alone a person is back in all households, reads and writes, and revokes the lost device")
  func recovery() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let kit = try await ana.makeRecoveryKit()
    #expect(kit.words.count == 24 && kit.households == ["Ana's own", "Smith"] && kit.missing.isEmpty)
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 5, 'after the kit')")
    _ = try await ben.sync()
    try await ana.rotateKey(household: "Smith")

    let found = place.home("found")
    let report = try await found.recover(phrase(kit), store: place.store, device: "new laptop")
    #expect(report.person == "Ana" && report.device == "new laptop" && report.missing.isEmpty)
    #expect(Set(report.households) == ["Ana's own", "Smith"])
    #expect(report.zones.contains { $0.household == "Smith" && $0.zone == "Budget" })
    try await found.attach(place.path("f.db"), zone: "Budget")
    #expect(try place.rows("f.db", budgetDump) == place.rows("b.db", budgetDump))
    try place.run("f.db", "INSERT INTO entries(account, cents, note) VALUES (1, 6, 'from the new one')")
    _ = try await found.sync()
    _ = try await ben.sync()
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents = 6") == ["from the new one"])
    #expect(try await ben.members().members.map(\.name).sorted() == ["Ana", "Ben"])

    let revoked = try await found.revokeDevice("laptop")
    #expect(revoked.devices == ["laptop"] && revoked.pending.isEmpty)
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'from a thief')")
    #expect(await code { () async throws(LatchkeyError) in _ = try await ana.sync(place.path("a.db")) } == "removed")
    try place.run("f.db", "INSERT INTO entries(account, cents, note) VALUES (1, 8, 'after the loss')")
    for _ in 0..<2 {
      _ = try await found.sync()
      _ = try await ben.sync()
    }
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents IN (7, 8)") == ["after the loss"])
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE cents = 8").isEmpty)
    // The paper is as good as before, for the next time.
    let again = place.home("again")
    #expect(try await again.recover(phrase(kit), store: place.store, device: "third").missing.isEmpty)
    try await again.attach(place.path("g.db"), zone: "Budget")
    #expect(try place.rows("g.db", budgetDump) == place.rows("f.db", budgetDump))
  }

  @Test("a kit opens households that were founded, shared or joined after it was made")
  func laterHouseholds() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    defer { withExtendedLifetime(ana) {} }
    let kit = try await ben.makeRecoveryKit()
    #expect(kit.households == ["Smith"])
    try await ben.initialize(name: "Ben", device: "phone", store: place.store)
    try place.run("own.db", budgetSchema)
    try await ben.attach(place.path("own.db"), zone: "Own")
    _ = try await ben.share(place.path("own.db"), household: "Club")
    let cy = place.home("cy")
    try place.run("c.db", budgetSchema)
    try await cy.initialize(name: "Cy", device: "desk", store: place.store)
    try await cy.attach(place.path("c.db"), zone: "Third")
    _ = try await cy.share(place.path("c.db"), household: "Chess")
    let invite = try await cy.invite(household: "Chess")
    _ = try await ben.join(link: invite.link, options: JoinOptions()) { _ in true }
    _ = try await cy.sync()
    for _ in 0..<2 { _ = try await ben.sync() }

    let found = place.home("found")
    let report = try await found.recover(phrase(kit), store: place.store, device: "new")
    #expect(report.missing.isEmpty)
    #expect(Set(report.households) == ["Ben's own", "Smith", "Club", "Chess"])
    for zone in ["Budget", "Own", "Third"] {
      try await found.attach(place.path("new-\(zone).db"), zone: zone)
      #expect(try place.rows("new-\(zone).db", "SELECT count(*) FROM entries") == ["3"])
    }
  }

  @Test(
    "words of another kit, another store, a revoked kit and a place with an identity are told apart, and nothing is made"
  )
  func refusals() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let kit = try await ana.makeRecoveryKit()
    let new = place.home("new")
    var random = SystemWorld.random()
    let other = RecoveryPhrase(&random)
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await new.recover(other, store: place.store) }
        == "kit-unknown")
    try FileManager.default.createDirectory(atPath: place.path("empty"), withIntermediateDirectories: true)
    let words = try phrase(kit)
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await new.recover(words, store: "folder:\(place.path("empty"))")
      } == "store-missing")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ben.recover(words, store: place.store) }
        == "identity-exists")
    #expect(try await ana.revokeDevice("recovery kit").devices == ["recovery kit"])
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await new.recover(words, store: place.store) }
        == "kit-revoked")
    #expect(await code { () async throws(LatchkeyError) in _ = try await new.identity() } == "no-identity")
  }

  @Test("damage to what a kit opens is found, and never traps")
  func damagedBlob() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let before = place.objects()
    let words = try phrase(try await ana.makeRecoveryKit())
    let blobs = place.objects().subtracting(before).filter { $0.dropFirst(33).hasPrefix("k/") }
    #expect(blobs.count == 2)
    for name in blobs {
      let path = "\(place.root)/store/\(name)"
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: URL(fileURLWithPath: path))
    }
    let new = place.home("new")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await new.recover(words, store: place.store) }
        == "damaged-kit")
  }

  @Test("recovering that was cut off at any request goes on with the same device", arguments: Fault.Moment.allCases)
  func interrupted(moment: Fault.Moment) async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let words = try phrase(try await ana.makeRecoveryKit())
    let fault = Fault()
    let new = place.home("new", fault)
    var tries = 0
    while true {
      fault.arm(after: tries, moment)
      tries += 1
      if await code({ () async throws(LatchkeyError) in
        _ = try await new.recover(words, store: place.store, device: "new")
      }) == nil {
        break
      }
      try #require(tries < 200)
    }
    #expect(tries > 5)
    fault.arm(after: nil)
    _ = try await ana.sync()
    _ = try await new.sync()
    #expect(try await ana.devices().map(\.name).sorted() == ["laptop", "new", "recovery kit"])
    try await new.attach(place.path("n.db"), zone: "Budget")
    #expect(try place.rows("n.db", budgetDump) == place.rows("a.db", budgetDump))
  }

  @Test("a lost phone of a member is revoked without an owner; what it had added goes along unless it is kept")
  func revocation() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await ben.initialize(name: "Ben", device: "phone", store: place.store)
    let tablet = try await second("tablet", of: ben, place)
    let watch = try await second("watch", of: tablet, place)
    let car = try await second("car", of: tablet, place)
    for home in [ben, tablet, watch, car, ben, ana] { _ = try await home.sync() }
    #expect(try await ben.devices().map(\.name).sorted() == ["car", "phone", "tablet", "watch"])
    let rehearsed = try await ben.revokeDevice("tablet", keeping: ["car"], isRehearsal: true)
    #expect(Set(rehearsed.devices) == ["tablet", "watch"])
    #expect(try await ben.devices().count == 4)
    let report = try await ben.revokeDevice("tablet", keeping: ["car"])
    #expect(Set(report.devices) == ["tablet", "watch"] && report.pending.isEmpty)
    for _ in 0..<2 { for home in [ana, ben, car] { _ = try await home.sync() } }
    let devices = try await ana.members(household: "Smith").members.first { $0.name == "Ben" }?.devices.map(\.name)
    #expect(devices?.sorted() == ["car", "phone"])
    for gone in [tablet, watch] {
      #expect(await code { () async throws(LatchkeyError) in _ = try await gone.sync() } == "removed")
    }
    #expect(await code { () async throws(LatchkeyError) in try await ben.revokeDevice("phone") } == "this-device")
    #expect(await code { () async throws(LatchkeyError) in try await ben.revokeDevice("nothing") } == "no-such-device")
  }

  @Test("a device that was revoked while a household could not be reached is dropped there by the next sync")
  func pendingRevocation() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try FileManager.default.createDirectory(atPath: place.path("own"), withIntermediateDirectories: true)
    try await ben.initialize(name: "Ben", device: "phone", store: "folder:\(place.path("own"))")
    _ = try await second("tablet", of: ben, place)
    try FileManager.default.moveItem(atPath: place.path("store"), toPath: place.path("away"))
    let report = try await ben.revokeDevice("tablet")
    #expect(report.devices == ["tablet"] && report.pending.map(\.household) == ["Smith"])
    try FileManager.default.moveItem(atPath: place.path("away"), toPath: place.path("store"))
    for _ in 0..<2 {
      _ = try await ben.sync()
      _ = try await ana.sync()
    }
    let devices = try await ana.members(household: "Smith").members.first { $0.name == "Ben" }?.devices.map(\.name)
    #expect(devices == ["phone"])
  }

  @Test("a kit that was used where only one household knows of it: what it made is seen and goes with it")
  func stolenKit() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try FileManager.default.createDirectory(atPath: place.path("own"), withIntermediateDirectories: true)
    try await ben.initialize(name: "Ben", device: "phone", store: "folder:\(place.path("own"))")
    let kit = try await ben.makeRecoveryKit()
    #expect(kit.missing.isEmpty)
    for home in [ben, ana] { _ = try await home.sync() }
    // The thief has the words and the household's store, not Ben's own.
    let thief = place.home("thief")
    let report = try await thief.recover(phrase(kit), store: place.store, device: "unknown")
    #expect(report.households == ["Smith"] && !report.isComplete)
    for _ in 0..<2 { for home in [ana, ben] { _ = try await home.sync() } }
    #expect(try await ben.devices().map(\.name).sorted() == ["phone", "recovery kit", "unknown"])
    let revoked = try await ben.revokeDevice("recovery kit")
    #expect(Set(revoked.devices) == ["recovery kit", "unknown"] && revoked.pending.isEmpty)
    for home in [ben, ana] { _ = try await home.sync() }
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'after the theft')")
    _ = try await ana.sync()
    #expect(await code { () async throws(LatchkeyError) in _ = try await thief.sync() } == "removed")
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await thief.attach(place.path("t.db"), zone: "Budget")
      } == "removed")
    #expect(!FileManager.default.fileExists(atPath: place.path("t.db")))
    let left = try await ana.members(household: "Smith").members.first { $0.name == "Ben" }
    #expect(left?.devices.map(\.name) == ["phone"])
  }

  @Test("what cannot be reached keeps nothing from being revoked, renamed or recovered elsewhere")
  func privateStoreAway() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try FileManager.default.createDirectory(atPath: place.path("own"), withIntermediateDirectories: true)
    try await ben.initialize(name: "Ben", device: "phone", store: "folder:\(place.path("own"))")
    let tablet = try await second("tablet", of: ben, place)
    let kit = try await ben.makeRecoveryKit()
    try FileManager.default.moveItem(atPath: place.path("own"), toPath: place.path("away"))
    #expect(try await ben.renameDevice("telephone").map(\.household) == ["Ben's own"])
    let report = try await ben.revokeDevice("tablet")
    #expect(report.devices == ["tablet"] && report.pending.map(\.household) == ["Ben's own"])
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'after the loss')")
    _ = try await ana.sync()
    #expect(await code { () async throws(LatchkeyError) in _ = try await tablet.sync() } != nil)
    let names = try await ana.members(household: "Smith").members.first { $0.name == "Ben" }?.devices.map(\.name)
    #expect(names == ["recovery kit", "telephone"])
    try FileManager.default.moveItem(atPath: place.path("away"), toPath: place.path("own"))
    _ = try await ben.sync()
    #expect(try await ben.devices().map(\.name).sorted() == ["recovery kit", "telephone"])

    // The household's store is away this time: what can be entered is.
    try FileManager.default.moveItem(atPath: place.path("store"), toPath: place.path("away"))
    let found = place.home("found")
    let recovered = try await found.recover(phrase(kit), store: "folder:\(place.path("own"))", device: "new")
    #expect(recovered.households == ["Ben's own"] && recovered.missing.map(\.household) == ["Smith"])
    try FileManager.default.moveItem(atPath: place.path("away"), toPath: place.path("store"))
    #expect(try await found.recover(phrase(kit), store: "folder:\(place.path("own"))").missing.isEmpty)
    #expect(try await found.devices().map(\.name).sorted() == ["new", "recovery kit", "telephone"])
  }

  @Test("a device's new name is what everybody sees")
  func renaming() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await ana.renameDevice("desk")
    _ = try await ben.sync()
    let names = try await ben.members().members.first { $0.name == "Ana" }?.devices.map(\.name)
    #expect(names == ["desk"])
    #expect(try await ana.identity().device == "desk")
    #expect(await code { () async throws(LatchkeyError) in try await ana.renameDevice("") } == "bad-name")
  }
}
