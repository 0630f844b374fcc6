import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let schema = """
  CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent INTEGER REFERENCES account(id));
  CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id), cents INTEGER, note TEXT);
  CREATE TABLE currency(code TEXT PRIMARY KEY COLLATE NOCASE, sign TEXT);
  CREATE TABLE payee(id INTEGER PRIMARY KEY, name TEXT UNIQUE, phone TEXT);
  """

private let rows = """
  INSERT INTO account VALUES (1, 'Bank', NULL), (2, 'Savings', 1), (3, 'Cash', NULL);
  INSERT INTO entry VALUES (1, 2, 100, 'a'), (2, 3, 200, 'b'), (3, 3, 200, 'b'), (4, 1, 7, NULL), (5, 1, 8, 'e');
  INSERT INTO currency VALUES ('EUR', '€'), ('USD', '$');
  INSERT INTO payee VALUES (1, 'Shop', '123'), (2, 'Rent', NULL);
  """

private let dump = [
  "SELECT e.cents, e.note, a.name, p.name FROM entry e JOIN account a ON a.id = e.account LEFT JOIN account p ON p.id = a.parent ORDER BY 1, 2, 3",
  "SELECT a.name, p.name FROM account a LEFT JOIN account p ON p.id = a.parent ORDER BY 1",
  "SELECT code, sign FROM currency ORDER BY 1", "SELECT name, phone FROM payee ORDER BY 1",
]

extension Device {
  /// A device that comes with a file of its own into a zone with rows.
  convenience init(bringing number: UInt64, _ script: String, at time: Int64 = 1_000_000) throws {
    try self.init(number, script, at: time, pairing: time)
  }

  @discardableResult
  func pair() throws -> PairingReport {
    try replica.transaction { try replica.pair(now: now) { seal($0) } }
  }

  func content() throws -> [[String]] { try dump.map(rows) }
}

@Suite("A file with rows comes into a zone with rows")
struct PairingTests {
  /// Brings a file to a device that has the rows, and checks that all agree afterwards.
  private func bring(_ script: String, to a: Device) throws -> (device: Device, report: PairingReport) {
    try a.stamp()
    let b = try Device(bringing: 2, script)
    b.now = a.now + 60_000
    try b.stamp()
    #expect(b.log.isEmpty, "nothing is said before the rows were compared")
    try b.pull(a)
    let report = try b.pair()
    try settle(a, b)
    for sql in dump { #expect(try a.rows(sql) == b.rows(sql)) }
    #expect(try !b.replica.isPairing)
    return (b, report)
  }

  @Test("trace: two copies of one emailed file do not double: every row is paired, nothing is sent, local numbers stay")
  func copies() throws {
    let a = try Device(1, schema + rows)
    let before = try a.content()
    let (b, report) = try bring(schema + rows, to: a)
    #expect(report == PairingReport(paired: 12, differing: 0, added: 0, received: 0))
    #expect(try a.content() == before)
    #expect(b.log.isEmpty)
    #expect(try b.rows("SELECT id FROM entry ORDER BY id") == ["1", "2", "3", "4", "5"])
    try b.app("UPDATE entry SET cents = 101 WHERE id = 1; DELETE FROM account WHERE 0")
    try a.app("UPDATE entry SET note = 'edited' WHERE id = 1")
    try settle(a, b)
    #expect(try a.row("SELECT cents, note FROM entry WHERE id = 1") == "101|edited")
    #expect(try b.row("SELECT cents, note FROM entry WHERE id = 1") == "101|edited")
  }

  @Test(
    "rows that only one side has come to the other; equal content pairs whatever the numbers, as often as it occurs")
  func both() throws {
    let a = try Device(1, schema + rows)
    let (b, report) = try bring(
      schema + """
        INSERT INTO account VALUES (11, 'Cash', NULL), (12, 'Bank', NULL), (13, 'Savings', 12), (14, 'New', 13);
        INSERT INTO entry VALUES (1, 11, 200, 'b'), (2, 13, 100, 'a'), (3, 14, 5, 'mine'), (9, 11, 200, 'b'), (10, 11, 200, 'b');
        INSERT INTO currency VALUES ('GBP', '£');
        """, to: a)
    #expect(report == PairingReport(paired: 6, differing: 0, added: 4, received: 6))
    #expect(try a.row("SELECT count(*) FROM entry WHERE cents = 200") == "3")
    #expect(try a.row("SELECT count(*) FROM entry") == "7")
    #expect(
      try a.row("SELECT p.name FROM account a JOIN account p ON p.id = a.parent WHERE a.name = 'New'") == "Savings")
    #expect(try b.row("SELECT count(*) FROM currency") == "3")
  }

  @Test("rows with the same key or unique value are one: the zone's values are shown, the file's can be put back")
  func differing() throws {
    let a = try Device(1, schema + rows)
    let (b, report) = try bring(
      schema + "INSERT INTO currency VALUES ('eur', 'E'); INSERT INTO payee VALUES (7, 'Shop', '999');", to: a)
    #expect(report.paired == 2 && report.differing == 2 && report.added == 0)
    #expect(try b.row("SELECT id, phone FROM payee WHERE name = 'Shop'") == "7|123")
    #expect(try b.row("SELECT code, sign FROM currency WHERE code = 'EUR'") == "EUR|€")
    let journal = try b.replica.journal()
    #expect(Set(journal.map { "\($0.table).\($0.column ?? "")" }) == ["currency.code", "currency.sign", "payee.phone"])
    let phone = try #require(journal.first { $0.column == "phone" })
    #expect(phone.value == .text(Array("999".utf8)) && phone.present == .text(Array("123".utf8)) && phone.key == "7")
    b.now += 10
    try b.replica.transaction { try b.replica.restore(journalEntry: phone.id) }
    try settle(a, b)
    #expect(try a.row("SELECT phone FROM payee WHERE name = 'Shop'") == "999")
    #expect(try b.replica.journal().count == 2)
    #expect(throws: TablesError.self) {
      try b.replica.transaction { try b.replica.restore(journalEntry: phone.id) }
    }
    b.now += Replica.journalTime + 1
    try b.replica.transaction { try b.replica.prune(now: b.now) }
    #expect(try b.replica.journal().isEmpty)
  }

  @Test("in a copy that was edited the edited row is the same row; in a file of its own the same number means nothing")
  func edited() throws {
    let a = try Device(1, schema + rows)
    let (b, report) = try bring(
      schema + rows + "UPDATE entry SET cents = 99 WHERE id = 4; UPDATE account SET name = 'Purse' WHERE id = 1;", to: a
    )
    #expect(report.paired == 12 && report.added == 0)
    #expect(try b.row("SELECT cents FROM entry WHERE id = 4") == "7")
    #expect(try b.row("SELECT name FROM account WHERE id = 1") == "Bank")
    #expect(Set(try b.replica.journal().map(\.column)) == ["cents", "name"])

    let c = try Device(1, schema + "INSERT INTO account VALUES (1, 'Bank', NULL), (2, 'Cash', NULL);")
    let (_, other) = try bring(schema + "INSERT INTO account VALUES (1, 'Purse', NULL), (2, 'Giro', NULL);", to: c)
    #expect(other.paired == 0 && other.added == 2 && other.received == 2)
    #expect(try c.row("SELECT count(*) FROM account") == "4")
  }

  @Test("rows that were added on both sides since the copy have equal numbers and stay two")
  func addedSince() throws {
    let a = try Device(1, schema + rows + "INSERT INTO entry VALUES (6, 1, 80, NULL);")
    let (_, report) = try bring(schema + rows + "INSERT INTO entry VALUES (6, 1, 50, NULL);", to: a)
    #expect(report == PairingReport(paired: 12, added: 1, received: 1))
    #expect(try a.rows("SELECT cents FROM entry WHERE cents IN (50, 80) ORDER BY 1") == ["50", "80"])
  }

  @Test(
    "what the app changes before the rows were compared belongs to the file, and afterwards is an edit like any other")
  func meanwhile() throws {
    let a = try Device(1, schema + rows)
    try a.stamp()
    let b = try Device(bringing: 2, schema + rows)
    b.now = a.now + 60_000
    try b.app(
      "DELETE FROM entry WHERE id = 5; INSERT INTO account VALUES (4, 'New', 1); UPDATE entry SET note = 'x' WHERE id = 1"
    )
    try b.stamp()
    try b.pull(a, groups: 1)
    try b.app("INSERT INTO entry VALUES (6, 4, 60, 'f')")
    try b.pull(a)
    #expect(try b.rows("SELECT id FROM entry ORDER BY id") == ["1", "2", "3", "4", "6"])
    try b.pair()
    try b.app("UPDATE entry SET note = 'y' WHERE id = 1")
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.row("SELECT note FROM entry WHERE cents = 100") == "y")
      #expect(try device.row("SELECT count(*) FROM entry") == "6", "nothing is deleted by comparing")
      #expect(
        try device.row("SELECT a.name FROM entry e JOIN account a ON a.id = e.account WHERE e.note = 'f'") == "New")
    }
  }

  @Test(
    "a row that was deleted in the zone before it was shown does not come, and a column that only the file has is told")
  func deletedAndGrown() throws {
    let a = try Device(1, schema + rows)
    try a.stamp()
    try a.app("DELETE FROM payee WHERE name = 'Rent'")
    let script =
      schema.replacing("phone TEXT", with: "phone TEXT, street TEXT")
      + "INSERT INTO payee VALUES (5, 'Shop', '123', 'Main');"
    try a.stamp()
    let b = try Device(bringing: 2, script)
    b.now = a.now + 10
    try b.pull(a)
    let report = try b.pair()
    #expect(report.paired == 1 && report.differing == 0)
    try settle(a, b)
    #expect(try b.rows("SELECT name, street FROM payee") == ["Shop|Main"])
    try a.app("ALTER TABLE payee ADD COLUMN street TEXT")
    try a.stamp()
    try settle(a, b)
    #expect(try a.rows("SELECT name, street FROM payee") == ["Shop|Main"])
  }

  @Test(
    "rows with keys that refer to rows of their own table, in a circle too, do not differ because of the order of comparing"
  )
  func circles() throws {
    let script = """
      CREATE TABLE folder(guid TEXT PRIMARY KEY, parent TEXT REFERENCES folder(guid), book TEXT REFERENCES book(guid));
      CREATE TABLE book(guid TEXT PRIMARY KEY, root TEXT REFERENCES folder(guid));
      INSERT INTO folder VALUES ('a', 'z', 'b1'), ('m', 'a', NULL), ('z', NULL, 'b1');
      INSERT INTO book VALUES ('b1', 'z');
      """
    let a = try Device(1, script)
    try a.stamp()
    let b = try Device(bringing: 2, script)
    b.now = a.now + 10
    try b.pull(a)
    #expect(try b.pair() == PairingReport(paired: 4))
    #expect(try b.replica.journal().isEmpty)
    try settle(a, b)
    #expect(b.log.isEmpty)
  }

  @Test("it follows the zone's rules and names, not its own")
  func rules() throws {
    let a = try Device(
      1, "CREATE TABLE thing(id INTEGER PRIMARY KEY, uuid TEXT, name TEXT);",
      rules: Rules(tables: ["thing": TableRules(identity: .columns(["uuid"]))]))
    try a.app("INSERT INTO thing VALUES (1, 'u1', 'one'), (2, 'u2', 'two')")
    try a.stamp()
    try a.app("ALTER TABLE thing RENAME COLUMN name TO title")
    try a.stamp()
    let b = try Device(
      bringing: 2,
      "CREATE TABLE thing(id INTEGER PRIMARY KEY, uuid TEXT, title TEXT); INSERT INTO thing VALUES (9, 'u2', 'zwei');")
    b.now = a.now + 10
    try b.pull(a)
    let report = try b.pair()
    #expect(report == PairingReport(paired: 1, differing: 1, added: 0, received: 1))
    try settle(a, b)
    #expect(try b.rows("SELECT id, title FROM thing ORDER BY title") == ["1|one", "9|two"])
  }
}
