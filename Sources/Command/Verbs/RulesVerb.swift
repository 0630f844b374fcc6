import Latchkey
import LatchkeyTables

extension Verbs {
  static let rules = Verb(
    name: "rules",
    summary: "what a database's schema does not say about its tables",
    body: .groups([showRules, suggestRules, setRules]))

  private static let file = Argument("FILE", .file, "a recipe: a file, or the name of one that came with this program")

  private static let showRules = Verb(
    name: "show",
    summary: "show the rules that hold, as a recipe",
    details: ["They hold on every device of the zone."],
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached],
    data: [
      Term("rules", "the rules, as a recipe has them (latchkey help recipes)"),
      Term("newer", "{table: [rule]}: rules of a newer version, which are kept and not followed here"),
    ],
    examples: ["latchkey rules show budget.db"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let rules = try await context.performing { () async throws(LatchkeyError) in try context.library.rules(path) }
      let recipe = JSON(recipe: rules, name: nil)
      let newer = rules.tables.filter { !$0.value.rulesOfNewerVersion.isEmpty }.sorted { $0.key < $1.key }
      var outcome = Outcome(
        "There are rules about \(counted(rules.tables.count, "table")).",
        .text(recipe.recipeText(ascii: context.globals.ascii)),
        data: [
          "rules": recipe,
          "newer": .object(
            newer.map { JSON.Member(name: $0.key, value: .array($0.value.rulesOfNewerVersion.map(JSON.text))) }),
        ])
      outcome.notes = newer.map {
        Line(
          .warning,
          "\($0.key) has rules of a newer version, which are not followed here: \($0.value.rulesOfNewerVersion.joined(separator: ", "))."
        )
      }
      return outcome
    })

  private static let suggestRules = Verb(
    name: "suggest",
    summary: "suggest rules for a database from its names and rows",
    details: [
      "Prints a recipe with the rules that hold and those that much speaks for, and says why. Nothing is changed: look at it, "
        + "write it into a file and set it. The database need not be attached."
    ],
    arguments: [.database],
    exits: [.unusableDatabase],
    data: [
      Term("rules", "a recipe: the rules that hold, and the suggestions of high and medium confidence"),
      Term(
        "suggestions",
        "[{table, kind, column, to, confidence, reason}], kind: reference, identity or local; confidence: high, medium or low"
      ),
    ],
    examples: ["latchkey rules suggest budget.db > budget.json"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let suggested = try await context.performing { () async throws(LatchkeyError) in
        try context.library.suggestRules(path)
      }
      let recipe = JSON(recipe: suggested.rules, name: nil)
      var outcome = Outcome(
        "\(counted(suggested.all.count, "suggestion")) for \(path).",
        .text(recipe.recipeText(ascii: context.globals.ascii)),
        data: ["rules": recipe, "suggestions": .array(suggested.all.map(json))])
      outcome.notes = suggested.all.map { one in
        Line(one.confidence == .low ? .detail : .none, "\(one.confidence.rawValue): \(sentence(one))")
      }
      outcome.next = [
        "latchkey rules set \(path.quotedForShell) FILE", "latchkey attach \(path.quotedForShell) --recipe FILE",
      ]
      return outcome
    })

  private static func sentence(_ one: LatchkeyTables.Suggestion) -> String {
    switch one.subject {
    case .reference(let column, let rule):
      "\(one.table).\(column) refers to \(rule.target.tables.joined(separator: ", ")): \(one.reason)"
    case .identity(let column): "rows of \(one.table) are the same where \(column) is: \(one.reason)"
    case .local: "\(one.table) stays on this device: \(one.reason)"
    }
  }

  private static func json(_ one: LatchkeyTables.Suggestion) -> JSON {
    let kind: String
    var column: String?
    var to: String?
    switch one.subject {
    case .reference(let name, let rule): (kind, column, to) = ("reference", name, rule.target.tables.first)
    case .identity(let name): (kind, column) = ("identity", name)
    case .local: kind = "local"
    }
    return [
      "table": .text(one.table), "kind": .text(kind), "column": .text(column), "to": .text(to),
      "confidence": .text(one.confidence.rawValue), "reason": .text(one.reason),
    ]
  }

  private static let setRules = Verb(
    name: "set",
    summary: "put other rules in place of those that hold",
    details: [
      "Every device of the zone follows them once it has synchronised. Of two devices that set rules for one table, the later "
        + "counts. What makes two rows the same cannot be changed once rows were synchronised."
    ],
    arguments: [.database, file],
    exits: [.unusableDatabase, .notAttached, .databaseBusy, .notAMember, .newerFormat],
    data: [
      Term("rules", "the rules that hold now"), Term("tables", "[{name, verdict, reason}]: what becomes of each table"),
      Term("dry_run", "whether nothing was changed"),
    ],
    examples: ["latchkey rules set budget.db budget.json"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let rules = try await Recipe(named: try arguments.required(file)).rules(for: path, context)
      let survey = try await context.performing { () async throws(LatchkeyError) in
        if context.globals.dryRun { return try context.library.survey(path, rules: rules) }
        return try await context.library.setRules(path, rules)
      }
      let message =
        context.globals.dryRun
        ? "\(counted(survey.syncing.count, "table")) would synchronise. Nothing was changed."
        : "The rules are set; other devices follow them after the next sync."
      var outcome = Outcome(
        message,
        .lines(
          Columns(survey.tables.map { [$0.name, $0.verdict.rawValue, $0.reason] }).lines.map { Line(.detail, $0) }
            + [Line(context.globals.dryRun ? .none : .done, message)]),
        data: [
          "rules": JSON(recipe: rules, name: nil),
          "tables": .array(
            survey.tables.map {
              ["name": .text($0.name), "verdict": .text($0.verdict.rawValue), "reason": .text($0.reason)]
            }),
          "dry_run": .bool(context.globals.dryRun),
        ])
      outcome.next = context.globals.dryRun ? [] : ["latchkey sync \(path.quotedForShell)"]
      return outcome
    })
}
