import Latchkey

extension Verbs {
  static let leave = Verb(
    name: "leave",
    summary: "leave a household; nobody else's copy changes",
    details: [
      "What waits in your files is sent first. Your devices are dropped when the next of the others syncs; after that you read nothing "
        + "new. The household's rows go from this device's files; with --keep they stay and are yours, under new names. Your other devices ask "
        + "what shall become of theirs (latchkey status).",
      "An owner's files are settled by the sync that finds that another owner's device has let it go. The last owner cannot leave: make somebody else an owner first. It is for good: to come back takes a new identity.",
    ],
    arguments: [Argument.database.optional],
    options: [.household, keep, confirm],
    exits: [
      .unusableDatabase, .setAside, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember,
      .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term("household", "its name"),
      Term(
        "files",
        "[{path, removed, zone, error}], none for an owner yet: rows taken out (null if kept), the zone of your own that it belongs to now (null if none), or "
          + "error: {code, message} if it is still attached"),
    ],
    examples: ["latchkey leave budget.db", "latchkey leave budget.db --keep --confirm Smith"],
    body: .runs { arguments, context throws(CommandError) in
      let database = arguments[.database]
      let household = arguments[.household]
      let isKeeping = arguments.has(keep)
      let name = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.householdToLeave(database: database, household: household)
      }
      let fate = isKeeping ? "Its rows stay in your files, as your own." : "Its rows go from this device's files."
      if context.globals.dryRun {
        let message = "You would leave \(name)."
        return Outcome(
          message, .lines([Line(.none, message), Line(.detail, fate)]), data: ["household": .text(name), "files": []])
      }
      let place = database.map(\.quotedForShell) ?? "--household \(name.quotedForShell)"
      try context.terminal.confirm(
        [Line(.warning, "This takes all your devices out of \(name), for good. \(fate)")], typing: name,
        given: arguments[confirm],
        next: ["latchkey leave \(place)\(isKeeping ? " --keep" : "") --confirm \(name.quotedForShell)"])
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.leave(database: database, household: household, keeping: isKeeping)
      }
      let message = "You leave \(report.household): the next of the others that syncs lets you go."
      var outcome = Outcome(
        message, .lines([Line(.done, message)] + report.files.compactMap(line)),
        data: ["household": .text(report.household), "files": .array(report.files.map(json))])
      let failed = report.files.compactMap { file in file.failure.map { (file.path, $0) } }
      if !failed.isEmpty {
        outcome.notes = failed.map { Line(.warning, "\($0.0) is still attached: \($0.1.message)") }
        outcome.exit = .setAside
        outcome.code = "files-left"
        outcome.next = failed.map { "latchkey detach \($0.0.quotedForShell)" }
      }
      return outcome
    })

  private static let confirm = Option.taking("NAME", .text, "confirm", "the household's name, instead of typing it")
  private static let keep = Option.flag("keep", "keep the rows as your own")

  private static func line(_ file: EndedFile) -> Line? {
    if file.failure != nil { return nil }
    if let rows = file.removed { return Line(.detail, "\(file.path): \(counted(rows, "row")) taken out") }
    return Line(.detail, "\(file.path): kept\(file.zone.map { ", as your own zone \($0)" } ?? "")")
  }

  private static func json(_ file: EndedFile) -> JSON {
    [
      "path": .text(file.path), "removed": file.removed.map(JSON.count) ?? .null, "zone": .text(file.zone),
      "error": file.failure.map { ["code": .text($0.code), "message": .text($0.message)] } ?? .null,
    ]
  }
}
