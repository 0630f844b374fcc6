extension Verbs {
  static let detach = Verb(
    name: "detach",
    summary: "stop synchronising a database file, and leave its rows as they are",
    details: ["What attach added to the file is removed. Nobody else's copy and nothing in the store changes."],
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [Term("path", "the file"), Term("waiting", "changes that had not been sent yet, and now never are")],
    body: .runs(unwired))
}
