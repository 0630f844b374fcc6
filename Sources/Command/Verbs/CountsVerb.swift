extension Verbs {
  private static let compare = Option.taking(
    "FILE", .file, "compare", "another device's report (counts --json), to compare this one with")

  static let counts = Verb(
    name: "counts",
    summary: "count what each table has here, and digest it, to compare two devices",
    details: [
      "Two devices whose digests are equal hold the same records. With --compare the differences are listed, and the exit "
        + "code is 3 if there are any."
    ],
    arguments: [.database],
    options: [compare],
    exits: [.unusableDatabase, .setAside, .notAttached, .databaseBusy],
    data: [
      Term(
        "zones",
        "[{name, household, mode, digest, tables: [{name, local, live, deleted, waiting, parked, digest}]}]"),
      Term("differences", "with --compare: [{zone, table, here, there}]"),
    ],
    examples: ["latchkey counts budget.db --json > laptop.json", "latchkey counts budget.db --compare laptop.json"],
    body: .runs(unwired))
}
