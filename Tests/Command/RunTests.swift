import Foundation
import Testing

@Suite("Running an app on a database")
struct RunTests {
  private func app(_ lines: String, in world: World) throws {
    try lines.write(to: world.folder.url.appendingPathComponent("app.sh"), atomically: true, encoding: .utf8)
  }

  @Test(
    "the app finds what others wrote, and what it writes is sent when it ends; with --json its output is not in the answer"
  )
  func both() throws {
    let world = try World(.joined)
    try world.shell("sqlite3 ben.db 'INSERT INTO entries VALUES (NULL, 1, 77)'")
    try world.ok("sync ben.db --home ben")
    try app("echo \"found $(sqlite3 ana.db 'SELECT count(*) FROM entries')\"; sqlite3 ana.db \"$1\"", in: world)
    let result = try Program.run(
      "latchkey run ana.db --home ana --json --no-input -- sh app.sh 'INSERT INTO entries VALUES (NULL, 2, 88)'",
      in: world.folder)
    #expect(result.exit == 0)
    #expect(result.error.contains("found 3"))
    let reply = try Reply(result)
    #expect(reply.ok && reply.data["app_exit"] as? Int == 0)
    #expect((reply.data["before"] as? [String: Any])?["received"] as? Int == 1)
    #expect((reply.data["after"] as? [String: Any])?["sent"] as? Int == 1)
    try world.ok("sync ben.db --home ben")
    #expect(try world.shell("sqlite3 ben.db 'SELECT sum(cents) FROM entries'") == "\(-1250 - 8200 + 77 + 88)\n")
    // Without --json standard output is the app's alone.
    let plain = try Program.run("latchkey run ana.db --home ana -- echo said", in: world.folder)
    #expect(plain.output == "said\n" && plain.error.contains("The app ended".lowercased()))
  }

  @Test("an app that fails ends it with 1 and its own number in the answer, and what it wrote is sent")
  func failing() throws {
    let world = try World(.joined)
    try app("sqlite3 ana.db 'INSERT INTO entries VALUES (NULL, 2, 88)'; exit 7", in: world)
    let (reply, exit) = try world.ask("run ana.db --home ana -- sh app.sh")
    #expect(exit == 1 && reply.code == "app-failed" && reply.data["app_exit"] as? Int == 7)
    #expect((reply.data["after"] as? [String: Any])?["sent"] as? Int == 1)
    let (killed, _) = try world.ask("run ana.db --home ana -- sh -c 'kill -9 $$'")
    #expect(killed.data["app_exit"] as? Int == 137)
    let (missing, code) = try world.ask("run ana.db --home ana -- ./no-such-app")
    #expect(code == 1 && missing.code == "app-not-started" && missing.data["app_exit"] is NSNull)
  }

  @Test(
    "without the store the app runs all the same, and what it wrote waits; without an attached file it does not start")
  func offline() throws {
    let world = try World(.joined)
    try world.shell("mv store away")
    let (reply, exit) = try world.ask(
      "run ana.db --home ana -- sqlite3 ana.db 'INSERT INTO entries VALUES (NULL, 2, 88)'")
    #expect(exit == 11 && reply.code == "store-missing" && reply.data["app_exit"] as? Int == 0)
    #expect(reply.data["before_code"] as? String == "store-missing")
    try world.shell("mv away store")
    #expect(try world.ok("sync ana.db --home ana").data["sent"] as? Int == 1)
    try world.shell("sqlite3 plain.db 'CREATE TABLE t(id INTEGER PRIMARY KEY)'")
    let (refused, code) = try world.ask("run plain.db --home ana -- touch started")
    #expect(code == 10 && refused.ok == false)
    #expect(try world.files()["started"] == nil)
    #expect(try world.ask("run ana.db --home ana --dry-run -- touch started").exit == 64)
    #expect(try world.ask("run ana.db --home ana").exit == 64)
  }

  @Test(
    "while the app runs nobody shows rows in the file, not even after latchkey was killed; when it ends all is received"
  )
  func turn() throws {
    let world = try World(.joined)
    try app("echo up > up; cat down > ended", in: world)
    let mid = try world.shell(
      """
      mkfifo up down
      latchkey run ana.db --home ana -- sh app.sh >/dev/null 2>&1 &
      run=$!
      cat up
      sqlite3 ben.db 'INSERT INTO entries VALUES (NULL, 1, 77)'
      latchkey sync ben.db --home ben -q
      sqlite3 ana.db 'INSERT INTO entries VALUES (NULL, 2, 88)'
      latchkey sync ana.db --home ana --json > first.json
      sqlite3 ana.db 'SELECT count(*) FROM entries'
      kill -9 $run
      latchkey sync ana.db --home ana --json > second.json
      sqlite3 ana.db 'SELECT count(*) FROM entries'
      latchkey run ana.db --home ana --json -- true > third.json || echo "refused $?"
      echo end > down
      while ! grep -q end ended; do sleep 0.05; done
      i=0; while [ $i -lt 40 ]; do
        latchkey sync ana.db --home ana --json > last.json
        grep -q app-running last.json || break
        i=$((i + 1)); sleep 0.1
      done
      latchkey sync ben.db --home ben -q
      sqlite3 ana.db 'SELECT count(*) FROM entries'; sqlite3 ben.db 'SELECT count(*) FROM entries'
      """)
    #expect(
      mid.split(separator: "\n").filter { !$0.contains("✓") } == ["up", "3", "3", "refused 12", "4", "4"], "\(mid)")
    for name in ["first.json", "second.json"] {
      let json = try String(contentsOf: world.folder.url.appendingPathComponent(name), encoding: .utf8)
      #expect(json.contains("app-running") && json.contains("\"waiting\":1"), "\(json)")
    }
  }

  @Test("rules can have rows shown only while no app has the file open, on every device of the zone")
  func whenClosed() throws {
    let world = try World(.joined)
    try world.shell("echo '{\"v\":1,\"tables\":{},\"apply_when\":\"closed\"}' > closed.json")
    try world.ok("rules set ana.db closed.json --home ana")
    try world.ok("sync ana.db --home ana")
    try world.ok("sync ben.db --home ben")
    let rules = try world.ok("rules show ben.db --home ben").data["rules"] as? [String: Any]
    #expect(rules?["apply_when"] as? String == "closed")
    try world.shell("sqlite3 ana.db 'INSERT INTO entries VALUES (NULL, 1, 77)'")
    try world.ok("sync ana.db --home ana")
    // The shell has the file open.
    let held = try world.shell(
      "exec 9<ben.db; latchkey sync ben.db --home ben --json; sqlite3 ben.db 'SELECT count(*) FROM entries'")
    #expect(held.contains("app-open") && held.hasSuffix("\n2\n"))
    try world.ok("sync ben.db --home ben")
    #expect(try world.shell("sqlite3 ben.db 'SELECT count(*) FROM entries'") == "3\n")
  }
}
