extension Verbs {
  private static let recipe = Option.taking("FILE", .file, "recipe", "a file of rules for the app's tables")
  private static let tables = Option.taking("A,B", .names, "tables", "only these tables")

  static let attach = Verb(
    name: "attach",
    summary: "begin to synchronise a database file",
    details: [
      "Every table gets a verdict, with its reason. Tables and triggers whose names begin with lk_ are added to the file; "
        + "the app's own tables are not changed, and \"latchkey detach\" takes away what was added.",
      "With --dry-run the verdicts are shown and the file is not touched.",
    ],
    arguments: [.database],
    options: [.zone, recipe, tables],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [
      Term("zone", "the zone's name"),
      Term("tables", "[{name, verdict, reason}], verdict: sync, local, singleton or refused"),
    ],
    examples: ["latchkey attach budget.db", "latchkey attach budget.db --tables accounts,transactions --dry-run"],
    body: .runs(unwired))
}
