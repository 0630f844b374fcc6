extension Verbs {
  private static let role = Option.taking(
    "ROLE", .choice(["member", "reader", "owner"]), "role", "what they may do: member (default), reader or owner")
  private static let expires = Option.taking("TIME", .span, "expires", "how long the invite is good (default: 24h)")

  static let invite = Verb(
    name: "invite",
    summary: "make an invite: a link with which one person can join the household",
    details: [
      "Whoever has the link can join, once, until it expires: send it over a channel you trust. It works while you are "
        + "offline. With --out it is written to a file and not shown."
    ],
    options: [.household, role, expires, .out],
    exits: [.notAttached, .storeUnavailable, .notAMember],
    data: [
      Term("id", "the invite's id"), Term("link", "the link, unless --out is given"),
      Term("file", "with --out, where it is"),
      Term("expires", "when, as UTC time"), Term("role", "the role it gives"),
    ],
    examples: ["latchkey invite --role member --expires 24h", "latchkey invite --out ben.invite"],
    body: .runs(unwired))
}
