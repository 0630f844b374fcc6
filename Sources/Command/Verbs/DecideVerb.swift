import Latchkey

extension Verbs {
  static let decide = Verb(
    name: "decide",
    summary: "answer what \"latchkey status\" says is waiting for you",
    details: [
      "Many rows deleted at once: allow lets them go, restore inserts them again for everybody. Changed as a reader: revert takes it back, "
        + "publish gives it to everybody. Removed from a household: keep or drop its rows. A household that moved: agree or refuse. A store "
        + "that was lost: republish. A credential that was changed: done."
    ],
    arguments: [decisionID, choice],
    options: [.credentialFile],
    exits: [
      .unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
    ],
    data: [Term("id", "of the decision"), Term("choice", "as given")],
    examples: ["latchkey decide guard-3f2a9c1b restore", "latchkey decide credential-3f2a9c1b done"],
    body: .runs { arguments, context throws(CommandError) in
      let id = try arguments.required(decisionID)
      let choice = try arguments.required(choice)
      let credential = try arguments.credential()
      if !context.globals.dryRun {
        try await context.performing { () async throws(LatchkeyError) in
          try await context.library.decide(id, choice, credential: credential)
        }
      }
      let message = context.globals.dryRun ? "\(id) would be answered: \(choice)." : "\(id) is answered: \(choice)."
      return Outcome(
        message, .lines([Line(context.globals.dryRun ? .none : .done, message)]),
        data: ["id": .text(id), "choice": .text(choice)])
    })

  private static let decisionID = Argument("ID", .text, "the decision, as \"latchkey status\" shows it")
  private static let choice = Argument("CHOICE", .text, "one of its choices")
}

extension Decision {
  /// What settles it, a command a choice.
  var commands: [String] { choices.map { "latchkey decide \(id) \($0)" } }

  var json: JSON {
    [
      "id": .text(id), "kind": .text(kind), "household": .text(household), "message": .text(message),
      "choices": .array(choices.map(JSON.text)), "commands": .array(commands.map(JSON.text)),
    ]
  }
}
