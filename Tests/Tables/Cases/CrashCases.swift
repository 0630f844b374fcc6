import Foundation
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Numbered cases: ends at any moment")
struct CrashCases {
  private static let schema = """
    CREATE TABLE t(id INTEGER PRIMARY KEY, x);
    CREATE TABLE big(id INTEGER PRIMARY KEY, x BLOB);
    """

  /// The files of a database as they lie on the disk at this moment: what a process that is killed leaves.
  private func killed(_ folder: TemporaryFolder, _ name: String, as copy: String) throws -> String {
    for suffix in ["", "-wal", "-journal"] {
      let from = "\(folder.path)/\(name)\(suffix)"
      if FileManager.default.fileExists(atPath: from) {
        try FileManager.default.copyItem(atPath: from, toPath: "\(folder.path)/\(copy)\(suffix)")
      }
    }
    return "\(folder.path)/\(copy)"
  }

  @Test(
    "case 20: a process that is killed while rows are applied leaves the gate open and no part of a row",
    arguments: ["DELETE", "WAL"], [false, true])
  func killedWhileApplying(mode: String, spills: Bool) throws {
    let source = try Device(1, Self.schema)
    try source.app("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    for id in 1...40 { try source.app("INSERT INTO big VALUES (\(id), randomblob(20000))") }
    try source.stamp()

    let folder = try TemporaryFolder()
    let file = try folder.file("app.db", "PRAGMA journal_mode = \(mode);" + Self.schema)
    try Replica.attach(path: file, zone: Device.binding(2))
    let replica = try Replica(path: file)
    // A small cache writes pages of the open transaction to the disk.
    if spills { try replica.database.execute("PRAGMA cache_size = 5; PRAGMA cache_spill = 5") }
    var copy = ""
    try replica.transaction {
      _ = try replica.apply(source.log, now: source.now + 1_000) { _ in 1 }
      try replica.withoutCapture {
        try replica.database.run("UPDATE t SET x = 'half' WHERE id = 1")
        copy = try killed(folder, "app.db", as: "killed.db")
      }
    }
    let after = try Replica(path: copy)
    #expect(try after.database.integer("SELECT applying FROM lk_gate") == 0)
    #expect(try after.database.integer("SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM big)") == 0)
    #expect(try after.database.rows("PRAGMA integrity_check") == [[SQLiteValue("ok")]])
    try after.database.run("INSERT INTO t VALUES (9, 'captured')")
    #expect(try after.hasUnstampedChanges())
    try after.transaction { _ = try after.apply(source.log, now: source.now + 2_000) { _ in 2 } }
    #expect(try after.database.rows("SELECT x FROM t ORDER BY x").map { show($0[0]) } == ["captured", "one", "two"])
    #expect(try after.database.integer("SELECT count(*) FROM big") == 40)
  }

  @Test(
    "case 55b: attaching that is cut off anywhere leaves the file as it was or attached, and is simply done again",
    arguments: ["DELETE", "WAL"])
  func killedWhileAttaching(mode: String) throws {
    let folder = try TemporaryFolder()
    let file = try folder.file(
      "app.db", "PRAGMA journal_mode = \(mode);" + Self.schema + "INSERT INTO t VALUES (1, 'one');")
    let before = try schemaDump(Connection(file, mode: .readOnly))
    let connection = try Connection(file, mode: .readWrite)
    try connection.execute("PRAGMA cache_size = 5; PRAGMA cache_spill = 5; BEGIN IMMEDIATE")
    try Replica.attach(connection, zone: Device.binding(1))
    let copy = try killed(folder, "app.db", as: "killed.db")
    try connection.execute("COMMIT")
    #expect(try schemaDump(Connection(copy, mode: .readWrite)) == before)
    #expect(try Replica.binding(path: copy) == nil)
    try Replica.attach(path: copy, zone: Device.binding(1))
    #expect(try schemaDump(Connection(copy, mode: .readOnly)) == schemaDump(Connection(file, mode: .readOnly)))
    try Replica.detach(path: copy)
    #expect(try schemaDump(Connection(copy, mode: .readOnly)) == before)
  }

  @Test("case 51: a row that is edited after it was read stays in the log, and the next pass sends that field")
  func editedSinceRead() throws {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, x, y)"
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO t VALUES (1, 1, 1)")
    try settle(a, b)
    try a.app("UPDATE t SET x = 2")
    try a.stamp()
    // Between being read and being acknowledged.
    try a.app("UPDATE t SET y = 2")
    let sent = a.log.count
    try b.pull(a)
    #expect(try b.rows("SELECT x, y FROM t") == ["2|1"])
    #expect(try a.replica.hasUnstampedChanges())
    try a.stamp()
    #expect(try a.changes(from: sent) == ["update t y"])
    // Back to what was sent is an edit as well: the other device must not keep what came between.
    try a.app("UPDATE t SET x = 3")
    try a.stamp()
    try a.app("UPDATE t SET x = 2")
    try settle(a, b)
    #expect(try b.rows("SELECT x, y FROM t") == ["2|2"])
  }
}
