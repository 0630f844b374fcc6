import Foundation
import Testing

@Suite("Killed at any moment")
struct KillTests {
  /// Two homes, one household; returns after both are in step.
  private static let household = """
    set -e
    mkdir store
    sqlite3 a.db "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, who TEXT);
      CREATE TABLE c(id INTEGER PRIMARY KEY, t INTEGER NOT NULL REFERENCES t(id), v TEXT); INSERT INTO t VALUES (1, 0, 'seed')"
    latchkey --home a -q init --name Ana --device one --store folder:$PWD/store
    latchkey --home a -q attach a.db
    latchkey --home a -q sync a.db
    latchkey --home a -q share a.db --household Home
    latchkey --home a -q invite --household Home --out link
    latchkey --home b -q --yes join --db b.db --invite-file link --name Ben --device two
    latchkey --home a -q sync a.db
    """

  @Test(
    "case 20c: a sync that is killed at any moment loses nothing that was committed, needs no unlock, and both sides end alike"
  )
  func sync() throws {
    let folder = try Folder()
    let made = try Program.run(Self.household, in: folder)
    #expect(made.exit == 0, "\(made.error)")
    // Both write and sync at once; each sync is killed after 1 to 60 ms, from before its first byte to after its last.
    let loop = """
      i=0
      while [ $i -lt 40 ]; do
        i=$((i + 1))
        sqlite3 a.db "PRAGMA busy_timeout=9000; INSERT INTO t(n, who) VALUES ($i, 'a'); INSERT INTO c(t, v) SELECT max(id), 'a$i' FROM t" >/dev/null || echo LOST
        sqlite3 b.db "PRAGMA busy_timeout=9000; INSERT INTO t(n, who) VALUES ($i, 'b'); UPDATE t SET n = n + 1 WHERE id = 1" >/dev/null || echo LOST
        ms=$(printf '0.%03d' $(( (i * 37) % 60 + 1 )))
        timeout -s KILL $ms latchkey --home a -q sync a.db >/dev/null 2>&1 &
        timeout -s KILL $ms latchkey --home b -q sync b.db >/dev/null 2>&1
        wait
      done
      for round in 1 2 3; do
        latchkey --home a sync a.db --until-settled || exit 1
        latchkey --home b sync b.db --until-settled || exit 1
      done
      latchkey --home a --json sync a.db >last-a.json
      latchkey --home b --json sync b.db >last-b.json
      for db in a.db b.db; do
        sqlite3 $db "SELECT count(*), sum(who = 'a'), sum(who = 'b') FROM t; SELECT count(*) FROM c JOIN t ON t.id = c.t; PRAGMA integrity_check; PRAGMA foreign_key_check"
      done
      """
    let result = try Program.run(loop, in: folder)
    #expect(result.exit == 0, "\(result.error)")
    let rows = result.output.split(separator: "\n").filter { !$0.hasPrefix("✓") && !$0.hasPrefix("!") }
    #expect(rows == ["81|40|40", "40", "ok", "81|40|40", "40", "ok"].map { Substring($0) }, "\(result.output)")
    for name in ["last-a.json", "last-b.json"] {
      let json = try String(contentsOf: folder.url.appendingPathComponent(name), encoding: .utf8)
      #expect(
        json.contains("\"put\":0") && json.contains("\"delete\":0") && json.contains("\"warnings\":[]"), "\(json)")
    }
    let digests = try Program.run(
      "latchkey --home a --json counts a.db >a.json && latchkey --home b counts b.db --compare a.json", in: folder)
    #expect(digests.exit == 0, "\(digests.output)")
  }
}
