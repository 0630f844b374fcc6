import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

/// Courses of events that once ended badly on paper: each is played through, in every order of hearing that matters.
@Suite("Traces")
struct TraceTests {
  private static let day: Int64 = 86_400_000

  /// Plays groups to newcomers in several orders, and checks that each shows what `like` shows.
  private func newcomers(_ schema: String, _ logs: [[IncomingGroup]], like: Device, _ sql: [String]) throws {
    let orders = [logs.flatMap { $0 }, logs.reversed().flatMap { $0 }, logs.flatMap { $0 }.reversed()]
    for (index, order) in orders.enumerated() {
      let newcomer = try Device(UInt64(20 + index), schema, at: like.now + 10)
      for group in order { try newcomer.apply([group]) }
      #expect(newcomer.replica.digest == like.replica.digest)
      for query in sql { #expect(try newcomer.rows(query) == like.rows(query), "order \(index): \(query)") }
    }
  }

  @Test("trace: half a row never comes back: an edit of a deleted row shows nothing, and its re-insert shows whole")
  func halfARow() throws {
    let schema = "CREATE TABLE t(k TEXT PRIMARY KEY, x NOT NULL, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES ('r', 'x0', 'y0')")
    try settle(a, b)
    try a.app("DELETE FROM t")
    b.now = a.now + 500
    try b.app("UPDATE t SET x = 'of b, later than the delete'")
    // Somebody who hears only of the edit has half a row, and shows none.
    try b.stamp()
    let late = try Device(9, schema, at: b.now)
    try late.apply(b.log)
    #expect(try late.rows("SELECT * FROM t").isEmpty)
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT * FROM t").isEmpty) }
    try newcomers(schema, [a.log, b.log], like: a, ["SELECT * FROM t"])
    a.now = b.now + 500
    try a.app("INSERT INTO t VALUES ('r', 'x1', 'y1')")
    b.now = a.now + 500
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT * FROM t") == ["r|x1|y1"]) }
    try newcomers(schema, [a.log, b.log], like: a, ["SELECT * FROM t"])
    // Inserted again with a NULL: the former value does not shine through.
    try b.app("DELETE FROM t")
    try settle(a, b)
    a.now = b.now + 500
    try a.app("INSERT INTO t(k, x) VALUES ('r', 'x2')")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT * FROM t") == ["r|x2|NULL"]) }
    try newcomers(schema, [a.log, b.log], like: a, ["SELECT * FROM t"])
  }

  @Test(
    "trace: two link rows with the same local numbers are two links, each between its own rows",
    arguments: [
      "CREATE TABLE link(entry INTEGER REFERENCES entry(id), tag INTEGER REFERENCES tag(id), PRIMARY KEY (entry, tag))",
      "CREATE TABLE link(entry INTEGER REFERENCES entry(id), tag INTEGER REFERENCES tag(id), PRIMARY KEY (entry, tag)) WITHOUT ROWID",
      "CREATE TABLE link(id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id), tag INTEGER NOT NULL REFERENCES tag(id), UNIQUE (entry, tag))",
    ])
  func links(_ link: String) throws {
    let schema = "CREATE TABLE entry(id INTEGER PRIMARY KEY, x); CREATE TABLE tag(id INTEGER PRIMARY KEY, y); \(link);"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(
      "INSERT INTO entry VALUES (1, 'ea'); INSERT INTO tag VALUES (1, 'ta'); INSERT INTO link(entry, tag) VALUES (1, 1)"
    )
    try b.app(
      "INSERT INTO entry VALUES (1, 'eb'); INSERT INTO tag VALUES (1, 'tb'); INSERT INTO link(entry, tag) VALUES (1, 1)"
    )
    try settle(a, b)
    let links = "SELECT x, y FROM link l JOIN entry e ON e.id = l.entry JOIN tag t ON t.id = l.tag ORDER BY 1, 2"
    for device in [a, b] {
      #expect(try device.rows(links) == ["ea|ta", "eb|tb"])
      #expect(try device.replica.parkedRows().isEmpty)
    }
    try newcomers(schema, [a.log, b.log], like: a, [links])
    // The same two rows linked on both sides.
    for device in [a, b] {
      try device.app(
        "INSERT INTO link(entry, tag) SELECT e.id, t.id FROM entry e, tag t WHERE e.x = 'ea' AND t.y = 'tb'")
    }
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows(links) == ["ea|ta", "ea|tb", "eb|tb"]) }
    try a.app("DELETE FROM link WHERE entry = (SELECT id FROM entry WHERE x = 'eb')")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows(links) == ["ea|ta", "ea|tb"]) }
  }

  @Test(
    "trace: a migration on Monday and one on Wednesday overwrite nothing that was typed on Tuesday",
    arguments: [false, true])
  func migrations(rebuilds: Bool) throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, cents INTEGER)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    let c = try Device(3, schema)
    try a.app("INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30)")
    try settle(a, b, c)
    func migrate(_ device: Device) throws {
      if rebuilds {
        try device.app(
          "CREATE TABLE n(id INTEGER PRIMARY KEY, name TEXT, cents INTEGER, grade TEXT NOT NULL DEFAULT ''); INSERT INTO n SELECT id, name, cents, 'migrated' FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t"
        )
      } else {
        try device.app("ALTER TABLE t ADD COLUMN grade TEXT NOT NULL DEFAULT ''; UPDATE t SET grade = 'migrated'")
      }
    }
    // Monday: a is upgraded, while b has an edit that nobody has heard of.
    try b.app("UPDATE t SET name = 'zwei' WHERE id = 2")
    a.now += Self.day
    c.now = a.now + 1_000
    try migrate(a)
    try settle(a, c)
    // Tuesday: typed on a.
    a.now += Self.day
    c.now = a.now + 1_000
    try a.app("UPDATE t SET grade = 'typed' WHERE id = 1; UPDATE t SET cents = 31 WHERE id = 3")
    try settle(a, c)
    // Wednesday: b is upgraded before it hears of anything, c after.
    b.now = a.now + Self.day
    c.now = b.now
    a.now = b.now
    try migrate(b)
    try settle(a, b, c)
    try migrate(c)
    try settle(a, b, c)
    for device in [a, b, c] {
      #expect(
        try device.rows("SELECT id, name, cents, grade FROM t ORDER BY id") == [
          "1|one|10|typed", "2|zwei|20|migrated", "3|three|31|migrated",
        ], "device \(device.number)")
    }
  }

  @Test(
    "trace: a backup with an old edit that nobody had stamped does not undo what was typed since",
    arguments: [false, true])
  func restoredBackup(wasSynced: Bool) throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, 'x0', 'y0'), (2, 'p0', 'q0')")
    try settle(a, b)
    // Monday's edit lies unstamped in the backup.
    try a.app("UPDATE t SET x = 'monday' WHERE id = 1; UPDATE t SET y = 'monday too' WHERE id = 2")
    let backup = try a.database.serialized()
    if wasSynced { try settle(a, b) }
    a.now += Self.day
    b.now = a.now
    try b.app("UPDATE t SET x = 'tuesday' WHERE id = 1")
    if wasSynced { try settle(a, b) } else { try b.stamp() }
    // Wednesday: the backup is put back, and goes on as another incarnation.
    let restored = try Device(1, image: backup, log: [], applied: [:], at: b.now + Self.day)
    let binding = Device.binding(4)
    try restored.replica.transaction { try restored.replica.rebind(to: binding) }
    let device = try Device(
      4, image: restored.database.serialized(), log: [], applied: [:], at: b.now + Self.day)
    b.now = device.now
    if wasSynced { try device.pull(a) }
    try device.pull(b)
    try settle(wasSynced ? [a, b, device] : [b, device])
    for device in [b, device] {
      #expect(try device.rows("SELECT x, y FROM t ORDER BY id") == ["tuesday|y0", "p0|monday too"])
    }
  }

  @Test("trace: a cascade while rows are applied is nobody's edit, and an edit afterwards says only what was edited")
  func cascadeThenEdit() throws {
    let schema = """
      CREATE TABLE parent(k TEXT PRIMARY KEY, x);
      CREATE TABLE guest(id INTEGER PRIMARY KEY, host TEXT REFERENCES parent(k) ON DELETE SET NULL, x);
      CREATE TABLE child(id INTEGER PRIMARY KEY, parent TEXT NOT NULL REFERENCES parent(k) ON DELETE CASCADE, x);
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    // This app enforces its keys on the very connection through which rows are applied.
    try b.database.execute("PRAGMA foreign_keys = ON")
    try a.app(
      "INSERT INTO parent VALUES ('p', 1), ('q', 2); INSERT INTO guest VALUES (1, 'p', 'g'); INSERT INTO child VALUES (1, 'p', 'c')"
    )
    try settle(a, b)
    try a.app("DELETE FROM parent WHERE k = 'p'")
    try a.stamp()
    try b.pull(a)
    #expect(try b.rows("SELECT host, x FROM guest") == ["NULL|g"])
    #expect(try b.rows("SELECT * FROM child").isEmpty)
    let sent = b.log.count
    try b.stamp()
    #expect(b.log.count == sent, "the cascade is not captured")
    #expect(try b.row("PRAGMA foreign_keys") == "1", "the app's setting is its own")
    try b.app("UPDATE guest SET x = 'edited'")
    try b.stamp()
    #expect(try b.changes(from: sent) == ["update guest x"])
    try settle(a, b)
    // The parent comes back, and with it what hung on it: the edit included, the NULL not.
    b.now = max(a.now, b.now) + 10
    a.now = b.now
    try b.app("INSERT INTO parent VALUES ('p', 'back')")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT host, x FROM guest") == ["p|edited"])
      #expect(try device.rows("SELECT parent, x FROM child") == ["p|c"])
    }
    try newcomers(schema, [a.log, b.log], like: a, ["SELECT host, x FROM guest", "SELECT parent, x FROM child"])
  }
}
