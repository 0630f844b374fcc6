import Latchkey
import LatchkeyRecords
import LatchkeyTables

extension Verbs {
  private static let by = Option.taking(
    "MEMBER", .text, "by", "only what this member did: a name, or the beginning of an id")
  private static let table = Option.taking("T", .text, "table", "only this table")
  private static let row = Option.taking(
    "KEY", .text, "row", "only the row with this key, or record name; with --table")
  private static let since = Option.taking(
    "TIME", .text, "since",
    "only from then on: a length of time such as 24h, a day (2026-03-01) or a moment (2026-03-01T12:00:00Z)")

  static let log = Verb(
    name: "log",
    summary: "who changed what, when",
    details: [
      "From the signed logs in the store, and what this file has that is not there yet. If the store cannot be reached, from the file alone: "
        + "then only the newest writing of each value is known, and not what it was before.",
      "Times are by the authors' clocks. What is not proven is said by somebody else than its author, or by this file's own bookkeeping.",
    ],
    arguments: [.database],
    options: [by, table, row, since],
    exits: [.unusableDatabase, .setAside, .notAttached, .databaseBusy, .notAMember, .keyRefused, .newerFormat],
    data: [
      Term(
        "events",
        "[{time, kind, by, device, table, record, key, columns: [{name, value}], proven}], newest first; kind: inserted, changed or deleted; value null where it is not known "
          + "any more"),
      Term("complete", "whether all logs were read to their ends"), Term("gap", "why not; null if they were"),
    ],
    examples: ["latchkey log budget.db --since 24h", "latchkey log budget.db --by Ben --table transactions --row 17"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let query = LogQuery(
        member: arguments[by], table: arguments[table], row: arguments[row], since: try moment(arguments))
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.log(path, query)
      }
      var outcome = Outcome(
        "\(counted(report.events.count, "change")).",
        .lines(Columns(report.events.map(line)).lines.map { Line(.none, $0) }),
        data: [
          "events": .array(report.events.map(json)), "complete": .bool(report.isComplete), "gap": .text(report.gap),
        ])
      if let gap = report.gap {
        outcome.notes = [
          Line(.warning, "\(gap) Only what this file knows is shown: the newest writing of each value.")
        ]
        outcome.exit = .setAside
        outcome.code = "incomplete"
      }
      return outcome
    })

  private static func line(_ event: LogEvent) -> [String] {
    let cells = event.cells.map { "\($0.column) \($0.value.map { JSON($0).encoded() } ?? "?")" }
    return [
      Moment(event.time).shown, "\(event.by ?? "?"), \(event.deviceName ?? String(event.device.prefix(8)))",
      event.kind.rawValue, "\(event.table) \(event.key ?? String(event.record.description.prefix(8)))",
      cells.joined(separator: ", "),
    ]
  }

  private static func json(_ event: LogEvent) -> JSON {
    [
      "time": .moment(event.time), "kind": .text(event.kind.rawValue), "by": .text(event.by),
      "device": .text(event.deviceName), "table": .text(event.table), "record": .text(event.record.description),
      "key": .text(event.key),
      "columns": .array(
        event.cells.map { ["name": .text($0.column), "value": $0.value.map { JSON($0) } ?? .null] }),
      "proven": .bool(event.isProven),
    ]
  }

  private static func moment(_ arguments: ParsedArguments) throws(CommandError) -> Int64? {
    guard let text = arguments[since] else { return nil }
    guard let moment = Moment(since: text) else {
      throw .usage(
        "bad-value", "--since cannot be \"\(text.printable)\": it is 24h, 7d, 2026-03-01 or 2026-03-01T12:00:00Z.",
        next: ["latchkey log --help"])
    }
    return moment.milliseconds
  }

  // MARK: Undoing

  static let restore = Verb(
    name: "restore",
    summary: "undo what one member did",
    details: [
      "Rows that they deleted are inserted again, rows that they inserted are deleted, and values that they wrote go back to what they were "
        + "before, by new operations that every device takes with the next sync. What somebody else wrote since stays.",
      "It concerns what has arrived here: sync first. The values of before are in the store's logs, which are read from their beginnings. With "
        + "--dry-run it says what it would do.",
    ],
    arguments: [.database],
    options: [by.required, since],
    exits: [
      .unusableDatabase, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .newerFormat,
    ],
    data: [
      Term("inserted", "rows that were deleted and are there again"), Term("deleted", "rows that are gone again"),
      Term("changed", "rows in which values went back"),
      Term("skipped", "rows that stay as they are"),
      Term("rows", "[{kind, table, record, key, columns: [name], reason}]"),
    ],
    examples: ["latchkey restore budget.db --by Ben --since 24h --dry-run"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let member = try arguments.required(by)
      let since = try moment(arguments)
      func undo(rehearsing: Bool) async throws(CommandError) -> UndoReport {
        try await context.performing { () async throws(LatchkeyError) in
          try await context.library.restore(path, by: member, since: since, isRehearsal: rehearsing)
        }
      }
      let planned = try await undo(rehearsing: true)
      if context.globals.dryRun { return answer(planned, member, path, isDone: false) }
      if planned.count > 0 {
        try context.terminal.confirm(
          [Line(.warning, said(planned, member, "would be"))], "Undo it for everybody?",
          next: ["latchkey restore \(path.quotedForShell) --by \(member.quotedForShell) --yes"])
      }
      return answer(try await undo(rehearsing: false), member, path, isDone: true)
    })

  private static func said(_ report: UndoReport, _ member: String, _ verb: String) -> String {
    func count(_ kind: UndoReport.Kind) -> Int { report.rows.count { $0.kind == kind } }
    if report.rows.isEmpty { return "There is nothing of \(member) to undo." }
    return
      "Of what \(member) did: \(counted(count(.inserted), "row")) \(verb) inserted again, \(count(.deleted)) deleted, \(count(.changed)) changed back; \(count(.skipped)) stay."
  }

  private static func answer(_ report: UndoReport, _ member: String, _ path: String, isDone: Bool) -> Outcome {
    let message = said(report, member, isDone ? "were" : "would be")
    let rows = report.rows.map { row in
      [
        row.kind.rawValue, "\(row.table) \(row.key ?? String(row.record.description.prefix(8)))",
        row.reason.isEmpty ? row.columns.joined(separator: ", ") : row.reason,
      ]
    }
    func count(_ kind: UndoReport.Kind) -> JSON { .count(report.rows.count { $0.kind == kind }) }
    var outcome = Outcome(
      message, .lines([Line(isDone ? .done : .none, message)] + Columns(rows).lines.map { Line(.detail, $0) }),
      data: [
        "inserted": count(.inserted), "deleted": count(.deleted), "changed": count(.changed),
        "skipped": count(.skipped),
        "rows": .array(
          report.rows.map { row in
            [
              "kind": .text(row.kind.rawValue), "table": .text(row.table), "record": .text(row.record.description),
              "key": .text(row.key), "columns": .array(row.columns.map(JSON.text)), "reason": .text(row.reason),
            ]
          }),
      ])
    if isDone, report.count > 0 { outcome.next = ["latchkey sync \(path.quotedForShell)"] }
    return outcome
  }
}
