import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import Testing

@Suite("A round")
struct RoundTests {
  @Test("what was written is read by the others, and then nobody writes anything more")
  func exchange() throws {
    var home = try Household("exchange")
    var ben = try home.join("Ben")
    home.ana.written = [[1], [2]]
    ben.written = [[3]]
    _ = try home.ana.round(&home.shelf)
    _ = try ben.round(&home.shelf)
    _ = try home.ana.round(&home.shelf)
    #expect(ben.applied == [[1], [2]])
    #expect(home.ana.applied == [[3]])

    let (puts, deletes) = (home.shelf.puts.count, home.shelf.deletes.count)
    for _ in 0..<3 {
      _ = try home.ana.round(&home.shelf)
      _ = try ben.round(&home.shelf)
    }
    #expect(home.shelf.puts.count == puts && home.shelf.deletes.count == deletes)
    #expect(!ben.effects.contains("keep"))
    #expect(ben.applied == [[1], [2]])
  }

  @Test("an idle round is one listing of the roster and one of the zone")
  func idle() throws {
    var home = try Household("idle")
    home.ana.written = [[1]]
    _ = try home.ana.round(&home.shelf)
    _ = try home.ana.round(&home.shelf)
    #expect(home.ana.effects == ["list", "load", "list", "seal", "outbox", "finish"])
  }

  @Test("bytes whose confirmation was lost are sent again unchanged")
  func resend() throws {
    var home = try Household("resend")
    home.ana.written = [[1]]
    let lost = try home.ana.round(&home.shelf, failsAt: "send")
    #expect(lost == nil)
    let before = home.shelf.objects
    home.ana.written = [[2]]
    _ = try home.ana.round(&home.shelf)
    #expect(before.allSatisfy { home.shelf.objects[$0.key] == $0.value })
    #expect(home.ana.outbox.isEmpty)

    var ben = try home.join("Ben")
    _ = try ben.round(&home.shelf)
    #expect(ben.applied == [[1], [2]])
  }

  @Test("a listing that shows what was believed needs no marker; one that shows less does")
  func familiar() throws {
    var home = try Household("familiar")
    var ben = try home.join("Ben")
    _ = try ben.round(&home.shelf)
    #expect(!ben.effects.contains("marker"))

    let kept = home.shelf.objects
    for name in home.shelf.list(try home.current.prefix(.roster)) { home.shelf.objects[name] = nil }
    _ = try ben.round(&home.shelf)
    #expect(ben.effects.contains("marker"))
    home.shelf.objects = kept
    let again = try ben.sync(&home.shelf)
    #expect(again.findings == [])
  }

  @Test("a place without a marker is no store, whatever was synced before")
  func missing() throws {
    var home = try Household("missing")
    home.ana.written = [[1]]
    _ = try home.ana.round(&home.shelf)
    home.shelf.objects = [:]
    home.ana.written = [[2]]
    #expect(throws: EngineError.storeMissing) { try home.syncAna() }
    #expect(home.shelf.objects.isEmpty)
  }

  @Test("another store's marker stops the round before anything is written there")
  func otherStore() throws {
    var home = try Household("other")
    _ = try home.ana.round(&home.shelf)
    home.ana.written = [[1]]
    var other = Shelf()
    other.objects[.marker] = home.marker(2)
    #expect(throws: EngineError.otherStore) { _ = try home.ana.sync(&other) }
    #expect(other.puts.isEmpty)
  }

  @Test("an answer that the effect did not ask for is refused")
  func outOfOrder() throws {
    let home = try Household("order")
    let answers: [Event] = [
      .put, .deleted, .kept, .collided, .got([:]), .listed([]), .database(.done), .database(.outbox([])),
    ]
    for first in answers {
      var round = SyncRound(
        state: home.ana.state, zone: home.zone, device: home.ana.keys, now: 1,
        random: SeededRandom("order"))
      #expect(throws: EngineError.self) { try round.step(first) }
      _ = try round.step(.start)
      #expect(throws: EngineError.self) { try round.step(.start) }
      if case .listed = first { continue }
      #expect(throws: EngineError.self) { try round.step(first) }
    }
  }

  @Test("a log whose segment is not there waits; the other logs go on")
  func missingSegment() throws {
    var home = try Household("segment")
    var ben = try home.join("Ben")
    var cy = try home.join("Cy")
    home.ana.written = (0..<4).map { index in [UInt8](repeating: index, count: 4_000) }
    _ = try home.ana.round(&home.shelf)
    ben.written = [[9]]
    _ = try ben.round(&home.shelf)
    let segment = try #require(home.shelf.list(try home.current.prefix(home.zone) + "/l/").first)
    let bytes = try #require(home.shelf.objects[segment])
    home.shelf.objects[segment] = nil

    let report = try cy.sync(&home.shelf)
    #expect(cy.applied == [[9]])
    #expect(
      report.findings.contains {
        if case .missing = $0 { true } else { false }
      })
    home.shelf.objects[segment] = bytes
    let later = try cy.sync(&home.shelf)
    #expect(later.findings == [])
    #expect(cy.applied.count == 5)
  }

  @Test("what a reader writes is chained and not applied")
  func reader() throws {
    var home = try Household("reader")
    var cy = try home.join("Cy", as: .reader)
    cy.written = [[7]]
    _ = try cy.round(&home.shelf)
    let report = try home.ana.sync(&home.shelf)
    #expect(home.ana.applied.isEmpty)
    #expect(
      report.findings.contains {
        if case .notAuthorised = $0 { true } else { false }
      })
    #expect(home.ana.belief.authors.values.contains { $0.mark?.sequence == 1 })
  }

  @Test("rows of somebody who is not in yet wait, and are read once the admission is")
  func provisional() throws {
    var home = try Household("provisional")
    var ben = try home.join("Ben")
    let invite = try home.invite(.member)
    _ = try home.ana.round(&home.shelf)
    var cy = try home.newcomer("Cy", invite)
    cy.written = [[5]]
    let first = try cy.sync(&home.shelf)
    #expect(first.isProvisional == true)

    let report = try ben.sync(&home.shelf)
    // A member admits too, and reads in the same round what the newcomer wrote before.
    #expect(report.admitted.map(\.who) == ["Cy (Cy's phone)"])
    #expect(ben.applied == [[5]])
    _ = try home.ana.round(&home.shelf)
    #expect(home.ana.applied == [[5]])
    _ = try cy.round(&home.shelf)
    let last = try cy.sync(&home.shelf)
    #expect(last.isProvisional == false)
  }

  @Test(
    "who has merged exactly the same and holds other rows is named; a reader's own rows, and what is under way, are none"
  )
  func divergence() throws {
    var home = try Household("divergence")
    var ben = try home.join("Ben")
    home.ana.written = [[1]]
    home.ana.digest = hash32("1", parts: 0) { _ in }
    _ = try home.ana.sync(&home.shelf)
    ben.digest = hash32("1", parts: 0) { _ in }
    #expect(try ben.sync(&home.shelf).findings.isEmpty)
    #expect(ben.effects.contains("facts"))

    // Ana has not seen what Ben wrote since: nothing can be said.
    let before = home.shelf
    ben.written = [[2]]
    _ = try ben.sync(&home.shelf)
    let withBen = home.shelf
    home.shelf = before
    home.ana.written = [[3]]
    home.ana.digest = hash32("2", parts: 0) { _ in }
    _ = try home.ana.sync(&home.shelf)
    home.shelf.objects.merge(withBen.objects) { first, _ in first }
    #expect(try ben.sync(&home.shelf).findings.isEmpty)

    // Both have read everything, and one comes to something else.
    home.ana.written = [[5]]
    home.ana.digest = hash32("4", parts: 0) { _ in }
    _ = try home.ana.sync(&home.shelf)
    var reader = ben
    #expect(try ben.sync(&home.shelf).findings == [.divergence(origin: try #require(home.ana.log).origin)])
    // Said once for one head.
    #expect(try ben.sync(&home.shelf).findings.isEmpty)

    // Ben as a reader: what he changes stays with him.
    let person = try #require(home.ana.state.roster.state.device(ben.keys.id)?.person)
    try home.ana.state.writeNext(
      NextChange(roles: [person: .reader], narrowing: [ben.keys.id: []]), now: 1_000, random: &home.ana.random)
    _ = try home.ana.sync(&home.shelf)
    #expect(
      !(try reader.sync(&home.shelf).findings.contains {
        if case .divergence = $0 { true } else { false }
      }))
  }

  @Test("a zone that was closed ends the round before any row is read or sent")
  func closed() throws {
    var home = try Household("closed")
    var ben = try home.join("Ben")
    let closing = CloseZone(zone: home.zone, reason: .unshared)
    try home.ana.state.write(.closeZone(closing), now: 900)
    _ = try home.ana.round(&home.shelf)
    ben.written = [[1]]
    let report = try ben.sync(&home.shelf)
    #expect(report.closed == closing)
    #expect(!ben.effects.contains("load") && !ben.effects.contains("send"))
    #expect(ben.written == [[1]])
  }

  @Test("old heads are deleted ten minutes later, and only after another was sent")
  func superseded() throws {
    var home = try Household("heads")
    for index in 0..<6 {
      home.ana.written = [[UInt8(index)]]
      _ = try home.ana.round(&home.shelf, now: 1_000 + Int64(index))
    }
    #expect(home.shelf.deletes.isEmpty)
    _ = try home.ana.round(&home.shelf, now: 2_000_000)
    #expect(home.shelf.deletes.isEmpty)
    home.ana.written = [[6]]
    _ = try home.ana.round(&home.shelf, now: 2_000_001)
    #expect(home.shelf.deletes.count == 3)
    #expect(home.shelf.list(try home.current.prefix(home.zone) + "/h/").count == 4)
  }
}
