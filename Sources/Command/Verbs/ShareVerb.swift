extension Verbs {
  static let share = Verb(
    name: "share",
    summary: "move a database from your personal household into one that others can join",
    details: [
      "Makes the household if you have none of that name. Nobody has access before you invite them. The personal copy is "
        + "removed from the store once everything is in the household."
    ],
    arguments: [.database],
    options: [
      Option.household.saying("the household's name").required,
      Option.store.saying("where the household's data is kept (default: your personal store)"),
    ],
    exits: [.unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember],
    data: [
      Term("household", "its name"), Term("zone", "the zone's name"), Term("store", "where it is kept"),
      Term("rows", "rows shared"),
    ],
    examples: ["latchkey share budget.db --household Smiths"],
    body: .runs(unwired))
}
