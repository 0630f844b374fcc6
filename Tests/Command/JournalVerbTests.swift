import Foundation
import Testing

/// Deletions, conflicts and undoing, with two people through the built command.
@Suite struct JournalVerbTests {
  private func decisions(_ world: World, _ home: String) throws -> [[String: Any]] {
    try world.ok("status --home \(home)").data["decisions"] as? [[String: Any]] ?? []
  }

  @Test("very many deletions end the sync with 15, and are decided by id or by number, never by --yes")
  func guarded() throws {
    let world = try World(.joined)
    try world.shell(
      "sqlite3 ana.db \"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120) INSERT INTO entries(account_id, cents) SELECT 1, i FROM n\""
    )
    for name in ["ana", "ben"] { try world.ok("sync \(name).db --home \(name)") }
    try world.shell("sqlite3 ben.db 'DELETE FROM entries WHERE cents BETWEEN 1 AND 100'")
    try world.ok("sync ben.db --home ben")
    for line in ["sync ana.db --home ana", "sync ana.db --home ana --yes", "sync --home ana --allow-deletes 99"] {
      let (reply, exit) = try world.ask(line)
      #expect(exit == 15 && !reply.ok && reply.code == "deletions-held", "\(line)")
      #expect(reply.data["held"] as? Int == 100)
    }
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM entries'") == "122\n")
    let decision = try #require(try decisions(world, "ana").first)
    #expect(decision["kind"] as? String == "guard" && decision["choices"] as? [String] == ["allow", "restore"])
    let command = try #require((decision["commands"] as? [String])?.last)
    #expect(command.hasSuffix(" restore"))
    try world.ok("\(command.dropFirst("latchkey ".count)) --home ana")
    for name in ["ana", "ben", "ana"] { try world.ok("sync \(name).db --home \(name)") }
    #expect(try world.shell("sqlite3 ben.db 'SELECT count(*) FROM entries'") == "122\n")
    try world.shell("sqlite3 ben.db 'DELETE FROM entries WHERE cents BETWEEN 1 AND 100'")
    try world.ok("sync ben.db --home ben")
    let allowed = try world.ok("sync ana.db --home ana --allow-deletes 100")
    #expect(allowed.data["held"] as? Int == 0)
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM entries'") == "22\n")
    #expect(try world.ask("sync ana.db --home ana --allow-deletes many").exit == 64)
  }

  @Test("deleted rows are listed on both sides and come back; a dry run changes nothing")
  func trash() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ana.db 'DELETE FROM entries WHERE id = 2; DELETE FROM accounts WHERE id = 2'")
    for name in ["ana", "ben"] { try world.ok("sync \(name).db --home \(name)") }
    let rows = try #require(try world.ok("trash list ben.db --home ben").data["trash"] as? [[String: Any]])
    #expect(rows.count == 2 && rows.allSatisfy { $0["by"] as? String == "Ana" && $0["values"] is [Any] })
    let own = try #require(try world.ok("trash list ana.db --home ana").data["trash"] as? [[String: Any]])
    #expect(own.count == 2 && own.allSatisfy { $0["values"] is NSNull })
    let ids = own.compactMap { $0["id"] as? Int }.map(String.init).joined(separator: " ")
    try world.ok("trash restore ana.db \(ids) --home ana -n")
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM entries'") == "1\n")
    #expect(try world.ok("trash restore ana.db \(ids) --home ana").data["restored"] as? Int == 2)
    for name in ["ana", "ben"] { try world.ok("sync \(name).db --home \(name)") }
    for name in ["ana", "ben"] {
      #expect(
        try world.shell(
          "sqlite3 \(name).db 'SELECT cents FROM entries JOIN accounts a ON a.id = account_id ORDER BY 1'")
          == "-8200\n-1250\n")
      #expect((try world.ok("trash list \(name).db --home \(name)").data["trash"] as? [Any])?.isEmpty == true)
    }
    #expect(try world.ask("trash restore ana.db 99 --home ana").exit == 64)
    #expect(try world.ask("trash restore ana.db x --home ana").exit == 64)
    #expect(try world.ask("trash restore ana.db --home ana").exit == 64)
    #expect(try world.ask("trash list none.db --home ana").exit == 2)
  }

  @Test("a conflict is counted by sync, listed with both values and authors, and undone")
  func conflicts() throws {
    let world = try World(.joined)
    try world.shell(
      "sqlite3 ana.db 'UPDATE entries SET cents = 11 WHERE id = 1'; sleep 0.02; sqlite3 ben.db 'UPDATE entries SET cents = 22 WHERE id = 1'"
    )
    try world.ok("sync ana.db --home ana")
    #expect(try world.ok("sync ben.db --home ben").data["conflicts"] as? Int == 1)
    #expect(try world.ok("sync ana.db --home ana").data["conflicts"] as? Int == 1)
    let entry = try #require(
      (try world.ok("conflicts list ana.db --home ana").data["conflicts"] as? [[String: Any]])?.first)
    #expect(entry["cause"] as? String == "overwritten" && entry["column"] as? String == "cents")
    #expect((entry["written"] as? [String: Any])?["by"] as? String == "Ana")
    #expect((entry["won"] as? [String: Any])?["by"] as? String == "Ben")
    let id = try #require(entry["id"] as? Int)
    try world.ok("conflicts restore ana.db \(id) --home ana")
    for name in ["ana", "ben"] { try world.ok("sync \(name).db --home \(name)") }
    #expect(try world.shell("sqlite3 ben.db 'SELECT cents FROM entries WHERE id = 1'") == "11\n")
  }

  @Test("the log says who did what, and what one member did is undone after a yes")
  func logAndRestore() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ben.db \"UPDATE accounts SET name = 'Spoilt'; DELETE FROM entries WHERE id = 1\"")
    for name in ["ben", "ana"] { try world.ok("sync \(name).db --home \(name)") }
    let events = try #require(
      try world.ok("log ana.db --home ana --by Ben --since 1h").data["events"] as? [[String: Any]])
    #expect(events.count == 3 && events.allSatisfy { $0["by"] as? String == "Ben" && $0["proven"] as? Bool == true })
    #expect((try world.ok("log ana.db --home ana --table accounts --row 1").data["events"] as? [Any])?.count == 2)
    #expect(try world.ask("log ana.db --home ana --since yesterday").exit == 64)
    #expect(try world.ask("log ana.db --home ana --by Zoe").exit == 64)
    let plan = try world.ok("restore ana.db --home ana --by Ben -n").data
    #expect(plan["changed"] as? Int == 2 && plan["inserted"] as? Int == 1)
    #expect(try world.ask("restore ana.db --home ana --by Ben").exit == 15)
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM entries'") == "1\n")
    try world.ok("restore ana.db --home ana --by Ben --yes")
    for name in ["ana", "ben"] { try world.ok("sync \(name).db --home \(name)") }
    for name in ["ana", "ben"] {
      #expect(
        try world.shell(
          "sqlite3 \(name).db 'SELECT name FROM accounts ORDER BY 1; SELECT cents FROM entries ORDER BY 1'")
          == "Cash\nJoint\n-8200\n-1250\n")
    }
    #expect(try world.ask("restore ana.db --home ana").exit == 64)
  }
}
