internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Which tables sync, and how, from the schema, the settings and what the file remembers.
extension Replica {
  /// Reads the tables of the zone, with their shapes.
  func loadTables() throws {
    var loaded: [SyncedTable] = []
    totals = [:]
    for row in try connection.rows(
      "SELECT id, wire, name, columns, live, deleted, digest, keys, names FROM main.lk_table ORDER BY id")
    {
      guard let id = row[0].integer, let wire = row[1].string, let names = row[3].bytes else { continue }
      totals[id] = TableTotals(
        live: Int(row[4].integer ?? 0), deleted: Int(row[5].integer ?? 0),
        digest: row[6].bytes.flatMap(Hash32.init) ?? .zero)
      var reader = CBORReader(names)
      let columnNames = try reader.texts()
      let shape = try row[2].string.flatMap { try connection.shape(of: $0) }
      let table = makeTable(
        id: id, wire: wire, shape: shape, columnNames: columnNames, names: try row[8].bytes.map(decode(names:)) ?? [])
      if shape == nil, let keys = row[7].bytes {
        var reader = CBORReader(keys)
        table.keyCount = try reader.texts().count
      }
      loaded.append(table)
    }
    savedTotals = totals
    install(loaded)
  }

  func makeTable(
    id: Int64, wire: String, shape: TableShape?, columnNames: [String], names named: [NamedColumn]
  ) -> SyncedTable {
    let rule = settings.rules[shape?.name ?? wire]
    var names = columnNames
    var columns: [SyncedColumn] = []
    let local = Set(rule.localColumns.map { $0.lowercased() })
    for column in shape?.columns ?? [] where !column.isGenerated && !local.contains(column.name.lowercased()) {
      let number: Int
      let wire = named.first { sameBytes($0.name, column.name) }?.wire ?? column.name
      if let known = names.firstIndex(where: { sameBytes($0, wire) }) {
        number = known
      } else {
        number = names.count
        names.append(wire)
      }
      let value: SQLiteValue?
      switch column.defaultSQL.map(LiteralDefault.init) {
      case nil: value = .null
      case .some(.some(.value(let literal))): value = column.affinity.apply(to: literal)
      case .some(.some(.current)), .some(.none): value = nil
      }
      columns.append(
        SyncedColumn(
          name: column.name, wire: wire, number: number, affinity: column.affinity,
          collation: Collation(name: column.collation),
          isRequired: column.isNotNull || column.keyPosition > 0, isKey: column.keyPosition > 0, defaultValue: value))
    }
    let table = SyncedTable(
      id: id, wire: wire, shape: shape, columnNames: names, columns: columns,
      identity: rule.identity ?? shape.map(Judge.identity) ?? .generated, compress: rule.compress)
    table.savedColumnCount = columnNames.count
    table.duplicates = duplicateRule(rule, columns)
    return table
  }

  private func duplicateRule(_ rule: TableRules, _ columns: [SyncedColumn]) -> DuplicateRule? {
    func at(_ name: String) -> Int? { columns.firstIndex { $0.name.lowercased() == name.lowercased() } }
    let parts = rule.dedup.compactMap { part in at(part.column).map { (at: $0, fold: part.fold) } }
    guard parts.count == rule.dedup.count, rule.isSingleton || !parts.isEmpty else { return nil }
    return DuplicateRule(columns: parts, preferred: rule.preferred.flatMap(at))
  }

  /// Makes the tables known to each other: references, referrers, order.
  func install(_ loaded: [SyncedTable]) {
    tables = loaded
    tablesByID = Dictionary(uniqueKeysWithValues: loaded.map { ($0.id, $0) })
    tablesByWire = Dictionary(loaded.map { ($0.wire, $0) }, uniquingKeysWith: { first, _ in first })
    var byName: [String: SyncedTable] = [:]
    for table in loaded where table.shape != nil { byName[table.name.lowercased()] = table }
    for table in loaded { resolveReferences(of: table, byName) }
    // A column of a composite foreign key refers to what the parent's column refers to.
    for _ in 0..<4 { for table in loaded { resolveComposite(of: table, byName) } }
    for table in loaded { table.referrers = [] }
    for table in loaded {
      for (index, column) in table.columns.enumerated() {
        for reference in column.references { tablesByID[reference.table]?.referrers.append((table, index)) }
      }
    }
    var ranks: [Int64: Int] = [:]
    var visiting: Set<Int64> = []
    func rank(_ table: SyncedTable) -> Int {
      if let known = ranks[table.id] { return known }
      if !visiting.insert(table.id).inserted { return 0 }
      var value = 0
      for reference in table.columns.flatMap(\.references) {
        guard reference.table != table.id, let parent = tablesByID[reference.table] else { continue }
        value = max(value, rank(parent) + 1)
      }
      visiting.remove(table.id)
      ranks[table.id] = value
      return value
    }
    for table in loaded { table.rank = rank(table) }
  }

  private func resolveReferences(of table: SyncedTable, _ byName: [String: SyncedTable]) {
    guard let shape = table.shape else { return }
    let rules = settings.rules[shape.name].references
    for index in table.columns.indices {
      let column = table.columns[index]
      let folded = column.name.lowercased()
      let rule = rules.keys.sorted().first { $0.lowercased() == folded }.flatMap { rules[$0] }
      let declared = shape.foreignKeys.first { $0.from.count == 1 && $0.from[0].lowercased() == folded }
      if case .chosen(let by, let choices)? = rule?.target {
        resolveChoice(of: table, index, by, choices, rule, byName)
        continue
      }
      guard let targetName = rule?.target.tables.first ?? declared?.table, let target = byName[targetName.lowercased()],
        target.key.count == 1 || declared?.to.count == 1
      else { continue }
      var targetColumn: String?
      if let declared, let to = declared.to.first, declared.table.lowercased() == targetName.lowercased() {
        let keyName = target.key.count == 1 ? target.columns[target.key[0]].name : nil
        if keyName?.lowercased() != to.lowercased() {
          guard let known = target.columns.first(where: { $0.name.lowercased() == to.lowercased() }) else { continue }
          targetColumn = known.name
        }
      }
      if targetColumn == nil, target.key.count != 1 { continue }
      let action: DeleteAction
      switch (rule?.onDelete, declared?.onDelete) {
      case (let ruled?, _): action = ruled
      case (nil, "CASCADE"?): action = .cascade
      case (nil, "SET NULL"?), (nil, "SET DEFAULT"?): action = column.isRequired ? .keep : .null
      case (nil, _): action = column.isRequired ? .keep : .null
      }
      table.columns[index].reference = SyncedColumn.Reference(
        table: target.id, column: targetColumn, action: action, none: rule?.none ?? [],
        collation: target.columns.first { $0.name == targetColumn }?.collation ?? target.key.first.map {
          target.columns[$0].collation
        } ?? .binary)
    }
  }

  /// A choice whose other column does not travel, or whose tables are not here, points nowhere.
  private func resolveChoice(
    of table: SyncedTable, _ index: Int, _ by: String, _ choices: [ReferenceTarget.Choice], _ rule: ReferenceRule?,
    _ byName: [String: SyncedTable]
  ) {
    guard let at = table.columns.firstIndex(where: { $0.name.lowercased() == by.lowercased() }) else { return }
    let isRequired = table.columns[index].isRequired
    let targets: [(value: SQLiteValue, reference: SyncedColumn.Reference)] = choices.compactMap { choice in
      guard let target = byName[choice.table.lowercased()], target.key.count == 1 else { return nil }
      return (
        table.columns[at].affinity.apply(to: choice.value),
        SyncedColumn.Reference(
          table: target.id, column: nil, action: rule?.onDelete ?? (isRequired ? .keep : .null),
          none: rule?.none ?? [], collation: target.columns[target.key[0]].collation)
      )
    }
    table.columns[index].choice = SyncedColumn.Choice(by: at, targets: targets)
  }

  private func resolveComposite(of table: SyncedTable, _ byName: [String: SyncedTable]) {
    for foreign in table.shape?.foreignKeys ?? [] where foreign.from.count > 1 {
      guard let parent = byName[foreign.table.lowercased()] else { continue }
      let to = foreign.to.isEmpty ? parent.key.map { parent.columns[$0].name } : foreign.to
      guard to.count == foreign.from.count else { continue }
      for (from, to) in zip(foreign.from, to) {
        guard let index = table.columns.firstIndex(where: { $0.name.lowercased() == from.lowercased() }),
          !table.columns[index].isReference,
          let found = parent.columns.first(where: { $0.name.lowercased() == to.lowercased() })?.reference
        else { continue }
        table.columns[index].reference = SyncedColumn.Reference(
          table: found.table, column: found.column, action: table.columns[index].isRequired ? .keep : .null,
          none: found.none, collation: found.collation)
      }
    }
  }

  /// The table of a wire name, made known if it is not: a zone may have tables that this file lacks.
  func table(wire: String) throws -> SyncedTable {
    // Equal strings need not be equal bytes, and to SQLite only bytes count.
    if let known = tablesByWire[wire], known.wire.utf8.elementsEqual(wire.utf8) { return known }
    if let known = tables.first(where: { $0.wire.utf8.elementsEqual(wire.utf8) }) { return known }
    return try addTable(wire: wire, name: nil)
  }

  @discardableResult
  func addTable(wire: String, name: String?) throws -> SyncedTable {
    var writer = CBORWriter()
    writer.texts([])
    try connection.run(
      "INSERT INTO main.lk_table(wire, name, columns, digest) VALUES (?, ?, ?, ?)",
      [SQLiteValue(wire), name.map { SQLiteValue($0) } ?? .null, .blob(writer.bytes), .blob(Hash32.zero.bytes)])
    let id = connection.lastInsertedRow
    totals[id] = TableTotals()
    savedTotals[id] = TableTotals()
    let table = makeTable(
      id: id, wire: wire, shape: try name.flatMap { try connection.shape(of: $0) }, columnNames: [], names: [])
    install(tables + [table])
    try saveColumns(table)
    return table
  }

  /// Writes down the numbers of columns that got one: before anything that uses them is committed.
  func saveColumns(_ table: SyncedTable) throws {
    if table.columnNames.count == table.savedColumnCount { return }
    var writer = CBORWriter()
    writer.texts(table.columnNames)
    try connection.run("UPDATE main.lk_table SET columns = ? WHERE id = ?", [.blob(writer.bytes), .integer(table.id)])
    table.savedColumnCount = table.columnNames.count
  }
}
