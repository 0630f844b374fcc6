import Latchkey
import LatchkeyTables

extension Verbs {
  private static let compare = Option.taking(
    "FILE", .file, "compare", "another device's report (counts --json), to compare this one with")

  static let counts = Verb(
    name: "counts",
    summary: "count what each table has here, and digest it, to compare two devices",
    details: [
      "Two devices whose digests are equal hold the same records. With --compare every table is compared with another "
        + "device's report, and the exit code is 3 if one differs."
    ],
    arguments: [.database],
    options: [compare],
    exits: [.unusableDatabase, .setAside, .notAttached, .databaseBusy, .notAMember, .keyRefused, .newerFormat],
    data: [
      Term(
        "zones",
        "[{name, household, mode, digest, tables: [{name, local, live, deleted, waiting, parked, merged, digest}]}]; local: rows in "
          + "the file; live and deleted: records; waiting: not confirmed by the store; parked: received, not shown yet; "
          + "merged: duplicates, shown as another row"),
      Term("equal", "with --compare: whether all digests are equal"),
      Term(
        "comparison",
        "with --compare: [{zone, table, equal, here: {live, deleted, digest}, there: the same or null}], here may be null too"
      ),
    ],
    examples: ["latchkey counts budget.db --json > laptop.json", "latchkey counts budget.db --compare laptop.json"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      // Read first: a mistake in it is no reason to look at the file.
      var other: CountsFile?
      if let file = arguments[compare] { other = try CountsFile(file) }
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.counts(path)
      }
      guard let other else {
        return Outcome(
          "\(report.zone) has \(counted(report.tables.reduce(0) { $0 + $1.live }, "record")).",
          .lines(lines(report)), data: ["zones": [json(report)]])
      }
      return try compared(report, other)
    })

  private static func lines(_ report: CountsReport) -> [Line] {
    let heading = ["table", "local", "live", "deleted", "waiting", "parked", "merged", "digest"]
    let rows = report.tables.map { table in
      [table.name]
        + [table.local, table.live, table.deleted, table.waiting, table.parked, table.merged].map { String($0) }
        + [String(table.digest.description.prefix(12))]
    }
    return [
      Line(.none, "\(report.zone), household \(report.household), \(report.mode), digest \(report.digest.prefix(12))")
    ]
      + Columns([heading] + rows, rightAligned: [1, 2, 3, 4, 5, 6]).lines.map { Line(.detail, $0) }
  }

  private static func json(_ report: CountsReport) -> JSON {
    [
      "name": .text(report.zone), "household": .text(report.household), "mode": .text(report.mode),
      "digest": .text(report.digest), "tables": .array(report.tables.map(json)),
    ]
  }

  private static func json(_ table: TableCounts) -> JSON {
    [
      "name": .text(table.name), "local": .count(table.local), "live": .count(table.live),
      "deleted": .count(table.deleted), "waiting": .count(table.waiting), "parked": .count(table.parked),
      "merged": .count(table.merged),
      "digest": .text(table.digest.description),
    ]
  }

  // MARK: Comparing

  private static func compared(_ report: CountsReport, _ other: CountsFile) throws(CommandError) -> Outcome {
    let there = try other.tables(of: report.zone)
    let here = report.tables.map {
      CountsFile.Table(name: $0.name, live: Int64($0.live), deleted: Int64($0.deleted), digest: $0.digest.description)
    }
    let names = here.map(\.name) + there.map(\.name).filter { name in !here.contains { $0.name == name } }
    let pairs = names.map { name in
      (name, here.first { $0.name == name }, there.first { $0.name == name })
    }
    let differing = pairs.filter { $0.1?.digest != $0.2?.digest }.map(\.0)
    let message =
      differing.isEmpty
      ? "\(report.zone) holds the same records on both devices."
      : "\(report.zone) differs in \(differing.joined(separator: ", "))."
    let rows = pairs.map { name, here, there in
      [
        name, here?.digest == there?.digest ? "equal" : "differs",
        "here \(here?.shown ?? "nothing")", "there \(there?.shown ?? "nothing")",
      ]
    }
    var outcome = Outcome(
      message,
      .lines(Columns(rows).lines.map { Line(.detail, $0) } + [Line(differing.isEmpty ? .done : .warning, message)]),
      data: [
        "zones": [json(report)], "equal": .bool(differing.isEmpty),
        "comparison": .array(
          pairs.map { name, here, there in
            [
              "zone": .text(report.zone), "table": .text(name), "equal": .bool(here?.digest == there?.digest),
              "here": here?.json ?? .null, "there": there?.json ?? .null,
            ]
          }),
      ])
    if !differing.isEmpty {
      outcome.exit = .setAside
      outcome.code = "differs"
      outcome.next = ["latchkey sync   (on both devices, then compare again)"]
    }
    return outcome
  }
}

/// Another device's answer to `counts --json`.
private struct CountsFile {
  struct Table {
    let name: String
    let live: Int64
    let deleted: Int64
    let digest: String

    var shown: String { "\(live) live, \(deleted) deleted, \(digest.prefix(12))" }

    var json: JSON { ["live": .integer(live), "deleted": .integer(deleted), "digest": .text(digest)] }
  }

  private let file: String
  private let zones: [(name: String, tables: [Table])]

  /// - Throws: exit code 64 if it is something else, 1 if it cannot be read.
  init(_ file: String) throws(CommandError) {
    let bytes = try SmallFile.read(file)
    guard let zones = (try? JSON(parsing: bytes))?["data"]?["zones"]?.array.flatMap(CountsFile.zones) else {
      throw .usage(
        "bad-report", "\(file.quotedUnlessSecret) is not another device's answer to \"latchkey counts DB --json\".",
        next: ["latchkey counts DB --json > FILE   (on the other device)"])
    }
    self.file = file
    self.zones = zones
  }

  func tables(of zone: String) throws(CommandError) -> [Table] {
    if let found = zones.first(where: { $0.name == zone }) { return found.tables }
    throw .usage(
      "other-zone",
      "\(file.quotedUnlessSecret) is about \(zones.map(\.name).joined(separator: ", ").printable), not about the zone "
        + "\(zone.printable).", next: ["latchkey counts DB --json > FILE   (on the other device)"])
  }

  private static func zones(_ elements: [JSON]) -> [(name: String, tables: [Table])]? {
    var zones: [(name: String, tables: [Table])] = []
    for element in elements {
      guard let name = element["name"]?.text, let tables = element["tables"]?.array else { return nil }
      var read: [Table] = []
      for table in tables {
        guard let name = table["name"]?.text, let live = table["live"]?.integer,
          let deleted = table["deleted"]?.integer,
          let digest = table["digest"]?.text
        else { return nil }
        read.append(Table(name: name, live: live, deleted: deleted, digest: digest))
      }
      zones.append((name, read))
    }
    return zones
  }
}
