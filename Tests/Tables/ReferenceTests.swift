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

  @Test("case 36: a child whose parent has not arrived waits, shows complete later, and no null is pushed back")
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

  @Test("a row that the app points elsewhere waits no more for what it pointed at")
  func pointedElsewhere() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO account VALUES (1, 'first')")
    try a.stamp()
    a.now += 10_000
    try a.app("INSERT INTO account VALUES (2, 'second')")
    try a.stamp()
    a.now += 10_000
    try a.app("INSERT INTO entry VALUES (1, 1, 2, 10)")
    try a.stamp()
    b.now = a.now
    // The entry shows without its second account, which has not come.
    try b.apply([a.log[0], a.log[2]])
    #expect(try b.row("SELECT account, other FROM entry") == "1|NULL")
    #expect(try b.row("SELECT count(*) FROM lk_wait") == "1")
    try b.app("UPDATE entry SET other = 1")
    try b.stamp()
    #expect(try b.row("SELECT count(*) FROM lk_wait") == "0")
    try b.apply([a.log[1]])
    #expect(try b.row("SELECT account, other FROM entry") == "1|1")
    b.applied[1] = 3
    try settle(a, b)
    #expect(try a.row("SELECT account, other FROM entry") == "1|1")
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

  @Test("case 39: a row that is required is inserted again by the device whose rows need it, with what it needs itself")
  func keptParent() throws {
    let script = """
      CREATE TABLE bank(id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE account(id INTEGER PRIMARY KEY, bank INTEGER NOT NULL REFERENCES bank(id), name TEXT);
      CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id), cents INTEGER);
      """
    let a = try Device(1, script)
    let b = try Device(2, script)
    let c = try Device(3, script)
    try a.app(
      "INSERT INTO bank VALUES (1, 'bank'); INSERT INTO account VALUES (1, 1, 'cash'); INSERT INTO entry VALUES (1, 1, 100)"
    )
    try settle(a, b, c)
    // The app cleans up, as it must, and knows nothing of what b enters meanwhile.
    try a.app("DELETE FROM entry; DELETE FROM account; DELETE FROM bank")
    b.now = a.now + 5
    try b.app("INSERT INTO entry VALUES (2, 1, 250)")
    try settle(a, b, c)
    for device in [a, b, c] {
      #expect(
        try device.rows(
          "SELECT b.name, a.name, e.cents FROM entry e JOIN account a ON a.id = e.account JOIN bank b ON b.id = a.bank")
          == ["bank|cash|250"])
      #expect(try device.replica.parkedRows().isEmpty)
    }
    // Nobody's own row needs it: the delete stands.
    a.now = b.now + 10
    try a.app("DELETE FROM entry; DELETE FROM account")
    try settle(a, b, c)
    for device in [a, b, c] { #expect(try device.row("SELECT count(*) FROM account") == "0") }
  }

  @Test(
    "case 38: a deleted parent hides what it cascades to and shows NULL elsewhere, the same on both sides; both return with it"
  )
  func deletedParent() throws {
    let schema = """
      CREATE TABLE account(name TEXT PRIMARY KEY, note TEXT);
      CREATE TABLE entry(id INTEGER PRIMARY KEY, account TEXT NOT NULL REFERENCES account(name) ON DELETE CASCADE, other TEXT REFERENCES account(name) ON DELETE SET NULL, cents INTEGER);
      CREATE TABLE line(id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE, text TEXT);
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO account VALUES ('gone', 1), ('stays', 2); INSERT INTO entry VALUES (1, 'stays', 'gone', 10)")
    try settle(a, b)
    try a.app("PRAGMA foreign_keys = OFF; DELETE FROM account WHERE name = 'gone'")
    b.now = a.now + 5
    try b.app("INSERT INTO entry VALUES (7, 'gone', 'stays', 30); INSERT INTO line VALUES (1, 7, 'under it')")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT account, other, cents FROM entry ORDER BY cents") == ["stays|NULL|10"])
      #expect(try device.rows("SELECT * FROM line").isEmpty)
      #expect(try device.replica.parkedRows().count == 2)
    }
    let sent = a.log.count + b.log.count
    try settle(a, b)
    #expect(a.log.count + b.log.count == sent, "what follows from a delete is not captured")
    a.now = b.now + 10
    try a.app("INSERT INTO account VALUES ('gone', 'back')")
    try settle(a, b)
    for device in [a, b] {
      #expect(
        try device.rows("SELECT account, other, cents FROM entry ORDER BY cents") == ["stays|gone|10", "gone|stays|30"])
      #expect(try device.rows("SELECT text FROM line") == ["under it"])
      #expect(try device.replica.parkedRows().isEmpty)
    }
  }

  @Test("rules that are added later turn the numbers that were sent into references")
  func laterRules() throws {
    let schema =
      "CREATE TABLE category(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE entry(id INTEGER PRIMARY KEY, category INTEGER, cents INTEGER)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try b.app("INSERT INTO category VALUES (1, 'of b')")
    try a.app("INSERT INTO category VALUES (1, 'of a'); INSERT INTO entry VALUES (1, 1, 10), (2, 0, 20), (3, NULL, 30)")
    try settle(a, b)
    let query = "SELECT c.name FROM entry e JOIN category c ON c.id = e.category WHERE e.cents = 10"
    #expect(try b.row(query) == "of b", "an undeclared reference is only a number")
    let rules = Rules(tables: ["entry": TableRules(references: ["category": ReferenceRule(table: "category")])])
    for device in [a, b] { try Replica.attach(device.database, rules: rules, zone: Device.binding(device.number)) }
    let again = try (Replica(connection: a.database), Replica(connection: b.database))
    var log: [IncomingGroup] = []
    a.now += 10
    try again.0.transaction {
      _ = try again.0.stamp(now: a.now) { group in
        log.append(
          IncomingGroup(
            zone: Device.zone, origin: a.origin, hlc: group.hlc, tie: 9, sequence: 9, payloads: group.parts.map(\.bytes)
          ))
        return 9
      }
    }
    b.now = a.now + 10
    try again.1.transaction { _ = try again.1.apply(log, now: b.now) { _ in 8 } }
    #expect(try a.row(query) == "of a")
    #expect(try b.row(query) == "of a", "what a number means, only its writer knows")
    #expect(try b.rows("SELECT category FROM entry WHERE cents > 10 ORDER BY cents") == ["0", "NULL"])
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

  @Test("case 37: circles of references and references to oneself are applied")
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

@Suite("Rows replaced under a key that others refer to")
struct ReplacedParentTests {
  @Test("rows that point at a key know the row that is inserted there again, though their own key moved")
  func movedReferrer() throws {
    let script = "CREATE TABLE p(id INTEGER PRIMARY KEY, x, y); CREATE TABLE c(id INTEGER PRIMARY KEY, p INTEGER, z);"
    let rules = Rules(tables: ["c": TableRules(references: ["p": ReferenceRule(table: "p", onDelete: .null)])])
    let a = try Device(1, script, rules: rules)
    let b = try Device(2, script, rules: rules)
    try a.app("INSERT INTO p VALUES (3, 'old', 'y'); INSERT INTO c VALUES (1, 3, 'z')")
    try settle(a, b)
    try a.app(
      "DELETE FROM p; INSERT INTO p VALUES (3, 'new', 'other'); UPDATE c SET id = 20; UPDATE c SET id = 39"
    )
    try settle(a, b)
    #expect(try b.row("SELECT p.x, c.z FROM c JOIN p ON p.id = c.p") == "new|z")
  }

  @Test("a row that is written anew refers to the row that stands under the key now", arguments: [true, false])
  func rewrittenReferrer(isKey: Bool) throws {
    let script =
      "CREATE TABLE p(id INTEGER PRIMARY KEY, x UNIQUE); CREATE TABLE c(p INTEGER REFERENCES p(id) ON DELETE CASCADE, z, "
      + (isKey ? "PRIMARY KEY (p, z)) WITHOUT ROWID;" : "id INTEGER PRIMARY KEY);")
    let a = try Device(1, script)
    let b = try Device(2, script)
    try a.app("INSERT INTO p VALUES (1, 'old'); INSERT INTO c(p, z) VALUES (1, 'z')")
    try settle(a, b)
    try a.app(
      "PRAGMA foreign_keys = ON; INSERT OR REPLACE INTO p VALUES (1, 'new'); INSERT INTO c(p, z) VALUES (1, 'z'); PRAGMA foreign_keys = OFF"
    )
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT p.x, c.z FROM c JOIN p ON p.id = c.p") == ["new|z"]) }
  }
}
