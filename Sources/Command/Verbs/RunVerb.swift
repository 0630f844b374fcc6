import Latchkey

extension Verbs {
  private static let app = Argument("APP", .text, "the app and its arguments, after --").repeated

  static let run = Verb(
    name: "run",
    summary: "synchronise, run an app, and synchronise again",
    details: [
      "As long as the app runs, nothing is received into the file, whoever synchronises it: for apps that hold a database in memory and "
        + "write all of it back. What the app writes is captured as always, and sent when it ends. The file waits for the app even if latchkey "
        + "itself is killed.",
      "Where the store cannot be reached, or something waits for a person, the app runs all the same. It does not start where the file is "
        + "not attached or cannot be read.",
      "Ends with 0 if the app ended with 0, and with what the last synchronising ended with otherwise. An app that fails ends it with 1, "
        + "whatever its own number was: app_exit has that. With --json what the app prints goes to standard error.",
    ],
    arguments: [.database, app],
    exits: [
      .unusableDatabase, .setAside, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term("before", "what the first sync did, as sync has it; null if it failed"),
      Term("before_code", "\"done\", or why the first sync failed"),
      Term(
        "app_exit", "the app's exit status, 128 and the number of the signal that ended it, or null if it did not start"
      ),
      Term("after", "what the last sync did; null if it failed"),
      Term("after_code", "\"done\", or why the last sync failed"),
      Term("warnings", "[{code, message}], of both"),
    ],
    examples: ["latchkey run book.gnucash -- gnucash book.gnucash"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("run", "the app does what it does")
      let path = try arguments.required(.database)
      let turn = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.takeTurn(path)
      }
      let before = await synchronise(path, context)
      if let error = before.error, !error.exit.letsAppRun { throw error }
      context.terminal.progress.finish()
      let status: Int32
      do throws(CommandError) {
        status = try await ForeignProcess(
          words: arguments.all(app), inheriting: Descriptor(number: turn.descriptor),
          keepsOutputFree: context.globals.json
        ).run()
      } catch {
        throw CommandError(
          error.exit, error.code, error.message, next: error.next, data: data(before, status: nil, Synchronised()))
      }
      let after = await synchronise(path, context)
      withExtendedLifetime(turn) {}
      return try outcome(path, before, status, after)
    })

  /// What became of a sync before or after.
  private struct Synchronised {
    var report: SyncReport?
    var error: CommandError?
  }

  private static func synchronise(_ path: String, _ context: Context) async -> Synchronised {
    do throws(CommandError) {
      let progress = context.terminal.progress
      progress.report(Progress.Step(phase: "syncing", done: 0, total: nil, bytes: 0))
      defer { progress.finish() }
      return Synchronised(
        report: try await context.performing { () async throws(LatchkeyError) in
          try await context.library.sync(path, untilSettled: true)
        })
    } catch { return Synchronised(error: error) }
  }

  private static func outcome(
    _ path: String, _ before: Synchronised, _ status: Int32, _ after: Synchronised
  ) throws(CommandError) -> Outcome {
    let data = data(before, status: status, after)
    let again = "latchkey sync \(path.quotedForShell)"
    if let error = after.error, status == 0 {
      throw CommandError(
        error.exit, error.code, "The app ended; what it changed is not sent yet. \(error.message)", next: [again],
        data: data)
    }
    let said = status == 0 ? "The app ended" : "The app failed (\(status))"
    let counts =
      after.report.map { "\($0.sent) sent, \($0.received) received, \($0.waiting) waiting" } ?? "not synchronised"
    // Standard output is the app's.
    var outcome = Outcome("\(said): \(counts).", .lines([]), data: data)
    let synchronised = after.report.map { answer($0, path) }
    outcome.notes =
      [Line(status == 0 && after.error == nil ? .done : .warning, "\(path): \(said.lowercased()): \(counts)")]
      + [before.error, after.error].compactMap { $0 }.map { Line(.warning, $0.message) }
      + Line.warnings(before.report?.warnings ?? []) + (synchronised?.notes ?? [])
    outcome.next = after.error == nil ? synchronised?.next ?? [] : [again]
    if status != 0 {
      outcome.exit = .other
      outcome.code = "app-failed"
    } else if let synchronised {
      outcome.exit = synchronised.exit
      outcome.code = synchronised.code
    }
    return outcome
  }

  private static func data(_ before: Synchronised, status: Int32?, _ after: Synchronised) -> JSON {
    func code(_ one: Synchronised) -> JSON {
      one.error.map { .text($0.code) } ?? (one.report == nil ? .null : "done")
    }
    return [
      "before": before.report.map(json) ?? .null, "before_code": code(before),
      "app_exit": status.map { .integer(Int64($0)) } ?? .null, "after": after.report.map(json) ?? .null,
      "after_code": code(after),
      "warnings": .warnings((before.report?.warnings ?? []) + (after.report?.warnings ?? [])),
    ]
  }
}

extension ExitCode {
  /// Whether an app is started though synchronising failed so: what is only away, or waits for a person, does not keep anybody from
  /// their own rows.
  fileprivate var letsAppRun: Bool {
    switch self {
    case .done, .other, .setAside, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
      .damageFound:
      true
    case .unusableDatabase, .cancelled, .notAttached, .newerFormat, .usage, .interrupted: false
    }
  }
}
