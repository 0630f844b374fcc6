import Foundation
import Testing

/// What happens when processes meet on one file.
@Suite struct MeetingTests {
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
