import Latchkey
import LatchkeyTables

extension Verbs {
  static let conflicts = Verb(
    name: "conflicts",
    summary: "values of this device that gave way to others",
    body: .groups([listConflicts, restoreConflict]))

  private static let entry = Argument("ID", .text, "the entry's number, as \"conflicts list\" shows it")

  private static let listConflicts = Verb(
    name: "list",
    summary: "list what gave way in the last thirty days, newest first",
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached],
    data: [
      Term(
        "conflicts",
        "[{id, at, cause, table, record, key, column, value, present}], cause: paired; values as in latchkey help records"
      )
    ],
    examples: ["latchkey conflicts list budget.db"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let entries = try await context.performing { () async throws(LatchkeyError) in
        try context.library.conflicts(path)
      }
      let rows = entries.map { entry in
        let row = entry.key ?? String(entry.record.description.prefix(8))
        return [
          String(entry.id), Moment(entry.at).shown, "\(entry.table) \(row)", entry.column,
          "\(JSON(entry.value).encoded()) gave way to \(entry.present.map { JSON($0).encoded() } ?? "nothing")",
        ]
      }
      var outcome = Outcome(
        "\(counted(entries.count, "value")) gave way.", .lines(Columns(rows).lines.map { Line(.none, $0) }),
        data: ["conflicts": .array(entries.map(json))])
      if !entries.isEmpty { outcome.next = ["latchkey conflicts restore \(path.quotedForShell) ID"] }
      return outcome
    })

  private static func json(_ entry: JournalEntry) -> JSON {
    [
      "id": .integer(entry.id), "at": .text(Moment(entry.at).text), "cause": .text(entry.cause.name),
      "table": .text(entry.table), "record": .text(entry.record.description), "key": .text(entry.key),
      "column": .text(entry.column), "value": JSON(entry.value), "present": entry.present.map { JSON($0) } ?? .null,
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
