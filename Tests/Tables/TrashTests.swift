import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Deleted rows are kept for thirty days")
struct TrashTests {
  let schema = """
    CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id) ON DELETE CASCADE,
      other INTEGER REFERENCES account(id) ON DELETE SET NULL, cents INTEGER);
    CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE entry_tag(entry INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE, tag INTEGER NOT NULL REFERENCES tag(id),
      PRIMARY KEY (entry, tag));
    """
  let rows = """
    INSERT INTO account VALUES (1, 'Bank'), (2, 'Cash');
    INSERT INTO entry VALUES (1, 1, 2, 100), (2, 1, NULL, 200), (3, 2, 1, 300);
    INSERT INTO tag VALUES (1, 'food'), (2, 'rent');
    INSERT INTO entry_tag VALUES (1, 1), (1, 2), (3, 1);
    """

  func pair() throws -> (Device, Device) {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app(rows)
    try settle(a, b)
    return (a, b)
  }

  func restore(_ device: Device, key: String, table: String) throws -> Int {
    device.now += 10
    return try device.replica.transaction {
      let entry = try #require(try device.replica.trash().first { $0.key == key && $0.table == table })
      return try device.replica.restoreTrash([entry.id], now: device.now) { device.seal($0) }.count
    }
  }

  @Test(
    "what somebody else deleted is there with its values, by whom and when, and comes back for everybody with its links"
  )
  func others() throws {
    let (a, b) = try pair()
    let before = try shownRows(b)
    try a.app("PRAGMA foreign_keys = ON; DELETE FROM account WHERE id = 1; PRAGMA foreign_keys = OFF;")
    let at = a.now
    try settle(a, b)
    #expect(try b.row("SELECT count(*) FROM entry") == "1")
    #expect(try b.row("SELECT other FROM entry WHERE id = 3") == "NULL")
    let trash = try b.replica.trash()
    #expect(
      Set(trash.map { "\($0.table) \($0.key ?? "")" }) == [
        "account 1", "entry 1", "entry 2", "entry_tag 1,1", "entry_tag 1,2",
      ])
    let account = try #require(trash.first { $0.table == "account" })
    #expect(account.author == a.origin.device && account.deletedAt == at)
    #expect(account.cells?.first { $0.column == "name" }?.value == .text(Array("Bank".utf8)))
    #expect(try restore(b, key: "1", table: "account") == 5)
    #expect(try b.replica.trash().isEmpty)
    #expect(try shownRows(b) == before)
    try settle(a, b)
    try expectSame(a, b, "after restoring")
    #expect(try a.replica.trash().isEmpty)
    #expect(try a.row("SELECT count(*) FROM entry_tag") == "3")
  }

  @Test("a row brings back what it cannot be without")
  func parents() throws {
    let (a, b) = try pair()
    try a.app("DELETE FROM entry_tag WHERE entry = 3; DELETE FROM entry WHERE id = 3;")
    a.now += 10_000
    try a.app("DELETE FROM account WHERE id = 2;")
    try settle(a, b)
    #expect(try restore(b, key: "3", table: "entry") == 3)
    try settle(a, b)
    #expect(
      try a.row("SELECT e.cents, a.name FROM entry e JOIN account a ON a.id = e.account WHERE e.cents = 300")
        == "300|Cash")
    #expect(try a.row("SELECT count(*) FROM entry_tag") == "3")
  }

  @Test("an edit made after the deletion comes back with the row")
  func edited() throws {
    let (a, b) = try pair()
    try b.app("UPDATE tag SET name = 'Food & drink' WHERE id = 1;")
    b.now += 60_000
    try b.app("UPDATE tag SET name = 'flat' WHERE id = 2;")
    try b.stamp()
    a.now += 30_000
    try a.app("DELETE FROM entry_tag; DELETE FROM tag;")
    try settle(a, b)
    #expect(try restore(b, key: "2", table: "tag") == 2)
    #expect(try b.row("SELECT name FROM tag") == "flat")
    try settle(a, b)
    #expect(try a.row("SELECT name FROM tag") == "flat")
  }

  @Test("what the app here deleted has no values until somebody else's are filled in")
  func own() throws {
    let (a, b) = try pair()
    let name = try #require(try a.replica.recordName(table: "tag", key: [.integer(2)]))
    let known = try #require(try b.replica.record(name))
    try a.app("DELETE FROM entry_tag WHERE tag = 2; DELETE FROM tag WHERE id = 2;")
    try settle(a, b)
    let entry = try #require(try a.replica.trash().first { $0.table == "tag" })
    #expect(entry.cells == nil && entry.author == a.origin.device && entry.key == "2")
    #expect(throws: TablesError.self) {
      try a.replica.transaction { try a.replica.restoreTrash([entry.id], now: a.now) { a.seal($0) } }
    }
    #expect(try a.replica.lackingValues(toRestore: [entry.id]).count == 2)
    try a.replica.transaction { try a.replica.fillTrash([("tag", name, known)]) }
    #expect(try restore(a, key: "2", table: "tag") == 1)
    try settle(a, b)
    #expect(try b.row("SELECT name FROM tag ORDER BY 1") == "food;rent")
    // What was deleted with it on the other device came back there by itself or not at all, the same on both.
    try expectSame(a, b, "after restoring")
  }

  @Test("after thirty days the trash is empty, and what is not in it is not restored")
  func pruned() throws {
    let (a, b) = try pair()
    try a.app("DELETE FROM entry_tag; DELETE FROM tag;")
    try settle(a, b)
    #expect(try b.replica.trash().count == 5)
    b.now += Replica.journalTime + 1
    try b.replica.transaction { try b.replica.prune(now: b.now) }
    #expect(try b.replica.trash().isEmpty)
    #expect(throws: TablesError.self) {
      try b.replica.transaction { try b.replica.restoreTrash([1], now: b.now) { b.seal($0) } }
    }
  }
}
