import Foundation
import Testing

/// What happens to a household when processes die or meet.
@Suite struct KillTests {
  @Test("a sync that is killed at any point loses nothing and needs no unlock: the next one goes on")
  func kill() throws {
    let world = try World(.joined)
    var inserted = 2
    for milliseconds in stride(from: 4, through: 60, by: 4) {
      try world.shell("sqlite3 ana.db \"INSERT INTO entries(account_id, cents) VALUES (1, \(inserted))\"")
      inserted += 1
      _ = try Program.run(
        "timeout -s KILL 0.0\(milliseconds < 10 ? "0" : "")\(milliseconds) latchkey sync ana.db --home ana > /dev/null 2>&1",
        in: world.folder)
      #expect(
        try world.shell("sqlite3 ana.db 'PRAGMA integrity_check; SELECT count(*) FROM entries'") == "ok\n\(inserted)\n")
    }
    try settle(world)
    #expect(try world.shell("sqlite3 ben.db 'SELECT count(*) FROM entries'") == "\(inserted)\n")
  }

  @Test("processes that sync the same file at the same moment do not fork its log")
  func together() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ana.db 'INSERT INTO entries(account_id, cents) VALUES (1, 1), (2, 2), (1, 3)'")
    try world.shell(
      """
      for n in 1 2 3 4; do
        (latchkey sync ana.db --home ana > /dev/null 2>&1; echo $? > exit.$n) &
      done
      wait
      """)
    let exits = try world.shell("cat exit.*").split(separator: "\n")
    #expect(exits.allSatisfy { ["0", "12"].contains($0) }, "\(exits)")
    #expect(exits.contains("0"))
    try settle(world)
  }

  /// Both sides hold the same, nothing waits, nothing was set aside.
  private func settle(_ world: World) throws {
    for line in [
      "sync ana.db --home ana --until-settled", "sync ben.db --home ben --until-settled", "sync ana.db --home ana",
    ] {
      let data = try world.ok(line).data
      #expect((data["warnings"] as? [Any])?.isEmpty == true, "\(data)")
      #expect(data["waiting"] as? Int == 0)
      #expect(data["parked"] as? Int == 0)
    }
    let digests = try ["ana", "ben"].map { name in
      (try world.ok("counts \(name).db --home \(name)").data["zones"] as? [[String: Any]])?.first?["digest"] as? String
    }
    #expect(digests[0] != nil)
    #expect(digests[0] == digests[1])
  }
}
