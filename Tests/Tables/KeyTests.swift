import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Keys of every kind")
struct KeyTests {
  private func exchange(_ schema: String, _ statements: String..., table: String = "t") throws -> (Device, Device) {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    for statement in statements {
      try a.app(statement)
      try settle(a, b)
      #expect(try a.rows("SELECT * FROM \(table) ORDER BY 1, 2") == b.rows("SELECT * FROM \(table) ORDER BY 1, 2"))
    }
    return (a, b)
  }

  @Test("text keys: insert, update, move, delete; both insert the same key and it is one record")
  func text() throws {
    let (a, b) = try exchange(
      "CREATE TABLE t(guid TEXT PRIMARY KEY NOT NULL, x)", "INSERT INTO t VALUES ('a', 1), ('b', 2)",
      "UPDATE t SET x = 3 WHERE guid = 'a'",
      "UPDATE t SET guid = 'c' WHERE guid = 'a'", "DELETE FROM t WHERE guid = 'b'")
    try a.app("INSERT INTO t VALUES ('same', 'of a')")
    b.now = a.now + 10
    try b.app("INSERT INTO t VALUES ('same', 'of b')")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM t WHERE guid = 'same'") == ["same|of b"])
    #expect(try b.rows("SELECT * FROM t WHERE guid = 'same'") == ["same|of b"])
  }

  @Test("case 10c: a moved key frees its name: the old key inserted again is another row on both")
  func movedThenReused() throws {
    let (a, b) = try exchange(
      "CREATE TABLE t(k TEXT PRIMARY KEY NOT NULL, x)", "INSERT INTO t VALUES ('a', 1)", "UPDATE t SET k = 'b'",
      "INSERT INTO t VALUES ('a', 2)")
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["a|2", "b|1"])
    #expect(try a.replica.counts()[0].live == 2)
  }

  @Test("case 9b: a deleted key inserted again comes back under its name")
  func reborn() throws {
    let (a, b) = try exchange("CREATE TABLE t(k TEXT PRIMARY KEY NOT NULL, x, y)", "INSERT INTO t VALUES ('a', 1, 1)")
    let name = try a.replica.recordName(table: "t", key: [SQLiteValue("a")])
    try a.app("DELETE FROM t")
    try settle(a, b)
    try a.app("INSERT INTO t VALUES ('a', 5, 5)")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t") == ["a|5|5"])
    #expect(try b.replica.recordName(table: "t", key: [SQLiteValue("a")]) == name)
  }

  @Test("case 13: composite, WITHOUT ROWID, NOCASE and RTRIM keys")
  func composite() throws {
    _ = try exchange(
      "CREATE TABLE t(year INTEGER, month TEXT COLLATE NOCASE, x, PRIMARY KEY (year, month))",
      "INSERT INTO t VALUES (2026, 'Jan', 1), (2026, 'Feb', 2)",
      "UPDATE t SET month = 'JAN', x = 9 WHERE month = 'jan'", "UPDATE t SET year = 2027 WHERE month = 'feb'",
      "DELETE FROM t WHERE year = 2027")
    let (a, b) = try exchange(
      "CREATE TABLE t(k TEXT COLLATE NOCASE, r TEXT COLLATE RTRIM, x, PRIMARY KEY (k, r)) WITHOUT ROWID",
      "INSERT INTO t VALUES ('ABC', 'x  ', 1)")
    b.now = a.now
    try b.app("INSERT OR REPLACE INTO t VALUES ('abc', 'x', 2)")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM t") == ["abc|x|2"])
    try b.app("UPDATE t SET k = 'aBc'")
    try settle(a, b)
    #expect(try a.rows("SELECT k FROM t") == ["aBc"])
    #expect(try a.replica.counts()[0].live == 1)
  }

  @Test("case 14: 1, '1' and x'31' are three keys; 1 and 1.0 are one")
  func types() throws {
    let (a, b) = try exchange(
      "CREATE TABLE t(k PRIMARY KEY, x)", "INSERT INTO t VALUES (1, 'i'), ('1', 't'), (x'31', 'b')")
    #expect(try b.rows("SELECT typeof(k), x FROM t ORDER BY x") == ["blob|b", "integer|i", "text|t"])
    try b.app("UPDATE t SET k = 1.0 WHERE k = 1")
    try settle(a, b)
    #expect(try a.rows("SELECT typeof(k), x FROM t ORDER BY x") == ["blob|b", "real|i", "text|t"])
    #expect(try a.replica.counts()[0].live == 3)
  }

  @Test("case 12: a NULL key passes, is counted, and stays on its device")
  func nullKey() throws {
    let a = try Device(1, "CREATE TABLE t(k TEXT PRIMARY KEY, x)")
    let b = try Device(2, "CREATE TABLE t(k TEXT PRIMARY KEY, x)")
    try a.app("INSERT INTO t VALUES (NULL, 1), ('k', 2), (NULL, 3)")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t") == ["k|2"])
    #expect(try a.replica.survey().rowsWithoutKey == ["t": 2])
    try a.app("UPDATE t SET k = 'now' WHERE x = 1")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["k|2", "now|1"])
    try a.app("UPDATE t SET k = NULL WHERE k = 'k'")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["k|2", "now|1"])
    #expect(try a.row("SELECT count(*) FROM t") == "3")
  }

  @Test("keys with NUL and bytes that are not UTF-8")
  func oddBytes() throws {
    let (_, b) = try exchange(
      "CREATE TABLE t(k TEXT PRIMARY KEY, x)",
      "INSERT INTO t VALUES (CAST(x'610062' AS TEXT), 1), (CAST(x'ff61' AS TEXT), 2)",
      "UPDATE t SET x = x + 10")
    #expect(try b.rows("SELECT hex(k), typeof(k), x FROM t ORDER BY x") == ["610062|text|11", "FF61|text|12"])
  }

  @Test("a key made of references is the same record on both devices, whatever their integer keys")
  func referencesInKey() throws {
    let schema = """
      CREATE TABLE entry(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE tag(name TEXT PRIMARY KEY);
      CREATE TABLE t(entry INTEGER REFERENCES entry(id), tag TEXT REFERENCES tag(name), x, PRIMARY KEY (entry, tag));
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try b.app("INSERT INTO entry VALUES (1, 'of b')")
    try a.app("INSERT INTO entry VALUES (1, 'of a'); INSERT INTO tag VALUES ('red')")
    try settle(a, b)
    try a.app("INSERT INTO t SELECT id, 'red', 'a' FROM entry WHERE name = 'of a'")
    b.now = a.now + 1
    try b.app("INSERT INTO t SELECT id, 'red', 'b' FROM entry WHERE name = 'of a'")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT e.name, t.tag, t.x FROM t JOIN entry e ON e.id = t.entry") == ["of a|red|b"])
    }
  }

  @Test("named columns as identity: two devices that entered the same thing have one record")
  func namedColumns() throws {
    let schema =
      "CREATE TABLE account(id INTEGER PRIMARY KEY, uuid TEXT, name TEXT); CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER REFERENCES account(id), cents)"
    let rules = Rules(tables: ["account": TableRules(identity: .columns(["uuid"]))])
    let a = try Device(1, schema, rules: rules)
    let b = try Device(2, schema, rules: rules)
    try b.app("INSERT INTO account VALUES (5, 'u-2', 'other')")
    try a.app("INSERT INTO account VALUES (5, 'u-1', 'cash'); INSERT INTO entry VALUES (1, 5, 10)")
    try b.app("INSERT INTO account VALUES (8, 'u-1', 'Cash'); INSERT INTO entry VALUES (1, 8, 20)")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.row("SELECT count(*) FROM account") == "2")
      #expect(
        try device.row("SELECT sum(e.cents) FROM entry e JOIN account a ON a.id = e.account WHERE a.uuid = 'u-1'")
          == "30")
    }
    #expect(try b.row("SELECT id FROM account WHERE uuid = 'u-1'") == "8")
  }

  @Test("an integer key at the end of its range leaves the other device's app room for its own")
  func extremeHint() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, x)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (9223372036854775807, 'last')")
    try settle(a, b)
    try b.app("INSERT INTO t(x) VALUES ('own')")
    try settle(a, b)
    #expect(try a.rows("SELECT x FROM t ORDER BY x") == ["last", "own"])
  }
}

@Suite("Keys that become NULL")
struct LostKeyTests {
  private let script = "CREATE TABLE t(k TEXT PRIMARY KEY, v, w)"

  private func pair() throws -> (Device, Device) {
    let a = try Device(1, script)
    let b = try Device(2, script)
    try a.app("INSERT INTO t VALUES ('x', 1, 2), ('y', 3, 4)")
    try settle(a, b)
    return (a, b)
  }

  @Test("a key that is made NULL deletes nothing elsewhere, and is listed here")
  func lost() throws {
    let (a, b) = try pair()
    try a.app("UPDATE t SET k = NULL WHERE k = 'x'")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["x|1|2", "y|3|4"])
    #expect(try a.rows("SELECT * FROM t ORDER BY k") == ["NULL|1|2", "y|3|4"])
    #expect(try a.replica.parkedRows().map(\.reason).first?.contains("NULL") == true)
    try b.app("UPDATE t SET w = 5 WHERE k = 'x'")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM t ORDER BY k") == ["NULL|1|2", "y|3|4"])
    try b.app("DELETE FROM t WHERE k = 'x'")
    try settle(a, b)
    #expect(try a.replica.parkedRows().isEmpty)
  }

  @Test("a row that gets a key again is the row that it was", arguments: ["x", "z"], [false, true])
  func again(key: String, inOnePass: Bool) throws {
    let (a, b) = try pair()
    let name = try b.replica.recordName(table: "t", key: [.text(Array("x".utf8))])
    try a.app("UPDATE t SET k = NULL WHERE k = 'x'")
    if !inOnePass { try settle(a, b) }
    try a.app("UPDATE t SET k = '\(key)', w = 9 WHERE k IS NULL")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT * FROM t ORDER BY k") == ["y|3|4", "\(key)|1|9"].sorted())
      #expect(try device.replica.parkedRows().isEmpty)
      #expect(try device.replica.recordName(table: "t", key: [.text(Array(key.utf8))]) == name)
    }
  }
}
