import Latchkey
import LatchkeyKeys

extension Verbs {
  private static let role = Option.taking(
    "ROLE", .choice(["member", "reader", "owner"]), "role", "what they may do: member (default), reader or owner")
  private static let expires = Option.taking("TIME", .span, "expires", "how long the invite is good (default: 24h)")
  private static let to = Option.taking(
    "CARD", .text, "to", "send it to this person's card instead of making a link: your name for them, or an id")
  private static let qr = Option.flag("qr", "also show the link as a QR code, for a camera")

  private static let confirm = Option.flag(
    "confirm", "the link opens nothing until you have compared ten words with whoever uses it")

  static let invite = Verb(
    name: "invite",
    summary: "make an invite: a link with which one person can join the household",
    details: [
      "Whoever has the link can join, once, until it expires: send it over a channel you trust. It works while you are "
        + "offline. With --out it is written to a file and not shown.",
      "With --to no link is made: the invite is sealed to the keys on the person's card and left in the store, where \"latchkey "
        + "inbox\" finds it. Words must have been compared (\"latchkey card pin\"), or a household be shared with the person already.",
      "With --confirm whoever has the link waits until an owner has compared ten words with them: latchkey requests.",
      "--qr needs the library libqrencode.",
    ],
    options: [.household, role, expires, confirm, to, .out, qr],
    exits: [
      .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded, .damageFound,
      .newerFormat,
    ],
    data: [
      Term("id", "the invite's id"), Term("link", "the link, unless --out or --to is given"),
      Term("qr", "with --qr, the code's lines, two characters a module"),
      Term("to", "with --to, {name, id} of the person"),
      Term("file", "with --out, where it is"), Term("household", "its name"), Term("role", "the role it gives"),
      Term("expires", "when, as UTC time"),
    ],
    examples: [
      "latchkey invite --role member --expires 24h", "latchkey invite --out ben.invite", "latchkey invite --to Ben",
    ],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("invite", "an invite is random")
      let role: InviteRole =
        switch arguments[role] {
        case "reader": .reader
        case "owner": .owner
        default: .member
        }
      let milliseconds = arguments[expires].flatMap(Span.init).map { $0.seconds * 1000 } ?? 86_400_000
      if let recipient = arguments[to] {
        guard arguments[.out] == nil, !arguments.has(qr), !arguments.has(confirm) else {
          throw .usage(
            "unexpected-option",
            "--to makes no link, and the words were compared already: there is nothing for --out, --qr or --confirm.",
            next: ["latchkey invite --to \(recipient.quotedForShell)"])
        }
        let sent = try await context.performing { () async throws(LatchkeyError) in
          try await context.library.invite(
            to: recipient, household: arguments[.household], role: role, expiresIn: milliseconds)
        }
        return answer(sent)
      }
      return try await InviteAnswer.make(
        out: arguments[.out], qr: try arguments.has(qr) ? QREncoder() : nil, joining: "latchkey join --db FILE", context
      ) {
        () async throws(LatchkeyError) in
        try await context.library.invite(
          household: arguments[.household], role: role, expiresIn: milliseconds, confirm: arguments.has(confirm))
      }
    })

  private static func answer(_ sent: SentInvite) -> Outcome {
    let message =
      "An invite to \(sent.household) as \(sent.role) waits for \(sent.recipient), until \(Moment(sent.expires).shown)."
    var outcome = Outcome(
      message, .lines([Line(.done, message)]),
      data: [
        "id": .text(sent.id), "to": ["name": .text(sent.recipient), "id": .text(sent.recipientID)],
        "household": .text(sent.household), "role": .text(sent.role), "expires": .moment(sent.expires),
      ])
    outcome.next = ["latchkey inbox   (on \(sent.recipient)'s device)"]
    return outcome
  }
}
