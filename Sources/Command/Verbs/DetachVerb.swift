import Latchkey

extension Verbs {
  static let detach = Verb(
    name: "detach",
    summary: "stop synchronising a database file, and leave its rows as they are",
    details: ["What attach added to the file is removed. Nobody else's copy and nothing in the store changes."],
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached, .databaseBusy, .newerFormat],
    data: [
      Term("path", "the file"),
      Term("waiting", "changes that had not been sent yet, and now never are; null if it could not be told"),
    ],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      // A file whose household's keys are gone can be detached all the same.
      let waiting = (try? await context.library.status(path))?.first?.zone?.waiting
      if context.globals.dryRun {
        _ = try await context.performing { () async throws(LatchkeyError) in try await context.library.status(path) }
      } else {
        try await context.performing { () async throws(LatchkeyError) in try await context.library.detach(path) }
      }
      let message =
        context.globals.dryRun
        ? "\(path) would be detached; its rows would stay." : "\(path) is detached; its rows are as they were."
      var outcome = Outcome(
        message, .lines([context.globals.dryRun ? Line(.none, message) : Line(.done, message)]),
        data: ["path": .text(path), "waiting": waiting.map(JSON.count) ?? .null])
      if let waiting, waiting > 0 {
        outcome.notes = [
          Line(
            .warning,
            "\(counted(waiting, "changed row")) had not been sent: the others do not have \(waiting == 1 ? "it" : "them")."
          )
        ]
      }
      return outcome
    })
}
