extension Verbs {
  static let status = Verb(
    name: "status",
    summary: "how things stand: mode, household, what waits, what needs you",
    details: ["Asks the file and this device only, never the store."],
    arguments: [Argument.database.optional],
    exits: [.unusableDatabase, .notAttached, .databaseBusy],
    data: [
      Term(
        "databases",
        "[{path, zones: [{name, household, mode, epoch, last_acknowledged, last_heard: {device: time}, waiting, parked, "
          + "warnings}]}], mode: personal, owner, participant or off")
    ],
    body: .runs(unwired))
}
