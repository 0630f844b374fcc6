import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let people = "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE, age INTEGER, note TEXT);"

/// One statement run on an attached database and on the same database that nobody attached.
private struct Twins {
  let attached: Device
  let plain: Connection

  init(_ script: String) throws {
    attached = try Device(1, script)
    plain = try Connection(":memory:", mode: .create)
    try plain.execute(script)
    // Attaching went over the app's own connection here: both begin with the same counters.
    for connection in [attached.database, plain] {
      try connection.execute(
        "CREATE TEMP TABLE first(x INTEGER PRIMARY KEY ON CONFLICT REPLACE); INSERT INTO first VALUES (1)")
    }
  }

  /// What an app sees of a statement: its rows or its error, the number of changed rows, the last inserted row, whether a transaction
  /// is open, and what the tables hold then.
  private func seen(_ connection: Connection, _ sql: String, _ tables: [String]) throws -> [String] {
    var out: [String] = []
    do {
      out = try connection.rows(sql).map { $0.map(show).joined(separator: "|") }
    } catch {
      out = ["\(error)"]
      // After an INSERT that failed because of a foreign key SQLite answers the row that it took back, unless there is any trigger.
      try connection.execute("INSERT INTO first VALUES (1)")
    }
    out.append("\(connection.changes) \(connection.lastInsertedRow) \(connection.isInTransaction)")
    for table in tables {
      out += try connection.rows("SELECT * FROM \(table) ORDER BY rowid").map { $0.map(show).joined(separator: "|") }
    }
    return out
  }

  func compare(_ sql: String, _ tables: [String] = ["person"]) throws {
    attached.now += 1
    let (ours, theirs) = (try seen(attached.database, sql, tables), try seen(plain, sql, tables))
    try #require(ours == theirs, "\(sql)")
  }
}

@Suite("Numbered cases: no statement fails or changes its meaning")
struct StatementCases {
  private static let rows = "INSERT INTO person VALUES (1, 'ann', 30, 'x'), (2, 'bob', 40, 'y'), (3, 'cyd', 50, 'z');"

  private func device() throws -> Device {
    let device = try Device(1, people + Self.rows)
    try device.stamp()
    return device
  }

  @Test("case 5: INSERT OR IGNORE that meets a row gives nothing out")
  func ignored() throws {
    let a = try device()
    #expect(try a.captured("INSERT OR IGNORE INTO person VALUES (1, 'x', 1, '')").isEmpty)
    #expect(try a.captured("INSERT OR IGNORE INTO person VALUES (9, 'ann', 1, '')").isEmpty)
    #expect(try a.captured("UPDATE OR IGNORE person SET name = 'ann'").isEmpty)
    #expect(try a.captured("INSERT INTO person(id, name) VALUES (1, 'x') ON CONFLICT DO NOTHING").isEmpty)
    #expect(
      try a.captured("INSERT INTO person(id) VALUES (1) ON CONFLICT (id) DO UPDATE SET age = 31") == [
        "update person age"
      ])
  }

  @Test(
    "case 6: every OR clause does with a row that waits in the log what it does without us",
    arguments: ["", "OR ABORT", "OR FAIL", "OR ROLLBACK", "OR IGNORE", "OR REPLACE"])
  func clauses(clause: String) throws {
    let twins = try Twins(people + Self.rows)
    for sql in [
      "UPDATE \(clause) person SET age = age + 1", "UPDATE \(clause) person SET age = age + 1 WHERE id = 2",
      "INSERT \(clause) INTO person VALUES (8, 'ann', 1, '')", "INSERT \(clause) INTO person VALUES (1, 'new', 1, '')",
      "INSERT \(clause) INTO person VALUES (10, 'x', 1, ''), (11, 'x', 2, ''), (12, 'y', 3, '')",
      "UPDATE \(clause) person SET name = 'cyd' WHERE id < 3", "UPDATE \(clause) person SET id = 3 WHERE id = 2",
      "BEGIN", "UPDATE \(clause) person SET age = 0",
      "INSERT \(clause) INTO person VALUES (20, 'p', 1, ''), (21, 'cyd', 2, '')", "COMMIT",
      "INSERT \(clause) INTO person(name) VALUES ('z1'), ('z2') RETURNING id, name",
    ] { try twins.compare(sql) }
  }

  @Test("case 6b: what such statements leave arrives on another device", arguments: [false, true])
  func clausesArrive(recursive: Bool) throws {
    let a = try device()
    let b = try Device(2, people)
    if recursive { try a.database.execute("PRAGMA recursive_triggers = ON") }
    try settle(a, b)
    for clause in ["OR ABORT", "OR FAIL", "OR ROLLBACK", "OR IGNORE", "OR REPLACE"] {
      try? a.app("UPDATE \(clause) person SET name = 'ann' WHERE id >= 2")
      try? a.app("INSERT \(clause) INTO person VALUES (30, 'new', 1, ''), (31, 'new', 2, ''), (2, 'bob', 3, 'again')")
      try? a.app("UPDATE \(clause) person SET age = age + 1, id = id + 1")
      try settle(a, b)
      let dump = "SELECT name, age, note FROM person ORDER BY name"
      #expect(try b.rows(dump) == a.rows(dump), "\(clause)")
    }
  }

  @Test(
    "case 3b: REPLACE that the schema itself declares deletes what stood there, once", arguments: [false, true])
  func declaredReplace(recursive: Bool) throws {
    let schema = """
      CREATE TABLE t(k TEXT PRIMARY KEY ON CONFLICT REPLACE, slot INTEGER UNIQUE ON CONFLICT REPLACE, x) WITHOUT ROWID;
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    if recursive { try a.database.execute("PRAGMA recursive_triggers = ON") }
    try a.app("INSERT INTO t VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, 'z')")
    try settle(a, b)
    #expect(try a.captured("INSERT INTO t VALUES ('a', 2, 'over two')") == ["delete t", "update t slot,x"])
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["a|2|over two", "c|3|z"])
  }

  @Test("case 4b: a text key moved onto a live one keeps the mover's record on every device")
  func moveOntoLiveText() throws {
    let schema = "CREATE TABLE t(k TEXT PRIMARY KEY, x)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3)")
    try settle(a, b)
    let mover = try a.replica.recordName(table: "t", key: [SQLiteValue("a")])
    try a.app("UPDATE OR REPLACE t SET k = 'b' WHERE k = 'a'")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT * FROM t ORDER BY k") == ["b|1", "c|3"])
      #expect(try device.replica.recordName(table: "t", key: [SQLiteValue("b")]) == mover)
    }
  }

  @Test("case 11: another spelling of a NOCASE key is one update of the key's field, of the same record")
  func spelling() throws {
    for schema in [
      "CREATE TABLE t(k TEXT PRIMARY KEY COLLATE NOCASE, x)",
      "CREATE TABLE t(k TEXT PRIMARY KEY COLLATE NOCASE, x) WITHOUT ROWID",
    ] {
      let a = try Device(1, schema)
      let b = try Device(2, schema)
      try a.app("INSERT INTO t VALUES ('ABC', 1)")
      try settle(a, b)
      let name = try a.replica.recordName(table: "t", key: [SQLiteValue("abc")])
      #expect(name != nil)
      #expect(try a.captured("UPDATE t SET k = 'aBc'") == ["update t k"])
      #expect(try a.captured("INSERT OR REPLACE INTO t VALUES ('AbC', 1)") == ["update t k"])
      try settle(a, b)
      for device in [a, b] {
        #expect(try device.rows("SELECT k, x FROM t") == ["AbC|1"])
        #expect(try device.replica.recordName(table: "t", key: [SQLiteValue("abc")]) == name)
      }
    }
  }

  @Test(
    "case 15: a table without a primary key is refused with the reason, before and after VACUUM, and stays as it is")
  func withoutKey() throws {
    let schema = "CREATE TABLE loose(x); CREATE TABLE t(id INTEGER PRIMARY KEY, x);"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(
      "INSERT INTO loose VALUES ('a'), ('b'), ('c'); DELETE FROM loose WHERE x = 'a'; INSERT INTO t VALUES (5, 1)")
    try a.app("VACUUM; INSERT INTO loose VALUES ('d')")
    try settle(a, b)
    let report = try #require(try a.replica.survey().tables.first { $0.name == "loose" })
    #expect(report.verdict == .refused && report.reason.contains("no primary key"))
    #expect(try a.rows("SELECT x FROM loose ORDER BY x") == ["b", "c", "d"])
    #expect(try b.rows("SELECT x FROM loose").isEmpty)
    #expect(try b.rows("SELECT * FROM t") == ["5|1"])
    #expect(throws: TablesError.self) {
      try Replica.attach(
        Device.connection(a.clock, schema), tables: ["loose"], zone: Device.binding(9))
    }
  }

  @Test("case 15b: VACUUM gives no row of a table that syncs another record")
  func vacuum() throws {
    let schema = "CREATE TABLE t(k TEXT PRIMARY KEY, x); CREATE TABLE n(a INTEGER, b INTEGER, PRIMARY KEY (a, b));"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3); INSERT INTO n VALUES (1, 1), (1, 2)")
    try settle(a, b)
    try a.app("DELETE FROM t WHERE k = 'a'; DELETE FROM n WHERE b = 1")
    try a.database.execute("VACUUM")
    try a.app("UPDATE t SET x = 30 WHERE k = 'c'")
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM t ORDER BY k") == ["b|2", "c|30"])
    #expect(try b.rows("SELECT * FROM n") == ["1|2"])
  }

  @Test("case 19: what a savepoint or a transaction takes back was never captured")
  func rolledBack() throws {
    let a = try device()
    #expect(try a.captured("BEGIN; INSERT INTO person VALUES (7, 'x', 1, ''); ROLLBACK").isEmpty)
    #expect(
      try a.captured(
        "BEGIN; SAVEPOINT s; DELETE FROM person; ROLLBACK TO s; UPDATE person SET age = 1 WHERE id = 1; COMMIT") == [
          "update person age"
        ])
    #expect(
      try a.captured(
        """
        SAVEPOINT o; INSERT INTO person VALUES (8, 'p', 1, ''); SAVEPOINT i; UPDATE person SET id = 80 WHERE id = 8;
        ROLLBACK TO i; RELEASE i; UPDATE person SET age = 5 WHERE id = 2; RELEASE o
        """) == ["insert person", "update person age"])
    #expect(try a.rows("SELECT count(*) FROM lk_log1") == ["0"])
  }

  @Test("case 58b: of the counters that SQLite keeps only total_changes() counts what we write")
  func totalChanges() throws {
    let twins = try Twins(people + Self.rows)
    let before = try twins.attached.database.integer("SELECT total_changes()") ?? 0
    let plain = try twins.plain.integer("SELECT total_changes()") ?? 0
    try twins.compare("UPDATE person SET age = 1 WHERE id < 3")
    #expect(try twins.plain.integer("SELECT total_changes()") == plain + 2)
    #expect(try twins.attached.database.integer("SELECT total_changes()") == before + 4)
  }

  @Test(
    "case 58c: four hundred random statements do and answer what they do and answer without us",
    arguments: 1...6 as ClosedRange<UInt64>)
  func random(seed: UInt64) throws {
    let schema =
      people + Self.rows + """
        CREATE TABLE visit(id INTEGER PRIMARY KEY AUTOINCREMENT, who INTEGER REFERENCES person(id) ON DELETE CASCADE ON UPDATE CASCADE, at);
        CREATE TABLE tag(k TEXT COLLATE NOCASE PRIMARY KEY, who INTEGER REFERENCES person(id) ON DELETE SET NULL);
        CREATE TRIGGER grown AFTER UPDATE OF age ON person BEGIN INSERT INTO visit(who, at) VALUES (NEW.id, 'grown'); END;
        """
    let twins = try Twins(schema)
    var random = SeededGenerator(seed)
    func pick(_ choices: [String]) -> String { choices[Int(random.next() % UInt64(choices.count))] }
    for connection in [twins.attached.database, twins.plain] {
      try connection.execute(
        "PRAGMA foreign_keys = \(seed % 2 == 0 ? "ON" : "OFF"); PRAGMA recursive_triggers = \(seed % 3 == 0 ? "ON" : "OFF")"
      )
    }
    for _ in 0..<400 {
      let clause = pick(["", "", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK"])
      let id = pick(["1", "2", "3", "4", "5", "NULL", "9"])
      let name = pick(["'ann'", "'bob'", "'cyd'", "'dan'", "NULL", "x'00'", "1.5"])
      let key = pick(["'k'", "'K'", "'l'", "NULL", "'m'"])
      try twins.compare(
        pick([
          "INSERT \(clause) INTO person VALUES (\(id), \(name), \(id), \(name))",
          "INSERT \(clause) INTO person VALUES (\(id), \(name), 1, 2), (9, \(name), 2, 3) RETURNING id",
          "INSERT INTO person(id, name) VALUES (\(id), \(name)) ON CONFLICT DO UPDATE SET age = age + 1 RETURNING *",
          "UPDATE \(clause) person SET id = \(id) WHERE name = \(name)", "UPDATE \(clause) person SET age = \(id)",
          "UPDATE \(clause) person SET name = \(name) WHERE id = \(id) RETURNING name, age",
          "DELETE FROM person WHERE id = \(id)", "DELETE FROM person WHERE name = \(name) RETURNING id",
          "INSERT \(clause) INTO visit(who, at) VALUES (\(id), \(name))", "DELETE FROM visit WHERE who = \(id)",
          "INSERT \(clause) INTO tag VALUES (\(key), \(id))", "UPDATE \(clause) tag SET k = \(key) WHERE who = \(id)",
          "REPLACE INTO tag SELECT name, id FROM person", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "RELEASE s",
          "ROLLBACK TO s", "SELECT last_insert_rowid(), changes()",
        ]), ["person", "visit", "tag"])
    }
  }
}
