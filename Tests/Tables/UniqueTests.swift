import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Unique keys")
struct UniqueTests {
  /// Two devices that inserted rows with the same unique value, the second a second later; exchanged in both orders.
  private func collide(_ schema: String, _ first: String, _ second: String, _ check: (Device) throws -> Void) throws {
    for order in [false, true] {
      let a = try Device(1, schema)
      let b = try Device(2, schema)
      try a.app(first)
      b.now = a.now + 1_000
      try b.app(second)
      try a.stamp()
      try b.stamp()
      if order { try b.pull(a) } else { try a.pull(b) }
      try settle(a, b)
      for device in [a, b] { try check(device) }
      let newcomer = try Device(3, schema, at: b.now)
      try newcomer.apply(order ? a.log + b.log : b.log + a.log)
      #expect(newcomer.replica.digest == a.replica.digest)
      try check(newcomer)
    }
  }

  @Test("a row that stood aside and is written again over the one that kept it out stands aside no more")
  func replaced() throws {
    let schema = "CREATE TABLE t(k TEXT PRIMARY KEY, v, x INTEGER UNIQUE) WITHOUT ROWID"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES ('d', 'first', 0)")
    try a.stamp()
    b.now = a.now + 1_000
    try b.app("INSERT OR REPLACE INTO t VALUES ('d', 'of b', 3)")
    try b.stamp()
    a.now = b.now + 1_000
    try a.app("INSERT OR REPLACE INTO t VALUES ('a', 'stands aside', 3)")
    try a.stamp()
    try a.pull(b)
    #expect(try a.row("SELECT k, v FROM t") == "d|of b")
    a.now += 1_000
    try a.app("INSERT OR REPLACE INTO t VALUES ('a', 'again', 3)")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.row("SELECT k, v, x FROM t") == "a|again|3")
      #expect(try device.replica.counts()[0].parked == 0)
    }
  }

  @Test("case 40b: the older row shows on every device, the other is kept and listed, whatever arrives first")
  func older() throws {
    try collide(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, x)", "INSERT INTO t VALUES (1, 'same', 'older')",
      "INSERT INTO t VALUES (1, 'same', 'younger')"
    ) { (device: Device) throws -> Void in
      #expect(try device.rows("SELECT x FROM t") == ["older"])
      #expect(try device.replica.parkedRows().map(\.reason).allSatisfy { $0.contains("same unique value") })
      #expect(try device.replica.parkedRows().count == 1)
      #expect(try device.replica.counts()[0].live == 2)
    }
  }

  @Test(
    "collations, composite keys, partial and expression indexes",
    arguments: [
      "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE, n INTEGER, x)",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INTEGER, x, UNIQUE (name COLLATE NOCASE, n))",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INTEGER, x); CREATE UNIQUE INDEX u ON t(name COLLATE NOCASE) WHERE n > 0",
      "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INTEGER, x); CREATE UNIQUE INDEX u ON t(lower(name), n + 1)",
    ])
  func kinds(_ schema: String) throws {
    try collide(
      schema, "INSERT INTO t VALUES (1, 'Same', 7, 'older'), (2, 'other', 7, 'o')",
      "INSERT INTO t VALUES (1, 'sAME', 7, 'younger'), (5, 'third', 8, 't')"
    ) { (device: Device) throws -> Void in
      #expect(try device.rows("SELECT x FROM t ORDER BY x") == ["o", "older", "t"])
      #expect(try device.replica.parkedRows().map(\.reason).allSatisfy { $0.contains("same unique value") })
    }
  }

  @Test("the hidden row appears once the other is deleted or renamed")
  func freed() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, x)"
    for statement in ["DELETE FROM t WHERE x = 'older'", "UPDATE t SET name = 'else' WHERE x = 'older'"] {
      let a = try Device(1, schema)
      let b = try Device(2, schema)
      try a.app("INSERT INTO t VALUES (1, 'same', 'older')")
      b.now = a.now + 1_000
      try b.app("INSERT INTO t VALUES (1, 'same', 'younger')")
      try settle(a, b)
      a.now = b.now
      try a.app(statement)
      try a.stamp()
      #expect(try a.row("SELECT x FROM t WHERE name = 'same'") == "younger", "also on the device that made room")
      try settle(a, b)
      #expect(try b.row("SELECT x FROM t WHERE name = 'same'") == "younger")
    }
  }

  @Test("case 41: swapped unique values arrive")
  func swap() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, place INTEGER UNIQUE NOT NULL, x)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c'), (4, 40, 'd')")
    try settle(a, b)
    try a.app(
      "UPDATE t SET place = -id; UPDATE t SET place = 20 WHERE id = 1; UPDATE t SET place = 30 WHERE id = 2; UPDATE t SET place = 10 WHERE id = 3; UPDATE t SET place = 40 WHERE id = 4"
    )
    try settle(a, b)
    #expect(try b.rows("SELECT x FROM t ORDER BY place") == ["c", "a", "b", "d"])
    #expect(try b.replica.parkedRows().isEmpty)
  }

  @Test("case 10b: keys of text swapped on another device arrive, and what refers to them follows")
  func swapKeys() throws {
    let schema =
      "CREATE TABLE t(k TEXT PRIMARY KEY, x); CREATE TABLE c(id INTEGER PRIMARY KEY, t TEXT REFERENCES t(k), x)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES ('p', 1), ('q', 2); INSERT INTO c VALUES (1, 'p', 'of 1'), (2, 'q', 'of 2')")
    try settle(a, b)
    try b.app(
      "UPDATE t SET k = 'z' WHERE k = 'p'; UPDATE t SET k = 'p' WHERE k = 'q'; UPDATE t SET k = 'q' WHERE k = 'z'; UPDATE c SET t = CASE t WHEN 'p' THEN 'q' ELSE 'p' END"
    )
    try settle(a, b)
    for device in [a, b] {
      #expect(
        try device.rows("SELECT t.k, t.x, c.x FROM t JOIN c ON c.t = t.k ORDER BY t.x") == ["q|1|of 1", "p|2|of 2"])
    }
  }

  @Test("children of a row that gives way wait for it, and come back with it")
  func children() throws {
    let schema = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
      CREATE TABLE c(id INTEGER PRIMARY KEY, t INTEGER NOT NULL REFERENCES t(id), o INTEGER REFERENCES t(id), x);
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, 'same')")
    b.now = a.now + 1_000
    try b.app(
      "INSERT INTO t VALUES (1, 'same'), (2, 'fine'); INSERT INTO c VALUES (1, 1, 2, 'required'), (2, 2, 1, 'optional')"
    )
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT x, o FROM c") == ["optional|NULL"])
      #expect(try device.replica.parkedRows().count == 2)
    }
    a.now = b.now + 1_000
    try a.app("DELETE FROM t WHERE name = 'same'")
    try settle(a, b)
    for device in [a, b] {
      #expect(
        try device.rows(
          "SELECT c.x FROM c JOIN t ON t.id = c.t AND t.name = 'same' OR t.id = c.o AND t.name = 'same' ORDER BY 1")
          == ["optional", "required"])
      #expect(try device.replica.parkedRows().isEmpty)
    }
  }
}
