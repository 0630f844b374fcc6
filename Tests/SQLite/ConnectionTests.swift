import LatchkeySQLite
import Testing

@Suite("A connection")
struct ConnectionTests {
  private func memory() throws -> Connection { try Connection(":memory:", mode: .create) }

  @Test(
    "gives every value back bit for bit",
    arguments: [
      .null, .integer(.min), .integer(.max), .integer((1 << 53) + 1), .real(-0.0), .real(.infinity),
      .real(.leastNonzeroMagnitude),
      .text([]), .text([0, 65, 0]), .text([0xff, 0xfe]), .blob([]), .blob([0, 1, 2]), SQLiteValue("1"),
    ] as [SQLiteValue])
  func roundTrip(value: SQLiteValue) throws {
    let connection = try memory()
    try connection.execute("CREATE TABLE t(x)")
    try connection.run("INSERT INTO t VALUES (?)", [value])
    #expect(try connection.first("SELECT x FROM t")?[0] == value)
  }

  @Test("tells which constraint was broken, and goes on")
  func constraints() throws {
    let connection = try memory()
    try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT UNIQUE NOT NULL CHECK (x <> 'no'))")
    try connection.run("INSERT INTO t VALUES (1, 'a')")
    func kind(_ sql: String) -> SQLiteError.Constraint? {
      do {
        try connection.run(sql)
        return nil
      } catch SQLiteError.constraint(let kind, _) { return kind } catch { return nil }
    }
    #expect(kind("INSERT INTO t VALUES (2, 'a')") == .unique)
    #expect(kind("INSERT INTO t VALUES (1, 'b')") == .primaryKey)
    #expect(kind("INSERT INTO t VALUES (2, NULL)") == .notNull)
    #expect(kind("INSERT INTO t VALUES (2, 'no')") == .check)
    #expect(kind("INSERT INTO t VALUES ('x', 'c')") == .dataType)
    try connection.run("INSERT INTO t VALUES (2, 'b')")
    #expect(try connection.integer("SELECT count(*) FROM t") == 2)
  }

  @Test("a statement that is running can be asked for again")
  func nesting() throws {
    let connection = try memory()
    try connection.execute("CREATE TABLE t(x); INSERT INTO t VALUES (1), (2)")
    var pairs: [String] = []
    try connection.forEach("SELECT x FROM t ORDER BY x") { outer in
      let first = outer.int(0)
      try connection.forEach("SELECT x FROM t ORDER BY x") { pairs.append("\(first)\($0.int(0))") }
    }
    #expect(pairs == ["11", "12", "21", "22"])
  }

  @Test("an image of its last commit opens as the same database")
  func images() throws {
    let connection = try memory()
    try connection.execute("CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    let image = try connection.serialized()
    try connection.execute("INSERT INTO t VALUES (2)")
    let copy = try Connection(serialized: image)
    #expect(try copy.integer("SELECT count(*) FROM t") == 1)
    try copy.execute("INSERT INTO t VALUES (3)")
    #expect(try copy.integer("SELECT sum(x) FROM t") == 4)
  }

  @Test("a virtual clock is what SQL takes for now")
  func clock() throws {
    let clock = try #require(VirtualClock(milliseconds: 1_234_567))
    let connection = try Connection(":memory:", mode: .create, clock: clock)
    let now = "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
    #expect(try connection.integer(now) == 1_234_567)
    clock.milliseconds = 4_102_444_800_123
    #expect(try connection.integer(now) == 4_102_444_800_123)
  }

  @Test("finds what a statement and the triggers that it fires would write, without running it")
  func writes() throws {
    let connection = try memory()
    try connection.execute(
      """
      CREATE TABLE t(x); CREATE TABLE u(x); CREATE TABLE log(x);
      CREATE TRIGGER outer_one AFTER INSERT ON t BEGIN INSERT INTO u VALUES (NEW.x); END;
      CREATE TRIGGER inner_one AFTER INSERT ON u BEGIN INSERT INTO log VALUES (NEW.x); END;
      """)
    let writes = try connection.writes(of: "INSERT INTO t VALUES (1)")
    #expect(writes.contains { $0.table == "t" && $0.trigger == nil })
    #expect(writes.contains { $0.table == "u" && $0.trigger == "outer_one" })
    #expect(writes.contains { $0.table == "log" && $0.trigger == "inner_one" })
    #expect(try connection.integer("SELECT count(*) FROM t") == 0)
  }

  @Test("bytes that are no database are told from damage and from a missing file")
  func opening() throws {
    do {
      _ = try Connection("/nonexistent/file.db", mode: .readWrite)
      Issue.record("opened a file that does not exist")
    } catch SQLiteError.cannotOpen {}
    let noise = try Connection(serialized: [UInt8](repeating: 120, count: 8_192))
    #expect(throws: SQLiteError.notADatabase) { _ = try noise.integer("SELECT count(*) FROM sqlite_schema") }
  }
}
