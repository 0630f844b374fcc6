import Foundation
import Latchkey
import LatchkeyStorage
import Testing

@Suite("moving a household to another store")
struct MovingStoresTests {
  private func household(_ place: Place) async throws -> (ana: Home, ben: Home) {
    try FileManager.default.createDirectory(atPath: place.path("new"), withIntermediateDirectories: true)
    return try await LatchkeyTests.household(place)
  }

  private func files(_ folder: String) -> [String] {
    (FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []).filter {
      var isDirectory: ObjCBool = false
      return FileManager.default.fileExists(atPath: folder + "/" + $0, isDirectory: &isDirectory)
        && !isDirectory.boolValue && !$0.hasPrefix(".")
    }
  }

  private func expectSettled(_ place: Place, _ ana: Home, _ ben: Home) async throws {
    for _ in 0..<2 {
      _ = try await ana.sync(place.path("a.db"))
      _ = try await ben.sync(place.path("b.db"))
    }
    #expect(try place.rows("a.db", budgetDump) == place.rows("b.db", budgetDump))
    #expect(try await ana.counts(place.path("a.db")).digest == ben.counts(place.path("b.db")).digest)
    for (home, file) in [(ana, "a.db"), (ben, "b.db")] {
      let report = try await home.sync(place.path(file))
      #expect(report.requests.put == 0 && report.requests.delete == 0 && report.waiting == 0 && report.parked == 0)
    }
  }

  @Test(
    "a household moves byte by byte; another device sends nothing until a person there agrees, brings its rows along, and then the old place is emptied"
  )
  func move() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let new = "folder:\(place.path("new"))"
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'written before Ben knew')")
    let report = try await ana.moveStore(to: new, household: "Smith")
    #expect(report.to == new && report.from == place.store && report.objects > 0)
    #expect(report.waitingFor == ["phone"] && !report.isEmptied)
    #expect(try await ana.identity().households.first { $0.name == "Smith" }?.store == new)
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (2, 8, 'written in the new place')")
    _ = try await ana.sync(place.path("a.db"))

    #expect(try await ben.storeDecisions().isEmpty)
    let before = (place.objects(), files(place.path("new")))
    for _ in 0..<2 {
      let stopped = await #expect(throws: LatchkeyError.self) { _ = try await ben.sync(place.path("b.db")) }
      #expect(stopped?.kind == .decision && stopped?.code == "store-moved")
      #expect(stopped?.message.contains("Ana has moved the household Smith to \(new)") == true)
    }
    #expect(place.objects() == before.0)
    #expect(files(place.path("new")) == before.1)
    let decision = try #require(try await ben.storeDecisions().first)
    #expect(decision.household == "Smith" && decision.to == new && decision.movedBy == "Ana" && !decision.isRefused)
    #expect(try await ben.status(place.path("b.db")).first?.zone?.warnings.map(\.code) == ["store-moved"])

    let question = try #require(try await ben.decisions().first)
    #expect(question.kind == "store" && question.choices == ["agree", "refuse"] && question.message.contains(new))
    try await ben.decide(question.id, "refuse")
    let refused = await #expect(throws: LatchkeyError.self) { _ = try await ben.sync(place.path("b.db")) }
    #expect(refused?.kind == .decision && refused?.code == "store-refused")
    #expect(try await ben.storeDecisions().first?.isRefused == true)

    #expect(try await ben.decisions().map(\.id) == [question.id])
    try await ben.decide(question.id, "agree")
    #expect(try await ben.storeDecisions().isEmpty)
    #expect(try await ben.decisions().isEmpty)
    try await expectSettled(place, ana, ben)
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note LIKE 'written%' ORDER BY 1").count == 2)
    await #expect(throws: LatchkeyError.self) { try await ben.agreeToStore(household: "Smith") }

    let emptied = try await ana.moveStore(to: new, household: "Smith")
    #expect(emptied.isEmptied && emptied.waitingFor.isEmpty)
    // Her private household stays where it was.
    #expect(!place.objects().isEmpty && place.objects().count < before.0.count)
    _ = try await ana.sync()
    try await expectSettled(place, ana, ben)

    // Whoever comes in now is told the new place.
    let invite = try await ana.invite(household: "Smith")
    let cleo = place.home("cleo")
    let joined = try await cleo.join(
      link: invite.link, options: JoinOptions(database: place.path("c.db"), name: "Cleo", device: "tablet")
    ) { $0 == .useStore(url: new) }
    #expect(joined.rows > 5)
    _ = try await ana.sync(place.path("a.db"))
    _ = try await cleo.sync(place.path("c.db"))
    #expect(try place.rows("a.db", budgetDump) == place.rows("c.db", budgetDump))
  }

  @Test("a move that is interrupted at any request goes on when it is run again, and nothing is lost")
  func interrupted() async throws {
    let fault = Fault()
    var step = 0
    var isWhole = false
    while !isWhole {
      let place = try Place()
      try FileManager.default.createDirectory(atPath: place.path("new"), withIntermediateDirectories: true)
      let (ana, ben) = try await LatchkeyTests.household(place, fault)
      let new = "folder:\(place.path("new"))"
      try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'b')")
      _ = try await ben.sync(place.path("b.db"))
      fault.arm(after: step, step % 2 == 0 ? .before : .after)
      do {
        _ = try await ana.moveStore(to: new, household: "Smith")
        isWhole = true
      } catch {}
      fault.arm(after: nil)
      if !isWhole {
        // Another device syncs in between, whether it is told already or not.
        do { _ = try await ben.sync(place.path("b.db")) } catch { #expect(error.code == "store-moved") }
        _ = try await ana.moveStore(to: new, household: "Smith")
      }
      await #expect(throws: LatchkeyError.self) { _ = try await ben.sync(place.path("b.db")) }
      try await ben.agreeToStore(household: "Smith")
      try await expectSettled(place, ana, ben)
      #expect(try await ana.moveStore(to: new, household: "Smith").isEmptied)
      try await expectSettled(place, ana, ben)
      #expect(try place.rows("a.db", "SELECT count(*) FROM entries WHERE note = 'b'") == ["2"])
      step += 11
    }
    #expect(step > 20)
  }

  @Test("only an owner moves a household, and not onto bytes of another kind: it stays where it is")
  func refusals() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let new = "folder:\(place.path("new"))"
    let member = await #expect(throws: LatchkeyError.self) { _ = try await ben.moveStore(to: new, household: "Smith") }
    #expect(member?.code == "not-an-owner" && files(place.path("new")).isEmpty)

    // A copy that something has gone wrong with.
    try FileManager.default.removeItem(atPath: place.path("new"))
    try FileManager.default.copyItem(atPath: place.root + "/store", toPath: place.path("new"))
    for name in files(place.path("new")) where name.contains("/h/") {
      let copy = URL(fileURLWithPath: place.path("new") + "/" + name)
      var bytes = try Data(contentsOf: copy)
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: copy)
    }
    let differs = await #expect(throws: LatchkeyError.self) {
      _ = try await ana.moveStore(to: new, household: "Smith")
    }
    #expect(differs?.kind == .damage && differs?.code == "copies-differ")
    #expect(try await ana.identity().households.first { $0.name == "Smith" }?.store == place.store)
    _ = try await ana.sync()
    _ = try await ben.sync()
  }

  @Test(
    "one household on two stores: each sync brings the mirror up to date, either serves when the other is away, and what was lost is put back"
  )
  func mirror() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let second = "folder:\(place.path("new"))"
    let report = try await ana.mirrorStore(to: second, household: "Smith")
    #expect(report.mirror == second && report.objects > 0)
    #expect(try await ana.status(place.path("a.db")).first?.zone?.mirror == second)
    // Ben knows nothing of it; what he writes is brought over.
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'from Ben')")
    _ = try await ben.sync(place.path("b.db"))
    #expect(try await ana.sync(place.path("a.db")).warnings.isEmpty)
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 8, 'from Ana')")
    #expect(try await ana.sync(place.path("a.db")).warnings.isEmpty)
    let idle = try await ana.sync(place.path("a.db"))
    #expect(idle.requests.put == 0 && idle.requests.get <= 2 && idle.warnings.isEmpty)

    // The first is away, and then an empty folder where it should be mounted.
    let (store, away) = (place.root + "/store", place.root + "/away")
    try FileManager.default.moveItem(atPath: store, toPath: away)
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (2, 9, 'while it was away')")
    #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["store-unreachable-mirror-used"])
    try FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: true)
    #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["store-unreachable-mirror-used"])
    #expect(place.objects().isEmpty)
    try FileManager.default.removeItem(atPath: store)
    try FileManager.default.moveItem(atPath: away, toPath: store)
    #expect(try await ana.sync(place.path("a.db")).warnings.isEmpty)
    _ = try await ben.sync(place.path("b.db"))
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries WHERE note = 'while it was away'") == ["1"])

    // The mirror alone is enough for somebody new.
    let invite = try await ana.invite(household: "Smith")
    _ = try await ana.sync(place.path("a.db"))
    try FileManager.default.moveItem(atPath: store, toPath: away)
    let lost = try await ana.sync(place.path("a.db"))
    #expect(lost.warnings.map(\.code) == ["store-unreachable-mirror-used"])
    _ = invite
    try FileManager.default.moveItem(atPath: away, toPath: store)

    // The mirror is away.
    try FileManager.default.moveItem(atPath: place.path("new"), toPath: away)
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (2, 10, 'mirror away')")
    #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["mirror-unreachable"])
    try FileManager.default.moveItem(atPath: away, toPath: place.path("new"))
    let healed = try await ana.sync(place.path("a.db"))
    #expect(healed.warnings.isEmpty && healed.requests.put > 0)
    let settled = try await ana.sync(place.path("a.db"))
    #expect(settled.requests.put == 0 && settled.requests.get <= 2)

    #expect(try await ana.stopMirroring(household: "Smith") == second)
    #expect(try await ana.status(place.path("a.db")).first?.zone?.mirror == nil)
    let other = await #expect(throws: LatchkeyError.self) {
      try FileManager.default.createDirectory(atPath: place.path("third"), withIntermediateDirectories: true)
      try await place.home("dora").initialize(name: "Dora", device: "d", store: "folder:\(place.path("third"))")
      _ = try await ana.mirrorStore(to: "folder:\(place.path("third"))", household: "Smith")
    }
    #expect(other?.code == "other-store")
  }
}
