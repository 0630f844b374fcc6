import Latchkey
import Synchronization

extension Verbs {
  static let db = Option.taking(
    "DB", .database, "db", "the database file: a new one, made from the zone's schema, or one with rows")
  private static let inviteFile = Option.taking(
    "FILE", .file, "invite-file", "read the invite from this file, which only you can read (default: standard input)")
  private static let personalStore = Option.taking(
    "URL", .store, "personal-store", "where your own household is kept, if you have none yet")

  static let join = Verb(
    name: "join",
    summary: "join a household, or add this device to your own, with an invite",
    details: [
      "The invite is read from --invite-file, from what is piped to standard input, or typed without being shown; never "
        + "from the command line.",
      "With --name an identity is made if this device has none. An invite made by \"latchkey device add\" adds this device to "
        + "the person who made it, and needs no --db.",
      "If the file exists, its rows and the zone's that are the same become one, and both keep what only they have.",
      "Before the store that the invite names is used for the first time, you are asked; --yes agrees, and so does --store, "
        + "which says where the store is reached from here.",
      "An invite that was made with --confirm shows ten words here and ends with 15: read them to the inviter, and run the same command "
        + "again once you were let in.",
    ],
    options: [
      db, inviteFile, .zone.saying("which zone of the household, if it has several"),
      .name.saying("your name, if this device has no identity yet"), .device, personalStore,
      .store.saying("where the household's store is reached from here"), .template,
      .words.saying("the ten words that the inviter's screen shows, where words are compared"),
      .credentialFile,
    ],
    exits: [
      .unusableDatabase, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term("household", "its name"), Term("zone", "the zone's name; null without --db"),
      Term("database", "the file; null without --db"), Term("rows", "rows received"),
      Term(
        "provisional",
        "whether nobody has admitted this device yet: it reads, and what it writes counts for the others once one of their "
          + "devices has synchronised"),
      Term(
        "words",
        "ten words that the other screen shows, too, where they are to be compared: an invite with --confirm, a device of your own; else null"
      ),
      Term("warnings", "[{code, message}]"),
    ],
    examples: [
      "latchkey join --db budget.db --invite-file ben.invite",
      "latchkey join --db budget.db --name Ben --personal-store ~/latchkey < ben.invite",
    ],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("join", "that is in the household, which only those who join can read")
      let link = try context.terminal.readSecret(
        "the invite link", file: arguments[inviteFile],
        next: ["latchkey join --invite-file FILE", "latchkey join < FILE"])
      let options = JoinOptions(
        database: arguments[db], zone: arguments[.zone], name: arguments[.name], device: arguments[.device],
        personalStore: arguments[personalStore], store: arguments[.store], template: arguments[.template],
        words: arguments[.words], credential: try arguments.credential())
      let report = try await joining(context) { agree async throws(LatchkeyError) in
        try await context.library.join(link: link, options: options, agree: agree)
      }
      return joined(report, path: options.database)
    })

  /// Joins a household, asking the person what only a person may answer.
  static func joining(
    _ context: Context,
    _ join: (@escaping @Sendable (Question) async -> Bool) async throws(LatchkeyError) -> JoinReport
  ) async throws(CommandError) -> JoinReport {
    // Why the person did not agree: "no" is not the same as "nobody could be asked".
    let refusal = Mutex<CommandError?>(nil)
    do {
      return try await join { question in
        do throws(CommandError) {
          try ask(question, context)
          context.terminal.progress.report(Progress.Step(phase: "joining", done: 0, total: nil, bytes: 0))
          return true
        } catch {
          refusal.withLock { $0 = error }
          return false
        }
      }
    } catch {
      if error.code == "store-not-agreed", let refusal = refusal.withLock({ $0 }), refusal.exit == .cancelled {
        throw refusal
      }
      throw CommandError(error)
    }
  }

  private static func ask(_ question: Question, _ context: Context) throws(CommandError) {
    switch question {
    case .useStore(let url):
      try context.terminal.confirm(
        [
          "The household is kept in \(url).",
          Line(.detail, "This device will read and write there; who holds that storage sees when, and how much."),
        ],
        "Use that store?", next: [])
    }
  }

  /// What is said of a household that was joined.
  ///
  /// - Parameter path: the database as it was given.
  static func joined(_ report: JoinReport, path: String?) -> Outcome {
    if let waiting = report.waitingFor { return answer(report, waiting) }
    let place = report.zone.flatMap { zone in path.map { (zone, $0) } }
    var message = "Joined the household \(report.household)"
    if let (zone, database) = place {
      message += ": \(counted(report.rows, "row")) of the zone \(zone) received into \(database)"
    }
    var outcome = Outcome(
      message + ".", .lines([Line(.done, message + ".")]),
      data: [
        "household": .text(report.household), "zone": .text(report.zone), "database": .text(report.database),
        "rows": .count(report.rows), "provisional": .bool(report.isProvisional), "words": words(report.words),
        "warnings": .warnings(report.warnings),
      ])
    outcome.notes =
      (report.words.map { [Line(.none, "The other device shows, too: \($0.joined(separator: " "))")] } ?? [])
      + Line.warnings(report.warnings)
    if report.isProvisional, !report.warnings.contains(where: { $0.code == "provisional" }) {
      outcome.notes.append(
        Line(
          .warning,
          "Nobody has admitted this device yet: what it writes counts once one of the household's devices has synchronised."
        ))
    }
    outcome.next = place.map { ["latchkey sync \($0.1.quotedForShell)"] } ?? ["latchkey attach NEW-FILE --zone ZONE"]
    return outcome
  }

  /// Somebody has to compare words first.
  private static func answer(_ report: JoinReport, _ waiting: JoinReport.Waiting) -> Outcome {
    let message =
      "\(waiting.inviter) has to compare ten words with you before you are in the household \(report.household)."
    var outcome = Outcome(
      message, .lines([Line(.none, waiting.words.joined(separator: " "))]),
      data: [
        "household": .text(report.household), "zone": .null, "database": .null, "rows": .count(0),
        "provisional": .bool(true), "words": words(waiting.words), "warnings": [],
      ])
    outcome.exit = .decisionNeeded
    outcome.code = "words-waiting"
    outcome.notes = [
      Line(.warning, message),
      Line(.detail, "Read them the words above, over a channel where you know each other's voice."),
    ]
    outcome.next = ["run the same command again once you were let in"]
    return outcome
  }

  private static func words(_ words: [String]?) -> JSON { words.map { .array($0.map(JSON.text)) } ?? .null }
}
