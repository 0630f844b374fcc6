import Foundation
import Latchkey
import LatchkeySQLite
import LatchkeyTables
import Testing

@Suite("A table that has one row")
struct SingletonTests {
  private let schema = """
    CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
    """
  private let rules = Rules(tables: ["book": TableRules(isSingleton: true)])

  @Test("M8: ensuring it makes one where there is none, and gives the household's where there is one")
  func ensured() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try place.run("a.db", schema)
    try place.run("b.db", schema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Book", rules: rules)
    await #expect(throws: LatchkeyError.self) { try await ana.ensureSingleton(place.path("a.db"), "note") }
    let key = try await ana.ensureSingleton(place.path("a.db"), "book", values: ["title": .text(Array("Smith".utf8))])
    #expect(key == [.integer(1)])
    #expect(try await ana.ensureSingleton(place.path("a.db"), "book") == key)
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    let invite = try await ana.invite(household: "Smith")
    let ben = place.home("ben")
    let options = JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
    _ = try await ben.join(link: invite.link, options: options) { _ in true }
    #expect(
      try await ben.ensureSingleton(place.path("b.db"), "book", values: ["title": .text(Array("mine".utf8))])
        == key)
    #expect(try place.rows("b.db", "SELECT title FROM book") == ["Smith"])
  }

  @Test("while nothing was read of the zone and the store is away, no row is made: there may be one")
  func waits() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try place.run("a.db", schema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Book", rules: rules)
    try FileManager.default.moveItem(atPath: place.root + "/store", toPath: place.root + "/away")
    await #expect(throws: LatchkeyError.self) { try await ana.ensureSingleton(place.path("a.db"), "book") }
    #expect(try place.rows("a.db", "SELECT count(*) FROM book") == ["0"])
    try FileManager.default.moveItem(atPath: place.root + "/away", toPath: place.root + "/store")
    #expect(try await ana.ensureSingleton(place.path("a.db"), "book") == [.integer(1)])
    // Once it was read, the row is made at once.
    try place.run("a.db", "DELETE FROM book")
    try FileManager.default.moveItem(atPath: place.root + "/store", toPath: place.root + "/away")
    #expect(try await ana.ensureSingleton(place.path("a.db"), "book") == [.integer(1)])
  }
}
