import Latchkey
import LatchkeySQLite
import LatchkeyTables

/// A recipe: what an app's schema does not say about its tables, as a JSON file (`latchkey help recipes`).
///
/// Read strictly. A key that is not known is an error that names it and its line: a rule that is silently not applied
/// would do harm only much later.
struct Recipe {
  let rules: Rules
  /// Whether it came with this program: then it is for several versions of its app, and what is about tables and columns that a
  /// file does not have is left out.
  let isShipped: Bool

  /// - Parameter name: a file, or the name of a recipe that came with this program.
  /// - Throws: exit code 64 for what cannot be understood or is not in this version, 17 for a newer recipe, 1 if the file
  ///   cannot be read.
  init(named name: String) throws(CommandError) {
    if !name.contains("/"), !name.contains("."), !SmallFile.exists(name) {
      guard let shipped = ShippedRecipe.all.first(where: { $0.name == name }) else {
        throw .usage(
          "no-such-recipe",
          "There is no file \(name.quotedUnlessSecret), and no recipe of that name came with this program.",
          next: ["latchkey recipe list"])
      }
      try self.init(parsing: Array(shipped.text.utf8), file: name, isShipped: true)
    } else {
      try self.init(parsing: try SmallFile.read(name), file: name)
    }
  }

  /// The rules for a file.
  /// - Throws: exit code 2 if the file cannot be read.
  func rules(for path: String, _ context: Context) async throws(CommandError) -> Rules {
    guard isShipped else { return rules }
    return try await context.performing { () async throws(LatchkeyError) in
      try context.library.fitting(rules, path)
    }
  }

  /// - Parameter file: for messages.
  init(parsing bytes: [UInt8], file: String, isShipped: Bool = false) throws(CommandError) {
    let json: JSON
    do { json = try JSON(parsing: bytes) } catch {
      throw .usage(
        "bad-recipe", "\(file.printable), line \(error.line), column \(error.column): \(error.reason).",
        next: ["latchkey help recipes"])
    }
    rules = try RecipeReader(file: file).rules(json)
    self.isShipped = isShipped
  }
}

/// Walks through a recipe's JSON.
private struct RecipeReader {
  let file: String

  /// Part of the format, and not of this version.
  private static let later: Set<String> = [
    "attribute", "together", "unit", "additive",
  ]

  func rules(_ json: JSON) throws(CommandError) -> Rules {
    let members = try object(json, "the recipe", line: 1)
    guard let versionMember = members.first(where: { $0.name == "v" }) else {
      throw mistake(1, "\"v\" is missing: a recipe says which version of the format it is in (\"v\": 1)")
    }
    guard let version = versionMember.value.integer, version >= 1 else {
      throw mistake(versionMember.line, "\"v\" is a version of the format: 1")
    }
    guard version == 1 else {
      throw CommandError(
        .newerFormat, "newer-recipe",
        "\(file.printable) is a recipe of version \(version); this latchkey reads version 1.",
        next: ["update latchkey"])
    }
    var rules = Rules()
    for member in members {
      switch member.name {
      case "v": continue
      case "name":
        guard member.value.text != nil else { throw mistake(member.line, "\"name\" is a text") }
      case "tables":
        for table in try object(member.value, "\"tables\"", line: member.line) {
          rules.tables[table.name] = try tableRules(table)
        }
      case "apply_when":
        guard member.value.text == "closed" else { throw mistake(member.line, "\"apply_when\" is \"closed\"") }
        rules.appliesWhenClosed = true
      default: throw unknown(member, in: "a recipe")
      }
    }
    return rules
  }

  private func tableRules(_ table: JSON.Member) throws(CommandError) -> TableRules {
    if let word = table.value.text {
      if word == "local" { return TableRules(isLocal: true) }
      if word == "singleton" { return TableRules(isSingleton: true) }
      if RecipeReader.later.contains(word) { throw notYet(word, table.line) }
      throw mistake(
        table.line, "the table \(quoted(table.name)) cannot be \(quoted(word)): the word is \"local\" or \"singleton\"")
    }
    var rules = TableRules()
    for member in try object(table.value, "the table \(quoted(table.name))", line: table.line) {
      switch member.name {
      case "identity": rules.identity = try identity(member)
      case "references":
        for reference in try object(member.value, "\"references\"", line: member.line) {
          rules.references[reference.name] = try self.reference(reference)
        }
      case "local_columns": rules.localColumns = try names(member)
      case "renamed":
        for pair in try object(member.value, "\"renamed\"", line: member.line) {
          guard let now = pair.value.text else {
            throw mistake(pair.line, "\"renamed\" says of a column's former name what its name is")
          }
          rules.renamed[pair.name] = now
        }
      case "dedup": rules.dedup = try dedup(member)
      case "prefer":
        guard let column = member.value.text else { throw mistake(member.line, "\"prefer\" is a column's name") }
        rules.preferred = column
      case "lookup": rules.isLookup = try yes(member)
      case "owned_by":
        guard let column = member.value.text else { throw mistake(member.line, "\"owned_by\" is a column's name") }
        rules.ownedBy = column
      case "compress":
        rules.compress = try yes(member)
      default: throw unknown(member, in: "a table")
      }
    }
    return rules
  }

  private func identity(_ member: JSON.Member) throws(CommandError) -> LatchkeyTables.Identity {
    switch member.value {
    case .text("generated"): return .generated
    case .text("primaryKey"): return .primaryKey
    case .array: return .columns(try names(member))
    default: throw mistake(member.line, "\"identity\" is \"generated\", \"primaryKey\" or a list of columns")
    }
  }

  private func dedup(_ member: JSON.Member) throws(CommandError) -> [DedupColumn] {
    let what = "\"dedup\" is a list of columns, or of objects with \"column\" and \"fold\" (exact, trim or nocase)"
    guard let elements = member.value.array, !elements.isEmpty else { throw mistake(member.line, what) }
    return try elements.map { element throws(CommandError) in
      if let column = element.text { return DedupColumn(column) }
      guard case .object(let parts) = element, parts.allSatisfy({ ["column", "fold"].contains($0.name) }),
        let column = element["column"]?.text,
        let fold = element["fold"].map({ $0.text.flatMap(DedupColumn.Fold.init(rawValue:)) }) ?? .nocase
      else { throw mistake(member.line, what) }
      return DedupColumn(column, fold: fold)
    }
  }

  private func reference(_ member: JSON.Member) throws(CommandError) -> ReferenceRule {
    if let table = member.value.text { return ReferenceRule(table: table) }
    let what = "the reference \(quoted(member.name))"
    let parts = try object(member.value, what, line: member.line)
    guard let to = parts.first(where: { $0.name == "to" }) else {
      throw mistake(member.line, "\(what) does not say which table it goes \"to\"")
    }
    let by = parts.first { $0.name == "by" }
    let target: ReferenceTarget
    if let by {
      guard let column = by.value.text else { throw mistake(by.line, "\"by\" is the name of a column") }
      guard case .object(let choices) = to.value, !choices.isEmpty else {
        throw mistake(to.line, "\"to\" says for each value of \(quoted(column)) which table is meant")
      }
      target = .chosen(
        by: column,
        try choices.map { choice throws(CommandError) in
          guard let table = choice.value.text else { throw mistake(choice.line, "\"to\" goes to names of tables") }
          return ReferenceTarget.Choice(
            Int64(choice.name).map { SQLiteValue.integer($0) } ?? SQLiteValue(choice.name), table: table)
        })
    } else {
      guard let table = to.value.text else { throw mistake(to.line, "\"to\" is the name of a table") }
      target = .table(table)
    }
    var rule = ReferenceRule(target: target)
    for part in parts {
      switch part.name {
      case "to", "by": continue
      case "on_delete":
        guard let action = part.value.text.flatMap(DeleteAction.init(rawValue:)) else {
          throw mistake(part.line, "\"on_delete\" is \"cascade\", \"null\" or \"keep\"")
        }
        rule.onDelete = action
      case "none": rule.none = try values(part)
      default: throw unknown(part, in: "a reference")
      }
    }
    return rule
  }

  private func yes(_ member: JSON.Member) throws(CommandError) -> Bool {
    guard case .bool(let isOn) = member.value else {
      throw mistake(member.line, "\(quoted(member.name)) is true or false")
    }
    return isOn
  }

  private func values(_ member: JSON.Member) throws(CommandError) -> [SQLiteValue] {
    var values: [SQLiteValue] = []
    for element in member.value.array ?? [.null] {
      switch element {
      case .integer(let value): values.append(.integer(value))
      case .text(let value): values.append(SQLiteValue(value))
      case .real(let value): values.append(.real(value))
      case .null, .bool, .array, .object: throw mistake(member.line, "\"none\" is a list of numbers and texts")
      }
    }
    return values
  }

  private func names(_ member: JSON.Member) throws(CommandError) -> [String] {
    let names = member.value.array?.compactMap(\.text) ?? []
    guard !names.isEmpty, names.count == member.value.array?.count else {
      throw mistake(member.line, "\(quoted(member.name)) is a list of columns' names")
    }
    return names
  }

  private func object(_ json: JSON, _ what: String, line: Int?) throws(CommandError) -> [JSON.Member] {
    guard case .object(let members) = json else { throw mistake(line, "\(what) is an object") }
    return members
  }

  // MARK: Mistakes

  private func unknown(_ member: JSON.Member, in place: String) -> CommandError {
    if RecipeReader.later.contains(member.name) { return notYet(member.name, member.line) }
    return mistake(member.line, "\(place) has no key \(quoted(member.name))")
  }

  private func notYet(_ name: String, _ line: Int?) -> CommandError {
    CommandError(
      .usage, "recipe-not-supported",
      "\(place(line)): this version cannot do \(quoted(name)) yet. Nothing was changed.",
      next: ["latchkey help recipes"])
  }

  private func mistake(_ line: Int?, _ reason: String) -> CommandError {
    .usage("bad-recipe", "\(place(line)): \(reason). Nothing was changed.", next: ["latchkey help recipes"])
  }

  private func place(_ line: Int?) -> String { "\(file.printable), line \(line ?? 1)" }

  private func quoted(_ name: String) -> String { "\"\(name.printable)\"" }
}
