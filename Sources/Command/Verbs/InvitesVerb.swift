import Latchkey

extension Verbs {
  static let invites = Verb(
    name: "invites",
    summary: "the invites of a household",
    body: .groups([
      Verb(
        name: "list",
        summary: "list the invites, and what became of each",
        options: [.household],
        exits: [.notAttached, .notAMember, .keyRefused],
        data: [
          Term(
            "invites", "[{id, role, status, expires, inviter, used: [device]}], status: open, used, revoked or expired")
        ],
        body: .runs { arguments, context throws(CommandError) in
          let invites = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.invites(household: arguments[.household])
          }
          let rows = invites.map { invite in
            [
              String(invite.id.prefix(8)), invite.role, invite.status, "by \(invite.inviter)",
              Moment(invite.expires).shown, invite.used.joined(separator: ", "),
            ]
          }
          return Outcome(
            invites.count == 1 ? "There is 1 invite." : "There are \(counted(invites.count, "invite")).",
            .lines(Columns(rows).lines.map { Line(.none, $0) }),
            data: [
              "invites": .array(
                invites.map {
                  [
                    "id": .text($0.id), "role": .text($0.role), "status": .text($0.status),
                    "expires": .text(Moment($0.expires).text), "inviter": .text($0.inviter),
                    "used": .array($0.used.map(JSON.text)),
                  ]
                })
            ])
        }),
      Verb(
        name: "revoke",
        summary: "withdraw an invite",
        details: [
          "Nobody is let in with its link any more. A new epoch begins, so that whoever has the link reads nothing that is written "
            + "from now on. What was written before may have been read."
        ],
        arguments: [inviteID],
        options: [.household],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [Term("id", "the invite's id, as it was given")],
        examples: ["latchkey invites revoke 3f2a9c"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("invites revoke", "it is sent at once")
          let id = try arguments.required(inviteID)
          try await context.performing { () async throws(LatchkeyError) in
            try await context.library.revokeInvite(id, household: arguments[.household])
          }
          let message = "The invite \(id) is withdrawn."
          return Outcome(message, .lines([Line(.done, message)]), data: ["id": .text(id)])
        }),
    ]))

  private static let inviteID = Argument("ID", .text, "the invite's id, or the first six characters of it or more")
}
