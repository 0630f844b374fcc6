import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let notes = "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT);"

@Suite("Two devices exchange push groups")
struct ExchangeTests {
  @Test("case 22: an inserted row appears on the other device, and nothing is pushed back")
  func insert() throws {
    let a = try Device(1, notes)
    let b = try Device(2, notes)
    try a.app("INSERT INTO note VALUES (1, 'milk', 'two')")
    try settle(a, b)
    #expect(try b.row("SELECT * FROM note") == "1|milk|two")
    let sent = b.log.count
    try b.stamp()
    #expect(b.log.count == sent)
  }

  @Test("rows that were there before attaching are pushed by the first pass")
  func firstPass() throws {
    let a = try Device(1, notes + "INSERT INTO note VALUES (1, 'a', NULL), (2, 'b', x'00ff');")
    let b = try Device(2, notes)
    try settle(a, b)
    #expect(try b.rows("SELECT * FROM note ORDER BY id") == ["1|a|NULL", "2|b|x00ff"])
  }

  @Test("different fields of one row edited on both sides both survive; of one field the later edit wins on both")
  func fields() throws {
    let a = try Device(1, notes)
    let b = try Device(2, notes)
    try a.app("INSERT INTO note VALUES (1, 'milk', 'two')")
    try settle(a, b)
    try a.app("UPDATE note SET title = 'cream'")
    b.now = a.now
    try b.app("UPDATE note SET body = 'three'")
    try settle(a, b)
    #expect(try a.row("SELECT * FROM note") == "1|cream|three")
    #expect(try b.row("SELECT * FROM note") == "1|cream|three")
    a.now += 100
    b.now = a.now + 50
    try a.app("UPDATE note SET title = 'from a'")
    try b.app("UPDATE note SET title = 'from b, later'")
    try settle(a, b)
    #expect(try a.row("SELECT title FROM note") == "from b, later")
    #expect(try b.row("SELECT title FROM note") == "from b, later")
  }

  @Test("two devices that inserted the same integer key keep both rows")
  func keyCollision() throws {
    let a = try Device(1, notes)
    let b = try Device(2, notes)
    try a.app("INSERT INTO note VALUES (1, 'of a', NULL)")
    try b.app("INSERT INTO note VALUES (1, 'of b', NULL)")
    try settle(a, b)
    #expect(try a.rows("SELECT title FROM note ORDER BY title") == ["of a", "of b"])
    #expect(try b.rows("SELECT title FROM note ORDER BY title") == ["of a", "of b"])
    #expect(try a.row("SELECT id FROM note WHERE title = 'of a'") == "1", "a local key is never changed")
    #expect(try b.row("SELECT id FROM note WHERE title = 'of b'") == "1", "a local key is never changed")
    let sent = (a.log.count, b.log.count)
    try settle(a, b)
    #expect((a.log.count, b.log.count) == sent)
  }

  @Test("a delete wins over a concurrent edit, on both")
  func deleteAndEdit() throws {
    let a = try Device(1, notes)
    let b = try Device(2, notes)
    try a.app("INSERT INTO note VALUES (1, 'milk', 'two')")
    try settle(a, b)
    try a.app("DELETE FROM note")
    b.now = a.now + 500
    try b.app("UPDATE note SET title = 'cream'")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM note").isEmpty)
    #expect(try b.rows("SELECT * FROM note").isEmpty)
  }

  @Test("a device that joins with an empty file gets the tables and the rows")
  func join() throws {
    let a = try Device(
      1, notes + "CREATE INDEX by_title ON note(title DESC); CREATE TABLE \"local stuff\"(x TEXT DEFAULT 'it''s');")
    try a.app("INSERT INTO note VALUES (1, 'milk', 'two'), (2, 'eggs', NULL); PRAGMA user_version = 12")
    try a.stamp()
    let c = try Device(joining: 3)
    try c.pull(a)
    #expect(try c.rows("SELECT * FROM note ORDER BY id") == ["1|milk|two", "2|eggs|NULL"])
    #expect(try c.row("PRAGMA user_version") == "12")
    #expect(try c.rows("SELECT * FROM \"local stuff\"").isEmpty)
    try c.app("UPDATE note SET body = 'six' WHERE id = 2")
    try settle(a, c)
    #expect(try a.row("SELECT body FROM note WHERE id = 2") == "six")
    #expect(c.log.count == 1, "a joined device does not repeat the notes")
  }
}
