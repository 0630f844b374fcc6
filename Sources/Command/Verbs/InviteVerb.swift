import Latchkey
import LatchkeyKeys

extension Verbs {
  private static let role = Option.taking(
    "ROLE", .choice(["member", "reader", "owner"]), "role", "what they may do: member (default), reader or owner")
  private static let expires = Option.taking("TIME", .span, "expires", "how long the invite is good (default: 24h)")

  private static let confirm = Option.flag(
    "confirm", "the link opens nothing until you have compared ten words with whoever uses it")

  static let invite = Verb(
    name: "invite",
    summary: "make an invite: a link with which one person can join the household",
    details: [
      "Whoever has the link can join, once, until it expires: send it over a channel you trust. It works while you are "
        + "offline. With --out it is written to a file and not shown.",
      "With --confirm whoever has the link waits until an owner has compared ten words with them: latchkey requests.",
    ],
    options: [.household, role, expires, confirm, .out],
    exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
    data: [
      Term("id", "the invite's id"), Term("link", "the link, unless --out is given"),
      Term("file", "with --out, where it is"), Term("household", "its name"), Term("role", "the role it gives"),
      Term("expires", "when, as UTC time"),
    ],
    examples: ["latchkey invite --role member --expires 24h", "latchkey invite --out ben.invite"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("invite", "an invite is random")
      let role: InviteRole =
        switch arguments[role] {
        case "reader": .reader
        case "owner": .owner
        default: .member
        }
      let milliseconds = arguments[expires].flatMap(Span.init).map { $0.seconds * 1000 } ?? 86_400_000
      return try await InviteAnswer.make(out: arguments[.out], joining: "latchkey join --db FILE", context) {
        () async throws(LatchkeyError) in
        try await context.library.invite(
          household: arguments[.household], role: role, expiresIn: milliseconds, confirm: arguments.has(confirm))
      }
    })
}
