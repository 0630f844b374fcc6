internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyRecords
internal import LatchkeySQLite
internal import LatchkeyStorage
public import LatchkeyTables

extension Home {
  // MARK: Attach and detach

  /// Looks at a database and says what would become of each table. Reads only: not one byte of the file changes.
  ///
  /// - Parameters:
  ///   - tables: only these; nil for all that can sync.
  public nonisolated func survey(
    _ path: String, rules: Rules = .none, tables: [String]? = nil
  ) throws(LatchkeyError) -> Survey {
    do { return try Replica.survey(path: absolute(path), rules: rules, tables: tables) } catch {
      throw LatchkeyError(error, database: path)
    }
  }

  /// Attaches a database: capture triggers and Latchkey's tables are added to the file, nothing else in it changes. Works
  /// offline; the rows are pushed by the next ``sync(_:untilSettled:progress:)``.
  ///
  /// If there is no file, and a household of the person has an open zone of that name, the file is made from it: a second
  /// device's way to the same database. A file that there is comes into the zone of that name, should there be one with rows: its rows and
  /// the zone's that are the same become one with the next sync, and both keep what only they have.
  ///
  /// - Parameters:
  ///   - zone: the zone's name; the file's name without its extension if nil.
  ///   - tables: only these; nil for all that can sync.
  /// - Returns: the verdict on each table.
  /// - Throws: ``LatchkeyError``: `database`, `notAttached` (no identity yet), `busy`, `decision`, `usage`.
  @discardableResult
  public func attach(
    _ path: String, zone: String? = nil, rules: Rules = .none, tables: [String]? = nil, template: String? = nil
  ) async throws(LatchkeyError) -> Survey {
    let path = absolute(path)
    return try await reporting(database: path) {
      let name = zone ?? defaultZoneName(path)
      try checkName(name, "zone name")
      if !fileExists(path) {
        guard let (membership, zone) = try openZone(named: name) else { throw TablesError.missingFile(path: path) }
        let access = try await openStore(of: membership)
        _ = try await fill(path, membership: membership, access: access, zone: zone, name: name, template: template)
        return try Replica.survey(path: path, rules: rules, tables: tables)
      }
      let membership = try privateMembership()
      if let bound = try binding(path) {
        guard bound.household == membership.id, zone == nil || zone == bound.zoneName else {
          throw TablesError.alreadyAttachedElsewhere
        }
        let survey = try Replica.attach(path: path, rules: rules, tables: tables, zone: bound)
        try remember(path)
        return survey
      }
      let open = try state(of: membership.id).roster.state.zones.first { $0.name == name && $0.closing == nil }?.id
      // Everything that can be wrong with the file is found before anything is written anywhere.
      let expected = try Replica.survey(path: path, rules: rules, tables: tables)
      guard !expected.syncing.isEmpty else {
        throw TablesError.noTableCanSync(expected.tables.map { "\($0.name): \($0.reason)" })
      }
      try checkCanWrite(path)
      var pairing: Int64?
      if let open, try await isUsed(open, membership) {
        guard rules == .none else {
          throw LatchkeyError(
            .usage, "zone-has-rules",
            "There is a zone \(name) with rows already, and a file that comes into it follows its rules. Nothing was changed.",
            next: ["latchkey attach \(path)", "latchkey rules set \(path) FILE   (afterwards, for everybody)"])
        }
        pairing = world.now()
      }
      let id: ZoneID
      if let open {
        id = open
      } else {
        id = newZone()
        try write([.zone(id, name: name)], into: membership)
      }
      let survey = try Replica.attach(
        path: path, rules: rules, tables: tables, zone: try newBinding(membership, id, name), pairing: pairing)
      try remember(path)
      return survey
    }
  }

  /// Takes Latchkey's tables and triggers out of the file. Rows stay, the schema is as before, the store and other devices
  /// are not touched.
  public func detach(_ path: String) throws(LatchkeyError) {
    let path = absolute(path)
    do {
      try Replica.detach(path: path)
      try forget(path)
    } catch { throw LatchkeyError(error, database: path) }
  }

  /// Throws what writing to the file would meet now: another program's lock, a read-only file.
  func checkCanWrite(_ path: String) throws {
    let connection = try Connection(path, mode: .readWrite)
    try connection.run("BEGIN IMMEDIATE")
    try connection.run("ROLLBACK")
  }

  func newZone() -> ZoneID {
    var random = world.random()
    return ZoneID(random.bytes(16)) ?? ZoneID(raw: Bytes16(high: 0, low: 1))
  }

  func newBinding(_ membership: Membership, _ zone: ZoneID, _ name: String) throws -> ZoneBinding {
    var random = world.random()
    return ZoneBinding(
      household: membership.id, zone: zone, zoneName: name,
      origin: Origin(device: try contents().device.id, incarnation: newIncarnation(&random)),
      digestKey: try digestKey(membership, zone))
  }

  /// Made from the first epoch's key, so it does not change with epochs (format §9).
  func digestKey(_ membership: Membership, _ zone: ZoneID) throws -> [UInt8] {
    guard let first = try state(of: membership.id).keys(of: membership.id) else {
      throw EngineError.noKey(membership.id)
    }
    return first.digestKey(zone: zone)
  }

  private func defaultZoneName(_ path: String) -> String {
    let file = lastComponent(path)
    guard let dot = file.lastIndex(of: "."), dot != file.startIndex else { return file }
    return String(file[..<dot])
  }

  /// The open zone of that name that this device can reach: the private household's before any other's.
  private func openZone(named name: String) throws -> (Membership, ZoneID)? {
    var found: [(Membership, ZoneID)] = []
    for membership in try memberships() {
      for zone in try state(of: membership.id).roster.state.zones where zone.name == name && zone.closing == nil {
        found.append((membership, zone.id))
      }
    }
    if let own = found.first(where: { $0.0.isPrivate }) { return own }
    if found.count > 1 {
      throw LatchkeyError(
        .usage, "which-zone",
        "Several households have a zone \(name): \(found.map(\.0.name).joined(separator: ", ")).",
        next: ["latchkey join --db FILE, with an invite to the one that is meant"])
    }
    return found.first
  }

  func binding(_ path: String) throws -> ZoneBinding? { try Replica.binding(path: path) }

  /// Whether anybody has written into a zone, by the store's listing.
  func isUsed(_ zone: ZoneID, _ membership: Membership) async throws -> Bool {
    let access = try await openStore(of: membership)
    for keys in try state(of: membership.id).epochs.reversed()
    where try await !access.list(keys.prefix(zone) + "/h/").isEmpty { return true }
    return false
  }

  /// Makes a new file and fills it from a zone, beside its final place first: whoever sees the file sees it whole.
  func fill(
    _ path: String, membership: Membership, access: StoreAccess, zone: ZoneID, name: String, template: String?
  ) async throws -> (rows: Int, warnings: [Warning]) {
    guard !fileExists(path) else { throw TablesError.fileExists(path: path) }
    let temporary = path + ".latchkey-joining"
    for suffix in ["", "-wal", "-shm", "-journal"] { removeFile(temporary + suffix) }
    let binding = try newBinding(membership, zone, name)
    if let template {
      try Replica.adoptTemplate(absolute(template), to: temporary, zone: binding)
    } else {
      try Replica.createEmpty(path: temporary, zone: binding, createsTables: true)
    }
    do {
      var rows = 0
      var report = SyncReport()
      do {
        let replica = try Replica(path: temporary)
        for _ in 0..<64 {
          let round = try await self.round(membership, access: access, replica: replica)
          rows += round.received
          report.note(round)
          if round.isRemoved { throw try removal(membership) }
          if let closing = round.closed { throw try zoneEnded(closing, name) }
          if round.received == 0 { break }
        }
        try replica.transaction { try replica.endImport() }
      }
      let code = publishFile(temporary, as: path)
      if code != 0 { throw LatchkeyError(.busy, "cannot-write", "\(path) could not be made (error \(code)).") }
      try remember(path)
      return (rows, report.warnings)
    } catch {
      for suffix in ["", "-wal", "-shm", "-journal"] { removeFile(temporary + suffix) }
      throw error
    }
  }

  // MARK: Sync

  /// One round: pull, apply, push. Safe to call at any time, to interrupt at any point, and from several processes.
  ///
  /// - Parameters:
  ///   - path: an attached database; nil for all of them.
  ///   - untilSettled: repeat until nothing more comes or goes.
  ///   - allowedDeletions: deletions that wait for a person go if they are at most so many in a file; nil lets none go.
  ///   - progress: called between rounds.
  /// - Throws: ``LatchkeyError`` of any kind. What was received before is kept.
  public func sync(
    _ path: String? = nil, untilSettled: Bool = false, allowedDeletions: Int? = nil,
    progress: (@Sendable (SyncReport) -> Void)? = nil
  ) async throws(LatchkeyError) -> SyncReport {
    try await reporting(database: path) {
      _ = try contents()
      var report = SyncReport()
      var synced: Set<HouseholdID> = []
      var failure: LatchkeyError?
      for path in try path.map({ [absolute($0)] }) ?? databases() {
        do {
          synced.formUnion(
            try await sync(
              database: path, untilSettled: untilSettled, allowedDeletions: allowedDeletions, into: &report,
              progress: progress))
        } catch {
          // A file that is missing or in use keeps no other from being synchronised.
          let error = LatchkeyError(error, database: path)
          if error.kind == .cancelled { throw error }
          failure = failure ?? error
        }
      }
      if path == nil {
        // Those without a file here; the private one first, which may bring others.
        while let next = try memberships().filter({ !synced.contains($0.id) }).min(by: { $0.isPrivate && !$1.isPrivate }
        ) {
          synced.insert(next.id)
          let access = try await openStore(of: next)
          let round = try await round(next, access: access)
          report.note(round)
          if round.isRemoved {
            if try await finishLeaving(next) { continue }
            failure = try failure ?? removal(next)
            continue
          }
          try await dropRevoked(from: next, access: access)
          if next.isPrivate { try await alignOwnDevices(next, access: access) }
          try await keepMirror(next, access, into: &report)
          report.add(access.counts.snapshot)
        }
      }
      if let failure { throw failure }
      return report
    }
  }

  private func sync(
    database path: String, untilSettled: Bool, allowedDeletions: Int?, into report: inout SyncReport,
    progress: (@Sendable (SyncReport) -> Void)?
  ) async throws -> Set<HouseholdID> {
    let replica = try Replica(path: path)
    var membership = try self.membership(of: replica.binding.household)
    try remember(path)
    let (turn, obstacle) = try turnForRows(path, replica)
    defer { withExtendedLifetime(turn) {} }
    if let obstacle {
      let access = try await openStore(of: membership)
      defer { report.add(access.counts.snapshot) }
      report.note(try await self.round(membership, access: access))
      report.warnings.append(obstacle)
      report.waiting += try replica.counts().reduce(0) { $0 + $1.waiting }
      return [membership.id]
    }
    var seen: Set<HouseholdID> = [membership.id]
    var access = try await openStore(of: membership)
    defer { report.add(access.counts.snapshot) }
    try takeOver(replica, membership, into: &report)
    try await resumeSharing(replica, membership, access, into: &report)
    let noted = try replica.lastJournalEntry()
    for _ in 0..<(untilSettled ? 50 : 1) {
      let round = try await self.round(membership, access: access, replica: replica)
      report.note(round)
      if round.isRemoved {
        if try await finishLeaving(membership) { return seen }
        throw try removal(membership)
      }
      if let closing = round.closed {
        guard let successor = try await follow(closing, replica: replica) else {
          throw try zoneEnded(closing, replica.binding.zoneName)
        }
        report.add(access.counts.snapshot)
        membership = successor
        seen.insert(membership.id)
        access = try await openStore(of: membership)
        report.note(try await self.round(membership, access: access, replica: replica))
      }
      try await dropRevoked(from: membership, access: access)
      if membership.isPrivate { try await alignOwnDevices(membership, access: access) }
      progress?(report)
      if round.received == 0, round.sent == 0, round.admitted.isEmpty, round.closed == nil { break }
    }
    if let allowedDeletions { try allowDeletions(atMost: allowedDeletions, replica, membership) }
    report.conflicts += try replica.conflicts(since: noted)
    let asked = try rowDecisions(path)
    report.decisions += asked
    report.heldDeletions += try replica.heldDeletions().reduce(0) { $0 + $1.rows }
    try await keepMirror(membership, access, into: &report)
    if report.sent > 0, try isReader(membership), !report.warnings.contains(.readerWrites) {
      report.warnings.append(.readerWrites)
    }
    for warning in try standingWarnings(of: membership) where !report.warnings.contains(warning) {
      report.warnings.append(warning)
    }
    if let twin = try twinWarning(replica.binding, membership) { report.warnings.append(twin) }
    if let pairing = try pairingWarning(replica, path) { report.warnings.append(pairing) }
    report.warnings += try clockWarnings(replica, membership).filter { !report.warnings.contains($0) }
    report.warnings += try duplicateWarnings(replica, membership).filter { !report.warnings.contains($0) }
    let counts = try replica.counts()
    report.waiting += counts.reduce(0) { $0 + $1.waiting }
    report.parked += counts.reduce(0) { $0 + $1.parked }
    return seen
  }

  /// Two devices that attach files under one zone name before they have met make two zones; whoever's zone a newcomer would not be
  /// given is told how to come into the other one.
  private func twinWarning(_ binding: ZoneBinding, _ membership: Membership) throws -> Warning? {
    let open = try state(of: membership.id).roster.state.zones.filter {
      $0.name == binding.zoneName && $0.closing == nil
    }
    guard let first = open.first, open.count > 1, first.id != binding.zone else { return nil }
    return Warning(
      code: "zone-twice",
      message:
        "Another device made a zone \(binding.zoneName) before it knew of this one: the rows of the two do not meet. To go on with the other one: latchkey detach this file, then latchkey attach it with --zone \(binding.zoneName); rows that are the same become one."
    )
  }

  /// Tables of which an app makes rows anew that are there already.
  func duplicateWarnings(_ replica: Replica, _ membership: Membership) throws -> [Warning] {
    let repeated = try replica.repeatedlyMade()
    if repeated.isEmpty { return [] }
    let roster = try state(of: membership.id).roster.state
    return repeated.map { table, maker in
      Warning(
        code: "made-repeatedly",
        message:
          "On \(roster.device(maker)?.name ?? maker.short) rows of \(table) are made again and again that are there already: two became one with what was there, and what "
          + "came after that is shown beside it. An app that makes its first rows anew at each start does this.")
    }
  }

  /// Devices whose entries wait for a time that this device's clock has not reached.
  private func clockWarnings(_ replica: Replica, _ membership: Membership) throws -> [Warning] {
    var due: [DeviceID: Int64] = [:]
    for group in try replica.heldGroups() {
      due[group.origin.device] = max(due[group.origin.device] ?? 0, group.due)
    }
    guard !due.isEmpty else { return [] }
    let roster = try state(of: membership.id).roster.state
    return due.sorted { $0.key < $1.key }.map { device, time in
      Warning(
        code: "clock-ahead",
        message:
          "The clock of \(roster.device(device)?.name ?? device.short) was at least \((time - world.now()) / 60_000) minutes ahead of this device's: "
          + "what it wrote then waits for that time, and everything else goes on.")
    }
  }

  /// A file that another device attached was copied here: this device goes on with it under an origin of its own, and publishes
  /// what only the copy may hold. Nothing is ever signed under the other device's name.
  private func takeOver(_ replica: Replica, _ membership: Membership, into report: inout SyncReport) throws {
    let bound = replica.binding
    guard bound.origin.device != (try contents().device.id) else { return }
    var performer = try performer(replica, membership)
    try performer.publish(
      under: try newBinding(membership, bound.zone, bound.zoneName), household: try state(of: membership.id))
    report.warnings.append(
      Warning(
        code: "copied-file",
        message: "The file was attached by another device and copied here: it goes on as this device's own."))
  }

  /// A zone that ended takes its rows nowhere: they stay in the file.
  func zoneEnded(_ closing: CloseZone, _ name: String) throws -> LatchkeyError {
    switch closing.reason {
    case .moved:
      LatchkeyError(
        .membership, "zone-moved",
        "The zone \(name) moved into a household that this device is not in. The rows in the file stay.",
        next: ["ask for an invite, then: latchkey join --db FILE"])
    case .unshared:
      LatchkeyError(
        .membership, "zone-unshared", "The zone \(name) is not shared any more. The rows in the file stay.",
        next: ["latchkey detach FILE"])
    case .deleted:
      LatchkeyError(
        .membership, "zone-deleted", "The zone \(name) was deleted by its owner. The rows in the file stay.",
        next: ["latchkey detach FILE"])
    }
  }

  // MARK: The list of attached databases

  private var listPath: String { directory + "/databases" }

  /// Absolute paths of the databases that were attached or joined from this directory.
  public func databases() throws(LatchkeyError) -> [String] {
    do { return try readLines(listPath) } catch { throw LatchkeyError(error) }
  }

  func remember(_ path: String) throws {
    let known = try readLines(listPath)
    if !known.contains(path) { try replaceLines(listPath, known + [path]) }
  }

  func forget(_ path: String) throws {
    let known = try readLines(listPath)
    if known.contains(path) { try replaceLines(listPath, known.filter { $0 != path }) }
  }
}
