internal import LatchkeyEncoding
internal import LatchkeyRecords
public import LatchkeySQLite

/// Attaching a file and detaching it. Both change nothing else in the file than tables and triggers named `lk_…`.
extension Replica {
  // MARK: Looking

  /// What attaching would do. Reads only: not a byte changes, and no file appears beside the database.
  /// - Parameters:
  ///   - tables: the tables to attach; nil for all that may sync.
  public static func survey(path: String, rules: Rules = .none, tables: [String]? = nil) throws(TablesError) -> Survey {
    do {
      let connection = try openForReading(path)
      if let attached = try? Settings(
        decoding: connection.first("SELECT value FROM main.lk_state WHERE key = 'settings'")?[0].bytes ?? [])
      {
        return try Judge(
          connection: connection, rules: rules == .none ? attached.rules : rules, named: tables ?? attached.named
        ).survey()
      }
      try checkPages(connection)
      return try Judge(connection: connection, rules: rules, named: tables).survey()
    } catch { throw TablesError(error, path: path) }
  }

  /// A file whose pages are damaged is refused before anything is written into it. What an app's schema forbids and its rows do
  /// hold (NOT NULL, CHECK, a module or a collation that is not here) is the app's affair.
  private static func checkPages(_ connection: Connection) throws {
    let complaints: [String]
    do {
      complaints = try connection.rows("PRAGMA main.quick_check(20)").compactMap {
        if case .text(let bytes) = $0.first { String(decoding: bytes, as: UTF8.self) } else { nil }
      }
    } catch let error as SQLiteError {
      if case .corrupt = error { throw error }
      return
    }
    guard let damage = complaints.first(where: { $0.hasPrefix("***") }) else { return }
    throw TablesError.corrupt(damage.split(separator: "\n").dropFirst().first.map(String.init) ?? "a page is damaged")
  }

  /// Whether the file at `path` is attached, and where.
  public static func binding(path: String) throws(TablesError) -> ZoneBinding? {
    do { return try binding(openForReading(path)) } catch { throw TablesError(error, path: path) }
  }

  /// A file in WAL mode that nobody has open has no `-wal`; reading it in the usual way would leave one behind.
  static func openForReading(_ path: String) throws -> Connection {
    let isAlone = DatabaseFile.isWAL(path) && !DatabaseFile.exists(path + "-wal")
    let connection = try Connection(path, mode: isAlone ? .immutable : .readOnly)
    _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
    return connection
  }

  // MARK: Attaching

  /// Attaches the file: its changes are captured from now on, and what it holds becomes part of the zone at the next
  /// ``stamp(now:limit:emit:)``. One transaction; attaching again changes nothing.
  ///
  /// - Parameter pairing: if the zone has rows already, the time, in milliseconds since 1970-01-01 UTC: the file's rows are then
  ///   compared with them first (``pair(now:emit:)``).
  @discardableResult
  public static func attach(
    path: String, rules: Rules = .none, tables: [String]? = nil, zone: ZoneBinding, pairing: Int64? = nil,
    clock: VirtualClock? = nil
  ) throws(TablesError) -> Survey {
    do {
      let connection = try Connection(path, mode: .readWrite, clock: clock)
      return try attach(connection, rules: rules, tables: tables, zone: zone, pairing: pairing)
    } catch { throw TablesError(error, path: path) }
  }

  /// Attaches through a connection, for instance one in memory.
  @discardableResult
  public static func attach(
    _ connection: Connection, rules: Rules = .none, tables: [String]? = nil, zone: ZoneBinding, pairing: Int64? = nil
  ) throws(TablesError) -> Survey {
    do {
      return try writing(connection) {
        if let present = try binding(connection) {
          guard present.household == zone.household, present.zone == zone.zone, present.origin == zone.origin else {
            throw TablesError.alreadyAttachedElsewhere
          }
          let replica = try Replica(connection: connection)
          if tables != nil { replica.settings.named = tables }
          if rules != .none { return try replica.setRules(rules) }
          try replica.follow(replica.settings)
          return try replica.survey()
        }
        let survey = try Judge(connection: connection, rules: rules, named: tables).survey()
        guard !survey.syncing.isEmpty else {
          throw TablesError.noTableCanSync(survey.tables.map { "\($0.name): \($0.reason)" })
        }
        let settings = Settings(rules: rules, named: tables)
        let replica = try make(connection, settings, zone)
        if rules != .none { try replica.setOwnRules() }
        if let pairing { try replica.beginPairing(now: pairing) }
        try replica.follow(settings)
        return survey
      }
    } catch { throw TablesError(error, path: connection.path) }
  }

  /// A new file with Latchkey's tables only, to be filled from the zone.
  /// - Parameter createsTables: whether the app's tables are made from the zone's description as it arrives.
  public static func createEmpty(path: String, zone: ZoneBinding, createsTables: Bool, clock: VirtualClock? = nil)
    throws(TablesError)
  {
    do {
      if DatabaseFile.exists(path) { throw TablesError.fileExists(path: path) }
      try createEmpty(Connection(path, mode: .create, clock: clock), zone: zone, createsTables: createsTables)
    } catch { throw TablesError(error, path: path) }
  }

  /// As ``createEmpty(path:zone:createsTables:clock:)``, in an empty database that is open already.
  public static func createEmpty(_ connection: Connection, zone: ZoneBinding, createsTables: Bool) throws(TablesError) {
    do {
      try writing(connection) {
        var settings = Settings(rules: .none, named: nil)
        settings.adopts = true
        settings.createsTables = createsTables
        _ = try make(connection, settings, zone)
      }
    } catch { throw TablesError(error, path: connection.path) }
  }

  /// A copy of a file made by the app, with the tables that sync emptied, to be filled from the zone.
  public static func adoptTemplate(_ template: String, to path: String, zone: ZoneBinding, clock: VirtualClock? = nil)
    throws(TablesError)
  {
    do {
      if DatabaseFile.exists(path) { throw TablesError.fileExists(path: path) }
      let source = try openForReading(template)
      if try binding(source) != nil { throw TablesError.alreadyAttachedElsewhere }
      let survey = try Judge(connection: source, rules: .none, named: nil).survey()
      if survey.syncing.isEmpty { throw TablesError.noTableCanSync(survey.tables.map { "\($0.name): \($0.reason)" }) }
      try source.run("VACUUM main INTO ?", [SQLiteValue(path)])
      let connection = try Connection(path, mode: .readWrite, clock: clock)
      try connection.run("PRAGMA main.foreign_keys = OFF")
      try connection.setTriggers(enabled: false)
      try writing(connection) {
        var settings = Settings(rules: .none, named: nil)
        settings.adopts = true
        for table in survey.syncing {
          if Judge.migrationRecords.contains(table.name.lowercased()) {
            // What the app has done to this schema is true of this file, unless the zone says that the table synchronises.
            settings.rules.tables[table.name] = TableRules(isLocal: true)
          } else {
            try connection.run("DELETE FROM main.\(quoted(table.name))")
          }
        }
        let replica = try make(connection, settings, zone)
        try replica.follow(settings)
      }
    } catch { throw TablesError(error, path: path) }
  }

  /// Removes everything that attaching added. The rows stay; the schema is what it was.
  public static func detach(path: String) throws(TablesError) {
    do { try detach(Connection(path, mode: .readWrite)) } catch { throw TablesError(error, path: path) }
  }

  /// As ``detach(path:)``.
  public static func detach(_ connection: Connection) throws(TablesError) {
    do {
      guard try binding(connection) != nil else { throw TablesError.notAttached }
      connection.forgetStatements()
      try writing(connection) {
        let rows = try connection.rows(
          "SELECT type, name FROM main.sqlite_schema WHERE type IN ('trigger', 'table') AND name GLOB 'lk_*' ORDER BY type DESC, rowid DESC"
        )
        for row in rows {
          guard let type = row[0].string, let name = row[1].string else { continue }
          try connection.execute("DROP \(type == "table" ? "TABLE" : "TRIGGER") main.\(quoted(name))")
        }
      }
    } catch { throw TablesError(error, path: connection.path) }
  }

  private static func writing<T>(_ connection: Connection, _ body: () throws -> T) throws -> T {
    if connection.isInTransaction { return try body() }
    try connection.run("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try connection.run("COMMIT")
      return result
    } catch {
      if connection.isInTransaction { try? connection.run("ROLLBACK") }
      throw error
    }
  }

  private static func make(_ connection: Connection, _ settings: Settings, _ zone: ZoneBinding) throws -> Replica {
    if let name = try connection.first("SELECT name FROM main.sqlite_schema WHERE name GLOB 'lk_*'")?[0].string {
      throw TablesError.nameTaken(name)
    }
    try connection.execute(Bookkeeping.schema)
    let values: [(String, SQLiteValue)] = [
      ("version", .integer(Bookkeeping.version)), ("settings", .blob(settings.encoded)), ("clock", .integer(0)),
      ("household", .blob(zone.household.bytes)), ("zone", .blob(zone.zone.bytes)),
      ("zoneName", SQLiteValue(zone.zoneName)),
      ("device", .blob(zone.origin.device.bytes)), ("incarnation", .blob(zone.origin.incarnation.bytes)),
      ("digestKey", .blob(zone.digestKey)), ("notes", .integer(1)),
    ]
    let importing: [(String, SQLiteValue)] = settings.adopts ? [("importing", .integer(1))] : []
    for (key, value) in values + importing {
      try connection.run("INSERT INTO main.lk_state(key, value) VALUES (?, ?)", [SQLiteValue(key), value])
    }
    let replica = try Replica(connection: connection)
    try replica.rememberSchema()
    return replica
  }

  // MARK: Following the schema

  /// Looks for what the app changed in its schema since this file was last written here: tables that came, went or
  /// changed, triggers that a rebuild dropped.
  func followSchema() throws {
    let schema = try connection.integer("PRAGMA main.schema_version") ?? 0
    if try state("schema")?.integer == schema { return }
    try follow(settings)
  }

  /// Makes bookkeeping and triggers agree with the schema and the settings. Idempotent.
  func follow(_ wanted: Settings) throws {
    // The tables are read anew below, and their counts with them.
    try saveTotals()
    settings = wanted
    try setState("settings", .blob(wanted.encoded))
    try followRenamedTables()
    try loadTables()
    if try takeRules() { try loadTables() }
    var syncing: Set<Int64> = []
    for report in try survey().tables {
      let adopted = settings.adopts ? settings.adopted[report.name] : nil
      let syncs =
        adopted.map {
          $0.syncs && report.verdict != .refused && !settings.rules[report.name].isLocal
        } ?? report.verdict.syncs
      guard syncs, let shape = try connection.shape(of: report.name), let id = try followTable(shape) else { continue }
      syncing.insert(id)
    }
    for table in tables where !syncing.contains(table.id) { try suspend(table) }
    try loadTables()
    for table in tables where table.shape != nil { try followReferences(table) }
    try followDuplicates()
    if settings != wanted { try setState("settings", .blob(settings.encoded)) }
    appTriggers = nil
    try setState("notes", .integer(1))
    try retryAllParked()
    try rememberSchema()
    // Rules about columns that have just come.
    if try takeRules() { try follow(settings) }
  }

  /// The verdicts and reasons of the attached file's tables. Rules about tables and columns that are gone do not hold up
  /// the others.
  public func survey() throws -> Survey {
    let listed = try connection.listedTables()
    let known = Set(listed.map { $0.name.lowercased() })
    var rules = settings.rules
    for (name, rule) in rules.tables {
      guard let shape = try connection.shape(of: name) else {
        rules.tables[name] = nil
        continue
      }
      var rule = rule
      rule.localColumns.removeAll { shape.column($0) == nil }
      rule.references = rule.references.filter {
        shape.column($0.key) != nil && $0.value.target.tables.contains { known.contains($0.lowercased()) }
      }
      if case .columns(let columns)? = rule.identity, columns.contains(where: { shape.column($0) == nil }) {
        rule.identity = nil
      }
      rules.tables[name] = rule
    }
    return try Judge(
      connection: connection, rules: rules, named: settings.named?.filter { known.contains($0.lowercased()) },
      isLenient: true
    ).survey()
  }

  /// Stops capturing a table that the app dropped or that cannot sync any more. Nothing is taken for deleted: what is
  /// known of its records stays, and is compared if the table comes back.
  private func suspend(_ table: SyncedTable) throws {
    for letter in Bookkeeping.triggerLetters {
      try connection.execute("DROP TRIGGER IF EXISTS main.lk_\(letter)\(table.id)")
    }
    try connection.run("UPDATE main.lk_table SET name = NULL, scan = NULL WHERE id = ?", [.integer(table.id)])
    try connection.execute("DROP TABLE IF EXISTS main.lk_log\(table.id)")
  }

  /// Gives a table up of which nothing was stamped, as if it had never been attached.
  func forget(_ table: SyncedTable) throws {
    try suspend(table)
    connection.forgetStatements()
    try connection.execute("DROP TABLE IF EXISTS main.lk_map\(table.id)")
    for column in ["lk_row", "lk_park", "lk_absent", "lk_duplicate", "lk_journal"] {
      try connection.run("DELETE FROM main.\(column) WHERE tid = ?", [.integer(table.id)])
    }
    try connection.run("DELETE FROM main.lk_table WHERE id = ?", [.integer(table.id)])
    tables.removeAll { $0 === table }
  }

  /// A renamed table keeps its triggers, which then name it.
  private func followRenamedTables() throws {
    for table in tables {
      guard
        let now = try connection.first(
          "SELECT tbl_name FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?",
          [SQLiteValue("lk_i\(table.id)")])?[0].string
      else { continue }
      guard
        let former = try connection.first("SELECT name FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0]
          .string,
        !sameBytes(former, now)
      else { continue }
      try connection.run("UPDATE main.lk_table SET name = ? WHERE id = ?", [SQLiteValue(now), .integer(table.id)])
      followRules(renamedTable: former, to: now)
    }
  }

  /// Attaches one table, or makes again what it lacks.
  /// - Returns: its number; nil if it cannot be told which records its rows are.
  private func followTable(_ shape: TableShape) throws -> Int64? {
    var known = tables.first { $0.shape?.name == shape.name }
    if known == nil {
      let wire = try wireName(ofNew: shape.name)
      known = tables.first { $0.shape == nil && sameBytes($0.wire, wire) }
      if known == nil { try addTable(wire: wire, name: shape.name) }
    }
    guard let table = known ?? tables.last else { return nil }
    var needsScan = known == nil
    let followed = try followNames(table.id, shape)
    let names = followed.names
    followRules(table: shape.name, renamed: followed.renamed)
    let former = try knownNames(table.id)
    if names != former { try save(names: names, table.id) }
    let map = try connection.first(
      "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?", [SQLiteValue("lk_map\(table.id)")])?[0]
      .string
    if map == nil {
      try connection.execute(Bookkeeping.map(table.id, shape))
      needsScan = true
    } else if map != Bookkeeping.map(table.id, shape) {
      guard try remap(table, shape) else { return nil }
      needsScan = true
    }
    if try connection.first(
      "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?", [SQLiteValue("lk_log\(table.id)")]) == nil
    {
      try connection.execute(Bookkeeping.log(table.id, shape))
      needsScan = true
    }
    for (name, sql) in Bookkeeping.triggers(table.id, shape) {
      let present = try connection.first(
        "SELECT sql, tbl_name FROM main.sqlite_schema WHERE type = 'trigger' AND name = ?", [SQLiteValue(name)])
      if present?[0].string == sql, present?[1].string == shape.name { continue }
      if present != nil {
        try connection.execute("DROP TRIGGER main.\(quoted(name))")
      } else if !name.hasPrefix("lk_c") {
        needsScan = true
      }
      try connection.execute(sql)
    }
    let refreshed = makeTable(
      id: table.id, wire: table.wire, shape: shape, columnNames: table.columnNames, names: names)
    refreshed.savedColumnCount = table.savedColumnCount
    try saveColumns(refreshed)
    try connection.run(
      "UPDATE main.lk_table SET name = ?, keys = ? WHERE id = ?",
      [SQLiteValue(shape.name), .blob(encoded(shape.key.map(\.name))), .integer(table.id)])
    if try followColumns(refreshed, renewed: followed.renewed) { needsScan = true }
    if needsScan { try connection.run("UPDATE main.lk_table SET scan = x'' WHERE id = ?", [.integer(table.id)]) }
    return table.id
  }

  private func encoded(_ names: [String]) -> [UInt8] {
    var writer = CBORWriter()
    writer.texts(names)
    return writer.bytes
  }

  /// Follows a change of the primary key: a row is the record that it was under the former key, whose columns must still
  /// be there.
  private func remap(_ table: SyncedTable, _ shape: TableShape) throws -> Bool {
    let hasRows = try connection.first("SELECT 1 FROM main.lk_map\(table.id) LIMIT 1") != nil
    var pairs: [(key: [SQLiteValue], row: Int64)] = []
    if hasRows {
      guard
        let bytes = try connection.first("SELECT keys FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0].bytes
      else { return false }
      var reader = CBORReader(bytes)
      let former = try reader.texts()
      guard !former.isEmpty, former.allSatisfy({ shape.column($0) != nil }) else { return false }
      let columns = (shape.key.map(\.name) + former).map(quoted).joined(separator: ", ")
      let match = former.indices.map { "k\($0) = ?" }.joined(separator: " AND ")
      for row in try connection.rows("SELECT \(columns) FROM main.\(quoted(shape.name))") {
        let key = Array(row[..<shape.key.count])
        guard !key.contains(where: \.isNull),
          let id = try connection.integer(
            "SELECT row FROM main.lk_map\(table.id) WHERE \(match)", Array(row[shape.key.count...]))
        else { continue }
        pairs.append((key, id))
      }
    }
    connection.forgetStatements()
    for letter in Bookkeeping.triggerLetters {
      try connection.execute("DROP TRIGGER IF EXISTS main.lk_\(letter)\(table.id)")
    }
    try connection.execute("DROP TABLE main.lk_map\(table.id); DROP TABLE IF EXISTS main.lk_log\(table.id)")
    try connection.execute(Bookkeeping.map(table.id, shape))
    let kept = Set(pairs.map(\.row))
    for raw in try connection.rows("SELECT id FROM main.lk_row WHERE tid = ? AND key IS NOT NULL", [.integer(table.id)])
    {
      guard let id = raw[0].integer, !kept.contains(id) else { continue }
      try connection.run("UPDATE main.lk_row SET key = NULL WHERE id = ?", [.integer(id)])
      try park(id, table, .lost)
    }
    let marks = Array(repeating: "?", count: shape.key.count + 1).joined(separator: ", ")
    for pair in pairs {
      try connection.run("INSERT INTO main.lk_map\(table.id) VALUES (\(marks))", pair.key + [.integer(pair.row)])
      try connection.run("UPDATE main.lk_row SET key = ? WHERE id = ?", [pack(key: pair.key), .integer(pair.row)])
    }
    return true
  }

  /// Follows columns that came and went. The values of those that the app dropped are gone from here: what stays of them
  /// is their stamps and fingerprints, so that nobody takes the record for another.
  /// - Returns: whether there are columns that were not there before.
  private func followColumns(_ now: SyncedTable, renewed: [String]) throws -> Bool {
    let present = now.columns.map(\.wire).sorted()
    var reader = CBORReader(
      try connection.first("SELECT present FROM main.lk_table WHERE id = ?", [.integer(now.id)])?[0].bytes
        ?? encoded([]))
    let former = Set(try reader.texts())
    let dropped = former.subtracting(present)
    let isGrown = !former.isSuperset(of: present)
    if former == Set(present), renewed.isEmpty { return false }
    try connection.run(
      "UPDATE main.lk_table SET present = ? WHERE id = ?", [.blob(encoded(present)), .integer(now.id)])
    guard !dropped.isEmpty || !renewed.isEmpty else { return isGrown }
    try loadTables()
    guard var table = tablesByID[now.id] else { return isGrown }
    if let shape = table.shape, !renewed.isEmpty {
      // As if the column were away: what stands in it now is another matter.
      let gone = try knownNames(now.id).filter { name in renewed.contains { sameBytes($0, name.wire) } }.map(\.name)
      let rest = shape.without(Set(gone))
      table = makeTable(
        id: table.id, wire: table.wire, shape: rest, columnNames: table.columnNames, names: try knownNames(now.id))
      tablesByID[now.id] = table
    }
    try forEachRow(table) { row in
      if row.state.registers.contains(where: \.isMissing) { try save(row) }
    }
    try saveTotals()
    return isGrown || !renewed.isEmpty
  }

  /// Where a column has become a reference, by new rules or because its target now syncs, what stands in it is read anew.
  private func followReferences(_ table: SyncedTable) throws {
    // A column with the tables that it points to: the names are parted by what stands in no name that is made by hand.
    let present = table.columns.filter(\.isReference).map { column in
      ([column.wire] + column.references.compactMap { tablesByID[$0.table]?.wire }.sorted()).joined(separator: "\u{1f}")
    }.sorted()
    let stored = try connection.first("SELECT refs FROM main.lk_table WHERE id = ?", [.integer(table.id)])?[0].bytes
    if stored == encoded(present) { return }
    try connection.run("UPDATE main.lk_table SET refs = ? WHERE id = ?", [.blob(encoded(present)), .integer(table.id)])
    guard let stored else { return }
    var reader = CBORReader(stored)
    let pointed = Set(present).subtracting(try reader.texts())
    let new = Set(
      table.columns.map(\.wire).filter { wire in pointed.contains { $0.hasPrefix(wire + "\u{1f}") } }
    ).union(try newReferences(table))
    guard !new.isEmpty else { return }
    try setState("references \(table.id)", .blob(encoded(new.sorted())))
    try connection.run("UPDATE main.lk_table SET scan = x'' WHERE id = ?", [.integer(table.id)])
  }

  /// Columns that have become references and are to be read anew.
  func newReferences(_ table: SyncedTable) throws -> [String] {
    guard let bytes = try state("references \(table.id)")?.bytes else { return [] }
    var reader = CBORReader(bytes)
    return try reader.texts()
  }

  /// Gives every row that is not shown, or not as it is, another chance: the schema may now take it.
  private func retryAllParked() throws {
    if try connection.first("SELECT 1 FROM main.lk_row WHERE kept IS NOT NULL LIMIT 1") != nil
      || connection.first("SELECT 1 FROM main.lk_park LIMIT 1") != nil
    {
      try setState("retry", .integer(1))
    }
  }
}
