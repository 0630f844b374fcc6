public import LatchkeyEncoding
public import LatchkeyRecords
public import LatchkeySQLite

/// One device's copy of a zone's rows, in an app's own SQLite file: captures what the app changes, gives it as push
/// groups, and shows what other devices changed.
///
/// Everything Latchkey knows of the file lies in the file, in tables whose names begin with `lk_`, so that it is copied,
/// backed up and rolled back with the rows. Everything here is synchronous and for one thread at a time. What writes is
/// called inside ``transaction(_:)``, so that the caller's own state (``setValue(_:_:)``) commits with the rows.
///
///     let replica = try Replica(path: "budget.db")
///     try replica.transaction {
///       _ = try replica.stamp(now: now) { group in try seal(group) }
///       _ = try replica.apply(groups, now: now) { group in try seal(group) }
///     }
///
/// All errors are ``TablesError``, or what the caller's closures throw.
public final class Replica {
  let connection: Connection
  /// Gives random record names; the simulator puts a seeded source here.
  public var randomName: () -> RecordName = {
    var random = SystemRandomNumberGenerator()
    return RecordName(raw: Bytes16(high: random.next(), low: random.next()))
  }

  // What the file says, read again whenever another connection may have changed it.
  var settings = Settings(rules: .none, named: nil)
  var tables: [SyncedTable] = []
  var tablesByID: [Int64: SyncedTable] = [:]
  var tablesByWire: [String: SyncedTable] = [:]
  var totals: [Int64: TableTotals] = [:]
  var origins = OriginNumbers()
  var zoneBinding: ZoneBinding
  var clock = Clock()
  private var knownSchema: Int64 = -1
  private var knownData: Int64 = -1
  var appTriggers: AppTriggers?
  /// Whether rows of a table that the app dropped may be listed as not shown, though they still have their key.
  var hasLost = false
  /// Whether rows that are met without a name get one: while stamping.
  var isNaming = false
  /// Rows that just got their name, in this pass of stamping.
  var namedNow: [(table: SyncedTable, key: [SQLiteValue])] = []
  /// Keys whose names are being made, to notice circles.
  var namesInProgress: Set<[SQLiteValue]> = []

  /// Counts and digest of a table's records, kept as they change.
  struct TableTotals: Equatable {
    var live = 0
    var deleted = 0
    var digest = Hash32.zero
  }

  /// Opens an attached file.
  /// - Parameters:
  ///   - mode: `readOnly` for looking only.
  ///   - busyTimeout: how long to wait for another program's lock, in milliseconds.
  ///   - clock: what the file's triggers take for the time; for simulations.
  public convenience init(
    path: String, mode: Connection.Mode = .readWrite, busyTimeout: Int = 5_000, clock: VirtualClock? = nil
  ) throws(TablesError) {
    do {
      // Reading leaves nothing beside the file, not even beside one in WAL mode that nobody has open.
      try self.init(
        connection: mode == .readOnly
          ? Replica.openForReading(path) : Connection(path, mode: mode, busyTimeout: busyTimeout, clock: clock))
    } catch { throw TablesError(error, path: path) }
  }

  /// Takes over a connection to an attached database, for instance one in memory.
  public init(connection: Connection) throws(TablesError) {
    self.connection = connection
    do {
      if Connection.libraryVersion < 3_037_000 { throw TablesError.oldLibrary(Connection.libraryVersion) }
      try connection.run("PRAGMA main.foreign_keys = OFF")
      // Rows, map and bookkeeping lie apart: with SQLite's own 2 MB a large file is read again and again.
      try connection.run("PRAGMA main.cache_size = -16000")
      guard let binding = try Replica.binding(connection) else { throw TablesError.notAttached }
      zoneBinding = binding
      try refresh()
    } catch { throw TablesError(error, path: connection.path) }
  }

  /// Household, zone and origin of the file.
  public var binding: ZoneBinding { zoneBinding }

  /// The connection, for the app's own statements where app and replica share one (simulations, tests).
  public var database: Connection { connection }

  // MARK: Transactions

  /// Runs `body` in one write transaction, which is undone if it throws.
  ///
  /// Whatever changed in the app's schema since the last time is seen first: vanished triggers are made again.
  public func transaction<T>(_ body: () throws -> T) throws -> T {
    if connection.isInTransaction { return try body() }
    // Reference actions are performed here. Where app and replica share a connection, the app may have it enforce its keys.
    var enforcesKeys = false
    do {
      enforcesKeys = try connection.integer("PRAGMA main.foreign_keys") == 1
      if enforcesKeys { try connection.run("PRAGMA main.foreign_keys = OFF") }
      try connection.run("BEGIN IMMEDIATE")
    } catch { throw TablesError(error, path: connection.path) }
    defer { if enforcesKeys { try? connection.run("PRAGMA main.foreign_keys = ON") } }
    do {
      try refresh()
      try followSchema()
      let result = try body()
      try saveTotals()
      try connection.run("COMMIT")
      return result
    } catch {
      if connection.isInTransaction { try? connection.run("ROLLBACK") }
      knownSchema = -1
      knownData = -1
      if let error = error as? SQLiteError { throw TablesError(error, path: connection.path) }
      throw error
    }
  }

  /// Reads again what another connection may have changed.
  func refresh() throws {
    let schema = try connection.integer("PRAGMA main.schema_version") ?? 0
    let data = try connection.integer("PRAGMA main.data_version") ?? 0
    if schema == knownSchema, data == knownData { return }
    let version = try state("version")?.integer ?? 0
    if version > Bookkeeping.version { throw TablesError.newerFormat(Int(version)) }
    if version < Bookkeeping.version {
      throw TablesError.rule("the file was attached by an earlier build: detach it and attach it again")
    }
    guard let binding = try Replica.binding(connection) else { throw TablesError.notAttached }
    zoneBinding = binding
    settings = try Settings(decoding: try state("settings")?.bytes ?? Settings(rules: .none, named: nil).encoded)
    clock = Clock(last: HLC(rawValue: UInt64(bitPattern: try state("clock")?.integer ?? 0)))
    origins = OriginNumbers()
    if schema != knownSchema || tables.isEmpty {
      appTriggers = nil
    }
    try loadTables()
    hasLost =
      try connection.first("SELECT 1 FROM main.lk_park WHERE kind = ? LIMIT 1", [.integer(Parking.lost.kind)]) != nil
    knownSchema = schema
    knownData = data
  }

  /// Takes the present schema for seen.
  func rememberSchema() throws {
    knownSchema = try connection.integer("PRAGMA main.schema_version") ?? 0
    try setState("schema", .integer(knownSchema))
  }

  func saveTotals() throws {
    for table in tables {
      try saveColumns(table)
      guard let total = totals[table.id], total != savedTotals[table.id] else { continue }
      try connection.run(
        "UPDATE main.lk_table SET live = ?, deleted = ?, digest = ? WHERE id = ?",
        [.integer(Int64(total.live)), .integer(Int64(total.deleted)), .blob(total.digest.bytes), .integer(table.id)])
    }
    savedTotals = totals
  }
  var savedTotals: [Int64: TableTotals] = [:]

  // MARK: State in the file

  static func binding(_ connection: Connection) throws -> ZoneBinding? {
    guard try connection.first("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'lk_state'") != nil
    else { return nil }
    var values: [String: SQLiteValue] = [:]
    try connection.forEach(
      "SELECT key, value FROM main.lk_state WHERE key IN ('household', 'zone', 'zoneName', 'device', 'incarnation', 'digestKey')"
    ) {
      values[$0.text(0)] = $0.value(1)
    }
    guard let household = values["household"]?.bytes.flatMap(HouseholdID.init),
      let zone = values["zone"]?.bytes.flatMap(ZoneID.init),
      let device = values["device"]?.bytes.flatMap(DeviceID.init),
      let incarnation = values["incarnation"]?.bytes.flatMap(Incarnation.init), let key = values["digestKey"]?.bytes
    else { return nil }
    return ZoneBinding(
      household: household, zone: zone, zoneName: values["zoneName"]?.string ?? "",
      origin: Origin(device: device, incarnation: incarnation), digestKey: key)
  }

  func writeBinding(_ binding: ZoneBinding) throws {
    try setState("household", .blob(binding.household.bytes))
    try setState("zone", .blob(binding.zone.bytes))
    try setState("zoneName", SQLiteValue(binding.zoneName))
    try setState("device", .blob(binding.origin.device.bytes))
    try setState("incarnation", .blob(binding.origin.incarnation.bytes))
    try setState("digestKey", .blob(binding.digestKey))
    zoneBinding = binding
  }

  func state(_ key: String) throws -> SQLiteValue? {
    try connection.first("SELECT value FROM main.lk_state WHERE key = ?", [SQLiteValue(key)])?[0]
  }

  func setState(_ key: String, _ value: SQLiteValue?) throws {
    if let value {
      try connection.run(
        "INSERT INTO main.lk_state(key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [SQLiteValue(key), value])
    } else {
      try connection.run("DELETE FROM main.lk_state WHERE key = ?", [SQLiteValue(key)])
    }
  }

  func saveClock() throws { try setState("clock", .integer(Int64(bitPattern: clock.last.rawValue))) }

  /// The clock's last reading.
  public var lastClock: HLC { clock.last }

  /// Ends the first import of a file that was made by joining: what others deleted before is history, and what they delete from now on may
  /// have to be decided. Inside ``transaction(_:)``.
  public func endImport() throws { try setState("importing", nil) }

  // MARK: The caller's state, committed with the rows

  /// What the caller kept under a name.
  public func value(_ key: String) throws -> [UInt8]? {
    try connection.first("SELECT value FROM main.lk_value WHERE key = ?", [SQLiteValue(key)])?[0].bytes
  }

  /// Keeps bytes under a name, or with nil forgets them. Inside ``transaction(_:)``.
  public func setValue(_ key: String, _ bytes: [UInt8]?) throws {
    if let bytes {
      try connection.run(
        "INSERT INTO main.lk_value(key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [SQLiteValue(key), .blob(bytes)])
    } else {
      try connection.run("DELETE FROM main.lk_value WHERE key = ?", [SQLiteValue(key)])
    }
  }

  /// The names under which something is kept, ascending, that begin with `prefix`.
  public func keys(prefix: String) throws -> [String] {
    try connection.rows(
      "SELECT key FROM main.lk_value WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key", [SQLiteValue(prefix)]
    ).compactMap { $0[0].string }
  }
}

/// Small numbers for origins, so that a row's stamps are short.
struct OriginNumbers {
  private var numbers: [Origin: Int64] = [:]
  private var origins: [Int64: Origin] = [:]

  mutating func number(of origin: Origin, _ connection: Connection) throws -> Int64 {
    if let known = numbers[origin] { return known }
    let values: [SQLiteValue] = [.blob(origin.device.bytes), .blob(origin.incarnation.bytes)]
    let number: Int64
    if let found = try connection.integer("SELECT id FROM main.lk_origin WHERE device = ? AND incarnation = ?", values)
    {
      number = found
    } else {
      try connection.run("INSERT INTO main.lk_origin(device, incarnation) VALUES (?, ?)", values)
      number = connection.lastInsertedRow
    }
    numbers[origin] = number
    origins[number] = origin
    return number
  }

  mutating func origin(_ number: Int64, _ connection: Connection) throws -> Origin {
    if let known = origins[number] { return known }
    guard
      let row = try connection.first("SELECT device, incarnation FROM main.lk_origin WHERE id = ?", [.integer(number)]),
      let device = row[0].bytes.flatMap(DeviceID.init), let incarnation = row[1].bytes.flatMap(Incarnation.init)
    else { throw TablesError.corrupt("an origin is missing") }
    let origin = Origin(device: device, incarnation: incarnation)
    origins[number] = origin
    numbers[origin] = number
    return origin
  }
}
