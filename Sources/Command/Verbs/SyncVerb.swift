import Latchkey

extension Verbs {
  private static let untilSettled = Option.flag(
    "until-settled", "repeat until there is nothing left to send or receive")

  private static let allowDeletes = Option.taking(
    "N", .text, "allow-deletes", "let deletions that wait for you go if they are at most so many rows in a file")

  static let sync = Verb(
    name: "sync",
    summary: "receive what others changed, apply it, and send what changed here",
    details: [
      "One round for one file, or for every attached file. It can be killed at any point: the next round goes on where it "
        + "stopped.",
      "Where somebody has deleted very many rows at once, they stay as they are until you decide: it ends with 15, and \"latchkey status\" "
        + "shows the question.",
      "With --dry-run it says what waits to be sent, and asks neither the store nor the app's file for more.",
    ],
    arguments: [Argument.database.optional],
    options: [untilSettled, allowDeletes],
    exits: [
      .unusableDatabase, .setAside, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term("sent", "rows that the store has confirmed"), Term("received", "rows received and applied"),
      Term("waiting", "rows changed here that the store has not confirmed"),
      Term("parked", "rows received that the tables do not show yet"),
      Term("requests", "{put, get, list, head, delete}: requests to the store"),
      Term("bytes_up", "bytes sent"), Term("bytes_down", "bytes received"),
      Term("conflicts", "values that lost a true conflict in this sync: \"conflicts list\" shows them"),
      Term("held", "rows whose deletion by others waits for a decision"),
      Term("decisions", "questions about the rows of the files that were synchronised, as in status"),
      Term("warnings", "[{code, message}]"),
    ],
    examples: [
      "latchkey sync", "latchkey sync budget.db --until-settled", "latchkey sync budget.db --allow-deletes 120",
    ],
    body: .runs { arguments, context throws(CommandError) in
      let path = arguments[.database]
      let allowed = try limit(arguments)
      if context.globals.dryRun { return try await waiting(path, context) }
      let progress = context.terminal.progress
      progress.report(Progress.Step(phase: "syncing", done: 0, total: nil, bytes: 0))
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.sync(
          path, untilSettled: arguments.has(untilSettled), allowedDeletions: allowed
        ) { report in
          progress.report(
            Progress.Step(
              phase: "syncing", done: report.sent + report.received, total: nil,
              bytes: Int64(report.bytesUp + report.bytesDown)))
        }
      }
      return answer(report, path)
    })

  private static func limit(_ arguments: ParsedArguments) throws(CommandError) -> Int? {
    guard let text = arguments[allowDeletes] else { return nil }
    guard let number = Int(text), number > 0 else {
      throw .usage("bad-value", "--allow-deletes takes a number of rows.", next: ["latchkey sync --help"])
    }
    return number
  }

  static func answer(_ report: SyncReport, _ path: String?) -> Outcome {
    let counts =
      "\(report.sent) sent, \(report.received) received, \(report.waiting) waiting"
      + (report.parked > 0 ? ", \(report.parked) parked" : "")
    let traffic =
      "\(counted(report.requests.all, "request")), \(ByteCount(Int64(report.bytesUp))) up, "
      + "\(ByteCount(Int64(report.bytesDown))) down"
    var outcome = Outcome(
      "Synchronised: \(counts).",
      .lines([Line(report.hasSetAside ? .warning : .done, "\(path ?? "everything attached"): \(counts) (\(traffic))")]),
      data: json(report))
    outcome.notes = Line.warnings(report.warnings)
    if report.hasSetAside {
      outcome.exit = .setAside
      outcome.code = "set-aside"
    }
    let place = path.map { " " + $0.quotedForShell } ?? ""
    if report.conflicts > 0 {
      outcome.notes.append(
        Line(
          .detail,
          "\(counted(report.conflicts, "value")) lost a conflict with another edit: kept for thirty days (latchkey conflicts list)."
        ))
    }
    if report.parked > 0 { outcome.next = ["latchkey status\(place)"] }
    let guarded = report.decisions.filter { $0.kind == "guard" }
    if !guarded.isEmpty {
      outcome.exit = .decisionNeeded
      outcome.code = "deletions-held"
      outcome.notes += guarded.map { Line(.warning, $0.message) }
      outcome.next = guarded.flatMap(\.commands)
      if report.heldDeletions > 0 {
        outcome.next.append("latchkey sync\(place) --allow-deletes \(report.heldDeletions)")
      }
    }
    return outcome
  }

  static func json(_ report: SyncReport) -> JSON {
    [
      "sent": .count(report.sent), "received": .count(report.received), "waiting": .count(report.waiting),
      "parked": .count(report.parked),
      "requests": [
        "put": .count(report.requests.put), "get": .count(report.requests.get), "list": .count(report.requests.list),
        "head": .count(report.requests.head), "delete": .count(report.requests.delete),
      ],
      "bytes_up": .count(report.bytesUp), "bytes_down": .count(report.bytesDown),
      "conflicts": .count(report.conflicts), "held": .count(report.heldDeletions),
      "decisions": .array(report.decisions.map { $0.json }), "warnings": .warnings(report.warnings),
    ]
  }

  private static func waiting(_ path: String?, _ context: Context) async throws(CommandError) -> Outcome {
    let databases = try await context.performing { () async throws(LatchkeyError) in
      try await context.library.status(path)
    }
    let zones = databases.compactMap(\.zone)
    let waiting = zones.reduce(0) { $0 + $1.waiting }
    let message = "\(counted(waiting, "changed row")) would be sent. Nothing was sent or received."
    return Outcome(
      message, .lines([Line(.none, message)]),
      data: [
        "sent": 0, "received": 0, "waiting": .count(waiting), "parked": .count(zones.reduce(0) { $0 + $1.parked }),
        "requests": ["put": 0, "get": 0, "list": 0, "head": 0, "delete": 0], "bytes_up": 0, "bytes_down": 0,
        "conflicts": 0, "held": 0, "decisions": [], "warnings": .warnings(zones.flatMap(\.warnings)),
      ])
  }
}

extension Requests {
  fileprivate var all: Int { put + get + list + head + delete }
}
