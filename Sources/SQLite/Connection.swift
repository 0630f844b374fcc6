internal import CLatchkeySQLite

/// One connection to one SQLite database. Knows nothing of synchronisation.
///
/// Not for use from two threads at a time. Statements are prepared once and kept. All errors are ``SQLiteError``.
///
///     let connection = try Connection("budget.db", mode: .readWrite)
///     try connection.forEach("SELECT name FROM accounts WHERE id = ?", [.integer(1)]) { print($0.text(0)) }
public final class Connection {
  /// What may be done with the file.
  public enum Mode: Sendable {
    case readOnly
    /// Read only, and neither locks nor `-wal`, `-shm` files: for a file that nobody has open.
    case immutable
    case readWrite
    /// Makes the file if there is none.
    case create
  }

  private let handle: OpaquePointer
  private let clock: VirtualClock?
  private var idle: [String: [Statement]] = [:]
  public let path: String

  /// Opens a database.
  /// - Parameters:
  ///   - path: a file's path, or `:memory:` with mode ``Mode/create``.
  ///   - busyTimeout: how long to wait for another connection's lock, in milliseconds.
  ///   - clock: what SQL's `'now'` answers; nil for the system's time.
  public init(_ path: String, mode: Mode, busyTimeout: Int = 5_000, clock: VirtualClock? = nil) throws(SQLiteError) {
    self.path = path
    self.clock = clock
    var name = path
    var flags: Int32 = SQLITE_OPEN_NOMUTEX
    switch mode {
    case .readOnly: flags |= SQLITE_OPEN_READONLY
    case .immutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
      name = "file:\(Self.escaped(path))?immutable=1"
    case .readWrite: flags |= SQLITE_OPEN_READWRITE
    case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags, clock?.name)
    guard let opened else { throw .noMemory }
    guard code == SQLITE_OK else {
      let error = SQLiteError(code: code, message: String(cString: sqlite3_errmsg(opened)))
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, Int32(clamping: busyTimeout))
  }

  /// A database in memory with the contents of a file: what ``serialized()`` gave, or a file's bytes.
  public convenience init(serialized image: [UInt8], clock: VirtualClock? = nil) throws(SQLiteError) {
    try self.init(":memory:", mode: .create, clock: clock)
    guard let buffer = sqlite3_malloc64(UInt64(max(image.count, 1))) else { throw .noMemory }
    image.withUnsafeBytes { if let base = $0.baseAddress { buffer.copyMemory(from: base, byteCount: image.count) } }
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
    let code = sqlite3_deserialize(
      handle, "main", buffer.assumingMemoryBound(to: UInt8.self), Int64(image.count), Int64(image.count), flags)
    if code != SQLITE_OK { throw lastError(code) }
  }

  deinit {
    idle.removeAll()
    sqlite3_close_v2(handle)
  }

  /// The path as a URI's: every byte but the plainest percent-encoded.
  private static func escaped(_ path: String) -> String {
    let digits = Array("0123456789ABCDEF")
    var out = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        out.unicodeScalars.append(Unicode.Scalar(byte))
      default: out += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
    return out
  }

  func lastError(_ code: Int32) -> SQLiteError {
    // The database is open: what cannot be opened now is its journal, in a folder that cannot be written.
    if code & 0xff == SQLITE_CANTOPEN { return .readOnly("its folder cannot be written") }
    return SQLiteError(code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)))
  }

  // MARK: Running statements

  /// Runs `body` with a prepared statement, kept for the next time.
  public func withStatement<T>(_ sql: String, _ body: (Statement) throws -> T) throws -> T {
    let statement = try take(sql)
    defer {
      statement.reset()
      idle[sql, default: []].append(statement)
    }
    return try body(statement)
  }

  private func take(_ sql: String) throws(SQLiteError) -> Statement {
    if let kept = idle[sql]?.popLast() { return kept }
    return try prepare(sql)
  }

  private func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK else { throw lastError(code) }
    guard let statement else { throw .other(code: SQLITE_MISUSE, message: "empty statement") }
    return Statement(statement, self)
  }

  /// Runs one statement to its end, without rows.
  public func run(_ sql: String, _ values: [SQLiteValue] = []) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      while try statement.step() {}
    }
  }

  /// Runs one statement and calls `body` with each row.
  public func forEach(_ sql: String, _ values: [SQLiteValue] = [], _ body: (Statement) throws -> Void) throws {
    try withStatement(sql) { statement in
      try statement.bind(values)
      while try statement.step() { try body(statement) }
    }
  }

  /// All rows of a statement.
  public func rows(_ sql: String, _ values: [SQLiteValue] = []) throws -> [[SQLiteValue]] {
    var out: [[SQLiteValue]] = []
    try forEach(sql, values) { out.append($0.row()) }
    return out
  }

  /// The first row of a statement.
  public func first(_ sql: String, _ values: [SQLiteValue] = []) throws -> [SQLiteValue]? {
    try withStatement(sql) { statement in
      try statement.bind(values)
      return try statement.step() ? statement.row() : nil
    }
  }

  /// The first column of the first row, as an integer; nil if there is no row or it is not one.
  public func integer(_ sql: String, _ values: [SQLiteValue] = []) throws -> Int64? {
    try first(sql, values)?.first?.integer
  }

  /// Runs a script of several statements, which are not kept.
  public func execute(_ script: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, script, nil, nil, nil)
    if code != SQLITE_OK { throw lastError(code) }
  }

  /// Forgets the kept statements, for instance before the file is replaced.
  public func forgetStatements() { idle.removeAll() }

  // MARK: State

  /// Whether a transaction is open.
  public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
  /// Rows changed by the last statement, triggers not counted.
  public var changes: Int64 { sqlite3_changes64(handle) }
  public var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

  /// Makes a running statement of this connection fail with ``SQLiteError/interrupted``.
  public func interrupt() { sqlite3_interrupt(handle) }

  /// Turns all triggers off or on, for this connection only. Foreign-key actions are not triggers and still run.
  public func setTriggers(enabled: Bool) throws(SQLiteError) {
    let code = latchkey_sqlite3_enable_triggers(handle, enabled ? 1 : 0)
    if code != SQLITE_OK { throw lastError(code) }
  }

  /// The whole database as a file's bytes, as of the last commit.
  public func serialized() throws(SQLiteError) -> [UInt8] {
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &size, 0) else { throw .noMemory }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(size)))
  }

  /// The version of the library that this process runs, such as 3054001.
  public static var libraryVersion: Int { Int(sqlite3_libversion_number()) }

  // MARK: Looking into a schema

  /// What SQLite knows of a column beyond its `PRAGMA table_xinfo` row.
  public struct ColumnTraits: Equatable, Sendable {
    public let collation: String
    public let isAutoincrement: Bool
  }

  /// The collation of a table's column, and whether it is an AUTOINCREMENT key. Nil if there is none.
  public func traits(table: String, column: String) -> ColumnTraits? {
    var collation: UnsafePointer<CChar>?
    var auto: Int32 = 0
    let code = sqlite3_table_column_metadata(handle, "main", table, column, nil, &collation, nil, nil, &auto)
    guard code == SQLITE_OK else { return nil }
    return ColumnTraits(collation: collation.map(String.init(cString:)) ?? "BINARY", isAutoincrement: auto != 0)
  }

  /// A table that a statement, or a trigger that it fires, would write.
  public struct Write: Hashable, Sendable {
    public let table: String
    /// The innermost trigger that writes; nil for the statement itself.
    public let trigger: String?
  }

  /// What running `sql` could write, found by preparing it under an authorizer and never running it.
  public func writes(of sql: String) throws(SQLiteError) -> Set<Write> {
    final class Found { var writes: Set<Write> = [] }
    let found = Found()
    let context = Unmanaged.passUnretained(found).toOpaque()
    sqlite3_set_authorizer(
      handle,
      { context, action, first, _, _, trigger in
        guard let context, action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE, let first
        else {
          return SQLITE_OK
        }
        let write = Write(table: String(cString: first), trigger: trigger.map(String.init(cString:)))
        Unmanaged<Found>.fromOpaque(context).takeUnretainedValue().writes.insert(write)
        return SQLITE_OK
      }, context)
    defer { sqlite3_set_authorizer(handle, nil, nil) }
    _ = try prepare(sql)
    return withExtendedLifetime(found) { found.writes }
  }
}
