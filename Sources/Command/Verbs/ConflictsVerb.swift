import Latchkey
import LatchkeyTables

extension Verbs {
  static let conflicts = Verb(
    name: "conflicts",
    summary: "values that gave way to others, kept for thirty days",
    body: .groups([listConflicts, restoreConflict]))

  private static let entry = Argument("ID", .text, "the entry's number, as \"conflicts list\" shows it")

  private static let listConflicts = Verb(
    name: "list",
    summary: "list what gave way in the last thirty days, newest first",
    details: [
      "overwritten: an edit of yours that was beaten by one made without knowing of it. outdated: an edit of somebody else that came in after a "
        + "later one of yours. deleted: an edit of a row that was deleted without knowing of it. paired: a value of your file when it came into "
        + "the household. reader: what you wrote as a reader, which is here only."
    ],
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached, .keyRefused],
    data: [
      Term(
        "conflicts",
        "[{id, at, cause, table, record, key, column, value, written, winner, won, present}], cause: overwritten, outdated, deleted, paired or reader; written and won: {by, "
          + "device, time} of value and winner, null where not known; present: the value that the row has now; values as in latchkey help records"
      )
    ],
    examples: ["latchkey conflicts list budget.db"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let entries = try await context.performing { () async throws(LatchkeyError) in
        try context.library.conflicts(path)
      }
      let names = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.deviceNames()
      }
      let rows = entries.map { line($0, names) }
      var outcome = Outcome(
        "\(counted(entries.count, "value")) gave way.", .lines(Columns(rows).lines.map { Line(.none, $0) }),
        data: ["conflicts": .array(entries.map { json($0, names) })])
      if entries.contains(where: { $0.cause != .reader }) {
        outcome.next = ["latchkey conflicts restore \(path.quotedForShell) ID"]
      }
      if entries.contains(where: { $0.cause == .reader }) { outcome.next.append("latchkey status") }
      return outcome
    })

  private typealias Names = [String: (device: String, person: String)]

  private static func line(_ entry: JournalEntry, _ names: Names) -> [String] {
    let row = entry.key ?? String(entry.record.description.prefix(8))
    let value = entry.column == nil ? "deleted" : JSON(entry.value).encoded()
    return [
      String(entry.id), entry.cause.name, "\(entry.table) \(row)", entry.column ?? "(the row)",
      said(value, entry.written, names), outcome(entry, names),
    ]
  }

  /// A value, and who wrote it when.
  private static func said(_ value: String, _ writing: JournalEntry.Writing?, _ names: Names) -> String {
    guard let writing else { return value }
    let who = names[writing.author.description]?.person ?? writing.author.short
    return "\(value) (\(who), \(Moment(writing.at).shown))"
  }

  private static func outcome(_ entry: JournalEntry, _ names: Names) -> String {
    switch entry.cause {
    case .reader: return "is here only"
    case .deleted: return "gave way to \(said("a deletion", entry.won, names))"
    case .overwritten, .outdated, .paired:
      let winner = (entry.winner ?? entry.present).map { JSON($0).encoded() } ?? "nothing"
      return "gave way to \(said(winner, entry.won, names))"
    }
  }

  private static func json(_ entry: JournalEntry, _ names: Names) -> JSON {
    func writing(_ writing: JournalEntry.Writing?) -> JSON {
      guard let writing else { return .null }
      let author = names[writing.author.description]
      return ["by": .text(author?.person), "device": .text(author?.device), "time": .moment(writing.at)]
    }
    return [
      "id": .integer(entry.id), "at": .text(Moment(entry.at).text), "cause": .text(entry.cause.name),
      "table": .text(entry.table), "record": .text(entry.record.description), "key": .text(entry.key),
      "column": .text(entry.column), "value": JSON(entry.value), "written": writing(entry.written),
      "winner": entry.winner.map { JSON($0) } ?? .null, "won": writing(entry.won),
      "present": entry.present.map { JSON($0) } ?? .null,
    ]
  }

  private static let restoreConflict = Verb(
    name: "restore",
    summary: "put a value that gave way back",
    details: ["It becomes an edit of now, which every device takes with the next sync."],
    arguments: [.database, entry],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [Term("id", "the entry's number")],
    examples: ["latchkey conflicts restore budget.db 12"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("conflicts restore", "it is one value, which \"conflicts list\" shows")
      let path = try arguments.required(.database)
      guard let number = Int64(try arguments.required(entry)) else {
        throw .usage("bad-value", "ID is the entry's number.", next: ["latchkey conflicts list \(path.quotedForShell)"])
      }
      try await context.performing { () async throws(LatchkeyError) in
        try context.library.restoreConflict(path, entry: number)
      }
      var outcome = Outcome(
        "The value is back.", .lines([Line(.done, "The value is back; the next sync tells the others.")]),
        data: ["id": .integer(number)])
      outcome.next = ["latchkey sync \(path.quotedForShell)"]
      return outcome
    })
}
