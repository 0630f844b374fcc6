import Foundation
import Testing

@Suite("Rows that are the same on two devices, by the built command")
struct DuplicateRuleTests {
  private func settle(_ world: World) throws {
    for _ in 0..<2 {
      try world.ok("sync ana.db --home ana")
      try world.ok("sync ben.db --home ben")
    }
  }

  private func tables(_ world: World, _ name: String) throws -> [[String: Any]] {
    let zones = try #require(
      try world.ok("counts \(name).db --home \(name)").data["zones"] as? [[String: Any]])
    return try #require(zones.first?["tables"] as? [[String: Any]])
  }

  @Test("M8: two devices whose apps each made a default book and the same account show one of each, and sums stay")
  func merged() throws {
    let world = try World(.initialised)
    try world.shell("sqlite3 ana.db 'CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT)'")
    try world.shell(
      """
      echo '{"v":1,"tables":{"book":"singleton"}}' > r.json
      echo '{"v":1,"tables":{"book":"singleton","accounts":{"dedup":[{"column":"name","fold":"nocase"}]}}}' > more.json
      """)
    let attached = try #require(
      try world.ok("attach ana.db --home ana --zone Budget --recipe r.json").data["tables"] as? [[String: Any]])
    #expect(attached.map { $0["verdict"] as? String } == ["sync", "sync", "singleton"])
    try world.ok("share ana.db --home ana --household Smith")
    try world.ok("invite --home ana --out ben.invite")
    try world.ok("join --home ben --db ben.db --name Ben --device phone --yes --invite-file ben.invite")
    try settle(world)
    // Each of the two apps starts for the first time.
    try world.shell("sqlite3 ana.db \"INSERT INTO book VALUES (1, 'Default book')\"")
    try world.shell(
      "sqlite3 ben.db \"INSERT INTO book VALUES (1, 'Default book'); INSERT INTO accounts VALUES (9, ' joint '); INSERT INTO entries VALUES (9, 9, -50)\""
    )
    try settle(world)
    for name in ["ana", "ben"] {
      #expect(try world.shell("sqlite3 \(name).db 'SELECT title FROM book'") == "Default book\n")
      #expect(try world.shell("sqlite3 \(name).db 'SELECT count(*) FROM accounts'") == "3\n", "no rule says so yet")
    }
    // What one sets holds for both.
    try world.ok("rules set ana.db more.json --home ana")
    try settle(world)
    for name in ["ana", "ben"] {
      #expect(
        try world.shell(
          "sqlite3 \(name).db 'SELECT lower(trim(a.name)), sum(cents) FROM entries e JOIN accounts a ON a.id = e.account_id GROUP BY a.id ORDER BY 1'"
        ) == "cash|-8200\njoint|-1300\n")
      let accounts = try #require(try tables(world, name).first { $0["name"] as? String == "accounts" })
      #expect(accounts["live"] as? Int == 3 && accounts["merged"] as? Int == 1 && accounts["parked"] as? Int == 0)
      #expect(accounts["local"] as? Int == 2)
    }
    #expect(
      try tables(world, "ana").map { $0["digest"] as? String } == tables(world, "ben").map { $0["digest"] as? String })
    // Which row stands for which is said.
    let key = try world.shell("sqlite3 ben.db \"SELECT id FROM accounts WHERE lower(trim(name)) = 'joint'\"")
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let shown = try world.ok("explain ben.db accounts \(key) --home ben").data
    let duplicate = try #require((shown["duplicates"] as? [String])?.first)
    let explained = try world.ok("explain ben.db accounts \(duplicate) --home ben")
    #expect((explained.data["merged_into"] as? [String: Any])?["key"] as? String == key)
    #expect(explained.data["shown"] as? Bool == false)
    #expect(explained.message.contains("a duplicate, shown as accounts \(key)"))
    let status = try world.ok("sync ben.db --home ben")
    #expect(status.data["parked"] as? Int == 0)
    // A rule of its own for what cannot be.
    try world.shell("echo '{\"v\":1,\"tables\":{\"entries\":{\"prefer\":\"cents\"}}}' > prefer.json")
    #expect(try world.ask("rules set ana.db prefer.json --home ana").exit == 64)
  }

  @Test("an app that makes its first rows anew at each start is told of, once two of them became one")
  func madeRepeatedly() throws {
    let world = try World(.attached)
    try world.shell("echo '{\"v\":1,\"tables\":{\"accounts\":{\"dedup\":[\"name\"]}}}' > r.json")
    try world.ok("rules set ana.db r.json --home ana")
    for start in 0..<3 {
      let before = try world.ok("sync ana.db --home ana").data["warnings"] as? [[String: Any]]
      #expect(before?.contains { $0["code"] as? String == "made-repeatedly" } == false)
      try world.shell("sqlite3 ana.db \"INSERT INTO accounts VALUES (\(100 + start), 'Cash')\"")
    }
    let warnings = try #require(try world.ok("sync ana.db --home ana").data["warnings"] as? [[String: Any]])
    #expect(warnings.contains { $0["code"] as? String == "made-repeatedly" })
    #expect(try world.shell("sqlite3 ana.db 'SELECT count(*) FROM accounts'") == "3\n")
  }
}
