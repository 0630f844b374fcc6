import Latchkey

extension Verbs {
  static let leave = Verb(
    name: "leave",
    summary: "leave a household",
    details: [
      "Your devices are dropped when the next of the others syncs; after that you read nothing new. The rows in your files stay. The "
        + "last owner cannot leave: make somebody else an owner first. It is for good: to come back takes a new identity."
    ],
    options: [.household, confirm],
    exits: [
      .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
      .damageFound,
      .newerFormat,
    ],
    data: [Term("household", "its name")],
    examples: ["latchkey leave --household Smith --confirm Smith"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("leave", "it is sent at once")
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.members(household: arguments[.household])
      }
      try context.terminal.confirm(
        [Line(.warning, "This takes all your devices out of \(report.household).")], typing: report.household,
        given: arguments[confirm],
        next: ["latchkey leave --household \(report.household) --confirm \(report.household)"])
      try await context.performing { () async throws(LatchkeyError) in
        try await context.library.leave(household: arguments[.household])
      }
      let message = "You leave \(report.household): the next of the others that syncs lets you go."
      return Outcome(message, .lines([Line(.done, message)]), data: ["household": .text(report.household)])
    })

  private static let confirm = Option.taking("NAME", .text, "confirm", "the household's name, instead of typing it")
}
