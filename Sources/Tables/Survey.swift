internal import LatchkeySQLite

/// What becomes of a table, and why.
public enum Verdict: String, Equatable, Sendable {
  case sync, local, singleton, refused
  /// Not attached unless named: it looks like secrets, sessions or a cache.
  case ask

  /// Whether the table's rows travel.
  var syncs: Bool { self == .sync || self == .singleton }
}

/// A reference from a table to another, declared or ruled.
public struct ReferenceReport: Equatable, Sendable {
  public let columns: [String]
  public let table: String
  public let isDeclared: Bool
}

/// What attaching would do with one table.
public struct TableReport: Equatable, Sendable {
  public let name: String
  public let verdict: Verdict
  /// One sentence for people.
  public let reason: String
  /// Nil unless the table syncs.
  public let identity: Identity?
  public let references: [ReferenceReport]
  /// Columns that look like references and are not declared: an integer that travels as a plain value points elsewhere
  /// on another device.
  public let suspectedReferences: [ReferenceReport]
}

/// What attaching would do with a file, or did.
public struct Survey: Equatable, Sendable {
  /// In order of creation.
  public let tables: [TableReport]
  /// What a file made from the structured description would lack; empty if the household's tables can be made from it.
  public let needsTemplate: [String]
  /// Rows whose key is NULL, by table: SQLite allows them, and they cannot sync.
  public let rowsWithoutKey: [String: Int]

  public var syncing: [TableReport] { tables.filter(\.verdict.syncs) }
}

/// Judges every table of a file by its schema and the rules.
struct Judge {
  let connection: Connection
  let rules: Rules
  /// The tables to attach; nil for all that may.
  let named: [String]?
  /// Whether rules that do not fit are left out instead of told: for a file that was attached with them.
  var isLenient = false

  private static let bookkeeping: Set<String> = [
    "android_metadata", "room_master_table", "gnclock", "schema_migrations", "grdb_migrations", "django_migrations",
    "alembic_version", "flyway_schema_history", "__efmigrationshistory", "_litestream_seq", "_litestream_lock",
    "knex_migrations", "knex_migrations_lock", "z_metadata", "z_primarykey", "z_modelcache", "spatial_ref_sys",
  ]
  /// Tables in which apps write down what was done to the schema: a new file whose tables are made but whose record of that is empty is
  /// taken for an old one.
  static let migrationRecords: Set<String> = [
    "versions", "version", "schema_version", "migrations", "schema_migrations", "grdb_migrations", "room_master_table",
    "django_migrations", "alembic_version", "flyway_schema_history", "__efmigrationshistory", "knex_migrations",
    "infotable_v1",
  ]
  private static let smells: Set<String> = [
    "session", "sessions", "token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "credential",
    "credentials", "cookie", "cookies", "cache", "caches", "cached", "apikey", "apikeys", "oauth", "keychain", "login",
    "logins",
  ]

  func survey() throws -> Survey {
    let listed = try connection.listedTables()
    try checkNames(listed)
    var shapes: [String: TableShape] = [:]
    for table in listed where table.kind == .table { shapes[table.name] = try connection.shape(of: table.name) }
    var verdicts: [(ListedTable, Verdict, String)] = []
    for table in listed where table.kind != .view {
      let (verdict, reason) = judge(table, shapes[table.name])
      verdicts.append((table, verdict, reason))
    }
    if let named {
      for name in named {
        guard let found = verdicts.first(where: { $0.0.name.lowercased() == name.lowercased() }) else {
          throw TablesError.noTable(name)
        }
        if found.1 == .refused { throw TablesError.refused(table: found.0.name, reason: found.2) }
      }
    }
    var reports: [TableReport] = []
    var withoutKey: [String: Int] = [:]
    for (table, verdict, reason) in verdicts {
      guard verdict.syncs, let shape = shapes[table.name] else {
        reports.append(
          TableReport(
            name: table.name, verdict: verdict, reason: reason, identity: nil, references: [], suspectedReferences: []))
        continue
      }
      let rule = rules[table.name]
      if !isLenient { try check(rule, shape, shapes) }
      let isNull = shape.key.map { "\(quoted($0.name)) IS NULL" }.joined(separator: " OR ")
      if !shape.keyIsRowID, !shape.isWithoutRowID,
        let count = try connection.integer("SELECT count(*) FROM main.\(quoted(table.name)) WHERE \(isNull)"), count > 0
      {
        withoutKey[table.name] = Int(count)
      }
      reports.append(
        TableReport(
          name: table.name, verdict: verdict, reason: reason, identity: rule.identity ?? Judge.identity(of: shape),
          references: references(of: shape, rule), suspectedReferences: suspects(of: shape, rule, shapes)))
    }
    return Survey(
      tables: reports,
      needsTemplate: try needsTemplate(Array(shapes.values), listed)
        + migrationRecords(reports.filter { $0.verdict == .local }.map(\.name)),
      rowsWithoutKey: withoutKey)
  }

  /// Rules must name tables and columns that exist: a misspelt rule would silently not hold.
  private func checkNames(_ listed: [ListedTable]) throws {
    let known = Set(listed.map { $0.name.lowercased() })
    for name in rules.tables.keys.sorted() where !known.contains(name.lowercased()) { throw TablesError.noTable(name) }
  }

  private func check(_ rule: TableRules, _ shape: TableShape, _ shapes: [String: TableShape]) throws {
    func need(_ column: String) throws {
      if shape.column(column) == nil { throw TablesError.noColumn(table: shape.name, column: column) }
    }
    if case .columns(let columns)? = rule.identity { try columns.forEach(need) }
    for column in rule.localColumns {
      try need(column)
      guard let declared = shape.column(column) else { continue }
      if declared.keyPosition > 0 {
        throw TablesError.rule("\(shape.name).\(column) is part of the key and cannot be local")
      }
      if declared.isNotNull, declared.defaultSQL == nil {
        throw TablesError.rule("\(shape.name).\(column) must have a value and has no default, so it cannot be local")
      }
    }
    for (column, reference) in rule.references.sorted(by: { $0.key < $1.key }) {
      try need(column)
      for name in reference.target.tables {
        guard let target = shapes.first(where: { $0.key.lowercased() == name.lowercased() })?.value else {
          throw TablesError.noTable(name)
        }
        if target.key.count != 1, !shape.foreignKeys.contains(where: { $0.from == [column] }) {
          throw TablesError.rule("\(shape.name).\(column) refers to \(target.name), whose key is not one column")
        }
        if reference.onDelete == .null, shape.column(column)?.isNotNull == true {
          throw TablesError.rule(
            "\(shape.name).\(column) may not be NULL, so a deleted \(target.name) cannot make it so")
        }
      }
      if case .chosen(let by, let choices) = reference.target {
        try need(by)
        if rule.localColumns.contains(where: { $0.lowercased() == by.lowercased() }) {
          throw TablesError.rule("\(shape.name).\(by) says where \(column) points, and so cannot be local")
        }
        if choices.isEmpty { throw TablesError.rule("\(shape.name).\(column) does not say which tables it refers to") }
      }
    }
    for part in rule.dedup {
      try need(part.column)
      if rule.localColumns.contains(where: { $0.lowercased() == part.column.lowercased() }) {
        throw TablesError.rule(
          "\(shape.name).\(part.column) stays on this device, so it cannot say which rows are the same")
      }
    }
    if let preferred = rule.preferred {
      try need(preferred)
      if rule.dedup.isEmpty, !rule.isSingleton {
        throw TablesError.rule("\(shape.name) prefers rows by \(preferred), but no rule says which rows are the same")
      }
    }
    if rule.isSingleton, !rule.dedup.isEmpty {
      throw TablesError.rule("\(shape.name) has one row only, so no columns say which rows are the same")
    }
    if let owner = rule.ownedBy {
      try need(owner)
      guard references(of: shape, rule).contains(where: { $0.columns.map { $0.lowercased() } == [owner.lowercased()] })
      else { throw TablesError.rule("\(shape.name).\(owner) refers to no table, so it cannot say what owns the row") }
    }
    for (former, now) in rule.renamed.sorted(by: { $0.key < $1.key }) {
      if shape.column(former) == nil { try need(now) }
      if shape.column(former) != nil, shape.column(now) != nil {
        throw TablesError.rule("\(shape.name).\(former) is there still, so \(now) is not its new name")
      }
    }
  }

  static func identity(of shape: TableShape) -> Identity {
    shape.key.count == 1 && shape.key[0].affinity == .integer ? .generated : .primaryKey
  }

  private func judge(_ table: ListedTable, _ shape: TableShape?) -> (Verdict, String) {
    switch table.kind {
    case .virtual: return (.refused, "a virtual table has no rows of its own")
    case .shadow: return (.refused, "the inside of a virtual table, which its own program keeps")
    case .view: return (.refused, "a view has no rows of its own")
    case .table: break
    }
    guard let shape else { return (.refused, "its declaration cannot be read") }
    let isNamed = named?.contains { $0.lowercased() == table.name.lowercased() }
    if rules[table.name].isLocal { return (.local, "the rules keep it on this device") }
    let name = table.name.lowercased()
    if Judge.bookkeeping.contains(name) || name.hasPrefix("crsql_") || name.hasPrefix("__crsql")
      || name.hasSuffix("__crsql_clock")
      || name.hasPrefix("_litestream_") || name.hasPrefix("_cf_")
    {
      return (.local, "bookkeeping of a program or another engine on this device")
    }
    if let reason = refusal(shape) { return (.refused, reason) }
    if let isNamed, !isNamed { return (.local, "not among the tables that were named") }
    let words = Set(words(of: table.name))
    if isNamed != true, !words.isDisjoint(with: Judge.smells) {
      return (.ask, "its name looks like secrets, sessions or a cache; name it to attach it")
    }
    if rules[table.name].isSingleton { return (.singleton, "it has one row, the same on every device") }
    switch rules[table.name].identity ?? Judge.identity(of: shape) {
    case .generated: return (.sync, "rows get names of their own; integer keys may differ per device")
    case .primaryKey: return (.sync, "rows are the same where \(shape.key.map(\.name).joined(separator: ", ")) is")
    case .columns(let columns): return (.sync, "rows are the same where \(columns.joined(separator: ", ")) is")
    }
  }

  private func refusal(_ shape: TableShape) -> String? {
    if shape.key.isEmpty { return "it has no primary key, so no row can be told from another" }
    if let column = shape.columns.first(where: { !isBuiltIn(collation: $0.collation) }) {
      return "the collation \(column.collation) of \(column.name) is the app's own"
    }
    for index in shape.indexes {
      if let part = index.parts.first(where: { !isBuiltIn(collation: $0.collation) }) {
        return "the collation \(part.collation) of the index \(index.name) is the app's own"
      }
    }
    if shape.key.contains(where: \.isGenerated) { return "its key is computed" }
    if shape.key.contains(where: { $0.affinity == .real }) { return "its key is a floating-point number" }
    let limit = 1_024
    if shape.name.utf8.count > limit
      || shape.columns.contains(where: { $0.name.utf8.isEmpty || $0.name.utf8.count > limit })
    {
      return "a name is longer than \(limit) bytes"
    }
    return nil
  }

  private func words(of name: String) -> [String] {
    var out: [String] = []
    var word = ""
    var wasLower = false
    for character in name {
      if !character.isLetter {
        if !word.isEmpty { out.append(word) }
        word = ""
        wasLower = false
        continue
      }
      if character.isUppercase, wasLower {
        out.append(word)
        word = ""
      }
      wasLower = character.isLowercase
      word += character.lowercased()
    }
    if !word.isEmpty { out.append(word) }
    return out
  }

  private func references(of shape: TableShape, _ rule: TableRules) -> [ReferenceReport] {
    var out = shape.foreignKeys.map { ReferenceReport(columns: $0.from, table: $0.table, isDeclared: true) }
    for (column, reference) in rule.references.sorted(by: { $0.key < $1.key })
    where !out.contains(where: { $0.columns.map { $0.lowercased() } == [column.lowercased()] }) {
      for table in reference.target.tables {
        out.append(ReferenceReport(columns: [column], table: table, isDeclared: false))
      }
    }
    return out
  }

  /// Columns named after another table: `habit`, `habit_id`, `habitId` for a table `Habits`.
  private func suspects(of shape: TableShape, _ rule: TableRules, _ shapes: [String: TableShape]) -> [ReferenceReport] {
    let known = Set(references(of: shape, rule).flatMap { $0.columns.map { $0.lowercased() } })
    var out: [ReferenceReport] = []
    for column in shape.columns
    where !known.contains(column.name.lowercased()) && column.keyPosition == 0 && !column.isGenerated {
      var stem = column.name.lowercased().filter { $0 != "_" }
      let isMarked = stem.hasSuffix("id") || stem.hasSuffix("guid") || stem.hasSuffix("uuid") || stem.hasSuffix("fk")
      for suffix in ["uuid", "guid", "id", "fk"] where stem.hasSuffix(suffix) && stem.count > suffix.count {
        stem = String(stem.dropLast(suffix.count))
        break
      }
      for name in shapes.keys.sorted() {
        guard let target = shapes[name], target.key.count == 1 else { continue }
        if name == shape.name, !isMarked { continue }
        let plain = name.lowercased().filter { $0 != "_" }
        let forms: Set<String> = [
          plain, plain.hasSuffix("s") ? String(plain.dropLast()) : plain + "s",
          plain.hasSuffix("ies") ? String(plain.dropLast(3)) + "y" : plain,
        ]
        guard forms.contains(stem) || (stem == "parent" && name == shape.name) else { continue }
        if !isMarked, column.affinity != .integer { continue }
        out.append(ReferenceReport(columns: [column.name], table: name, isDeclared: false))
        break
      }
    }
    return out
  }

  private func migrationRecords(_ local: [String]) throws -> [String] {
    try local.filter { name in
      try Judge.migrationRecords.contains(name.lowercased())
        && connection.first("SELECT 1 FROM main.\(quoted(name)) LIMIT 1") != nil
    }.map { "\($0) holds what the app has done to its schema, and stays on each device" }
  }

  private func needsTemplate(_ shapes: [TableShape], _ listed: [ListedTable]) throws -> [String] {
    var out = shapes.sorted { $0.name < $1.name }.flatMap(\.indescribable)
    for table in listed {
      switch table.kind {
      case .virtual: out.append("\(table.name) is a virtual table")
      case .view, .shadow, .table: break
      }
    }
    try connection.forEach(
      "SELECT type, name FROM main.sqlite_schema WHERE type IN ('view', 'trigger') AND name NOT GLOB 'lk_*' ORDER BY rowid"
    ) { out.append("there is a \($0.text(0)) \($0.text(1))") }
    return out
  }
}
