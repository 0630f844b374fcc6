import Latchkey

extension Verbs {
  static let share = Verb(
    name: "share",
    summary: "move a database from your personal household into one that others can join",
    details: [
      "Makes the household if you have none of that name. Nobody has access before you invite them. The personal copy is "
        + "removed from the store once everything is in the household and was read back from there."
    ],
    arguments: [.database],
    options: [
      Option.household.saying("the household's name").required,
      Option.store.saying("where the household's data is kept (default: your personal store)"),
      .credentialFile,
    ],
    exits: [
      .unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .damageFound, .newerFormat,
    ],
    data: [
      Term("household", "its name"), Term("zone", "the zone's name"), Term("rows", "rows shared"),
      Term("verified", "whether all of it was read back from the store; if not, the next sync goes on with it"),
      Term("warnings", "[{code, message}]"),
    ],
    examples: ["latchkey share budget.db --household Smiths"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let household = try arguments.required(.household)
      if context.globals.dryRun { return try await wouldShare(path, household, context) }
      let credential = try arguments.credential()
      context.terminal.progress.report(Progress.Step(phase: "sharing", done: 0, total: nil, bytes: 0))
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.share(path, household: household, store: arguments[.store], credential: credential)
      }
      let message = "\(path) is shared with the household \(report.household): \(counted(report.rows, "row"))"
      var outcome = Outcome(
        message + ".", .lines([Line(.done, message + ", in the zone \(report.zone). Nobody else is in it yet.")]),
        data: [
          "household": .text(report.household), "zone": .text(report.zone), "rows": .count(report.rows),
          "verified": .bool(report.isVerified), "warnings": .warnings(report.warnings),
        ])
      outcome.notes = Line.warnings(report.warnings)
      outcome.next = ["latchkey invite --household \(report.household.quotedForShell)"]
      return outcome
    })

  private static func wouldShare(
    _ path: String, _ household: String, _ context: Context
  ) async throws(CommandError) -> Outcome {
    let zone = try await context.performing { () async throws(LatchkeyError) in
      try await context.library.status(path).first?.zone
    }
    let counts = try await context.performing { () async throws(LatchkeyError) in try await context.library.counts(path)
    }
    guard let zone, zone.mode == "personal" else {
      throw CommandError(
        .usage, "already-shared", "\(path) is shared already, with the household \(counts.household).",
        next: ["latchkey invite --household \(counts.household.quotedForShell)"])
    }
    let rows = counts.tables.reduce(0) { $0 + $1.local }
    let message = "\(path) (\(counted(rows, "row"))) would move from your personal household into \(household)."
    return Outcome(
      message, .lines([Line(.none, message), "Nothing was changed."]),
      data: [
        "household": .text(household), "zone": .text(zone.name), "rows": .count(rows), "verified": false,
        "warnings": [],
      ])
  }
}
