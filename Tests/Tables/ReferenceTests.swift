import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let schema = """
  CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
  CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id), other INTEGER REFERENCES account(id) ON DELETE SET NULL, cents INTEGER NOT NULL);
  CREATE TABLE line(id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE, text TEXT);
  CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES node(id), name TEXT);
  """

@Suite("References travel as record names")
struct ReferenceTests {
  @Test("after a collision of integer keys every child still points at its own parent")
  func collision() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO account VALUES (1, 'a'); INSERT INTO entry VALUES (1, 1, 1, 10)")
    try b.app("INSERT INTO account VALUES (1, 'b'); INSERT INTO entry VALUES (1, 1, NULL, 20)")
    try settle(a, b)
    let query =
      "SELECT e.cents, x.name, y.name FROM entry e JOIN account x ON x.id = e.account LEFT JOIN account y ON y.id = e.other ORDER BY 1"
    #expect(try a.rows(query) == ["10|a|a", "20|b|NULL"])
    #expect(try b.rows(query) == ["10|a|a", "20|b|NULL"])
  }

  @Test("a child whose parent has not arrived waits, shows complete later, and no null is pushed back")
  func childBeforeParent() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO account VALUES (1, 'first')")
    try a.stamp()
    a.now += 10_000
    try a.app("INSERT INTO account VALUES (2, 'second')")
    try a.stamp()
    a.now += 10_000
    try a.app("INSERT INTO entry VALUES (1, 1, 2, 10); INSERT INTO line VALUES (1, 1, 'x')")
    try a.stamp()
    b.now = a.now
    #expect(a.log.count == 3)
    // The entries come first, then the nullable target's, then the required one's.
    try b.apply([a.log[2]])
    #expect(try b.rows("SELECT * FROM entry").isEmpty)
    #expect(try b.rows("SELECT * FROM line").isEmpty)
    #expect(try b.replica.parkedRows().count == 2)
    try b.apply([a.log[0]])
    #expect(try b.row("SELECT account, other, cents FROM entry") == "1|NULL|10")
    #expect(try b.row("SELECT text FROM line") == "x")
    // The app edits another field of the row whose reference is not shown.
    try b.app("UPDATE entry SET cents = 11")
    try b.stamp()
    try b.apply([a.log[1]])
    #expect(try b.row("SELECT account, other, cents FROM entry") == "1|2|11")
    #expect(try b.replica.parkedRows().isEmpty)
    b.applied[1] = 3
    try settle(a, b)
    #expect(try a.row("SELECT account, other, cents FROM entry") == "1|2|11")
  }

  @Test("rows that the app points at a row it inserts later are stamped with it")
  func danglingThenThere() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO node VALUES (5, 9, 'child'); INSERT INTO node VALUES (9, NULL, 'parent')")
    try b.app("INSERT INTO node VALUES (9, NULL, 'somebody else')")
    try settle(a, b)
    #expect(try b.row("SELECT p.name FROM node c JOIN node p ON p.id = c.parent WHERE c.name = 'child'") == "parent")
  }

  @Test("a deleted parent hides what it cascades to and what requires it, shows NULL elsewhere, the same on both sides")
  func deletedParent() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO account VALUES (1, 'gone'), (2, 'stays'); INSERT INTO entry VALUES (1, 2, 1, 10)")
    try settle(a, b)
    try a.app("PRAGMA foreign_keys = OFF; DELETE FROM account WHERE id = 1")
    b.now = a.now + 5
    try b.app("INSERT INTO entry VALUES (7, 1, 2, 30); INSERT INTO line VALUES (1, 7, 'under it')")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT account, other, cents FROM entry ORDER BY cents") == ["2|NULL|10"])
      #expect(try device.rows("SELECT * FROM line").isEmpty)
      #expect(try device.replica.parkedRows().count == 2)
    }
    let dump = a.log.count + b.log.count
    try settle(a, b)
    #expect(a.log.count + b.log.count == dump, "what follows from a delete is not captured")
  }

  @Test("SET NULL and CASCADE by SQLite itself converge")
  func sqliteActions() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(
      "INSERT INTO account VALUES (1, 'one'), (2, 'two'); INSERT INTO entry VALUES (1, 2, 1, 10), (2, 2, NULL, 20); INSERT INTO line VALUES (1, 1, 'x'), (2, 2, 'y')"
    )
    try settle(a, b)
    try a.app(
      "PRAGMA foreign_keys = ON; DELETE FROM account WHERE id = 1; DELETE FROM entry WHERE id = 2; PRAGMA foreign_keys = OFF"
    )
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT account, other, cents FROM entry") == ["2|NULL|10"])
      #expect(try device.rows("SELECT text FROM line") == ["x"])
    }
  }

  @Test("circles of references and references to oneself are applied")
  func circles() throws {
    let script = """
      CREATE TABLE a(id INTEGER PRIMARY KEY, b INTEGER NOT NULL REFERENCES b(id) DEFERRABLE INITIALLY DEFERRED, name TEXT);
      CREATE TABLE b(id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a(id) DEFERRABLE INITIALLY DEFERRED, name TEXT);
      CREATE TABLE self(id INTEGER PRIMARY KEY, me INTEGER NOT NULL REFERENCES self(id), name TEXT);
      """
    let x = try Device(1, script)
    let y = try Device(2, script)
    try y.app(
      "INSERT INTO a VALUES (1, 1, 'ya'); INSERT INTO b VALUES (1, 1, 'yb'); INSERT INTO self VALUES (1, 1, 'y')")
    try x.app(
      "INSERT INTO a VALUES (1, 1, 'xa'); INSERT INTO b VALUES (1, 1, 'xb'); INSERT INTO self VALUES (1, 1, 'x')")
    try settle(x, y)
    for device in [x, y] {
      #expect(
        try device.rows("SELECT a.name, b.name FROM a JOIN b ON b.id = a.b AND b.a = a.id ORDER BY 1") == [
          "xa|xb", "ya|yb",
        ])
      #expect(try device.rows("SELECT name FROM self WHERE me = id ORDER BY 1") == ["x", "y"])
    }
  }
}
