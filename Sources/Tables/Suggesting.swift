internal import LatchkeySQLite

/// Something about an app's tables that names and rows suggest and the schema does not say.
public struct Suggestion: Equatable, Sendable {
  /// How much speaks for it.
  public enum Confidence: String, Equatable, Sendable {
    /// The name says so, and so do all rows.
    case high
    /// The name says so, and there are no rows, or few that say otherwise.
    case medium
    /// Some rows say otherwise. Not among the suggested rules.
    case low
  }

  public enum Subject: Equatable, Sendable {
    case reference(column: String, ReferenceRule)
    case identity(column: String)
    case local
  }

  public let table: String
  public let subject: Subject
  public let confidence: Confidence
  /// One sentence for people.
  public let reason: String
}

/// What looking at a file suggests.
public struct Suggestions: Equatable, Sendable {
  public let all: [Suggestion]
  /// The rules that hold, with those suggestions that have more than low confidence.
  public let rules: Rules
}

extension Replica {
  /// What names and rows suggest about a file, attached or not. Reads only. A person should look at it before it is set.
  public static func suggest(path: String) throws(TablesError) -> Suggestions {
    do {
      let connection = try openForReading(path)
      var rules = Rules.none
      if let bytes = try? connection.first("SELECT value FROM main.lk_state WHERE key = 'settings'")?[0].bytes {
        rules = try Settings(decoding: bytes).rules
      }
      return try Suggesting(connection: connection, rules: rules).suggestions()
    } catch { throw TablesError(error, path: path) }
  }
}

private struct Suggesting {
  let connection: Connection
  let rules: Rules

  /// Values that apps write for "none".
  private static let sentinels: [SQLiteValue] = [.integer(0), .integer(-1), SQLiteValue(""), SQLiteValue("0")]
  /// Names of keys that say nothing about the table.
  private static let plainKeys: Set<String> = ["id", "_id", "rowid", "key", "name", "uuid", "guid", "code"]

  func suggestions() throws -> Suggestions {
    let survey = try Judge(connection: connection, rules: rules, named: nil, isLenient: true).survey()
    var shapes: [String: TableShape] = [:]
    for table in survey.tables { shapes[table.name] = try connection.shape(of: table.name) }
    var all: [Suggestion] = []
    for table in survey.tables {
      guard let shape = shapes[table.name] else { continue }
      if table.verdict == .ask {
        all.append(
          Suggestion(
            table: table.name, subject: .local, confidence: .medium,
            reason: "its name looks like secrets, sessions or a cache"))
      }
      guard table.verdict.syncs else { continue }
      if let identity = try identity(shape) { all.append(identity) }
      all += try references(shape, table, shapes)
    }
    var suggested = rules
    for one in all where one.confidence != .low {
      var rule = suggested[one.table]
      switch one.subject {
      case .reference(let column, let reference): rule.references[column] = reference
      case .identity(let column): rule.identity = .columns([column])
      case .local: rule.isLocal = true
      }
      for key in suggested.tables.keys.sorted() where key.lowercased() == one.table.lowercased() {
        suggested.tables[key] = nil
      }
      suggested.tables[one.table] = rule
    }
    return Suggestions(all: all, rules: suggested)
  }

  /// An integer key beside a unique column that must have a value and is called a UUID: rows are the same where that is.
  private func identity(_ shape: TableShape) throws -> Suggestion? {
    guard rules[shape.name].identity == nil, Judge.identity(of: shape) == .generated else { return nil }
    for column in shape.columns where ["uuid", "guid"].contains(column.name.lowercased()) {
      let isUnique = shape.indexes.contains {
        $0.isUnique && !$0.isPartial && $0.parts.map { $0.column?.lowercased() } == [column.name.lowercased()]
      }
      let name = "main.\(quoted(shape.name))"
      let value = quoted(column.name)
      let twice = try connection.first("SELECT 1 FROM \(name) GROUP BY \(value) HAVING count(*) > 1 LIMIT 1") != nil
      if twice { continue }
      return Suggestion(
        table: shape.name, subject: .identity(column: column.name), confidence: isUnique ? .high : .medium,
        reason: isUnique ? "\(column.name) is unique" : "no two rows have the same \(column.name)")
    }
    return nil
  }

  private func references(_ shape: TableShape, _ table: TableReport, _ shapes: [String: TableShape]) throws
    -> [Suggestion]
  {
    let known = Set(table.references.flatMap(\.columns).map { $0.lowercased() })
    var out: [Suggestion] = []
    for column in shape.columns
    where !known.contains(column.name.lowercased()) && column.keyPosition == 0 && !column.isGenerated {
      let suspected = table.suspectedReferences.first { $0.columns == [column.name] }?.table
      guard let target = suspected.flatMap({ shapes[$0] }) ?? named(like: column, shape, shapes) else { continue }
      out.append(try weigh(shape, column, target))
    }
    return out
  }

  /// The table whose key has the column's name, or whose key's name ends it: `ACCOUNTID`, `TOACCOUNTID`.
  private func named(like column: ColumnShape, _ shape: TableShape, _ shapes: [String: TableShape])
    -> TableShape?
  {
    let name = column.name.lowercased()
    let targets = shapes.keys.sorted().compactMap { shapes[$0] }.filter {
      $0.key.count == 1 && $0.name != shape.name && !Self.plainKeys.contains($0.key[0].name.lowercased())
        && $0.key[0].affinity == column.affinity
    }
    return targets.first { $0.key[0].name.lowercased() == name }
      ?? targets.first { name.hasSuffix($0.key[0].name.lowercased()) && $0.key[0].name.count >= 5 }
  }

  /// What the rows say of a column that looks like a reference.
  private func weigh(_ shape: TableShape, _ column: ColumnShape, _ target: TableShape) throws -> Suggestion {
    let value = "t.\(quoted(column.name))"
    let source = "main.\(quoted(shape.name)) t"
    let key = quoted(target.key[0].name)
    let distinct = try connection.integer("SELECT count(DISTINCT \(value)) FROM \(source)") ?? 0
    let astray = try connection.rows(
      "SELECT DISTINCT \(value) FROM \(source) WHERE \(value) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM main.\(quoted(target.name)) p WHERE p.\(key) = \(value)) LIMIT 1000"
    ).map { $0[0] }
    let none = Self.sentinels.filter(astray.contains)
    let lost = astray.count - none.count
    let there = Int(distinct) - astray.count
    let confidence: Suggestion.Confidence = there > 0 && lost == 0 ? .high : lost * 20 <= there ? .medium : .low
    let reason =
      distinct == 0
      ? "its name says so; there are no values"
      : "its name says so, and \(there) of \(distinct) values are keys of \(target.name)"
        + (none.isEmpty ? "" : "; \(none.map(describe).joined(separator: ", ")) for none")
    return Suggestion(
      table: shape.name, subject: .reference(column: column.name, ReferenceRule(table: target.name, none: none)),
      confidence: confidence, reason: reason)
  }
}
