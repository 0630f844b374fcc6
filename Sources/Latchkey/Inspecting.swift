public import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
public import LatchkeyRecords
internal import LatchkeySQLite
internal import LatchkeyStorage
public import LatchkeyTables

extension Home {
  // MARK: Databases

  /// How attached databases stand; all of them if `path` is nil. Reads local state only.
  public func status(_ path: String? = nil) throws(LatchkeyError) -> [DatabaseStatus] {
    do {
      _ = try contents()
      if let path { return [DatabaseStatus(path: absolute(path), zone: try zoneStatus(absolute(path)), error: nil)] }
      return try databases().map { path in
        do { return DatabaseStatus(path: path, zone: try zoneStatus(path), error: nil) } catch {
          return DatabaseStatus(path: path, zone: nil, error: LatchkeyError(error, database: path))
        }
      }
    } catch { throw LatchkeyError(error, database: path) }
  }

  private func zoneStatus(_ path: String) throws -> DatabaseStatus.Zone {
    let replica = try Replica(path: path, mode: .readOnly)
    let membership = try membership(of: replica.binding.household)
    let state = try state(of: membership.id)
    let roster = state.roster.state
    let counts = try replica.counts()
    let belief =
      try replica.value(DatabasePerformer.Key.belief(replica.binding.zone)).map { try Belief(decoding: $0) } ?? Belief()
    var heard: [DeviceID: UInt64] = [:]
    for (origin, author) in belief.authors { heard[origin.device] = max(heard[origin.device] ?? 0, author.hlc) }
    var acknowledged: Int64?
    if let bytes = try replica.value(DatabasePerformer.Key.acknowledged) {
      var r = CBORReader(bytes)
      acknowledged = try r.int()
    }
    return DatabaseStatus.Zone(
      name: replica.binding.zoneName, household: membership.name, mode: try mode(membership),
      epoch: state.epoch.short, lastAcknowledged: acknowledged,
      lastHeard: heard.sorted { $0.key < $1.key }.map {
        (roster.device($0.key)?.name ?? $0.key.short, Int64($0.value >> 16))
      },
      waiting: counts.reduce(0) { $0 + $1.waiting }, parked: counts.reduce(0) { $0 + $1.parked },
      parkedRows: Array(try replica.parkedRows().prefix(DatabaseStatus.Zone.listedParkedRows)),
      warnings: try standingWarnings(replica, membership, roster), store: membership.locator,
      mirror: try contents()[membership.id]?.mirror)
  }

  private func standingWarnings(_ replica: Replica, _ membership: Membership, _ roster: RosterState) throws -> [Warning]
  {
    var warnings: [Warning] = []
    do { try checkStore(try state(of: membership.id)) } catch let error as LatchkeyError {
      warnings.append(Warning(code: error.code, message: error.message))
    }
    if let moving = try contents()[membership.id]?.moving {
      warnings.append(Warning(moving, household: membership))
    }
    if try state(of: membership.id).isRemoved {
      warnings.append(Warning(code: "removed", message: try removal(membership).message))
    } else if roster.device(try contents().device.id) == nil {
      warnings.append(
        Warning(
          code: "provisional",
          message:
            "Nobody has admitted this device yet: what it writes counts once one of the household's devices has synced."
        ))
    }
    if try isReader(membership) {
      if try hasWritten(replica) { warnings.append(.readerWrites) }
    } else if try replica.value(DatabasePerformer.Key.keptHere) != nil {
      warnings.append(.wroteAsReader)
    }
    if try replica.isPairing { warnings.append(.pairingWaits) }
    warnings += try duplicateWarnings(replica, membership)
    if try Sharing.load(replica) != nil {
      warnings.append(
        Warning(code: "sharing-unfinished", message: "Sharing is not finished: the next sync goes on with it."))
    }
    if let closing = roster.zone(replica.binding.zone)?.closing {
      warnings.append(Warning(code: "zone-closed", message: try zoneEnded(closing, replica.binding.zoneName).message))
    }
    return warnings + (try standingWarnings(of: membership))
  }

  /// What stays to be known of a household until somebody does something about it.
  func standingWarnings(of membership: Membership) throws -> [Warning] {
    let state = try state(of: membership.id)
    let roster = state.roster.state
    var warnings = roster.alarms.map { Warning($0) }
    if let person = roster.device(state.log.origin.device)?.person, !roster.leaving.contains(state.log.origin.device),
      state.roster.entries.contains(where: {
        $0.operation == .leave && state.roster.person(ofAny: $0.origin.device) == person
      })
    {
      warnings.append(
        Warning(
          code: "leave-lapsed",
          message:
            "You wanted to leave \(membership.name), and so did every other owner at the same time: somebody has to stay, so all of you are still in. Whoever stays removes the others: latchkey members remove NAME."
        ))
    }
    return warnings
  }

  func isReader(_ membership: Membership) throws -> Bool {
    try state(of: membership.id).roster.role(of: contents().device.id) == .reader
  }

  private func hasWritten(_ replica: Replica) throws -> Bool {
    if try replica.hasUnstampedChanges() { return true }
    let log = try replica.value(DatabasePerformer.Key.log(replica.binding.zone)).map { try OwnLog(decoding: $0) }
    return (log?.lastSequence ?? 0) > 0
  }

  /// `personal`, `owner` or `participant`.
  private func mode(_ membership: Membership) throws -> String {
    if membership.isPrivate { return "personal" }
    return try state(of: membership.id).roster.role(of: contents().device.id) == .owner ? "owner" : "participant"
  }

  /// Counts per table, with digests that are equal on two devices iff they hold the same records.
  public func counts(_ path: String) throws(LatchkeyError) -> CountsReport {
    let path = absolute(path)
    do {
      let replica = try Replica(path: path, mode: .readOnly)
      let membership = try membership(of: replica.binding.household)
      return CountsReport(
        zone: replica.binding.zoneName, household: membership.name, mode: try mode(membership),
        digest: replica.digest.description, tables: try replica.counts())
    } catch { throw LatchkeyError(error, database: path) }
  }

  /// What is known of one row: each field's value, author and time, and why it waits if it does.
  ///
  /// - Parameter key: the row's key as text; the parts of a composite key joined by `,`; or a record's name.
  public func explain(_ path: String, table: String, key: String) throws(LatchkeyError) -> Explanation {
    let path = absolute(path)
    do {
      let replica = try Replica(path: path, mode: .readOnly)
      if let record = Self.recordName(key), let found = try replica.explain(record), found.table == table {
        return found
      }
      for candidate in Self.keys(from: key) {
        if let found = try replica.explain(table: table, key: candidate) { return found }
      }
      throw LatchkeyError(
        .usage, "no-such-row",
        "The table \(table) has no row with the key \(key) that Latchkey knows. A new row is known after the next sync.",
        next: ["latchkey sync \(path)"])
    } catch { throw LatchkeyError(error, database: path) }
  }

  /// A record's name as it is shown: what a row that the table does not show is called by.
  private static func recordName(_ text: String) -> RecordName? {
    guard text.utf8.count == 2 * RecordName.byteCount else { return nil }
    var bytes: [UInt8] = []
    var rest = text[...]
    while !rest.isEmpty {
      guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
      bytes.append(byte)
      rest = rest.dropFirst(2)
    }
    return RecordName(bytes)
  }

  /// What a key written as text may mean: an integer first, where it looks like one.
  private static func keys(from text: String) -> [[SQLiteValue]] {
    func values(_ parts: [String]) -> [[SQLiteValue]] {
      parts.reduce([[]]) { keys, part in
        let meanings = Int64(part).map { [SQLiteValue.integer($0), SQLiteValue(part)] } ?? [SQLiteValue(part)]
        return keys.flatMap { key in meanings.map { key + [$0] } }
      }
    }
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    return values([text]) + (parts.count > 1 && parts.count <= 4 ? values(parts) : [])
  }

  /// Who a device is, for showing authors: its name and its person's; nil if no household of this device knows it.
  public func deviceNames() throws(LatchkeyError) -> [String: (device: String, person: String)] {
    do {
      var names: [String: (device: String, person: String)] = [:]
      for membership in try memberships() {
        let roster = try state(of: membership.id).roster
        for device in roster.state.devices.map(\.id) + roster.state.limited.map(\.device) {
          if let known = roster.names(ofAny: device) { names[device.description] = known }
        }
      }
      return names
    } catch { throw LatchkeyError(error) }
  }

  /// All live records in the order of table and record name, values as they travel: references by record name.
  public nonisolated func export(
    _ path: String,
    _ body: (_ table: String, _ record: RecordName, _ cells: [(column: String, value: Value)]) throws -> Void
  ) throws(LatchkeyError) {
    let path = absolute(path)
    do { try Replica(path: path, mode: .readOnly).export(body) } catch { throw LatchkeyError(error, database: path) }
  }

  // MARK: People and keys

  /// Who is in a household: oneself first, the others by name.
  public func members(household name: String? = nil) throws(LatchkeyError) -> MembersReport {
    do {
      let membership = try membership(named: name)
      let roster = try state(of: membership.id).roster.state
      let contents = try contents()
      let me = roster.device(contents.device.id)?.person ?? contents.person
      return MembersReport(
        household: membership.name,
        members: roster.people.map { person in
          MembersReport.Member(
            name: person.name, id: person.id.description, role: person.role.name, status: "active",
            you: person.id == me,
            devices: roster.devices.filter { $0.person == person.id }.map {
              MembersReport.Device(name: $0.name, id: $0.id.description, isThis: $0.id == contents.device.id)
            }.sorted { ($1.isThis ? 1 : 0, $0.name, $0.id) < ($0.isThis ? 1 : 0, $1.name, $1.id) })
        }.sorted { ($1.you ? 1 : 0, $0.name, $0.id) < ($0.you ? 1 : 0, $1.name, $1.id) })
    } catch { throw LatchkeyError(error) }
  }

  /// Public facts about this device's keys.
  public func keys() throws(LatchkeyError) -> KeyReport {
    do {
      let contents = try contents()
      return KeyReport(
        person: contents.person.description, device: contents.device.id.description,
        households: try memberships().map { membership in
          let state = try state(of: membership.id)
          let digits = hex(Roster.checkpoint(state.roster.heads).bytes.prefix(20))
          let groups = stride(from: 0, to: 40, by: 4).map { String(digits.dropFirst($0).prefix(4)) }
          return KeyReport.Household(
            name: membership.name, id: membership.id.description, epoch: state.epoch.short,
            fingerprint: groups)
        })
    } catch { throw LatchkeyError(error) }
  }
}
