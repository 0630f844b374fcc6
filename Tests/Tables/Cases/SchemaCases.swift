import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Numbered cases: schemas, triggers and values")
struct SchemaCases {
  @Test(
    "case 23: a trigger that keeps the time of change leaves the time that came with a row", arguments: [false, true])
  func updatedAt(before: Bool) throws {
    let schema = """
      CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT, updated_at INTEGER DEFAULT 0);
      CREATE TRIGGER touch AFTER UPDATE OF body ON note BEGIN
        UPDATE note SET updated_at = length(NEW.body) * 1000 + NEW.updated_at WHERE id = NEW.id; END;
      CREATE TRIGGER made \(before ? "BEFORE" : "AFTER") INSERT ON note WHEN NEW.id = 2 BEGIN
        UPDATE note SET updated_at = 7 WHERE id = 1; END;
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO note(id, body) VALUES (1, 'one')")
    try settle(a, b)
    try a.app("UPDATE note SET body = 'longer' WHERE id = 1")
    try settle(a, b)
    #expect(try a.row("SELECT updated_at FROM note WHERE id = 1") == "6000")
    #expect(try b.row("SELECT updated_at FROM note WHERE id = 1") == "6000")
    try a.app("INSERT INTO note(id, body) VALUES (2, 'two'); UPDATE note SET body = 'last' WHERE id = 1")
    try settle(a, b)
    #expect(try b.rows("SELECT body, updated_at FROM note ORDER BY id") == ["last|4007", "two|0"])
    let sent = a.log.count + b.log.count
    try settle(a, b)
    #expect(a.log.count + b.log.count == sent)
  }

  @Test("case 24: a full-text index that triggers of the app keep matches the rows after inserts, updates and deletes")
  func fullText() throws {
    let schema = """
      CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
      CREATE VIRTUAL TABLE search USING fts5(body, content='note', content_rowid='id');
      CREATE TRIGGER note_in AFTER INSERT ON note BEGIN INSERT INTO search(rowid, body) VALUES (NEW.id, NEW.body); END;
      CREATE TRIGGER note_out AFTER DELETE ON note BEGIN INSERT INTO search(search, rowid, body) VALUES ('delete', OLD.id, OLD.body); END;
      CREATE TRIGGER note_over AFTER UPDATE ON note BEGIN
        INSERT INTO search(search, rowid, body) VALUES ('delete', OLD.id, OLD.body);
        INSERT INTO search(rowid, body) VALUES (NEW.id, NEW.body); END;
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try b.app("INSERT INTO note VALUES (1, 'bread')")
    try a.app("INSERT INTO note VALUES (1, 'milk'), (2, 'eggs'), (3, 'salt and milk')")
    try settle(a, b)
    try a.app("UPDATE note SET body = 'cream' WHERE id = 1; DELETE FROM note WHERE id = 2")
    try settle(a, b)
    for device in [a, b] {
      try device.database.execute("INSERT INTO search(search) VALUES ('integrity-check')")
      #expect(
        try device.rows(
          "SELECT n.body FROM search s JOIN note n ON n.id = s.rowid WHERE search MATCH 'milk OR cream' ORDER BY 1")
          == ["cream", "salt and milk"])
      #expect(try device.rows("SELECT rowid FROM search WHERE search MATCH 'eggs'").isEmpty)
    }
  }

  @Test(
    "case 33: after renames under legacy_alter_table the app writes as before, and what it writes is sent",
    arguments: [false, true])
  func legacyRename(drops: Bool) throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, x); CREATE TABLE u(id INTEGER PRIMARY KEY, x);"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)")
    try settle(a, b)
    try a.app("PRAGMA legacy_alter_table = ON; ALTER TABLE t RENAME TO t_old")
    try a.app("INSERT INTO t_old VALUES (3, 'three', 3); UPDATE t_old SET x = 10 WHERE id = 1")
    if drops {
      try a.app(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, x); INSERT INTO t SELECT * FROM t_old; DROP TABLE t_old; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (4, 'four', 4)"
      )
    } else {
      try a.app("ALTER TABLE t_old RENAME TO t; ALTER TABLE t RENAME COLUMN name TO title; DELETE FROM t WHERE id = 2")
      try a.app("INSERT INTO t VALUES (4, 'four', 4)")
    }
    try settle(a, b)
    #expect(try b.rows("SELECT id, x FROM t ORDER BY id") == ["1|10", "3|3", "4|4"])
    try a.app("UPDATE t SET x = 11 WHERE id = 1")
    try b.app("UPDATE t SET x = 31 WHERE id = 3")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows("SELECT id, x FROM t ORDER BY id") == ["1|11", "3|31", "4|4"]) }
  }

  @Test("case 45: NaN is NULL, infinities and the sign of zero stay")
  func floats() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x, r REAL)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    for (id, value) in [Double.nan, .infinity, -.infinity, -0.0, .leastNonzeroMagnitude, 0.1].enumerated() {
      try a.database.run("INSERT INTO t VALUES (?, ?, ?)", [.integer(Int64(id)), .real(value), .real(value)])
    }
    try settle(a, b)
    for device in [a, b] {
      let rows = try device.database.rows("SELECT x FROM t ORDER BY id")
      #expect(rows[0] == [.null] && rows[1] == [.real(.infinity)] && rows[2] == [.real(-.infinity)])
      guard case .real(let zero) = rows[3][0] else {
        Issue.record("no float")
        return
      }
      #expect(zero.sign == .minus && zero == 0)
      #expect(rows[4] == [.real(.leastNonzeroMagnitude)] && rows[5] == [.real(0.1)])
    }
  }

  @Test(
    "case 46: texts with NUL and bytes that are no UTF-8 arrive byte for byte, and an edit after the NUL is an edit")
  func bytes() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(
      "INSERT INTO t VALUES (1, CAST(x'61006200' AS TEXT)), (2, CAST(x'c328fffe' AS TEXT)), (3, CAST(x'00' AS TEXT))")
    try settle(a, b)
    let hex = "SELECT hex(x), typeof(x) FROM t ORDER BY id"
    #expect(try b.rows(hex) == ["61006200|text", "C328FFFE|text", "00|text"])
    #expect(try a.captured("UPDATE t SET x = CAST(x'61006300' AS TEXT) WHERE id = 1") == ["update t x"])
    #expect(try a.captured("UPDATE t SET x = CAST(x'c328ffff' AS TEXT) WHERE id = 2") == ["update t x"])
    try settle(a, b)
    #expect(try b.rows(hex) == ["61006300|text", "C328FFFF|text", "00|text"])
  }

  @Test("case 57: a collation that only the app has refuses its table, and nothing else")
  func collation() throws {
    // As an app leaves it that registers the collation in its own process.
    let script = """
      CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT);
      CREATE TABLE other(id INTEGER PRIMARY KEY, x);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT COLLATE unicase)' WHERE name = 'note';
      PRAGMA writable_schema = RESET;
      """
    let a = try Device(1, script)
    let b = try Device(2, script)
    let report = try #require(try a.replica.survey().tables.first { $0.name == "note" })
    #expect(report.verdict == .refused)
    #expect(report.reason.lowercased() == "the collation unicase of title is the app's own")
    try a.app("INSERT INTO note VALUES (1, 'stays here'); INSERT INTO other VALUES (1, 'goes')")
    try settle(a, b)
    #expect(try b.rows("SELECT x FROM other") == ["goes"])
    #expect(try b.row("SELECT count(*) FROM note") == "0")
    #expect(throws: TablesError.self) {
      try Replica.attach(Device.connection(a.clock, script), tables: ["note"], zone: Device.binding(9))
    }
  }

  @Test("case 48: a value of 20 MB arrives whole")
  func huge() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, zeroblob(20000000), 'with it'), (2, 'small', 'beside it')")
    try a.stamp()
    try b.pull(a)
    #expect(try b.row("SELECT y FROM t WHERE id = 2") == "beside it")
    #expect(try a.stamp().tooLarge == ["t.x"], "it waits and is named")
    let arrived = try b.rows("SELECT length(x) FROM t WHERE y = 'with it'")
    withKnownIssue("a value over 16 MiB waits with its row: assets are reserved in the format (§3)") {
      #expect(arrived == ["20000000"])
    }
  }

  @Test("case 48b: a value of 16 MiB, the largest that is sent, arrives whole")
  func large() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, randomblob(16777216), 'with it')")
    try settle(a, b)
    let (sent, arrived) = (try a.database.rows("SELECT * FROM t"), try b.database.rows("SELECT * FROM t"))
    #expect(sent.count == 1 && sent == arrived)
  }
}
