extension Verbs {
  static let explain = Verb(
    name: "explain",
    summary: "who wrote a row's fields, when, on which device, and why it waits",
    arguments: [
      .database, Argument("TABLE", .text, "the table"),
      Argument("KEY", .text, "the row's primary key; its parts with commas between them"),
    ],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [
      Term("record", "the record's name, the same on every device"),
      Term("fields", "[{name, value, author, device, time, object}]"),
      Term("references", "[{column, table, record, arrived}]"),
      Term("waits", "[text]: why it is not fully shown, or not sent"),
    ],
    examples: ["latchkey explain budget.db transactions 17"],
    body: .runs(unwired))
}
