extension Verbs {
  private static let format = Option.taking(
    "FORMAT", .choice(["jsonl", "csv"]), "format",
    "jsonl (default): a JSON object per row; csv: a heading and rows per table")

  static let export = Verb(
    name: "export",
    summary: "print every row that is synchronised",
    details: ["Blobs are written in base64."],
    arguments: [.database],
    options: [format],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [Term("tables", "[{name, rows: [{column: value}]}]")],
    examples: ["latchkey export budget.db > budget.jsonl"],
    body: .runs(unwired))
}
