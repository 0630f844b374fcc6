import Foundation
import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

/// A folder that is removed with the value.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("latchkey-tables-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String, _ script: String) throws -> String {
    let file = path + "/" + name
    let connection = try Connection(file, mode: .create)
    try connection.execute(script)
    return file
  }

  func bytes(_ file: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file))) }
  var files: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }
}

func schemaDump(_ connection: Connection) throws -> [String] {
  try connection.rows("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid").map {
    $0.map(show).joined(separator: "|")
  }
    + connection.rows("SELECT name FROM sqlite_schema WHERE name = 'sqlite_sequence'").flatMap { _ in
      try connection.rows("SELECT * FROM sqlite_sequence ORDER BY name").map { $0.map(show).joined(separator: "|") }
    }
}

private let budget = """
  CREATE TABLE account(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT COLLATE NOCASE UNIQUE, CHECK (length(name) > 0));
  CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id) ON DELETE CASCADE, cents INTEGER DEFAULT 0, note TEXT);
  CREATE INDEX entry_note ON entry(note) WHERE note IS NOT NULL;
  CREATE VIEW totals AS SELECT account, sum(cents) AS cents FROM entry GROUP BY account;
  CREATE TABLE audit(at INTEGER, what TEXT);
  CREATE TRIGGER log_entries AFTER INSERT ON entry BEGIN INSERT INTO audit VALUES (1, 'entry ' || NEW.cents); END;
  CREATE VIRTUAL TABLE search USING fts5(note);
  INSERT INTO account(name) VALUES ('cash'), ('bank');
  INSERT INTO entry VALUES (1, 1, 250, 'milk');
  """

@Suite("Attaching and detaching a file")
struct AttachTests {
  @Test("a survey changes not one byte and leaves no file behind", arguments: ["DELETE", "WAL"])
  func dryRun(mode: String) throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", "PRAGMA journal_mode = \(mode);" + budget)
    let before = try folder.bytes(file)
    let survey = try Replica.survey(path: file)
    #expect(survey.syncing.map(\.name) == ["account", "entry"])
    #expect(try folder.bytes(file) == before)
    #expect(try folder.files == ["app.db"])
    #expect(throws: TablesError.noTable("missing")) { try Replica.survey(path: file, tables: ["missing"]) }
    #expect(try folder.bytes(file) == before)
  }

  @Test("detaching restores the schema, its order and the sequences; the rows stay", arguments: [false, true])
  func detach(used: Bool) throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", budget)
    let before = try schemaDump(Connection(file, mode: .readOnly))
    try Replica.attach(path: file, zone: Device.binding(1))
    if used {
      let replica = try Replica(path: file)
      try replica.transaction {
        _ = try replica.stamp(now: 5_000) { _ in 1 }
        try replica.setValue("engine", [1, 2])
        try replica.enqueue(
          household: Device.household, zone: Device.zone, name: "x", bytes: [1], sequence: 1, rows: [("entry", 1)])
      }
      try Connection(file, mode: .readWrite).execute("UPDATE entry SET cents = 260")
    }
    #expect(try schemaDump(Connection(file, mode: .readOnly)) != before)
    try Replica.detach(path: file)
    let after = try Connection(file, mode: .readOnly)
    #expect(try schemaDump(after) == before)
    #expect(try after.integer("SELECT cents FROM entry") == (used ? 260 : 250))
    #expect(throws: TablesError.notAttached) { try Replica.detach(path: file) }
  }

  @Test("case 55: attaching again changes nothing; attaching elsewhere is refused")
  func idempotent() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", budget)
    let first = try Replica.attach(path: file, zone: Device.binding(1))
    let dump = try schemaDump(Connection(file, mode: .readOnly))
    let second = try Replica.attach(path: file, zone: Device.binding(1))
    #expect(try schemaDump(Connection(file, mode: .readOnly)) == dump)
    #expect(first.syncing == second.syncing)
    #expect(throws: TablesError.alreadyAttachedElsewhere) { try Replica.attach(path: file, zone: Device.binding(2)) }
    #expect(try Replica.binding(path: file) == Device.binding(1))
  }

  @Test("every table gets a verdict and a reason")
  func verdicts() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file(
      "app.db",
      """
      CREATE TABLE good(id INTEGER PRIMARY KEY); CREATE TABLE nokey(x); CREATE TABLE android_metadata(locale TEXT);
      CREATE TABLE user_sessions(id INTEGER PRIMARY KEY, token TEXT); CREATE TABLE keyed(k TEXT PRIMARY KEY);
      CREATE TABLE child(id INTEGER PRIMARY KEY, good_id INTEGER, keyed TEXT);
      CREATE VIRTUAL TABLE find USING fts5(x); CREATE TABLE grdb_migrations(identifier TEXT PRIMARY KEY);
      """)
    let survey = try Replica.survey(path: file)
    let verdicts = Dictionary(uniqueKeysWithValues: survey.tables.map { ($0.name, $0.verdict) })
    #expect(verdicts["good"] == .sync)
    #expect(verdicts["keyed"] == .sync)
    #expect(verdicts["nokey"] == .refused)
    #expect(verdicts["android_metadata"] == .local)
    #expect(verdicts["grdb_migrations"] == .local)
    #expect(verdicts["user_sessions"] == .ask)
    #expect(verdicts["find"] == .refused)
    #expect(verdicts["find_content"] == .refused)
    #expect(survey.tables.allSatisfy { !$0.reason.isEmpty })
    #expect(survey.tables.first { $0.name == "good" }?.identity == .generated)
    #expect(survey.tables.first { $0.name == "keyed" }?.identity == .primaryKey)
    #expect(survey.tables.first { $0.name == "child" }?.suspectedReferences.map(\.columns) == [["good_id"]])
    let named = try Replica.survey(path: file, tables: ["user_sessions"])
    #expect(named.syncing.map(\.name) == ["user_sessions"])
    #expect(throws: TablesError.self) { try Replica.attach(path: file, tables: ["nokey"], zone: Device.binding(1)) }
    #expect(try Replica.binding(path: file) == nil)
  }

  @Test("rules about tables and columns that do not exist are told, not ignored")
  func badRules() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file(
      "app.db", "CREATE TABLE a(id INTEGER PRIMARY KEY, x INTEGER NOT NULL); CREATE TABLE b(id INTEGER PRIMARY KEY)")
    func refusal(_ rules: Rules) -> TablesError? {
      do {
        try Replica.attach(path: file, rules: rules, zone: Device.binding(1))
        return nil
      } catch { return error }
    }
    #expect(refusal(Rules(tables: ["nope": TableRules()])) == .noTable("nope"))
    #expect(refusal(Rules(tables: ["a": TableRules(localColumns: ["y"])])) == .noColumn(table: "a", column: "y"))
    #expect(refusal(Rules(tables: ["a": TableRules(references: ["x": ReferenceRule(table: "c")])])) == .noTable("c"))
    #expect(
      refusal(Rules(tables: ["a": TableRules(references: ["x": ReferenceRule(table: "b", onDelete: .null)])])) != nil)
    #expect(refusal(Rules(tables: ["a": TableRules(localColumns: ["id"])])) != nil)
    #expect(refusal(Rules(tables: ["a": TableRules(references: ["x": ReferenceRule(table: "b")])])) == nil)
  }

  @Test("what is no usable database is told apart")
  func unusable() throws {
    let folder = try TemporaryFolder()
    let zone = Device.binding(1)
    #expect(throws: TablesError.missingFile(path: folder.path + "/none.db")) {
      try Replica.attach(path: folder.path + "/none.db", zone: zone)
    }
    #expect(try folder.files.isEmpty)
    let text = folder.path + "/text.db"
    try Data(repeating: 65, count: 9_000).write(to: URL(fileURLWithPath: text))
    #expect(throws: TablesError.notADatabase(path: text)) { try Replica.attach(path: text, zone: zone) }
    #expect(throws: TablesError.notADatabase(path: text)) { try Replica.survey(path: text) }
    let empty = try folder.file("empty.db", "CREATE TABLE nokey(x)")
    do {
      try Replica.attach(path: empty, zone: zone)
      Issue.record("attached")
    } catch TablesError.noTableCanSync(let reasons) {
      #expect(reasons.count == 1)
    }
    let taken = try folder.file("taken.db", "CREATE TABLE a(id INTEGER PRIMARY KEY); CREATE TABLE lk_mine(x)")
    #expect(throws: TablesError.nameTaken("lk_mine")) { try Replica.attach(path: taken, zone: zone) }
    let held = try folder.file("held.db", "CREATE TABLE a(id INTEGER PRIMARY KEY)")
    let holder = try Connection(held, mode: .readWrite)
    try holder.execute("BEGIN IMMEDIATE")
    do {
      let connection = try Connection(held, mode: .readWrite, busyTimeout: 1)
      try Replica.attach(connection, zone: zone)
      Issue.record("attached")
    } catch TablesError.busy {}
    try holder.execute("ROLLBACK")
    #expect(try Replica.binding(path: held) == nil)
  }

  @Test("a file from a newer version is left alone")
  func newer() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", "CREATE TABLE a(id INTEGER PRIMARY KEY)")
    try Replica.attach(path: file, zone: Device.binding(1))
    try Connection(file, mode: .readWrite).execute("UPDATE lk_state SET value = 99 WHERE key = 'version'")
    #expect(throws: TablesError.newerFormat(99)) { try Replica(path: file) }
  }

  @Test("case 21b: writes of another process are captured")
  func shell() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", budget)
    try Replica.attach(path: file, zone: Device.binding(1))
    let replica = try Replica(path: file)
    try replica.transaction { _ = try replica.stamp(now: .max >> 20) { _ in 1 } }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "sqlite3", file,
      "UPDATE entry SET cents = 999; INSERT INTO account(name) VALUES ('from the shell'); DELETE FROM account WHERE name = 'bank'",
    ]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(try replica.hasUnstampedChanges())
    var tables: [String] = []
    try replica.transaction {
      _ = try replica.stamp(now: .max >> 20) { group in
        tables += group.rowsByTable.map { "\($0.table) \($0.count)" }
        return 2
      }
    }
    #expect(tables.sorted() == ["account 2", "entry 1"])
  }

  @Test("case 21: an app that writes while rows are applied waits, and its write is captured")
  func concurrentWriter() throws {
    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", "PRAGMA journal_mode = WAL; CREATE TABLE a(id INTEGER PRIMARY KEY, x)")
    try Replica.attach(path: file, zone: Device.binding(1))
    let replica = try Replica(path: file)
    try replica.transaction { _ = try replica.stamp(now: 5_000) { _ in 1 } }
    let app = try Connection(file, mode: .readWrite, busyTimeout: 1)
    try replica.transaction {
      try replica.withoutCapture {
        #expect(throws: SQLiteError.busy) { try app.run("INSERT INTO a VALUES (1, 'app')") }
        let applying = try app.integer("SELECT applying FROM lk_gate")
        #expect(applying == 0, "others never see the gate closed")
      }
    }
    try app.run("INSERT INTO a VALUES (1, 'app')")
    #expect(try replica.hasUnstampedChanges())
  }

  @Test("case 56: a name of ours in the app's temporary tables deceives nobody")
  func temporaryTable() throws {
    let a = try Device(1, "CREATE TABLE t(id INTEGER PRIMARY KEY, x)")
    try a.database.execute("CREATE TEMP TABLE lk_gate(one, applying); INSERT INTO temp.lk_gate VALUES (1, 1)")
    #expect(try a.captured("INSERT INTO t VALUES (1, 2)") == ["insert t"])
  }
}
