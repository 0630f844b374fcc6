internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeySQLite
public import LatchkeyTables

/// A file with rows of its own comes into a zone with rows: those that are the same become one.
extension Home {
  /// Attaches the file to the zone and compares its rows with the zone's, once these have arrived. What is not done now is done by the
  /// next sync.
  func bring(
    _ path: String, membership: Membership, access: StoreAccess, zone: ZoneID, name: String
  ) async throws -> (rows: Int, warnings: [Warning]) {
    let expected = try Replica.survey(path: path)
    guard !expected.syncing.isEmpty else {
      throw TablesError.noTableCanSync(expected.tables.map { "\($0.name): \($0.reason)" })
    }
    try checkCanWrite(path)
    try Replica.attach(path: path, zone: try newBinding(membership, zone, name), pairing: world.now())
    try remember(path)
    let replica = try Replica(path: path)
    var rows = 0
    var report = SyncReport()
    for _ in 0..<64 {
      let round = try await self.round(membership, access: access, replica: replica)
      rows += round.received
      report.note(round)
      if let closing = round.closed { throw try zoneEnded(closing, name) }
      if round.received == 0 { break }
    }
    return (rows, report.warnings + [try pairingWarning(replica, path)].compactMap(\.self))
  }

  /// What became of a file's own rows when it came into a zone with rows, told once; or that they still wait for that.
  func pairingWarning(_ replica: Replica, _ path: String) throws -> Warning? {
    if try replica.isPairing { return .pairingWaits }
    guard let bytes = try replica.value(DatabasePerformer.Key.paired) else { return nil }
    let report = try PairingReport(decoding: bytes)
    try replica.transaction { try replica.setValue(DatabasePerformer.Key.paired, nil) }
    var message =
      "\(report.paired) rows of the file are rows of the zone, \(report.added) were only in the file and \(report.received) only in the zone."
    if report.differing > 0 {
      message +=
        " In \(report.differing) of them something differed: the zone's values are shown, the file's are kept for thirty days (latchkey conflicts list \(path))."
    }
    return Warning(code: "paired", message: message)
  }

  // MARK: What gave way

  /// Values of this device that gave way to others, kept for thirty days, newest first.
  ///
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`.
  public nonisolated func conflicts(_ path: String) throws(LatchkeyError) -> [JournalEntry] {
    let path = absolute(path)
    do { return try Replica(path: path, mode: .readOnly).journal() } catch {
      throw LatchkeyError(error, database: path)
    }
  }

  /// Puts a value that gave way back, as an edit of now, which every device takes with the next sync.
  ///
  /// - Parameter entry: its number, as ``conflicts(_:)`` gives it.
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`, `busy`, `usage` (no such entry, or its row is not shown).
  public nonisolated func restoreConflict(_ path: String, entry: Int64) throws(LatchkeyError) {
    let path = absolute(path)
    do {
      let replica = try Replica(path: path)
      try replica.transaction { try replica.restore(journalEntry: entry) }
    } catch { throw LatchkeyError(error, database: path) }
  }
}

extension Warning {
  static let pairingWaits = Warning(
    code: "pairing-waits",
    message:
      "The file's own rows wait to be compared with the household's, which have not all arrived: nothing of them is sent or shown until then, for a day at most."
  )
}
