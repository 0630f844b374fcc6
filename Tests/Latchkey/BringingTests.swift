import Foundation
import Latchkey
import LatchkeySQLite
import Testing

@Suite("A file with rows comes into a zone with rows")
struct BringingTests {
  @Test("trace: whoever joins with a copy of the file, edited since, doubles nothing and loses nothing")
  func join() async throws {
    let place = try Place()
    let ana = place.home("ana")
    let ben = place.home("ben")
    try place.run("a.db", budgetSchema)
    try place.run("b.db", budgetSchema + "INSERT INTO entries(account, cents, note) VALUES (2, 55, 'of Ben');")
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Budget")
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (2, 77, 'of Ana')")
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    let invite = try await ana.invite(household: "Smith")
    let options = JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
    let joined = try await ben.join(link: invite.link, options: options) { _ in true }
    #expect(joined.warnings.map(\.code) == ["provisional", "paired"])
    #expect(
      joined.warnings.last?.message.contains(
        "5 rows of the file are rows of the zone, 1 were only in the file and 1 only") == true)
    for _ in 0..<2 {
      _ = try await ana.sync(place.path("a.db"))
      _ = try await ben.sync(place.path("b.db"))
    }
    _ = try await ana.sync(place.path("a.db"))
    let rows = ["Cash|-200|b", "Cash|55|of Ben", "Cash|77|of Ana", "Joint|-100|a", "Joint|300|NULL"]
    #expect(try place.rows("a.db", budgetDump) == rows)
    #expect(try place.rows("b.db", budgetDump) == rows)
    #expect(try await ana.counts(place.path("a.db")).digest == (try await ben.counts(place.path("b.db")).digest))
    #expect(try ben.conflicts(place.path("b.db")).isEmpty)
    // Detaching leaves the file as an app knows it.
    try await ben.detach(place.path("b.db"))
    #expect(try place.rows("b.db", "SELECT name FROM sqlite_schema WHERE name LIKE 'lk%'").isEmpty)
  }

  @Test(
    "while something of the zone is not shown, nothing is sent or shown; it is told, and done by the sync that sees all"
  )
  func waits() async throws {
    let place = try Place()
    let ana = place.home("ana")
    let ben = place.home("ben")
    try place.run("a.db", budgetSchema)
    try place.run("b.db", budgetSchema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    let before = place.objects()
    try await ana.attach(place.path("a.db"), zone: "Budget")
    // Several segments, of which one is not there yet.
    try place.run(
      "a.db",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO entries(account, cents, note) SELECT 1, i, hex(randomblob(40)) FROM n"
    )
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    let invite = try await ana.invite(household: "Smith")
    let segments = place.objects().subtracting(before).filter { $0.contains("/l/") }
    #expect(!segments.isEmpty)
    try place.withhold(segments)
    let options = JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
    let joined = try await ben.join(link: invite.link, options: options) { _ in true }
    #expect(joined.warnings.contains { $0.code == "pairing-waits" })
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries") == ["3"])
    #expect(
      try await ben.status(place.path("b.db")).first?.zone?.warnings.contains { $0.code == "pairing-waits" } == true)
    try place.showAgain(segments)
    let synced = try await ben.sync(place.path("b.db"))
    #expect(synced.warnings.contains { $0.code == "paired" })
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries") == ["3003"])
    #expect(
      try await ben.sync(place.path("b.db")).warnings.contains { $0.code == "paired" } == false, "it is told once")
  }

  @Test("a second device of one person attaches its copy to the zone; of two zones of one name one can be given up")
  func ownDevices() async throws {
    let place = try Place()
    let laptop = place.home("laptop")
    let phone = place.home("phone")
    try await laptop.initialize(name: "Ana", device: "laptop", store: place.store)
    let invite = try await laptop.addDevice()
    _ = try await phone.join(link: invite.link, options: JoinOptions(device: "phone")) { _ in true }
    _ = try await laptop.sync()
    _ = try await phone.sync()
    for database in ["a.db", "p.db", "q.db"] { try place.run(database, budgetSchema) }
    try await laptop.attach(place.path("a.db"), zone: "Budget")
    try await phone.attach(place.path("p.db"), zone: "Budget")
    for _ in 0..<2 {
      _ = try await laptop.sync(place.path("a.db"))
      _ = try await phone.sync(place.path("p.db"))
    }
    // Whichever of the two is told gives its zone up.
    let isPhone = try await phone.sync(place.path("p.db")).warnings.contains { $0.code == "zone-twice" }
    let (home, file) = isPhone ? (phone, "p.db") : (laptop, "a.db")
    try await home.detach(place.path(file))
    try await home.attach(place.path(file), zone: "Budget")
    let synced = try await home.sync(place.path(file))
    #expect(synced.warnings.contains { $0.code == "paired" && $0.message.hasPrefix("5 rows") })
    for _ in 0..<2 {
      _ = try await laptop.sync(place.path("a.db"))
      _ = try await phone.sync(place.path("p.db"))
    }
    #expect(try await laptop.counts(place.path("a.db")).digest == (try await phone.counts(place.path("p.db")).digest))
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries") == ["3"])
    #expect(try place.rows("p.db", "SELECT count(*) FROM entries") == ["3"])
  }
}
