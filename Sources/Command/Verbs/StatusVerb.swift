import Latchkey
import LatchkeyEncoding
import LatchkeyTables

extension Verbs {
  static let status = Verb(
    name: "status",
    summary: "how things stand: mode, household, what waits, what needs you",
    details: [
      "Asks the file and this device only, never the store. Without a file it shows every attached one, and ends with 3 if "
        + "one of them cannot be read."
    ],
    arguments: [Argument.database.optional],
    exits: [.unusableDatabase, .setAside, .notAttached, .databaseBusy, .notAMember, .keyRefused, .newerFormat],
    data: [
      Term(
        "databases",
        "[{path, zones: [{name, household, mode, epoch, last_acknowledged, last_heard: {device: time}, waiting, parked, "
          + "warnings: [{code, message}], store, mirror, parked_rows: [{table, record, reason}]}]}], mode: personal, owner or participant; store and mirror: URLs, mirror null for none; a file that cannot be read has no "
          + "zones, but error: {code, message, next}; parked_rows lists the first hundred"),
      Term(
        "decisions",
        "[{id, kind, household, message, choices: [text], commands: [text]}]: what waits for a person to decide; kind: guard, reader, credential, frozen or store"
      ),
    ],
    body: .runs { arguments, context throws(CommandError) in
      let databases = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.status(arguments[.database])
      }
      let decisions = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.decisions()
      }
      let broken = databases.filter { $0.error != nil }
      var outcome = Outcome(
        databases.isEmpty ? "No database is attached." : "\(counted(databases.count, "database")) attached.",
        .lines(
          (databases.isEmpty ? ["No database is attached."] : databases.flatMap(lines))
            + decisions.map { Line(.warning, $0.message) }),
        data: ["databases": .array(databases.map(json)), "decisions": .array(decisions.map(\.json))])
      if databases.isEmpty { outcome.next = ["latchkey attach DB"] }
      outcome.next += decisions.flatMap(\.commands)
      if !broken.isEmpty {
        outcome.exit = .setAside
        outcome.code = "unreadable"
      }
      return outcome
    })

  private static func lines(_ database: DatabaseStatus) -> [Line] {
    var lines: [Line] = [Line(.none, database.path)]
    if let error = database.error { lines.append(Line(.warning, error.message)) }
    guard let zone = database.zone else { return lines }
    lines.append(Line(.detail, "\(zone.name), household \(zone.household), \(zone.mode), epoch \(zone.epoch)"))
    lines.append(Line(.detail, "kept in \(zone.store)" + (zone.mirror.map { ", and in \($0)" } ?? "")))
    let acknowledged = zone.lastAcknowledged.map { Moment($0).shown } ?? "never"
    lines.append(Line(.detail, "\(zone.waiting) waiting, \(zone.parked) parked; last acknowledged \(acknowledged)"))
    if !zone.lastHeard.isEmpty {
      let heard = zone.lastHeard.map { "\($0.device) \(Moment($0.time).shown)" }.joined(separator: ", ")
      lines.append(Line(.detail, "last heard: \(heard)"))
    }
    let shown = zone.parkedRows.prefix(10)
    lines += Columns(shown.map { [$0.table, $0.record.description, $0.reason] }).lines.map { Line(.detail, "  " + $0) }
    if zone.parked > shown.count { lines.append(Line(.detail, "  and \(zone.parked - shown.count) more")) }
    return lines + Line.warnings(zone.warnings)
  }

  private static func json(_ database: DatabaseStatus) -> JSON {
    let status: JSON = ["path": .text(database.path), "zones": .array(database.zone.map { [json($0)] } ?? [])]
    guard let error = database.error else { return status }
    return status.adding([
      JSON.Member(
        name: "error",
        value: [
          "code": .text(error.code), "message": .text(error.message), "next": .array(error.next.map(JSON.text)),
        ])
    ])
  }

  private static func json(_ zone: DatabaseStatus.Zone) -> JSON {
    [
      "name": .text(zone.name), "household": .text(zone.household), "mode": .text(zone.mode),
      "epoch": .text(zone.epoch),
      "last_acknowledged": zone.lastAcknowledged.map(JSON.moment) ?? .null, "last_heard": lastHeard(zone),
      "waiting": .count(zone.waiting), "parked": .count(zone.parked), "warnings": .warnings(zone.warnings),
      "store": .text(zone.store), "mirror": .text(zone.mirror),
      "parked_rows": .array(
        zone.parkedRows.map {
          ["table": .text($0.table), "record": .text($0.record.description), "reason": .text($0.reason)]
        }),
    ]
  }

  /// By device name; devices of one name share a member, with the newest time.
  private static func lastHeard(_ zone: DatabaseStatus.Zone) -> JSON {
    var times: [String: Int64] = [:]
    for (device, time) in zone.lastHeard { times[device] = max(time, times[device] ?? time) }
    return .object(times.sorted { $0.key < $1.key }.map { JSON.Member(name: $0.key, value: .moment($0.value)) })
  }
}
