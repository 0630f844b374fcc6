import Latchkey

extension Verbs {
  private static let action = Argument(
    "ACTION", .choice(["list", "accept", "decline"]), "list (default), accept or decline"
  ).optional
  private static let inviteID = Argument(
    "ID", .text, "the invite's id, or the first six characters of it or more"
  ).optional

  static let inbox = Verb(
    name: "inbox",
    summary: "invites that were sent to your card",
    details: [
      "Looks into every store that you use or have put your card into. Only this device can open what is listed.",
      "\"accept\" joins as \"latchkey join\" does; before a store is used that you do not use yet, you are asked. \"decline\" deletes "
        + "the invite; the inviter is not told.",
      "An inviter is shown by the name that you know them by. \"unverified\": anybody who can write the store may have sent it.",
    ],
    arguments: [action, inviteID],
    options: [
      db, .credentialFile, .zone.saying("accept: which zone of the household, if it has several"),
      .store.saying("accept: where the household's store is reached from here"), .template,
    ],
    exits: [
      .unusableDatabase, .setAside, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember,
      .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term(
        "invites",
        "list: [{id, household, role, inviter, inviter_id, calls_itself, status, expires}], status: pending, accepted, declined, "
          + "removed or expired; inviter: your name for them, or \"unverified\""),
      Term("unreadable", "list: objects that are not for this device"),
      Term("invite", "decline: one of these"),
      Term("household, zone, database, rows, provisional", "accept: as \"latchkey join\" answers"),
      Term("warnings", "list, accept: [{code, message}]"),
    ],
    examples: ["latchkey inbox", "latchkey inbox accept 3f2a9c --db budget.db", "latchkey inbox decline 3f2a9c"],
    body: .runs { arguments, context throws(CommandError) in
      let chosen = arguments[action] ?? "list"
      if chosen != "accept" { try refuseJoinOptions(arguments) }
      guard chosen != "list" else {
        guard arguments[inviteID] == nil else {
          throw .usage("unexpected-argument", "\"latchkey inbox list\" takes no ID.", next: ["latchkey inbox"])
        }
        return try await listed(context)
      }
      guard let id = arguments[inviteID] else {
        throw .usage(
          "missing-argument", "\"latchkey inbox \(chosen)\" needs the invite's ID.", next: ["latchkey inbox"])
      }
      try context.refuseDryRun("inbox \(chosen)", "that is in the store, which only those who accept can read")
      return chosen == "accept"
        ? try await accepted(id, arguments, context) : try await declined(id, context)
    })

  private static func refuseJoinOptions(_ arguments: ParsedArguments) throws(CommandError) {
    for option in [db, .zone, .store, .template, .credentialFile] where arguments[option] != nil {
      throw .usage(
        "unexpected-option", "--\(option.name) is for \"latchkey inbox accept\".", next: ["latchkey inbox --help"])
    }
  }

  private static func listed(_ context: Context) async throws(CommandError) -> Outcome {
    let report = try await context.performing { () async throws(LatchkeyError) in try await context.library.inbox() }
    let rows = report.invites.map { invite in
      [
        String(invite.id.prefix(8)), invite.status.rawValue, invite.household, invite.role,
        "from \(invite.inviter ?? "unverified (calls itself \"\(invite.inviterCallsItself)\")")",
        Moment(invite.expires).shown,
      ]
    }
    let pending = report.invites.filter { $0.status == .pending }
    var outcome = Outcome(
      "There are \(counted(report.invites.count, "invite")), \(pending.count) pending.",
      .lines(Columns(rows).lines.map { Line(.none, $0) }),
      data: [
        "invites": .array(report.invites.map(json)), "unreadable": .count(report.unreadable),
        "warnings": .warnings(report.warnings),
      ])
    outcome.notes = Line.warnings(report.warnings)
    if report.unreadable > 0 {
      outcome.notes.append(
        Line(.detail, "\(counted(report.unreadable, "object")) there cannot be opened by this device."))
    }
    if !report.warnings.isEmpty { outcome.exit = .setAside }
    if let first = pending.first { outcome.next = ["latchkey inbox accept \(first.id.prefix(8)) --db FILE"] }
    return outcome
  }

  private static func accepted(
    _ id: String, _ arguments: ParsedArguments, _ context: Context
  ) async throws(CommandError) -> Outcome {
    let options = JoinOptions(
      database: arguments[db], zone: arguments[.zone], store: arguments[.store], template: arguments[.template],
      credential: try arguments.credential())
    let report = try await joining(context) { agree async throws(LatchkeyError) in
      try await context.library.acceptInvite(id, options: options, agree: agree)
    }
    return joined(report, path: options.database)
  }

  private static func declined(_ id: String, _ context: Context) async throws(CommandError) -> Outcome {
    let invite = try await context.performing { () async throws(LatchkeyError) in
      try await context.library.declineInvite(id)
    }
    let message = "The invite to \(invite.household) is declined."
    return Outcome(message, .lines([Line(.done, message)]), data: ["invite": json(invite)])
  }

  private static func json(_ invite: InboxEntry) -> JSON {
    [
      "id": .text(invite.id), "household": .text(invite.household), "role": .text(invite.role),
      "inviter": .text(invite.inviter ?? "unverified"), "inviter_id": .text(invite.inviterID),
      "calls_itself": .text(invite.inviterCallsItself), "status": .text(invite.status.rawValue),
      "expires": .moment(invite.expires),
    ]
  }
}
