import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let base = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, cents INTEGER);"

@Suite("The app changes its schema")
struct SchemaChangeTests {
  private func pair(_ script: String = base) throws -> (Device, Device) {
    let a = try Device(1, script)
    let b = try Device(2, script)
    try a.app("INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30)")
    try settle(a, b)
    return (a, b)
  }

  @Test("case 29: a new column syncs; a device without it keeps its values and shows them once it has it")
  func addColumn() throws {
    let (a, b) = try pair()
    try a.app("ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'none'")
    try a.app("UPDATE t SET note = 'hello' WHERE id = 1")
    try settle(a, b)
    try b.app("UPDATE t SET cents = 11 WHERE id = 1")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM t ORDER BY id") == ["1|one|11|hello", "2|two|20|none", "3|three|30|none"])
    try b.app("ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'none'")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY id") == ["1|one|11|hello", "2|two|20|none", "3|three|30|none"])
  }

  @Test("what a migration writes into its new column loses to anybody's real edit")
  func migration() throws {
    let (a, b) = try pair()
    try a.app("ALTER TABLE t ADD COLUMN grade TEXT")
    try a.app("UPDATE t SET grade = 'by a, typed' WHERE id = 1")
    try a.stamp()
    try a.app("UPDATE t SET grade = 'by a, typed later' WHERE id = 1")
    try a.stamp()
    b.now = a.now + 60_000
    try b.app("ALTER TABLE t ADD COLUMN grade TEXT; UPDATE t SET grade = 'migrated ' || id")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT grade FROM t ORDER BY id") == ["by a, typed later", "migrated 2", "migrated 3"])
    }
  }

  @Test("rows that a migration fills while nobody captures are found")
  func uncapturedMigration() throws {
    let (a, b) = try pair()
    let columns = "SELECT id, name, cents, grade FROM t ORDER BY id"
    try b.app("ALTER TABLE t ADD COLUMN grade TEXT")
    try a.app("DROP TRIGGER lk_u1; ALTER TABLE t ADD COLUMN grade TEXT; UPDATE t SET grade = 'm' || id")
    try settle(a, b)
    #expect(try b.rows(columns) == ["1|one|10|m1", "2|two|20|m2", "3|three|30|m3"])
    try a.app("ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 5")
    try a.stamp()
    let sent = a.log.count
    try a.stamp()
    #expect(a.log.count == sent)
    try settle(a, b)
    #expect(try b.rows(columns) == ["1|one|10|m1", "2|two|20|m2", "3|three|30|m3"])
  }

  @Test("case 30: a column can be dropped; rows and records stay whole")
  func dropColumn() throws {
    let (a, b) = try pair()
    try a.app("ALTER TABLE t DROP COLUMN name")
    try a.app("UPDATE t SET cents = 99 WHERE id = 2")
    try a.stamp()
    try b.pull(a)
    #expect(try b.rows("SELECT * FROM t ORDER BY id") == ["1|one|10", "2|two|99", "3|three|30"])
    try b.app("ALTER TABLE t DROP COLUMN name")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY id") == ["1|10", "2|99", "3|30"])
  }

  @Test("case 31: a renamed table and a renamed key go on under their wire names")
  func rename() throws {
    let (a, b) = try pair()
    try a.app("ALTER TABLE t RENAME TO things; ALTER TABLE things RENAME COLUMN id TO thing_id")
    try a.app(
      "INSERT INTO things VALUES (4, 'four', 40); UPDATE things SET cents = 21 WHERE thing_id = 2; DELETE FROM things WHERE thing_id = 1"
    )
    try a.stamp()
    try b.pull(a)
    #expect(try b.rows("SELECT name, cents FROM t ORDER BY cents") == ["two|21", "three|30", "four|40"])
    try b.app("UPDATE t SET name = 'vier' WHERE name = 'four'")
    try b.stamp()
    try a.pull(b)
    #expect(try a.row("SELECT name FROM things WHERE cents = 40") == "vier")
  }

  @Test(
    "case 32: a rebuilt table loses its triggers: they are made again, and what changed meanwhile is found",
    arguments: [false, true])
  func rebuild(oldFirst: Bool) throws {
    let (a, b) = try pair()
    let names = try (1...3).map { try a.replica.recordName(table: "t", key: [.integer($0)]) }
    if oldFirst {
      try a.app(
        "BEGIN; ALTER TABLE t RENAME TO t_old; CREATE TABLE t(id INTEGER PRIMARY KEY, cents INTEGER NOT NULL, name TEXT); INSERT INTO t SELECT id, cents, name FROM t_old; DROP TABLE t_old; COMMIT"
      )
    } else {
      try a.app(
        "BEGIN; CREATE TABLE t_new(id INTEGER PRIMARY KEY, cents INTEGER NOT NULL, name TEXT); INSERT INTO t_new SELECT id, cents, name FROM t; DROP TABLE t; ALTER TABLE t_new RENAME TO t; COMMIT"
      )
    }
    // Nobody captures these.
    try a.app("UPDATE t SET cents = 31 WHERE id = 3; INSERT INTO t VALUES (4, 40, 'four'); DELETE FROM t WHERE id = 1")
    try settle(a, b)
    #expect(try b.rows("SELECT name, cents FROM t ORDER BY cents") == ["two|20", "three|31", "four|40"])
    #expect(try a.replica.recordName(table: "t", key: [.integer(3)]) == names[2])
    // Captured again.
    try a.app("UPDATE t SET cents = 32 WHERE id = 3")
    try settle(a, b)
    #expect(try b.row("SELECT cents FROM t WHERE name = 'three'") == "32")
  }

  @Test("a trigger dropped by hand is made again, and what it missed is found")
  func droppedTrigger() throws {
    let (a, b) = try pair()
    try a.app("DROP TRIGGER lk_u1; UPDATE t SET cents = 12 WHERE id = 1")
    try settle(a, b)
    #expect(try b.row("SELECT cents FROM t WHERE id = 1") == "12")
    try a.app("UPDATE t SET cents = 13 WHERE id = 1")
    try settle(a, b)
    #expect(try b.row("SELECT cents FROM t WHERE id = 1") == "13")
  }

  @Test(
    "case 34: a dropped table deletes nothing elsewhere; what arrives meanwhile is kept; it is compared when it comes back"
  )
  func dropTable() throws {
    let (a, b) = try pair(base + "CREATE TABLE other(id INTEGER PRIMARY KEY);")
    let copy = try a.rows("SELECT id, name, cents FROM t ORDER BY id")
    try a.app("DROP TABLE t; INSERT INTO other VALUES (1)")
    try a.stamp()
    try b.pull(a)
    #expect(try b.rows("SELECT * FROM t ORDER BY id") == copy)
    #expect(try b.row("SELECT count(*) FROM other") == "1")
    try b.app("UPDATE t SET cents = 77 WHERE id = 2; INSERT INTO t VALUES (8, 'eight', 80); DELETE FROM t WHERE id = 3")
    try b.stamp()
    try a.pull(b)
    try a.app("\(base) INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30)")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT name, cents FROM t ORDER BY cents") == ["one|10", "two|77", "eight|80"])
    }
  }

  @Test("case 34b: a table that comes back empty deletes nothing elsewhere")
  func thrownAway() throws {
    let (a, b) = try pair()
    try a.app("DROP TABLE t; \(base)")
    try a.stamp()
    try b.pull(a)
    #expect(try b.row("SELECT count(*) FROM t") == "3")
    #expect(try a.replica.parkedRows().count == 3)
    try a.app("INSERT INTO t VALUES (9, 'new', 90)")
    try a.stamp()
    try b.pull(a)
    #expect(try b.row("SELECT count(*) FROM t") == "4")
    try b.app("DELETE FROM t WHERE name = 'one'")
    try b.stamp()
    try a.pull(b)
    #expect(try a.replica.parkedRows().count == 2)
    #expect(a.replica.digest == b.replica.digest)
  }

  @Test("a new primary key maps to the same records while the former key's columns are there")
  func newKey() throws {
    let a = try Device(1, "CREATE TABLE t(uuid TEXT PRIMARY KEY, x)")
    let b = try Device(2, "CREATE TABLE t(uuid TEXT PRIMARY KEY, x)")
    try a.app("INSERT INTO t VALUES ('u1', 1), ('u2', 2)")
    try settle(a, b)
    try a.app(
      "CREATE TABLE n(id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, x); INSERT INTO n(uuid, x) SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t; UPDATE t SET x = 5 WHERE uuid = 'u2'"
    )
    try a.stamp()
    try b.pull(a)
    #expect(try b.rows("SELECT * FROM t ORDER BY uuid") == ["u1|1", "u2|5"])
    try b.app("UPDATE t SET x = 6 WHERE uuid = 'u1'")
    try b.stamp()
    try a.pull(b)
    #expect(try a.rows("SELECT uuid, x FROM t ORDER BY uuid") == ["u1|6", "u2|5"])
  }

  @Test("a table that the app adds later is attached, and fills the other device's")
  func addTable() throws {
    let (a, b) = try pair()
    let table = "CREATE TABLE later(id INTEGER PRIMARY KEY, t INTEGER REFERENCES t(id), x)"
    try a.app(table + "; INSERT INTO later VALUES (1, 2, 'x')")
    try settle(a, b)
    #expect(try b.replica.parkedRows().count == 1)
    try b.app(table)
    try settle(a, b)
    #expect(try b.rows("SELECT t.name, l.x FROM later l JOIN t ON t.id = l.t") == ["two|x"])
  }

  @Test("case 42: a CHECK that this device's schema has parks a row with its reason until the schema takes it")
  func check() throws {
    let a = try Device(1, base)
    let b = try Device(
      2, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER CHECK (cents < 100))")
    try a.app("INSERT INTO t VALUES (1, 'ok', 50), (2, 'too much', 200), (3, NULL, 1)")
    try settle(a, b)
    #expect(try b.rows("SELECT name FROM t") == ["ok"])
    #expect(try b.replica.parkedRows().map(\.reason).allSatisfy { $0.contains("constraint failed") })
    try a.app("UPDATE t SET cents = 20 WHERE id = 2")
    try settle(a, b)
    #expect(try b.rows("SELECT name FROM t ORDER BY id") == ["ok", "too much"])
    try b.app(
      "CREATE TABLE n(id INTEGER PRIMARY KEY, name TEXT, cents INTEGER); INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t"
    )
    try settle(a, b)
    #expect(try b.rows("SELECT id, name FROM t ORDER BY id") == ["1|ok", "2|too much", "3|NULL"])
  }
}
