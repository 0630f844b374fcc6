import Latchkey

extension Verbs {
  static let forget = Verb(
    name: "forget",
    summary: "wipe this device's keys and everything it knows of your households",
    details: [
      "Attached files are detached first and keep their rows. The store is not touched, and other devices do not hear of it: revoke "
        + "this device on one of them. You come in again with another device of yours (latchkey device add), your recovery kit "
        + "(latchkey key recover) or an invite.",
      "It works without the passphrase. Copies of the folder, backups, and blocks that a disk keeps of replaced files are not reached.",
    ],
    options: [confirm],
    exits: [.setAside, .cancelled, .databaseBusy, .decisionNeeded],
    data: [
      Term("detached", "[path]"), Term("left", "[{path, code, message}]: files that could not be detached"),
      Term("unsent", "[{path, rows}]: rows that the store had not confirmed; they are in the file only"),
    ],
    examples: ["latchkey forget"],
    body: .runs { arguments, context throws(CommandError) in
      let unsent = try await context.performing { () async throws(LatchkeyError) in try await context.library.unsent() }
      let losses = unsent.map {
        Line(.warning, "\($0.path) holds \(counted($0.rows, "row")) that nobody else has yet: latchkey sync first.")
      }
      if context.globals.dryRun {
        let message = "This device's keys would be wiped."
        return Outcome(message, .lines(losses + [Line(.none, message)]), data: data([], [], unsent))
      }
      try context.terminal.confirm(
        losses + [Line(.warning, "This wipes the keys on this device. Nothing brings them back.")], typing: "forget",
        given: arguments[confirm], next: ["latchkey forget --confirm forget"])
      let report = try await context.performing { () async throws(LatchkeyError) in try await context.library.forget() }
      let message = "This device's keys are wiped."
      var outcome = Outcome(
        message,
        .lines([Line(.done, message)] + report.detached.map { Line(.detail, "\($0) is detached") }),
        data: data(report.detached, report.left, unsent))
      outcome.notes = report.left.map { Line(.warning, "\($0.path) is still attached: \($0.why.message)") }
      if !report.left.isEmpty {
        outcome.exit = .setAside
        outcome.code = "files-left"
        outcome.next = report.left.map { "latchkey detach \($0.path.quotedForShell)" }
      }
      return outcome
    })

  private static let confirm = Option.taking("WORD", .text, "confirm", "the word forget, instead of typing it")

  private static func data(
    _ detached: [String], _ left: [ForgetReport.Left], _ unsent: [(path: String, rows: Int)]
  ) -> JSON {
    [
      "detached": .array(detached.map(JSON.text)),
      "left": .array(
        left.map { ["path": .text($0.path), "code": .text($0.why.code), "message": .text($0.why.message)] }),
      "unsent": .array(unsent.map { ["path": .text($0.path), "rows": .count($0.rows)] }),
    ]
  }
}
