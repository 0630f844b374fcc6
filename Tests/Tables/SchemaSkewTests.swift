import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let base = "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT);"

/// Devices whose apps are of different versions, each migrating on its own day.
@Suite("The schema differs between devices")
struct SchemaSkewTests {
  private func devices(
    _ count: UInt64, _ script: String = base, _ rows: String = "INSERT INTO t VALUES (1, 'a1', 'b1')"
  )
    throws -> [Device]
  {
    let all = try (1...count).map { try Device($0, script) }
    try all[0].app(rows)
    try settle(all)
    return all
  }

  /// Joins devices that made their tables from the zone's description.
  private func joined(_ count: UInt64, _ rows: String = "INSERT INTO t VALUES (1, 'a1', 'b1')") throws -> [Device] {
    let first = try Device(1, base)
    try first.app(rows)
    let others = try (2...count).map { try Device(joining: $0) }
    try settle([first] + others)
    return [first] + others
  }

  /// A sync with nothing to do writes nothing.
  private func expectQuiet(_ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let before = devices.map(\.log.count)
    try settle(devices, sourceLocation: sourceLocation)
    for device in devices { try device.apply([]) }
    #expect(devices.map(\.log.count) == before, "something was written again", sourceLocation: sourceLocation)
  }

  @Test(
    "case 31b: a renamed column keeps its name on the wire: nothing is written, and edits go on",
    arguments: [false, true])
  func rename(joins: Bool) throws {
    let all = try joins ? joined(2) : devices(2)
    let (a, b) = (all[0], all[1])
    try a.app("ALTER TABLE t RENAME COLUMN b TO bb")
    try settle(all)
    try expectQuiet(all)
    try a.app("UPDATE t SET bb = 'by a'")
    try settle(all)
    #expect(try b.row("SELECT b FROM t") == "by a")
    try b.app("UPDATE t SET b = 'by b'; INSERT INTO t VALUES (2, 'a2', 'b2')")
    try settle(all)
    #expect(try a.rows("SELECT a, bb FROM t ORDER BY id") == ["a1|by b", "a2|b2"])
    try b.app("ALTER TABLE t RENAME COLUMN b TO bb; UPDATE t SET bb = 'again' WHERE id = 1")
    try settle(all)
    try expectQuiet(all)
    for device in all { #expect(try device.rows("SELECT a, bb FROM t ORDER BY id") == ["a1|again", "a2|b2"]) }
  }

  @Test("an edit made before a renamed column was first seen is as new as it is")
  func editInPassOfRename() throws {
    let all = try devices(2)
    let (a, b) = (all[0], all[1])
    a.now += 10_000
    try a.app("ALTER TABLE t RENAME COLUMN b TO bb; UPDATE t SET bb = 'edited'")
    try b.app("ALTER TABLE t RENAME COLUMN b TO bb")
    try settle(all)
    for device in all { #expect(try device.row("SELECT bb FROM t") == "edited") }
  }

  @Test("renames in a circle, and a new column under a former name, are told apart")
  func renames() throws {
    let all = try devices(2)
    let migration =
      "ALTER TABLE t RENAME COLUMN a TO x; ALTER TABLE t RENAME COLUMN b TO a; ALTER TABLE t RENAME COLUMN x TO b; ALTER TABLE t RENAME COLUMN a TO c; ALTER TABLE t ADD COLUMN a TEXT"
    try all[0].app(migration + "; UPDATE t SET a = 'new', b = 'was a', c = 'was b'")
    try settle(all)
    #expect(try all[1].row("SELECT a, b FROM t") == "was a|was b")
    try expectQuiet(all)
    try all[1].app(migration)
    try settle(all)
    for device in all { #expect(try device.row("SELECT a, b, c FROM t") == "new|was a|was b") }
    try expectQuiet(all)
  }

  @Test("a dropped column's name given to another is the other's")
  func dropAndRename() throws {
    let all = try devices(2, base + "ALTER TABLE t ADD COLUMN c TEXT;", "INSERT INTO t VALUES (1, 'a1', 'b1', 'c1')")
    try all[0].app("ALTER TABLE t DROP COLUMN b; ALTER TABLE t RENAME COLUMN c TO b; UPDATE t SET b = 'c2'")
    try settle(all)
    #expect(try all[1].row("SELECT a, b, c FROM t") == "a1|b1|c2")
    try expectQuiet(all)
  }

  @Test("rules follow the column that they are about")
  func rules() throws {
    let script = "CREATE TABLE p(id INTEGER PRIMARY KEY, x); CREATE TABLE c(id INTEGER PRIMARY KEY, p INTEGER, mine);"
    let rules = Rules(tables: [
      "c": TableRules(references: ["p": ReferenceRule(table: "p", onDelete: .null)], localColumns: ["mine"])
    ])
    let a = try Device(1, script, rules: rules)
    let b = try Device(joining: 2)
    try a.app("INSERT INTO p VALUES (5, 'five'); INSERT INTO c VALUES (1, 5, 'only a')")
    try settle(a, b)
    try b.app(
      "ALTER TABLE c RENAME COLUMN p TO parent; ALTER TABLE c RENAME COLUMN mine TO own; ALTER TABLE p RENAME TO parents"
    )
    try b.app("INSERT INTO parents VALUES (6, 'six'); INSERT INTO c(id, parent, own) VALUES (2, 6, 'only b')")
    try settle(a, b)
    #expect(try a.rows("SELECT p.x, c.mine FROM c JOIN p ON p.id = c.p ORDER BY c.id") == ["five|only a", "six|NULL"])
    #expect(
      try b.rows("SELECT p.x, c.own FROM c JOIN parents p ON p.id = c.parent ORDER BY c.id") == [
        "five|NULL", "six|only b",
      ])
    try a.app("UPDATE c SET p = 6 WHERE id = 1")
    try settle(a, b)
    #expect(try b.row("SELECT p.x FROM c JOIN parents p ON p.id = c.parent WHERE c.id = 1") == "six")
    try expectQuiet([a, b])
  }

  @Test(
    "a column dropped on one device: its values stay elsewhere, and both hold the same records",
    arguments: [false, true])
  func drop(joins: Bool) throws {
    let all = try joins ? joined(3) : devices(3)
    let (a, b) = (all[0], all[1])
    // An edit that nobody has stamped when the column goes.
    try a.app("UPDATE t SET a = 'a2'; ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN q INT DEFAULT 5")
    try settle(all)
    try expectQuiet(all)
    #expect(try b.row("SELECT a, b FROM t") == "a2|b1")
    try b.app("UPDATE t SET b = 'b2', a = 'a3'; INSERT INTO t VALUES (2, 'x', 'y')")
    try a.app("INSERT INTO t(id, a) VALUES (3, 'z')")
    try settle(all)
    #expect(try b.rows("SELECT a, b FROM t ORDER BY id") == ["a3|b2", "x|y", "z|NULL"])
    // It comes back: what arrived meanwhile is shown, and nothing is overwritten.
    try a.app("ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'none'")
    try settle(all)
    try expectQuiet(all)
    #expect(try a.rows("SELECT a, b FROM t ORDER BY id") == ["a3|b2", "x|y", "z|none"])
    #expect(try b.rows("SELECT a, b FROM t ORDER BY id") == ["a3|b2", "x|y", "z|NULL"])
  }

  @Test("a column that was away shows the schema's default where its value is no more, and that is nobody's edit")
  func dropAndAddAgain() throws {
    let all = try devices(2)
    let (a, b) = (all[0], all[1])
    try a.app("ALTER TABLE t DROP COLUMN b")
    try settle(all)
    try a.app("ALTER TABLE t ADD COLUMN b TEXT")
    try settle(all)
    #expect(try a.row("SELECT b FROM t") == "NULL")
    #expect(try b.row("SELECT b FROM t") == "b1")
    try expectQuiet(all)
    try a.app("UPDATE t SET a = 'other'")
    try settle(all)
    #expect(try b.row("SELECT a, b FROM t") == "other|b1")
    // Given back by the app as it was, it is the value that it was.
    try a.app("ALTER TABLE t DROP COLUMN b")
    try settle(all)
    try a.app("ALTER TABLE t ADD COLUMN b TEXT; UPDATE t SET b = 'b1'")
    try settle(all)
    #expect(
      try a.replica.explain(table: "t", key: [.integer(1)])?.fields.first { $0.column == "b" }?.value == .text("b1"))
    try b.app("UPDATE t SET b = 'b3'")
    try settle(all)
    #expect(try a.row("SELECT b FROM t") == "b3")
  }

  @Test("a value that was lost with its column comes back with whoever publishes it again")
  func recovered() throws {
    let all = try devices(2)
    let (a, b) = (all[0], all[1])
    try a.app("ALTER TABLE t DROP COLUMN b")
    try settle(all)
    try a.app("ALTER TABLE t ADD COLUMN b TEXT")
    try settle(all)
    _ = try b.replica.transaction { try b.replica.carryAll(now: b.now) { b.seal($0) } }
    try a.pull(b)
    #expect(try a.row("SELECT b FROM t") == "b1")
    try settle(all)
    try expectQuiet(all)
  }

  @Test("a long history of changes on three devices ends, and ends equal", arguments: [false, true])
  func history(joins: Bool) throws {
    let all = try joins ? joined(3) : devices(3)
    try all[0].app("ALTER TABLE t ADD COLUMN n INT DEFAULT 5; UPDATE t SET n = 9")
    try settle(all)
    for device in all[1...] { try device.app("ALTER TABLE t ADD COLUMN n INT DEFAULT 5") }
    try settle(all)
    try all[1].app(
      "CREATE TABLE t2(id INTEGER PRIMARY KEY, a TEXT NOT NULL DEFAULT '', b TEXT, n INT DEFAULT 5); INSERT INTO t2 SELECT * FROM t; DROP TABLE t; ALTER TABLE t2 RENAME TO t; UPDATE t SET b = 'rebuilt'"
    )
    try settle(all)
    try all[2].app(
      "CREATE TABLE t2(id INTEGER PRIMARY KEY, a TEXT, b TEXT, n INT DEFAULT 5); INSERT INTO t2 SELECT id, a, upper(b), n FROM t; DROP TABLE t; ALTER TABLE t2 RENAME TO t"
    )
    try settle(all)
    for device in all { try device.app("ALTER TABLE t DROP COLUMN n") }
    try settle(all)
    for device in all { try device.app("ALTER TABLE t RENAME COLUMN b TO bb") }
    try settle(all)
    for device in all { try device.app("ALTER TABLE t RENAME TO tt") }
    try all[1].app("UPDATE tt SET bb = 'end'")
    try settle(all)
    for device in all { try device.app("CREATE TABLE fresh(id INTEGER PRIMARY KEY, q)") }
    try all[0].app("INSERT INTO fresh(q) VALUES ('f')")
    try settle(all)
    try expectQuiet(all)
    for device in all {
      #expect(try device.row("SELECT a, bb FROM tt") == "a1|end")
      #expect(try device.row("SELECT q FROM fresh") == "f")
      #expect(try device.row("SELECT count(*) FROM sqlite_schema WHERE name = 't'") == "0")
    }
    let late = try Device(joining: 9)
    try settle(all + [late])
    #expect(try late.row("SELECT a, bb FROM tt") == "a1|end")
    try late.app("UPDATE tt SET bb = 'late'")
    try settle(all + [late])
    #expect(try all[0].row("SELECT bb FROM tt") == "late")
    try expectQuiet(all + [late])
  }

  @Test("a rebuild that renames is followed where the zone says what is called so")
  func rebuiltRename() throws {
    let all = try devices(2)
    try all[0].app("ALTER TABLE t RENAME COLUMN b TO bb")
    try settle(all)
    try all[1].app(
      "CREATE TABLE n(id INTEGER PRIMARY KEY, a TEXT, bb TEXT); INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t; UPDATE t SET bb = 'edited'"
    )
    try settle(all)
    for device in all { #expect(try device.row("SELECT a, bb FROM t") == "a1|edited") }
    try expectQuiet(all)
  }

  @Test("the app's version is its own once the file has tables: no migration is skipped, and none is done twice")
  func version() throws {
    let a = try Device(1, base + "PRAGMA user_version = 1; PRAGMA application_id = 77")
    let b = try Device(joining: 2)
    try settle(a, b)
    #expect(try b.row("PRAGMA user_version") == "1" && b.row("PRAGMA application_id") == "77")
    let migration = "CREATE TABLE later(id INTEGER PRIMARY KEY, x); ALTER TABLE t ADD COLUMN c; PRAGMA user_version = 2"
    try a.app(migration + "; INSERT INTO later VALUES (1, 'x'); UPDATE t SET c = 'c'")
    try settle(a, b)
    #expect(try b.row("PRAGMA user_version") == "1")
    try b.app(migration)
    try settle(a, b)
    #expect(try b.row("SELECT x FROM later") == "x" && b.row("PRAGMA user_version") == "2")
    try expectQuiet([a, b])
  }

  @Test("a file that comes in when names have changed has the zone's names, with rows of its own or from a template")
  func newcomersAfterRenames() throws {
    let a = try Device(1, base)
    try a.app(
      "INSERT INTO t VALUES (1, 'a1', 'b1'); ALTER TABLE t RENAME TO tt; ALTER TABLE tt RENAME COLUMN b TO bb; ALTER TABLE tt ADD COLUMN b TEXT"
    )
    try a.stamp()
    let schema = "CREATE TABLE tt(id INTEGER PRIMARY KEY, a TEXT, bb TEXT, b TEXT)"
    let b = try Device(2, schema + "; INSERT INTO tt VALUES (1, 'a2', 'bb2', 'b2')")
    try b.pull(a)
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT a, bb, b FROM tt ORDER BY a") == ["a1|b1|NULL", "a2|bb2|b2"])
    }
    try expectQuiet([a, b])
    // What a template's tables are called is told by notes as well.
    let c = try Device(3, schema)
    try c.pull(b)
    try c.pull(a)
    try settle(a, b, c)
    #expect(try c.rows("SELECT a, bb, b FROM tt ORDER BY a") == ["a1|b1|NULL", "a2|bb2|b2"])
    try c.app("UPDATE tt SET bb = 'by c', b = 'too' WHERE a = 'a1'")
    try settle(a, b, c)
    #expect(try a.rows("SELECT a, bb, b FROM tt ORDER BY a") == ["a1|by c|too", "a2|bb2|b2"])
  }

  @Test("a later version's description is not replaced by an earlier one's, and newcomers get the later whole")
  func laterVersionSpeaks() throws {
    let a = try Device(1, base + "PRAGMA user_version = 1")
    let b = try Device(2, base + "PRAGMA user_version = 1")
    try settle(a, b)
    let first = "ALTER TABLE t ADD COLUMN c; PRAGMA user_version = 2"
    let second =
      "CREATE TABLE u(id INTEGER PRIMARY KEY, x); ALTER TABLE t RENAME COLUMN b TO bb; PRAGMA user_version = 3"
    try a.app(first + ";" + second)
    try a.stamp()
    // Without having heard it, and later.
    b.now += 100_000
    try b.app(first)
    try b.stamp()
    try settle(a, b)
    // Once more: the later version has heard the earlier one.
    try settle(a, b)
    try expectQuiet([a, b])
    let c = try Device(joining: 3)
    try settle(a, b, c)
    #expect(try c.row("PRAGMA user_version") == "3")
    #expect(try c.row("SELECT group_concat(name) FROM pragma_table_info('t')") == "id,a,bb,c")
    #expect(try c.row("SELECT count(*) FROM u") == "0")
    try b.app(second)
    try settle(a, b, c)
    try expectQuiet([a, b, c])
  }

  @Test("a column that is dropped and made anew between two looks is nobody's edit", arguments: ["a", "b"])
  func renewed(column: String) throws {
    let all = try devices(2)
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO t VALUES (2, 'a2', 'b2'), (3, NULL, NULL)")
    try settle(all)
    try a.app(
      "ALTER TABLE t DROP COLUMN \(column); ALTER TABLE t ADD COLUMN \(column) TEXT; UPDATE t SET \(column) = 'edited' WHERE id = 2"
    )
    try settle(all)
    try expectQuiet(all)
    #expect(try b.rows("SELECT \(column) FROM t ORDER BY id") == ["\(column)1", "\(column)2", "NULL"])
    try b.app("UPDATE t SET \(column) = 'by b' WHERE id = 1")
    try settle(all)
    #expect(try a.row("SELECT \(column) FROM t WHERE id = 1") == "by b")
  }
}
