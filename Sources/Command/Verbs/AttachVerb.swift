import Latchkey
import LatchkeyTables

extension Verbs {
  private static let recipeFile = Option.taking(
    "FILE", .file, "recipe", "rules for the app's tables: a file, or one of \"latchkey recipe list\"")
  private static let tables = Option.taking("A,B", .names, "tables", "only these tables")

  static let attach = Verb(
    name: "attach",
    summary: "begin to synchronise a database file",
    details: [
      "Every table gets a verdict, with its reason. Tables and triggers whose names begin with lk_ are added to the file; "
        + "the app's own tables are not changed, and \"latchkey detach\" takes away what was added.",
      "If there is no file, and a household of yours has a zone of that name, the file is made from it: so a second device of "
        + "yours gets the database.",
      "If there is a zone of that name with rows, the file comes into it: with the next sync its rows and the zone's that are the "
        + "same become one, and both keep what only they have. Where they differ, the zone's value is shown and the file's is kept "
        + "(latchkey conflicts list).",
      "With --dry-run the verdicts are shown and the file is not touched.",
    ],
    arguments: [.database],
    options: [.zone, recipeFile, tables, .template],
    exits: [
      .unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .newerFormat,
    ],
    data: [
      Term("zone", "the zone's name; null with --dry-run, unless --zone is given"),
      Term(
        "tables",
        "[{name, verdict, reason, identity, references: [{columns, table, declared}], suspected: [{columns, table}]}], "
          + "verdict: sync, local, singleton, refused or ask (not attached unless it is named); identity: generated, "
          + "primaryKey, [column] or null; suspected: what looks like a reference and is not treated as one"),
      Term("rows_without_key", "{table: count}: rows whose key is NULL, which cannot synchronise"),
      Term("needs_template", "[text]: why somebody who joins needs --template; empty if not"),
      Term("dry_run", "whether nothing was changed"),
    ],
    examples: ["latchkey attach budget.db", "latchkey attach budget.db --tables accounts,transactions --dry-run"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      var rules = Rules.none
      if let name = arguments[recipeFile] { rules = try await Recipe(named: name).rules(for: path, context) }
      let tables = arguments.has(tables) ? arguments.names(tables) : nil
      if context.globals.dryRun {
        let survey = try await context.performing { () async throws(LatchkeyError) in
          try context.library.survey(path, rules: rules, tables: tables)
        }
        let answer = AttachAnswer(path: path, zone: arguments[.zone], survey: survey, isDryRun: true)
        if survey.syncing.isEmpty { throw answer.nothingSyncs }
        return answer.outcome
      }
      do throws(LatchkeyError) {
        let survey = try await context.library.attach(
          path, zone: arguments[.zone], rules: rules, tables: tables, template: arguments[.template])
        let zone = try await context.library.status(path).first?.zone
        return AttachAnswer(path: path, zone: zone?.name, survey: survey, isDryRun: false).outcome
      } catch {
        guard error.code == "no-table-can-sync",
          let survey = try? context.library.survey(path, rules: rules, tables: tables)
        else { throw CommandError(error) }
        throw AttachAnswer(path: path, zone: arguments[.zone], survey: survey, isDryRun: false).nothingSyncs
      }
    })
}

/// What attaching did, or would do.
private struct AttachAnswer {
  let path: String
  let zone: String?
  let survey: Survey
  let isDryRun: Bool

  var outcome: Outcome {
    let count = survey.syncing.count
    let verb = isDryRun ? "would synchronise" : count == 1 ? "synchronises" : "synchronise"
    let summary = "\(counted(count, "table")) of \(path) \(verb)"
    var outcome = Outcome(
      summary + ".",
      .lines(
        verdicts + [
          isDryRun
            ? "\(summary). Nothing was changed."
            : Line(.done, "\(path) is attached\(zone.map { ", as the zone \($0)" } ?? ""): \(shortly).")
        ]),
      data: data)
    outcome.notes = notes
    outcome.next = isDryRun ? ["latchkey attach \(path.quotedForShell)"] : ["latchkey sync \(path.quotedForShell)"]
    return outcome
  }

  var nothingSyncs: CommandError {
    let reasons = survey.tables.map { "\($0.name): \($0.reason)" }
    return CommandError(
      .unusableDatabase, "no-table-can-sync",
      "No table of \(path.printable) can synchronise"
        + (reasons.isEmpty ? ": it has none" : " (\(reasons.joined(separator: "; ")))") + ". Nothing was changed.",
      next: ["latchkey help recipes"], data: data)
  }

  private var verdicts: [Line] {
    let rows = survey.tables.map { [$0.name, $0.verdict.rawValue, $0.reason] }
    return Columns(rows).lines.map { Line(.detail, $0) }
  }

  /// `sync 21, local 2, ask 1`.
  private var shortly: String {
    let all: [Verdict] = [.sync, .singleton, .local, .ask, .refused]
    return all.compactMap { verdict in
      let count = survey.tables.count { $0.verdict == verdict }
      return count == 0 ? nil : "\(verdict.rawValue) \(count)"
    }.joined(separator: ", ")
  }

  private var notes: [Line] {
    var notes: [Line] = []
    let suspects = survey.tables.flatMap { table in
      table.suspectedReferences.map { "\(table.name).\($0.columns.joined(separator: ", ")) to \($0.table)" }
    }
    if !suspects.isEmpty {
      notes.append(
        Line(
          .warning,
          "These look like references, but the schema does not say so: they travel as plain values unless a recipe says what "
            + "they are (latchkey rules suggest)."))
      notes += suspects.map { Line(.detail, $0) }
    }
    for (table, count) in survey.rowsWithoutKey.sorted(by: { $0.key < $1.key }) {
      notes.append(Line(.warning, "\(counted(count, "row")) of \(table) cannot synchronise: the key is NULL."))
    }
    let asks = survey.tables.filter { $0.verdict == .ask }.map(\.name)
    if !asks.isEmpty {
      notes.append(Line(.warning, "Not attached unless named with --tables: \(asks.joined(separator: ", "))."))
    }
    if !survey.needsTemplate.isEmpty {
      notes.append(
        Line(
          .warning,
          "Whoever joins needs an empty file of the app (join --template): \(survey.needsTemplate.joined(separator: "; "))."
        ))
    }
    return notes
  }

  private var data: JSON {
    [
      "zone": .text(zone), "tables": .array(survey.tables.map(AttachAnswer.json)),
      "rows_without_key": .object(
        survey.rowsWithoutKey.sorted { $0.key < $1.key }.map { JSON.Member(name: $0.key, value: .count($0.value)) }),
      "needs_template": .array(survey.needsTemplate.map(JSON.text)), "dry_run": .bool(isDryRun),
    ]
  }

  private static func json(_ table: TableReport) -> JSON {
    let identity: JSON =
      switch table.identity {
      case nil: .null
      case .generated: "generated"
      case .primaryKey: "primaryKey"
      case .columns(let columns): .array(columns.map(JSON.text))
      }
    return [
      "name": .text(table.name), "verdict": .text(table.verdict.rawValue), "reason": .text(table.reason),
      "identity": identity,
      "references": .array(
        table.references.map {
          [
            "columns": .array($0.columns.map(JSON.text)), "table": .text($0.table), "declared": .bool($0.isDeclared),
          ]
        }),
      "suspected": .array(
        table.suspectedReferences.map { ["columns": .array($0.columns.map(JSON.text)), "table": .text($0.table)] }),
    ]
  }
}
