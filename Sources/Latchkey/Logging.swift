public import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
public import LatchkeyRecords
internal import LatchkeyTables

/// Something that somebody did to a row.
public struct LogEvent: Equatable, Sendable {
  public enum Kind: String, Equatable, Sendable { case inserted, changed, deleted }
  public struct Cell: Equatable, Sendable {
    /// The column's wire name.
    public let column: String
    /// What was written; nil where the value is not known any more.
    public let value: Value?
  }

  /// Milliseconds since 1970-01-01 UTC, by the author's clock.
  public let time: Int64
  public let kind: Kind
  /// The author's device id.
  public let device: String
  /// Names, or nil if no household here knows the device.
  public let by: String?
  public let deviceName: String?
  /// The table's wire name.
  public let table: String
  public let record: RecordName
  /// The key under which the row is, or was, shown here; nil if it never was.
  public let key: String?
  /// What was written, in the order of the columns' names. Of a deletion none.
  public let cells: [Cell]
  /// Whether the author's signed entry says so; else somebody else says it of them, or it is this file's own bookkeeping.
  public let isProven: Bool
}

/// Who changed what, when.
public struct LogReport: Equatable, Sendable {
  /// Newest first.
  public internal(set) var events: [LogEvent] = []
  /// Whether all logs that the store shows were read to their ends. Else only what this file knows is told: the newest writing of each
  /// value, and what it was before is not known.
  public internal(set) var isComplete = false
  /// Why the store's logs were not read to their ends; nil if they were.
  public internal(set) var gap: String?
}

/// What a log is asked for.
public struct LogQuery: Equatable, Sendable {
  /// A member's name or the beginning of their id; nil for everybody.
  public var member: String?
  public var table: String?
  /// A row's key, its parts with commas between them, or its record name; with a table only.
  public var row: String?
  /// Only what was done since, in milliseconds since 1970-01-01 UTC.
  public var since: Int64?

  public init(member: String? = nil, table: String? = nil, row: String? = nil, since: Int64? = nil) {
    self.member = member
    self.table = table
    self.row = row
    self.since = since
  }
}

extension Home {
  /// Who changed what in a database, when: from the signed logs in the store, and what this file has that is not there yet. Where the store
  /// cannot be reached, from the stamps in the file: then only the newest writing of each value is known.
  ///
  /// What was deleted by its author's device before it was sent is in no log; what moved into a household with the file is there as it was
  /// then, and what an author's clock says is not proven by anything.
  ///
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`, `usage` (no such member or row), `membership`.
  public func log(_ path: String, _ query: LogQuery = LogQuery()) async throws(LatchkeyError) -> LogReport {
    let path = absolute(path)
    return try await reporting(database: path) {
      let replica = try Replica(path: path, mode: .readOnly)
      let membership = try membership(of: replica.binding.household)
      let devices = try query.member.map { try self.devices(of: $0, membership) }
      var collector = LogCollector(
        devices: devices, since: query.since, table: query.table, record: try record(query, replica, path))
      var report = LogReport()
      do {
        let history = try await history(of: replica)
        try history.forEach { change, group in collector.take(change, group) }
        report.isComplete = history.isComplete
        if !history.isComplete { report.gap = "The store does not show all that was written." }
      } catch {
        let error = LatchkeyError(error, database: path)
        if error.kind == .cancelled { throw error }
        report.gap = error.message
      }
      try replica.forEachRecord { table, record, state in
        collector.take(RecordChange(table: table, record: record, state: state), nil)
      }
      let trash = Dictionary(
        try replica.trash().map { ($0.record, $0.key) }, uniquingKeysWith: { first, _ in first })
      let names = try deviceNames()
      report.events = try collector.events.map { event in
        let shown = try replica.shownKeyText(event.record)
        let name = names[event.author.description]
        return LogEvent(
          time: event.time, kind: event.kind, device: event.author.description, by: name?.person,
          deviceName: name?.device, table: event.table, record: event.record,
          key: shown ?? trash[event.record] ?? nil, cells: event.cells, isProven: event.isProven)
      }
      return report
    }
  }

  /// The record that a query is about; nil for all.
  private func record(_ query: LogQuery, _ replica: Replica, _ path: String) throws -> RecordName? {
    guard let row = query.row else { return nil }
    guard let table = query.table else {
      throw LatchkeyError(.usage, "missing-table", "A row's key is one of a table: say which, with --table.")
    }
    do { return try explain(path, table: table, key: row).record } catch {
      // Deleted rows have a key, too.
      if let deleted = try replica.trash().first(where: { $0.table == table && $0.key == row }) {
        return deleted.record
      }
      throw error
    }
  }

  /// The devices of a member, also of one who is not in the household any more.
  func devices(of member: String, _ membership: Membership) throws -> Set<DeviceID> {
    let roster = try state(of: membership.id).roster
    var found: [PersonID: Set<DeviceID>] = [:]
    var names: Set<String> = []
    for device in roster.state.devices.map(\.id) + roster.state.limited.map(\.device) {
      guard let person = roster.person(ofAny: device) else { continue }
      let name = roster.names(ofAny: device)?.person
      if let name { names.insert(name) }
      if name == member || member.count >= 6 && person.description.hasPrefix(member) {
        found[person, default: []].insert(device)
      }
    }
    guard let devices = found.values.first, found.count == 1 else {
      throw LatchkeyError(
        .usage, found.isEmpty ? "no-such-member" : "ambiguous-member",
        found.isEmpty
          ? "The household \(membership.name) has and had no member \(member): \(names.sorted().joined(separator: ", "))."
          : "Several members are called \(member): give the beginning of the id.",
        next: ["latchkey members list"])
    }
    return devices
  }
}

/// Takes the events that a query asks for out of registers, each writing once.
private struct LogCollector {
  struct Event {
    let time: Int64
    let hlc: HLC
    let kind: LogEvent.Kind
    let author: DeviceID
    let table: String
    let record: RecordName
    let cells: [LogEvent.Cell]
    let isProven: Bool
  }

  private struct Place: Hashable {
    let record: RecordName
    let register: Register
    let stamp: Stamp
  }

  let devices: Set<DeviceID>?
  let since: Int64?
  let table: String?
  let record: RecordName?
  private var found: [Event] = []
  private var seen: Set<Place> = []

  init(devices: Set<DeviceID>?, since: Int64?, table: String?, record: RecordName?) {
    (self.devices, self.since, self.table, self.record) = (devices, since, table, record)
  }

  /// - Parameter group: the group that says so; nil for what this file has.
  mutating func take(_ change: RecordChange, _ group: LogGroup?) {
    if let table, table != change.table { return }
    if let record, record != change.record { return }
    var byStamp: [Stamp: [RegisterEntry]] = [:]
    for entry in change.state.registers where isWanted(entry.stamp) {
      guard seen.insert(Place(record: change.record, register: entry.register, stamp: entry.stamp)).inserted else {
        continue
      }
      byStamp[entry.stamp, default: []].append(entry)
    }
    for (stamp, entries) in byStamp {
      var kind = LogEvent.Kind.changed
      if entries.contains(where: { $0.register == .tombstone }) { kind = .deleted }
      if entries.contains(where: { $0.register == .born }) { kind = .inserted }
      let cells: [LogEvent.Cell] = entries.compactMap { entry in
        guard case .cell(let column) = entry.register, case .cell(let value) = entry.value else { return nil }
        return LogEvent.Cell(column: column, value: value.isMissing ? nil : value)
      }
      if kind == .changed, cells.isEmpty { continue }
      let isProven = group.map { $0.origin == stamp.origin && $0.hlc == stamp.hlc.rawValue } ?? false
      found.append(
        Event(
          time: stamp.hlc.milliseconds, hlc: stamp.hlc, kind: kind, author: stamp.origin.device, table: change.table,
          record: change.record, cells: cells, isProven: isProven))
    }
  }

  /// What nobody wrote, a new column's default, is no event.
  private func isWanted(_ stamp: Stamp) -> Bool {
    if stamp.isFilledIn { return false }
    if let devices, !devices.contains(stamp.origin.device) { return false }
    return since.map { stamp.hlc.milliseconds >= $0 } ?? true
  }

  /// Newest first.
  var events: [Event] {
    found.sorted { a, b in
      a.hlc != b.hlc
        ? a.hlc > b.hlc : a.author != b.author ? a.author > b.author : (a.table, a.record) < (b.table, b.record)
    }
  }
}
