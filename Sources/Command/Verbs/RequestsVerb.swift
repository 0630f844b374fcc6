import Latchkey

extension Verbs {
  static let requests = Verb(
    name: "requests",
    summary: "people who want in and wait for you",
    body: .groups([
      Verb(
        name: "list",
        summary: "list who waits, with the words to compare",
        details: [
          "Who was invited with --confirm waits here, and so does everybody who holds a link that more devices have used than it lets "
            + "in. The names are what they call themselves: compare the words."
        ],
        options: [.household],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [
          Term(
            "requests",
            "[{id, name, device, role, invite, reason, words: [text]}], reason: words, rivals (several devices hold one link) or "
              + "rights (it takes an owner)")
        ],
        body: .runs { arguments, context throws(CommandError) in
          let requests = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.requests(household: arguments[.household])
          }
          let lines = requests.flatMap { request -> [Line] in
            [
              Line(.none, "\(request.id.prefix(8))  \(request.name) (\(request.device)), as \(request.role)"),
              Line(.detail, request.words.joined(separator: " ")),
            ]
          }
          var outcome = Outcome(
            requests.isEmpty ? "Nobody waits." : "\(counted(requests.count, "device")) wait.",
            .lines(requests.isEmpty ? ["Nobody waits."] : lines),
            data: ["requests": .array(requests.map(json))])
          if let first = requests.first { outcome.next = ["latchkey requests approve \(first.id.prefix(8))"] }
          return outcome
        }),
      Verb(
        name: "approve",
        summary: "let somebody in whose words you have compared",
        details: [
          "Read the ten words to each other, over a channel where you know the person's voice. Type the words that the other screen "
            + "shows, or give them with --words: they are no secret. --yes does not answer this."
        ],
        arguments: [requestID],
        options: [.household, .words],
        exits: [
          .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
          .damageFound, .newerFormat,
        ],
        data: [Term("id", "of the device"), Term("name", "the person's"), Term("role", "that it has now")],
        examples: ["latchkey requests approve 3f2a9c"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("requests approve", "it is sent at once")
          let id = try arguments.required(requestID)
          let household = arguments[.household]
          let words: String
          if let given = arguments[.words] {
            words = given
          } else {
            words = try context.terminal.answer(
              ["Type the ten words that the other screen shows."], "Words: ",
              next: ["latchkey requests approve \(id.quotedForShell) --words \"…\""])
          }
          let request = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.approve(id, words: words, household: household)
          }
          let message = "\(request.name) (\(request.device)) is in, as \(request.role)."
          return Outcome(
            message, .lines([Line(.done, message)]),
            data: ["id": .text(request.id), "name": .text(request.name), "role": .text(request.role)])
        }),
      Verb(
        name: "deny",
        summary: "refuse somebody, and withdraw the invite",
        arguments: [requestID],
        options: [.household],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [Term("id", "of the device"), Term("invite", "the id of the invite that is withdrawn")],
        examples: ["latchkey requests deny 3f2a9c"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("requests deny", "it is sent at once")
          let id = try arguments.required(requestID)
          let request = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.deny(id, household: arguments[.household])
          }
          let message = "\(request.name) (\(request.device)) is refused, and the invite withdrawn."
          return Outcome(
            message, .lines([Line(.done, message)]),
            data: ["id": .text(request.id), "invite": .text(request.invite)])
        }),
    ]))

  private static let requestID = Argument(
    "ID", .text, "the id of the request, or the first six characters of it or more")

  private static func json(_ request: RequestReport) -> JSON {
    [
      "id": .text(request.id), "name": .text(request.name), "device": .text(request.device),
      "role": .text(request.role),
      "invite": .text(request.invite), "reason": .text(request.reason),
      "words": .array(request.words.map(JSON.text)),
    ]
  }
}
