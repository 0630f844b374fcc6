import LatchkeySQLite
import LatchkeyTables

/// Rules as a recipe, as it could be read in again.
extension JSON {
  init(recipe rules: Rules, name: String?) {
    var members: [Member] = [Member(name: "v", value: 1)]
    if let name { members.append(Member(name: "name", value: .text(name))) }
    members.append(
      Member(
        name: "tables",
        value: .object(
          rules.tables.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: JSON(rules: $0.value)) })))
    if rules.appliesWhenClosed { members.append(Member(name: "apply_when", value: "closed")) }
    self = .object(members)
  }

  /// One table's.
  init(rules: TableRules) {
    if rules == TableRules(isLocal: true) {
      self = "local"
      return
    }
    if rules == TableRules(isSingleton: true) {
      self = "singleton"
      return
    }
    var members: [Member] = []
    func add(_ name: String, _ value: JSON) { members.append(Member(name: name, value: value)) }
    switch rules.identity {
    case nil: break
    case .generated?: add("identity", "generated")
    case .primaryKey?: add("identity", "primaryKey")
    case .columns(let columns)?: add("identity", .array(columns.map(JSON.text)))
    }
    if !rules.references.isEmpty {
      add(
        "references",
        .object(
          rules.references.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: JSON(reference: $0.value)) }))
    }
    if !rules.dedup.isEmpty {
      add(
        "dedup",
        .array(
          rules.dedup.map { part in
            part.fold == .nocase
              ? .text(part.column) : ["column": .text(part.column), "fold": .text(part.fold.rawValue)]
          }))
    }
    if let preferred = rules.preferred { add("prefer", .text(preferred)) }
    if let owner = rules.ownedBy { add("owned_by", .text(owner)) }
    if !rules.localColumns.isEmpty { add("local_columns", .array(rules.localColumns.map(JSON.text))) }
    if !rules.renamed.isEmpty {
      add(
        "renamed",
        .object(rules.renamed.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: .text($0.value)) }))
    }
    if rules.isLookup { add("lookup", true) }
    if !rules.compress { add("compress", false) }
    self = .object(members)
  }

  private init(reference: ReferenceRule) {
    if case .table(let table) = reference.target, reference.onDelete == nil, reference.none.isEmpty {
      self = .text(table)
      return
    }
    var members: [Member] = []
    switch reference.target {
    case .table(let table): members.append(Member(name: "to", value: .text(table)))
    case .chosen(let by, let choices):
      members.append(Member(name: "by", value: .text(by)))
      members.append(
        Member(
          name: "to",
          value: .object(choices.map { Member(name: JSON.shown($0.value), value: .text($0.table)) })))
    }
    if let action = reference.onDelete { members.append(Member(name: "on_delete", value: .text(action.rawValue))) }
    if !reference.none.isEmpty {
      members.append(Member(name: "none", value: .array(reference.none.map(JSON.plain))))
    }
    self = .object(members)
  }

  private static func shown(_ value: SQLiteValue) -> String { value.integer.map(String.init) ?? value.string ?? "" }

  private static func plain(_ value: SQLiteValue) -> JSON {
    switch value {
    case .integer(let x): .integer(x)
    case .real(let x): .real(x)
    case .text, .blob, .null: .text(value.string ?? "")
    }
  }

  /// On several lines, as people write a recipe: one for each table and each of its keys.
  func recipeText(ascii: Bool) -> String { lines(ascii: ascii, depth: 0, open: 3).joined(separator: "\n") + "\n" }

  private func lines(ascii: Bool, depth: Int, open: Int) -> [String] {
    guard case .object(let members) = self, open > 0, !members.isEmpty else { return [encoded(ascii: ascii)] }
    let margin = String(repeating: "  ", count: depth + 1)
    var out = ["{"]
    for (index, member) in members.enumerated() {
      var inner = member.value.lines(ascii: ascii, depth: depth + 1, open: open - 1)
      inner[0] = margin + JSON.text(member.name).encoded(ascii: ascii) + ": " + inner[0]
      if index + 1 < members.count { inner[inner.count - 1] += "," }
      out += inner
    }
    out.append(String(repeating: "  ", count: depth) + "}")
    return out
  }
}
