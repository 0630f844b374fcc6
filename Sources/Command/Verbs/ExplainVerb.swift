import Latchkey
import LatchkeyRecords
import LatchkeyTables

extension Verbs {
  static let explain = Verb(
    name: "explain",
    summary: "who wrote a row's fields, when, on which device, and why it waits",
    arguments: [
      .database, Argument("TABLE", .text, "the table"),
      Argument(
        "KEY", .text,
        "the row's primary key, its parts with commas between them; or a record's name, as status lists it"),
    ],
    exits: [.unusableDatabase, .notAttached, .databaseBusy, .notAMember, .keyRefused, .newerFormat],
    data: [
      Term("table", "its name"), Term("record", "the record's name, the same on every device"),
      Term("live", "whether it exists"), Term("shown", "whether the table shows it"),
      Term(
        "fields",
        "[{name, value, author, device, time, shown}]; value as \"latchkey help records\" says; author and device: names, or "
          + "null if no household here knows them; shown: whether the table shows this value"),
      Term("references", "[{column, record}]"),
      Term("waits", "why it is not shown; null if it is"),
      Term("merged_into", "of a duplicate: {record, key} of the row that shows it; else null"),
      Term("duplicates", "the records that this row is shown for, too"),
    ],
    examples: ["latchkey explain budget.db transactions 17"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let table = try arguments.required(Argument("TABLE", .text, "the table"))
      let key = try arguments.required(Argument("KEY", .text, "the row's key"))
      let explanation = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.explain(path, table: table, key: key)
      }
      let names = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.deviceNames()
      }
      return ExplainAnswer(explanation: explanation, key: key, names: names).outcome
    })
}

/// A row, field by field.
private struct ExplainAnswer {
  let explanation: Explanation
  let key: String
  /// By device id.
  let names: [String: (device: String, person: String)]

  var outcome: Outcome {
    let message = "\(explanation.table) \(key) is \(state)."
    return Outcome(
      message,
      .lines(
        [Line(.none, "\(explanation.table) \(key), record \(explanation.record): \(state)")] + fields + duplicates),
      data: [
        "table": .text(explanation.table), "record": .text(explanation.record.description),
        "live": .bool(explanation.isLive), "shown": .bool(explanation.isShown),
        "fields": .array(explanation.fields.map(json)), "references": .array(references),
        "waits": .text(explanation.reason),
        "merged_into": explanation.mergedInto.map {
          ["record": .text($0.record.description), "key": .text($0.key)]
        } ?? .null,
        "duplicates": .array(explanation.duplicates.map { .text($0.description) }),
      ])
  }

  private var duplicates: [Line] {
    explanation.duplicates.isEmpty
      ? []
      : [
        Line(
          .detail, "shown for its duplicates, too: \(explanation.duplicates.map(\.description).joined(separator: ", "))"
        )
      ]
  }

  private var state: String {
    if let row = explanation.mergedInto {
      return "a duplicate, shown as \(explanation.table) \(row.key ?? row.record.description)"
    }
    if let reason = explanation.reason { return "not shown: \(reason)" }
    if !explanation.isLive { return "deleted" }
    return explanation.isShown ? "shown" : "not shown"
  }

  private var fields: [Line] {
    let rows = explanation.fields.sorted { $0.column.utf8.lexicographicallyPrecedes($1.column.utf8) }.map { field in
      let author = names[field.stamp.origin.device.description]
      return [
        field.column, JSON(field.value).encoded(),
        "\(author?.person ?? "?"), \(author?.device ?? field.stamp.origin.device.short)",
        Moment(field.stamp.hlc.milliseconds).shown
          + (field.isShownDifferently ? " (the table shows something else)" : ""),
      ]
    }
    return Columns(rows).lines.map { Line(.detail, $0) }
  }

  private func json(_ field: Explanation.Field) -> JSON {
    let author = names[field.stamp.origin.device.description]
    return [
      "name": .text(field.column), "value": JSON(field.value), "author": .text(author?.person),
      "device": .text(author?.device), "time": .moment(field.stamp.hlc.milliseconds),
      "shown": .bool(!field.isShownDifferently),
    ]
  }

  private var references: [JSON] {
    explanation.fields.compactMap { field in
      guard case .reference(let record) = field.value else { return nil }
      return ["column": .text(field.column), "record": .text(record.description)]
    }
  }
}
