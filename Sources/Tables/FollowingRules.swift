internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// A table's rules as the zone has them (format §6, note kind 4): by wire names, so that they hold whatever the app calls its
/// tables and columns. The last writer counts; every device follows.
extension Replica {
  static let rulesKind: UInt64 = 4
  /// Under which rules about the whole file lie: no table has an empty name.
  private static let fileRules = ""
  private static let applyWhen = "apply_when"

  /// Whether a person set rules here that the zone has not been told: until then they hold here, whatever the zone says.
  func hasOwnRules() throws -> Bool { try state("ownRules")?.integer == 1 }

  func setOwnRules() throws { try setState("ownRules", .integer(1)) }

  // MARK: Taking rules

  /// Takes the zone's rules, as far as their tables and columns are here.
  /// - Returns: whether anything is ruled otherwise now; then the schema is to be followed again.
  func takeRules() throws -> Bool {
    if try hasOwnRules() { return false }
    var rules = settings.rules
    let descriptions = try schemaNotes()
    for raw in try connection.rows(
      "SELECT key, value FROM main.lk_note WHERE kind = ? ORDER BY key", [.integer(Int64(Self.rulesKind))])
    {
      guard let wire = raw[0].string, let bytes = raw[1].bytes, let said = try? decode(rules: bytes) else { continue }
      if wire == Self.fileRules {
        rules.appliesWhenClosed = said.newer[Self.applyWhen] == Self.whenClosed
        continue
      }
      guard let (name, columns) = try here(wire, descriptions) else { continue }
      var own = said.naming(
        column: { column in columns.first { sameBytes($0.wire, column) }?.name },
        table: { wire in (try? here(wire, descriptions)?.name) ?? wire })
      let former = rules.tables.keys.sorted().filter { $0.lowercased() == name.lowercased() }
      own.renamed = former.compactMap { rules.tables[$0]?.renamed }.first ?? [:]
      for key in former { rules.tables[key] = nil }
      if own != TableRules() { rules.tables[name] = own }
    }
    if rules == settings.rules { return false }
    settings.rules = rules
    return true
  }

  /// What a table of the zone and its columns are called here; nil if it is not here.
  private func here(_ wire: String, _ descriptions: [SchemaNote]) throws -> (name: String, columns: [NamedColumn])? {
    if let table = tables.first(where: { $0.shape != nil && sameBytes($0.wire, wire) }) {
      let known = try knownNames(table.id)
      if !known.isEmpty { return (table.name, known) }
    }
    let said = descriptions.first { sameBytes($0.wire, wire) }
    guard let shape = try connection.shape(of: said?.shape.name ?? wire) else { return nil }
    let names = said?.names ?? []
    return (
      shape.name,
      shape.columns.map { column in
        names.first { sameBytes($0.name, column.name) } ?? NamedColumn(name: column.name, wire: column.name)
      }
    )
  }

  private func decode(rules bytes: [UInt8]) throws(CBORError) -> TableRules {
    var reader = CBORReader(bytes)
    try reader.array(exactly: 2)
    guard try reader.uint() == 1 else { throw .unexpected("version 1") }
    let rules = try TableRules(from: &reader)
    try reader.finish()
    return rules
  }

  // MARK: Telling rules

  /// The rules that were set here and differ from what the zone says, said once.
  func pendingRules() throws -> [PendingNote] {
    guard try hasOwnRules() else { return [] }
    // A file that is filled from the zone has nothing to say before it heard the zone.
    if settings.adopts, try note(DatabaseNote.kind, DatabaseNote.key) == nil { return [] }
    try setState("ownRules", nil)
    let descriptions = try schemaNotes()
    var out: [PendingNote] = []
    for listed in try connection.listedTables() where listed.kind == .table {
      let wire = try onTheWire(listed.name, descriptions)
      let columns = try here(wire, descriptions)?.columns ?? []
      var rules = settings.rules[listed.name].naming(
        column: { name in
          columns.first { sameBytes($0.name, name) }?.wire
            ?? columns.first { $0.name.lowercased() == name.lowercased() }?.wire
        },
        table: { name in (try? onTheWire(name, descriptions)) ?? name })
      rules.renamed = [:]
      let said = try note(Self.rulesKind, wire)?.value
      let value = encode(rules)
      if value == said || said == nil && rules == TableRules() { continue }
      out.append(PendingNote(kind: Self.rulesKind, key: wire, value: value))
    }
    if let note = try pendingFileRules() { out.append(note) }
    return out
  }

  private static let whenClosed: [UInt8] = {
    var writer = CBORWriter()
    writer.text("closed")
    return writer.bytes
  }()

  /// What is said about the whole file, if the zone is told otherwise. What this version does not know in it is handed on.
  private func pendingFileRules() throws -> PendingNote? {
    let said = try note(Self.rulesKind, Self.fileRules)?.value
    var rules = try said.map { try decode(rules: $0) } ?? TableRules()
    rules.newer[Self.applyWhen] = settings.rules.appliesWhenClosed ? Self.whenClosed : nil
    let value = encode(rules)
    if value == said || said == nil && rules == TableRules() { return nil }
    return PendingNote(kind: Self.rulesKind, key: Self.fileRules, value: value)
  }

  private func onTheWire(_ name: String, _ descriptions: [SchemaNote]) throws -> String {
    let folded = name.lowercased()
    if let table = tables.first(where: { $0.shape?.name.lowercased() == folded }) { return table.wire }
    if let wire = descriptions.first(where: { $0.shape.name.lowercased() == folded })?.wire { return wire }
    return try connection.shape(of: name)?.name ?? name
  }

  private func encode(_ rules: TableRules) -> [UInt8] {
    var writer = CBORWriter()
    writer.array(2)
    writer.uint(1 as UInt64)
    rules.write(to: &writer)
    return writer.bytes
  }

  // MARK: Setting rules

  /// The rules that hold in this file, by the names that its tables and columns have here.
  public var rules: Rules { settings.rules }

  /// Puts other rules in place of those that hold, for every device of the zone: they are told to the zone with the next
  /// ``stamp(now:limit:emit:)``.
  ///
  /// - Returns: what becomes of each table now.
  /// - Throws: ``TablesError`` if the rules do not fit the schema, or give another identity to rows that have their names.
  @discardableResult
  public func setRules(_ rules: Rules) throws -> Survey {
    try transaction {
      let survey = try Judge(connection: connection, rules: rules, named: settings.named).survey()
      for table in tables where table.shape != nil {
        let wanted = rules[table.name].identity ?? table.shape.map(Judge.identity) ?? .generated
        guard wanted != settings.rules[table.name].identity ?? table.shape.map(Judge.identity) ?? .generated,
          try connection.first(
            "SELECT 1 FROM main.lk_row WHERE tid = ? AND length(meta) > 0 LIMIT 1", [.integer(table.id)]) != nil
        else { continue }
        throw TablesError.rule(
          "the rows of \(table.name) have their names already: what makes two of them the same cannot be changed any more"
        )
      }
      var wanted = settings
      wanted.rules = rules
      for (name, rule) in settings.rules.tables where !rule.newer.isEmpty {
        // What this version does not know it does not take away.
        wanted.rules.tables[name, default: TableRules()].newer = rule.newer
      }
      try setOwnRules()
      try follow(wanted)
      return survey
    }
  }
}

extension Rules {
  /// Only what is about tables and columns that a file has: for recipes that are for several versions of an app.
  func fitting(_ connection: Connection) throws -> Rules {
    var out = Rules(appliesWhenClosed: appliesWhenClosed)
    for name in tables.keys.sorted() {
      guard let rule = tables[name], let shape = try connection.shape(of: name) else { continue }
      var fitting = rule.naming(column: { shape.column($0)?.name }, table: { $0 })
      for (column, reference) in fitting.references {
        var known: Set<String> = []
        for table in reference.target.tables where try connection.shape(of: table) != nil { known.insert(table) }
        switch reference.target {
        case .table: if known.isEmpty { fitting.references[column] = nil }
        case .chosen(let by, let choices):
          let left = choices.filter { known.contains($0.table) }
          fitting.references[column]?.target = .chosen(by: by, left)
          if left.isEmpty { fitting.references[column] = nil }
        }
      }
      if fitting != TableRules() { out.tables[shape.name] = fitting }
    }
    return out
  }
}

extension Replica {
  /// Those of some rules that are about what the file has: of a recipe that is for several versions of an app.
  public static func fitting(_ rules: Rules, path: String) throws(TablesError) -> Rules {
    do { return try rules.fitting(openForReading(path)) } catch { throw TablesError(error, path: path) }
  }
}
