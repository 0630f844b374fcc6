import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Values")
struct ValueTests {
  @Test(
    "case 44: values arrive bit for bit, whatever the column's affinity",
    arguments: [
      "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.1", "-0.0", "9e999", "-9e999", "''", "x''",
      "x'00'",
      "CAST(x'6100ff' AS TEXT)", "'1'", "1.0", "NULL", "'  '", "1e300",
    ])
  func exact(_ sql: String) throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, n, i INTEGER, r REAL, t TEXT, b BLOB, m NUMERIC)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, \(sql), \(sql), \(sql), \(sql), \(sql), \(sql))")
    try settle(a, b)
    #expect(try b.database.rows("SELECT * FROM t") == a.database.rows("SELECT * FROM t"))
    let groups = a.log.count + b.log.count
    try b.app("UPDATE t SET n = n, i = i, r = r, t = t, b = b, m = m")
    try settle(a, b)
    #expect(a.log.count + b.log.count == groups, "what arrived is not taken for an edit")
  }

  @Test("a value that this device's column stores differently is kept and handed on as it was")
  func affinityDiffers() throws {
    let a = try Device(1, "CREATE TABLE t(id INTEGER PRIMARY KEY, x, y TEXT)")
    let b = try Device(2, "CREATE TABLE t(id INTEGER PRIMARY KEY, x INTEGER, y TEXT)")
    try a.app("INSERT INTO t VALUES (1, '007', 'a')")
    try settle(a, b)
    #expect(try b.row("SELECT x FROM t") == "7")
    try b.app("UPDATE t SET y = 'b'")
    try settle(a, b)
    #expect(try a.row("SELECT x, y FROM t") == "007|b")
    try b.app("UPDATE t SET x = 8")
    try settle(a, b)
    #expect(try a.row("SELECT x FROM t") == "8")
  }

  @Test("case 43: generated columns are left to each device")
  func generated() throws {
    let schema =
      "CREATE TABLE t(id INTEGER PRIMARY KEY, cents INTEGER, euros REAL AS (cents / 100.0), twice INTEGER AS (cents * 2) STORED)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t(id, cents) VALUES (1, 250)")
    try settle(a, b)
    #expect(try b.row("SELECT * FROM t") == "1|250|2.5|500")
    try b.app("UPDATE t SET cents = 300")
    try settle(a, b)
    #expect(try a.row("SELECT * FROM t") == "1|300|3.0|600")
  }

  @Test("local columns stay")
  func localColumns() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x, opened INTEGER DEFAULT 0)"
    let rules = Rules(tables: ["t": TableRules(localColumns: ["opened"])])
    let a = try Device(1, schema, rules: rules)
    let b = try Device(2, schema, rules: rules)
    try a.app("INSERT INTO t VALUES (1, 'x', 5)")
    try settle(a, b)
    #expect(try b.row("SELECT * FROM t") == "1|x|0")
    let groups = b.log.count
    try b.app("UPDATE t SET opened = 9")
    try settle(a, b)
    #expect(b.log.count == groups)
    try a.app("UPDATE t SET x = 'y'")
    try settle(a, b)
    #expect(try b.row("SELECT * FROM t") == "1|y|9")
  }

  @Test("a value over the size that is sent waits with its row, is reported, and goes once it is smaller")
  func tooLarge() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, zeroblob(16777217), 'big'), (2, 'small', 'ok')")
    #expect(try a.stamp().tooLarge == ["t.x"])
    try b.pull(a)
    #expect(try b.rows("SELECT y FROM t") == ["ok"])
    #expect(try a.replica.counts()[0].waiting == 1)
    #expect(try a.stamp().tooLarge == ["t.x"])
    try a.app("UPDATE t SET x = 'fits' WHERE id = 1")
    try settle(a, b)
    #expect(try b.rows("SELECT x, y FROM t ORDER BY y") == ["fits|big", "small|ok"])
  }
}
