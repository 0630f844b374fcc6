import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let people = "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT UNIQUE, age INTEGER, note TEXT);"

extension Device {
  /// What the last pass gave out, in a form for reading: `insert`, `update name,age`, `delete`, per record's row.
  func changes(from start: Int) throws -> [String] {
    var out: [String] = []
    for group in log[start...] {
      for bytes in group.payloads {
        let payload = try Payload.decode(bytes, origin: group.origin, hlc: group.hlc, tie: group.tie)
        for change in payload.changes {
          let columns = change.state.cells.map(\.column).sorted().joined(separator: ",")
          if change.state.newestBorn != nil {
            out.append("insert \(change.table)")
          } else if change.state.newestTombstone != nil {
            out.append("delete \(change.table)")
          } else {
            out.append("update \(change.table) \(columns)")
          }
        }
      }
    }
    return out.sorted()
  }

  /// Runs the app's statements, stamps, and tells what was given out.
  func captured(_ script: String) throws -> [String] {
    try stamp()
    let before = log.count
    try app(script)
    try stamp()
    return try changes(from: before)
  }
}

@Suite("What the app writes is captured, whatever the statement")
struct CaptureTests {
  private func device(
    _ script: String = people,
    rows: String = "INSERT INTO person VALUES (1, 'ann', 30, 'x'), (2, 'bob', 40, 'y'), (3, 'cyd', 50, 'z')"
  ) throws
    -> Device
  {
    let device = try Device(1, script)
    try device.app(rows)
    try device.stamp()
    return device
  }

  @Test("an update sends only the fields that changed, and one that changes nothing sends nothing")
  func update() throws {
    let a = try device()
    #expect(try a.captured("UPDATE person SET age = 31, note = note WHERE id = 1") == ["update person age"])
    #expect(try a.captured("UPDATE person SET age = age").isEmpty)
    #expect(try a.captured("UPDATE person SET age = 32 WHERE id = 1; UPDATE person SET age = 31 WHERE id = 1").isEmpty)
  }

  @Test("five edits of a row become one push of its final state")
  func coalesce() throws {
    let a = try device()
    let before = a.log.count
    for age in 60..<65 { try a.app("UPDATE person SET age = \(age) WHERE id = 1") }
    try a.stamp()
    #expect(try a.changes(from: before) == ["update person age"])
  }

  @Test("case 1: REPLACE on the same key is an update of the same record")
  func replaceSameKey() throws {
    let a = try device()
    let name = try a.replica.recordName(table: "person", key: [.integer(1)])
    #expect(try a.captured("INSERT OR REPLACE INTO person VALUES (1, 'ann', 33, 'x')") == ["update person age"])
    #expect(try a.replica.recordName(table: "person", key: [.integer(1)]) == name)
  }

  @Test(
    "case 3: REPLACE that removes another row because of a unique field deletes that row", arguments: [false, true])
  func replaceVictim(recursive: Bool) throws {
    let a = try device()
    if recursive { try a.database.execute("PRAGMA recursive_triggers = ON") }
    #expect(
      try a.captured("INSERT OR REPLACE INTO person VALUES (9, 'ann', 1, 'new')") == ["delete person", "insert person"])
    #expect(
      try a.captured("UPDATE OR REPLACE person SET name = 'cyd' WHERE id = 2") == [
        "delete person", "update person name",
      ])
  }

  @Test("case 2: REPLACE that hits two rows leaves one record")
  func replaceTwo() throws {
    let a = try device()
    let b = try Device(2, people)
    try settle(a, b)
    try a.app("INSERT OR REPLACE INTO person VALUES (1, 'bob', 1, 'both')")
    try settle(a, b)
    #expect(try b.rows("SELECT name, note FROM person ORDER BY name") == ["bob|both", "cyd|z"])
  }

  @Test("case 4: a key moved onto a live key keeps the mover's record and deletes the other")
  func moveOntoLive() throws {
    let a = try device()
    let ann = try a.replica.recordName(table: "person", key: [.integer(1)])
    #expect(try a.captured("UPDATE OR REPLACE person SET id = 2 WHERE id = 1") == ["delete person"])
    #expect(try a.replica.recordName(table: "person", key: [.integer(2)]) == ann)
  }

  @Test("case 10: keys swapped through a third keep their records, and nothing is sent: the key is this device's own")
  func swap() throws {
    let a = try device()
    let (ann, bob) = (
      try a.replica.recordName(table: "person", key: [.integer(1)]),
      try a.replica.recordName(table: "person", key: [.integer(2)])
    )
    #expect(
      try a.captured(
        "UPDATE person SET id = 99 WHERE id = 1; UPDATE person SET id = 1 WHERE id = 2; UPDATE person SET id = 2 WHERE id = 99"
      ).isEmpty)
    #expect(try a.replica.recordName(table: "person", key: [.integer(1)]) == bob)
    #expect(try a.replica.recordName(table: "person", key: [.integer(2)]) == ann)
    #expect(try a.captured("UPDATE person SET id = id + 100").isEmpty)
    #expect(try a.replica.recordName(table: "person", key: [.integer(102)]) == ann)
  }

  @Test("case 7: DELETE without WHERE deletes every record")
  func truncate() throws {
    let a = try device()
    #expect(try a.captured("DELETE FROM person") == ["delete person", "delete person", "delete person"])
  }

  @Test("case 8: a row inserted and deleted before anybody looked is nobody's business")
  func shortLived() throws {
    let a = try device()
    #expect(try a.captured("INSERT INTO person VALUES (7, 'x', 1, ''); DELETE FROM person WHERE id = 7").isEmpty)
  }

  @Test("case 9: a key used again for something else is another record; a row written back is the same")
  func reuse() throws {
    let a = try device()
    let cyd = try a.replica.recordName(table: "person", key: [.integer(3)])
    #expect(
      try a.captured("DELETE FROM person WHERE id = 3; INSERT INTO person VALUES (3, 'cyd', 51, 'z')") == [
        "update person age"
      ])
    #expect(try a.replica.recordName(table: "person", key: [.integer(3)]) == cyd)
    #expect(
      try a.captured("DELETE FROM person WHERE id = 3; INSERT INTO person VALUES (3, 'dan', 20, 'other')") == [
        "delete person", "insert person",
      ])
    #expect(try a.replica.recordName(table: "person", key: [.integer(3)]) != cyd)
    // Also when the delete was sent before.
    #expect(try a.captured("DELETE FROM person WHERE id = 3") == ["delete person"])
    #expect(try a.captured("INSERT INTO person(id, name) VALUES (3, 'eve')") == ["insert person"])
  }

  @Test("case 47: edits that only SQLite's comparison takes for equal are sent")
  func subtle() throws {
    let a = try device(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x, y TEXT COLLATE NOCASE);", rows: "INSERT INTO t VALUES (1, 1, 'abc')")
    #expect(try a.captured("UPDATE t SET y = 'ABC'") == ["update t y"])
    #expect(try a.captured("UPDATE t SET x = 1.0") == ["update t x"])
    #expect(try a.captured("UPDATE t SET x = '1'") == ["update t x"])
    #expect(try a.captured("UPDATE t SET x = x'31'") == ["update t x"])
    #expect(try a.captured("UPDATE t SET x = -0.0") == ["update t x"])
    #expect(try a.captured("UPDATE t SET x = 0.0") == ["update t x"])
  }

  @Test("case 28: what the app's own trigger makes of a row is what is sent")
  func appTrigger() throws {
    let a = try device(
      people
        + "CREATE TRIGGER upper_name AFTER INSERT ON person BEGIN UPDATE person SET name = upper(NEW.name) WHERE id = NEW.id; END;"
    )
    let b = try Device(2, people)
    try a.app("INSERT INTO person VALUES (4, 'dan', 1, '')")
    try settle(a, b)
    #expect(try b.row("SELECT name FROM person WHERE id = 4") == "DAN")
  }

  @Test("case 27: rows inserted through a view are captured in its table")
  func view() throws {
    let a = try device(
      people
        + """
        CREATE VIEW names AS SELECT id, name FROM person;
        CREATE TRIGGER into_names INSTEAD OF INSERT ON names BEGIN INSERT INTO person(id, name) VALUES (NEW.id, NEW.name); END;
        """)
    #expect(try a.captured("INSERT INTO names VALUES (8, 'via')") == ["insert person"])
  }

  @Test("case 58: changes(), last_insert_rowid() and RETURNING are what they are without us")
  func sideEffects() throws {
    let a = try device()
    try a.database.run("INSERT INTO person VALUES (70, 'x', 1, '')")
    #expect(a.database.changes == 1)
    #expect(a.database.lastInsertedRow == 70)
    #expect(try a.row("SELECT last_insert_rowid(), changes()") == "70|1")
    try a.database.run("UPDATE person SET age = 1 WHERE id < 3")
    #expect(a.database.changes == 2)
    #expect(try a.row("DELETE FROM person WHERE id = 70 RETURNING name") == "x")
    #expect(a.database.changes == 1)
  }

  @Test("an old edit is not re-dated by a later edit of another row")
  func clusters() throws {
    let a = try device()
    let b = try Device(2, people)
    try settle(a, b)
    let start = a.now
    try a.app("UPDATE person SET age = 100 WHERE id = 1")
    b.now = start + 60_000
    try b.app("UPDATE person SET age = 200 WHERE id = 1")
    a.now = start + 120_000
    try a.app("UPDATE person SET age = 300 WHERE id = 2")
    let groups = a.log.count
    try settle(a, b)
    #expect(a.log.count == groups + 2, "edits a minute apart are two groups")
    #expect(try a.rows("SELECT age FROM person WHERE id < 3 ORDER BY id") == ["200", "300"])
  }

  @Test("case 49: an edit on top of a received value beats it, though the clock was set back")
  func clockSetBack() throws {
    let a = try device()
    let b = try Device(2, people)
    b.now = a.now + 300_000
    try settle(a, b)
    try b.app("UPDATE person SET age = 77 WHERE id = 1")
    try settle(a, b)
    a.now -= 500_000
    try a.app("UPDATE person SET age = 78 WHERE id = 1")
    try settle(a, b)
    #expect(try b.row("SELECT age FROM person WHERE id = 1") == "78")
  }

  @Test("an edit dated later than now is not believed")
  func clockWasAhead() throws {
    let a = try device()
    let now = a.now
    a.now = now + 1_000_000_000
    try a.app("UPDATE person SET age = 1 WHERE id = 1")
    a.now = now
    try a.stamp()
    #expect(try #require(a.log.last).hlc.milliseconds <= now + 1)
  }

  @Test("a large log is taken in parts, and what is not taken yet stays")
  func parts() throws {
    let a = try Device(1, people)
    let b = try Device(2, people)
    for i in 1...50 { try a.app("INSERT INTO person(id, age) VALUES (\(i), \(i))") }
    var passes = 0
    while try a.stamp(limit: 7).more { passes += 1 }
    #expect(passes >= 7)
    try settle(a, b)
    #expect(try b.row("SELECT count(*), sum(age) FROM person") == "50|1275")
  }
}

@Suite("A log that is taken in parts")
struct PartialPassTests {
  @Test("what is not stamped yet is not overwritten by what follows from what is")
  func unstampedStays() throws {
    let schema = """
      CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, note TEXT);
      CREATE TABLE c(id INTEGER PRIMARY KEY, t INTEGER REFERENCES t(id) ON DELETE SET NULL, note TEXT);
      """
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(
      "INSERT INTO t VALUES (1, 'same', 'older'), (2, 'gone', ''); INSERT INTO c VALUES (1, 2, 'x'), (2, 2, 'y'), (3, 1, 'z')"
    )
    b.now = a.now + 1_000
    try b.app("INSERT INTO t VALUES (1, 'same', 'younger')")
    try settle(a, b)
    #expect(try a.replica.parkedRows().count == 1)
    // The delete frees nothing for `same`, but makes c's rows be shown anew; the rename lets the younger row in.
    try a.app(
      "UPDATE t SET name = 'renamed' WHERE id = 1; DELETE FROM t WHERE id = 2; UPDATE c SET note = 'edited 1' WHERE id = 1; UPDATE c SET note = 'edited 2' WHERE id = 2; UPDATE c SET note = 'edited 3' WHERE id = 3"
    )
    var passes = 0
    while try a.stamp(limit: 1).more {
      passes += 1
      #expect(try a.row("SELECT count(*) FROM c WHERE note LIKE 'edited%'") == "3")
    }
    #expect(passes > 1)
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.rows("SELECT note FROM c ORDER BY note") == ["edited 1", "edited 2", "edited 3"])
      #expect(try device.rows("SELECT count(*) FROM c WHERE t IS NULL") == ["2"])
      #expect(try device.rows("SELECT name FROM t ORDER BY name") == ["renamed", "same"])
    }
    #expect(try a.row("SELECT count(*) FROM lk_after") == "0")
  }
}
