import Foundation
import Latchkey
import LatchkeySQLite
import Testing

@Suite("Deletions, conflicts, and what can be put back")
struct JournalTests {
  private let many =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO entries(account, cents, note) SELECT 1, i, 'many' FROM n"

  private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
    do throws(LatchkeyError) {
      try await body()
      return nil
    } catch { return error.code }
  }

  @Test("whoever deletes very many rows is not followed until a person says so, and a no brings them back to everybody")
  func guarded() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("a.db", many)
    try await settle(place, ana, ben)
    try place.run(
      "b.db", "DELETE FROM entries WHERE note = 'many' AND cents <= 70; INSERT INTO accounts(name) VALUES ('New')")
    let own = try await ben.sync(place.path("b.db"))
    #expect(own.heldDeletions == 0 && own.decisions.isEmpty, "his own deletions are his")
    for _ in 0..<2 {
      let report = try await ana.sync(place.path("a.db"))
      #expect(report.heldDeletions == 70 && report.decisions.map(\.kind) == ["guard"])
      #expect(report.warnings.isEmpty && !report.hasSetAside, "nothing else is wrong")
    }
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries WHERE note = 'many'") == ["100"])
    #expect(try place.rows("a.db", "SELECT count(*) FROM accounts WHERE name = 'New'") == ["1"])
    // Another process sees the same question.
    let decision = try #require(try await place.home("ana").decisions().first)
    #expect(decision.choices == ["allow", "restore"] && decision.message.contains("Ben (phone)"))
    #expect(try await ana.sync(place.path("a.db"), allowedDeletions: 69).heldDeletions == 70)
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.decide(decision.id, "keep") } == "no-such-choice")
    try await ana.decide(decision.id, "restore")
    #expect(try await ana.decisions().isEmpty)
    try await settle(place, ana, ben)
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries WHERE note = 'many'") == ["100"])
    #expect(try await ana.counts(place.path("a.db")).digest == (try await ben.counts(place.path("b.db")).digest))
    // The same again, allowed by number.
    place.clock.advance(10_000)
    try place.run("b.db", "DELETE FROM entries WHERE note = 'many'")
    _ = try await ben.sync(place.path("b.db"))
    #expect(try await ana.sync(place.path("a.db"), allowedDeletions: 100).heldDeletions == 0)
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries WHERE note = 'many'") == ["0"])
    #expect(try await ana.counts(place.path("a.db")).digest == (try await ben.counts(place.path("b.db")).digest))
    #expect(try ana.trash(place.path("a.db")).count == 100)
  }

  @Test("rows that one's own app deleted come back with the values that the store has, links included")
  func ownTrash() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("a.db", "UPDATE entries SET note = 'edited' WHERE cents = -100")
    _ = try await ana.sync(place.path("a.db"))
    try place.run("a.db", "DELETE FROM entries WHERE account = 1; DELETE FROM accounts WHERE id = 1")
    try await settle(place, ana, ben)
    let account = try #require(try ana.trash(place.path("a.db")).first { $0.table == "accounts" })
    #expect(account.cells == nil && account.key == "1")
    #expect(try ben.trash(place.path("b.db")).first { $0.table == "accounts" }?.cells?.isEmpty == false)
    #expect(try await ana.restoreTrash(place.path("a.db"), entries: [account.id]) == 3)
    try await settle(place, ana, ben)
    let rows = ["Cash|-200|b", "Joint|-100|edited", "Joint|300|NULL"]
    #expect(try place.rows("a.db", budgetDump) == rows)
    #expect(try place.rows("b.db", budgetDump) == rows)
    #expect(try ana.trash(place.path("a.db")).isEmpty && ben.trash(place.path("b.db")).isEmpty)
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ana.restoreTrash(place.path("a.db"), entries: [account.id])
      } == "bad-rule")
  }

  @Test(
    "two edits of one cell made at the same time are told at sync, listed with both authors, and the loser can come back"
  )
  func conflict() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("a.db", "UPDATE entries SET note = 'of Ana' WHERE cents = -100")
    try await Task.sleep(for: .milliseconds(20))
    try place.run("b.db", "UPDATE entries SET note = 'of Ben' WHERE cents = -100")
    #expect(try await ana.sync(place.path("a.db")).conflicts == 0)
    #expect(try await ben.sync(place.path("b.db")).conflicts == 1)
    #expect(try await ana.sync(place.path("a.db")).conflicts == 1)
    #expect(try await ana.sync(place.path("a.db")).conflicts == 0, "it is told once")
    let entry = try #require(try ana.conflicts(place.path("a.db")).first)
    #expect(entry.cause == .overwritten && entry.value == .text(Array("of Ana".utf8)))
    #expect(entry.winner == .text(Array("of Ben".utf8)))
    let names = try await ana.deviceNames()
    #expect(entry.written.flatMap { names[$0.author.description] }?.person == "Ana")
    #expect(entry.won.flatMap { names[$0.author.description] }?.person == "Ben")
    try ana.restoreConflict(place.path("a.db"), entry: entry.id)
    try await settle(place, ana, ben)
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents = -100") == ["of Ana"])
  }

  @Test(
    "what somebody changed as a reader is taken back, or published once they may write",
    arguments: ["revert", "publish"])
  func reader(choice: String) async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await ana.setRole(.reader, of: "Ben")
    _ = try await ben.sync(place.path("b.db"))
    try place.run(
      "b.db",
      "UPDATE entries SET note = 'as reader' WHERE cents = -100; DELETE FROM entries WHERE cents = 300; INSERT INTO entries(account, cents, note) VALUES (1, 9, 'new')"
    )
    _ = try await ben.sync(place.path("b.db"))
    _ = try await ana.sync(place.path("a.db"))
    let before = ["Cash|-200|b", "Joint|-100|a", "Joint|300|NULL"]
    #expect(try place.rows("a.db", budgetDump) == before)
    #expect(Set(try ben.conflicts(place.path("b.db")).map(\.cause)) == [.reader])
    #expect(try await ben.decisions().map(\.choices) == [["revert"]])
    try await ana.setRole(.member, of: "Ben")
    _ = try await ben.sync(place.path("b.db"))
    let decision = try #require(try await ben.decisions().first)
    #expect(decision.kind == "reader" && decision.choices == ["revert", "publish"])
    try await ben.decide(decision.id, choice)
    #expect(try await ben.decisions().isEmpty)
    #expect(try await ben.status().first?.zone?.warnings.isEmpty == true)
    try await settle(place, ana, ben)
    let after = choice == "revert" ? before : ["Cash|-200|b", "Joint|-100|as reader", "Joint|9|new"]
    #expect(try place.rows("a.db", budgetDump) == after)
    #expect(try place.rows("b.db", budgetDump) == after)
    #expect(try await ana.counts(place.path("a.db")).digest == (try await ben.counts(place.path("b.db")).digest))
  }
}

@Suite("Who did what, and undoing it")
struct LoggingTests {
  private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
    do throws(LatchkeyError) {
      try await body()
      return nil
    } catch { return error.code }
  }

  @Test("the log tells every writing from the signed logs, by whom and when, and what is not sent yet")
  func log() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let path = place.path("a.db")
    try place.run("b.db", "UPDATE entries SET note = 'first' WHERE cents = -100")
    _ = try await ben.sync(place.path("b.db"))
    let middle = place.clock.now
    place.clock.advance(5_000)
    try place.run(
      "b.db", "UPDATE entries SET note = 'second' WHERE cents = -100; DELETE FROM entries WHERE cents = 300")
    try await settle(place, ana, ben)
    try place.run("a.db", "UPDATE entries SET cents = -101 WHERE cents = -100")
    let all = try await ana.log(path)
    #expect(all.isComplete && all.gap == nil)
    #expect(all.events.count { $0.kind == .inserted } == 5)
    let ofBen = try await ana.log(path, LogQuery(member: "Ben")).events
    #expect(ofBen.map(\.kind).sorted { $0.rawValue < $1.rawValue } == [.changed, .changed, .deleted])
    #expect(ofBen.allSatisfy { $0.by == "Ben" && $0.deviceName == "phone" && $0.isProven && $0.key != nil })
    let notes = ofBen.flatMap(\.cells).map(\.value)
    #expect(notes == [.text(Array("second".utf8)), .text(Array("first".utf8))])
    #expect(try await ana.log(path, LogQuery(member: "Ben", since: middle + 1)).events.count == 2)
    // What is not sent is known once it was stamped.
    _ = try await ana.sync(path)
    let row = try #require(try place.rows("a.db", "SELECT id FROM entries WHERE cents = -101").first)
    let ofRow = try await ana.log(path, LogQuery(table: "entries", row: row)).events
    #expect(ofRow.first?.by == "Ana" && ofRow.first?.cells.map(\.column) == ["cents"])
    #expect(ofRow.last?.kind == .inserted)
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.log(path, LogQuery(member: "Zoe")) }
        == "no-such-member")
    // Without the store the file alone is asked, and that is said.
    try FileManager.default.moveItem(atPath: place.root + "/store", toPath: place.root + "/away")
    let local = try await ana.log(path, LogQuery(member: "Ben"))
    #expect(!local.isComplete && local.gap != nil)
    #expect(local.events.flatMap(\.cells).map(\.value) == [.text(Array("second".utf8))])
  }

  @Test("what one member did goes back to what it was, for everybody; what others did since stays")
  func undo() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let path = place.path("a.db")
    try place.run("b.db", "UPDATE entries SET note = 'good' WHERE cents = -200")
    try await settle(place, ana, ben)
    try await Task.sleep(for: .milliseconds(20))
    let since = place.clock.now
    try place.run(
      "b.db",
      """
      UPDATE entries SET note = 'bad', cents = -999 WHERE cents = -200; DELETE FROM entries WHERE cents = 300;
      INSERT INTO entries(account, cents, note) VALUES (1, 1, 'spam'), (1, 2, 'spam but used');
      UPDATE accounts SET name = 'Spoilt' WHERE id = 1;
      """)
    try await settle(place, ana, ben)
    try place.run(
      "a.db", "UPDATE entries SET note = 'used by Ana' WHERE cents = 2; UPDATE accounts SET name = 'Ours' WHERE id = 1")
    try await settle(place, ana, ben)
    let before = try place.rows("a.db", budgetDump)
    let plan = try await ana.restore(path, by: "Ben", since: since, isRehearsal: true)
    #expect(try place.rows("a.db", budgetDump) == before)
    #expect(
      Dictionary(grouping: plan.rows, by: \.kind).mapValues(\.count) == [
        .changed: 1, .inserted: 1, .deleted: 1, .skipped: 1,
      ])
    #expect(plan.rows.first { $0.kind == .changed }?.columns.sorted() == ["cents", "note"])
    #expect(try await ana.restore(path, by: "Ben", since: since) == plan)
    let after = ["Cash|-200|good", "Ours|-100|a", "Ours|2|used by Ana", "Ours|300|NULL"]
    #expect(try place.rows("a.db", budgetDump) == after)
    try await settle(place, ana, ben)
    #expect(try place.rows("b.db", budgetDump) == after)
    #expect(try await ana.counts(path).digest == (try await ben.counts(place.path("b.db")).digest))
    // There is nothing left to undo, but what stays.
    #expect(try await ana.restore(path, by: "Ben", since: since).count == 0)
    // Of somebody who was removed, all that they ever wrote.
    try await ana.removeMember("Ben")
    _ = try await ana.sync()
    #expect(try await ana.restore(path, by: "Ben").count == 0)
  }
}
