import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Numbered cases: references and what the schema refuses")
struct ReferenceCases {
  private static let family = """
    CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent(id) ON DELETE CASCADE ON UPDATE CASCADE, x);
    CREATE TABLE guest(id INTEGER PRIMARY KEY, host INTEGER REFERENCES parent(id) ON DELETE SET NULL, x);
    """

  private func pair(_ script: String = family) throws -> (Device, Device) {
    (try Device(1, script), try Device(2, script))
  }

  @Test("case 16: a delete that cascades to a thousand children deletes them on every device, and only once")
  func cascade() throws {
    let (a, b) = try pair()
    try a.app(
      """
      PRAGMA foreign_keys = ON; INSERT INTO parent VALUES (1, 'goes'), (2, 'stays');
      INSERT INTO child SELECT value, 1, value FROM (
        WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 1000) SELECT value FROM n);
      INSERT INTO child VALUES (5000, 2, 'kept');
      """)
    try settle(a, b)
    #expect(try b.row("SELECT count(*) FROM child") == "1001")
    let before = a.log.count
    try a.app("DELETE FROM parent WHERE id = 1")
    try a.stamp()
    // A thousand rows are enough that a person is asked elsewhere.
    let held = try b.pull(a).heldDeletions
    #expect(held == 1_001)
    #expect(try b.row("SELECT count(*) FROM child") == "1001")
    b.now += 10
    _ = try b.replica.transaction {
      try b.replica.settleDeletions(by: a.origin.device, isAllowed: true, now: b.now) { b.seal($0) }
    }
    try settle(a, b)
    let changes = try a.changes(from: before)
    #expect(changes.count { $0 == "delete parent" } == 1)
    #expect(changes.count { $0.hasSuffix("child") || $0.hasPrefix("update child") } == 1_000)
    for device in [a, b] { #expect(try device.rows("SELECT x FROM child") == ["kept"]) }
    let sent = a.log.count + b.log.count
    try settle(a, b)
    #expect(a.log.count + b.log.count == sent)
    #expect(try a.replica.parkedRows().count == b.replica.parkedRows().count)
  }

  @Test(
    "case 17: a child that SQLite sets to NULL shows NULL on every device, and stays so after an edit of another field")
  func setNull() throws {
    let (a, b) = try pair()
    try a.app(
      "PRAGMA foreign_keys = ON; INSERT INTO parent VALUES (1, 'goes'); INSERT INTO guest VALUES (1, 1, 'x'), (2, NULL, 'y')"
    )
    try settle(a, b)
    try a.app("DELETE FROM parent")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT host, x FROM guest ORDER BY id") == ["NULL|x", "NULL|y"]) }
    // An edit of another field is no answer to what became of the parent.
    try b.app("UPDATE guest SET x = 'x2' WHERE id = 1")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT host, x FROM guest ORDER BY id") == ["NULL|x2", "NULL|y"]) }
  }

  @Test(
    "case 18: REPLACE of a parent deletes the children that cascade, with recursive triggers or without",
    arguments: [false, true])
  func replacedParent(recursive: Bool) throws {
    let (a, b) = try pair()
    try a.app(
      """
      PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = \(recursive ? "ON" : "OFF");
      INSERT INTO parent VALUES (1, 'one'), (2, 'two');
      INSERT INTO child VALUES (1, 1, 'of one'), (2, 2, 'of two'); INSERT INTO guest VALUES (1, 1, 'at one'), (2, 2, 'at two');
      """)
    try settle(a, b)
    try a.app("INSERT OR REPLACE INTO parent VALUES (1, 'one')")
    try settle(a, b)
    let dump = [
      "SELECT p.name, c.x FROM child c JOIN parent p ON p.id = c.parent ORDER BY 2",
      "SELECT host IS NULL, x FROM guest ORDER BY 2", "SELECT name FROM parent ORDER BY 1",
    ]
    for sql in dump { #expect(try b.rows(sql) == a.rows(sql)) }
    #expect(try b.rows(dump[0]) == ["two|of two"])
    #expect(try b.rows(dump[1]) == ["1|at one", "0|at two"])
  }

  @Test("case 35: a child that is listed before its parent is shown in the same transaction, with keys enforced")
  func childFirst() throws {
    let schema = """
      CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parent(id), x);
      CREATE TABLE parent(id INTEGER PRIMARY KEY, name TEXT);
      """
    let (a, b) = try pair(schema)
    try b.app("INSERT INTO parent VALUES (1, 'of b'); INSERT INTO child VALUES (1, 1, 'of b')")
    try a.app("INSERT INTO child VALUES (1, 7, 'of a'); INSERT INTO parent VALUES (7, 'of a')")
    try a.stamp()
    try b.stamp()
    try b.database.execute("PRAGMA foreign_keys = ON")
    try b.pull(a)
    #expect(
      try b.rows("SELECT c.x, p.name FROM child c JOIN parent p ON p.id = c.parent ORDER BY 1") == [
        "of a|of a", "of b|of b",
      ])
    #expect(try b.rows("PRAGMA foreign_key_check").isEmpty)
    #expect(try b.replica.parkedRows().isEmpty)
    try settle(a, b)
  }

  @Test("case 42b: what a STRICT table refuses waits with the reason; the rows beside it do not")
  func strict() throws {
    let a = try Device(1, "CREATE TABLE t(id INTEGER PRIMARY KEY, n, x)")
    let b = try Device(2, "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER, x) STRICT".replacing("x)", with: "x ANY)"))
    try a.app("INSERT INTO t VALUES (1, 5, 'fits'), (2, 'five', 'does not'), (3, x'05', 'nor this'), (4, NULL, 'fits')")
    try settle(a, b)
    #expect(try b.rows("SELECT id, n FROM t ORDER BY id") == ["1|5", "4|NULL"])
    let parked = try b.replica.parkedRows()
    #expect(parked.count == 2 && parked.allSatisfy { !$0.reason.isEmpty })
    try a.app("UPDATE t SET n = 6 WHERE id = 2")
    try settle(a, b)
    #expect(try b.rows("SELECT id, n FROM t ORDER BY id") == ["1|5", "2|6", "4|NULL"])
  }
}
