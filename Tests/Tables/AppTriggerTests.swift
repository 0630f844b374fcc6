import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("The app's own triggers")
struct AppTriggerTests {
  private static let local = Rules(tables: ["audit": TableRules(isLocal: true), "total": TableRules()])

  private static let schema = """
    CREATE TABLE entry(id INTEGER PRIMARY KEY, cents INTEGER, changed INTEGER DEFAULT 0);
    CREATE TABLE total(id INTEGER PRIMARY KEY, cents INTEGER);
    CREATE TABLE audit(id INTEGER PRIMARY KEY, what TEXT);
    CREATE VIRTUAL TABLE search USING fts5(what);
    """
  private static let counting =
    "CREATE TRIGGER counting AFTER INSERT ON entry BEGIN UPDATE total SET cents = cents + NEW.cents; END;"
  private static let auditing =
    "CREATE TRIGGER auditing AFTER INSERT ON entry BEGIN INSERT INTO audit(what) VALUES ('entry of ' || NEW.cents); END;"
  private static let indexing =
    "CREATE TRIGGER indexing AFTER INSERT ON entry BEGIN INSERT INTO search(rowid, what) VALUES (NEW.id, 'cents ' || NEW.cents); END;"
  private static let touching =
    "CREATE TRIGGER touching AFTER UPDATE OF cents ON entry BEGIN UPDATE entry SET changed = changed + 1 WHERE id = NEW.id; END;"

  private func pair(_ triggers: String...) throws -> (Device, Device) {
    let script = Self.schema + triggers.joined()
    let a = try Device(1, script, rules: Self.local)
    let b = try Device(2, script, rules: Self.local)
    try a.app("INSERT INTO total VALUES (1, 0)")
    try settle(a, b)
    return (a, b)
  }

  @Test("case 26: a trigger of the app that writes a synced table does not run again on applied rows")
  func synced() throws {
    let (a, b) = try pair(Self.counting, Self.touching)
    try a.app("INSERT INTO entry(id, cents) VALUES (1, 250); UPDATE entry SET cents = 300 WHERE id = 1")
    try settle(a, b)
    #expect(try b.row("SELECT cents FROM total") == "250")
    #expect(try b.row("SELECT cents, changed FROM entry") == "300|1")
    try b.app("INSERT INTO entry(id, cents) VALUES (2, 50)")
    try settle(a, b)
    #expect(try a.row("SELECT cents FROM total") == "300", "it still runs for the app")
  }

  @Test("case 25: a trigger of the app that keeps local tables runs once for applied rows")
  func local() throws {
    let (a, b) = try pair(Self.auditing, Self.indexing)
    try a.app("INSERT INTO entry(id, cents) VALUES (1, 250)")
    try settle(a, b)
    #expect(try b.rows("SELECT what FROM audit") == ["entry of 250"])
    #expect(try b.row("SELECT rowid FROM search WHERE search MATCH '250'") == "1")
    #expect(try a.rows("SELECT what FROM audit") == ["entry of 250"])
  }

  @Test("with both kinds each does its part, and the schema's dump stays the same")
  func mixed() throws {
    let (a, b) = try pair(
      Self.counting, "CREATE VIEW sums AS SELECT sum(cents) FROM entry;", Self.auditing,
      "CREATE INDEX by_cents ON entry(cents);", Self.touching)
    let dump = try schemaDump(b.database)
    try a.app("INSERT INTO entry(id, cents) VALUES (1, 250); UPDATE entry SET cents = 260")
    try settle(a, b)
    #expect(try b.row("SELECT cents FROM total") == "250")
    #expect(try b.row("SELECT cents, changed FROM entry") == "260|1")
    #expect(try b.rows("SELECT what FROM audit") == ["entry of 260"])
    #expect(try schemaDump(b.database) == dump)
    try b.app("INSERT INTO entry(id, cents) VALUES (2, 5)")
    try settle(a, b)
    #expect(try a.row("SELECT cents FROM total") == "255")
    #expect(try a.rows("SELECT what FROM audit") == ["entry of 250", "entry of 5"])
  }

  @Test("one that refuses a row parks it and holds up nothing else")
  func refusing() throws {
    for action in ["SELECT RAISE(ABORT, 'not this one')", "SELECT RAISE(IGNORE)"] {
      let a = try Device(1, Self.schema, rules: Self.local)
      let b = try Device(
        2, Self.schema + "CREATE TRIGGER guard BEFORE INSERT ON entry WHEN NEW.cents = 13 BEGIN \(action); END;",
        rules: Self.local)
      try a.app("INSERT INTO entry(id, cents) VALUES (1, 13), (2, 14)")
      try settle(a, b)
      #expect(try b.rows("SELECT cents FROM entry") == ["14"])
      #expect(try b.replica.parkedRows().count == 1)
      try b.app("DROP TRIGGER guard")
      try settle(a, b)
      #expect(try b.rows("SELECT cents FROM entry ORDER BY id") == ["13", "14"])
    }
  }
}
