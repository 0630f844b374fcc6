import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

/// A seeded generator (SplitMix64), so that every run is the same.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}

/// A device with one attached database, its app's statements and its log, without a store between.
final class Device {
  static let zone = ZoneID(raw: Bytes16(high: 7, low: 7))
  static let household = HouseholdID([UInt8](repeating: 3, count: 32)) ?? .zero

  let number: UInt64
  let clock: VirtualClock
  let replica: Replica
  private var random: SeededGenerator
  /// Its log: everything it gave out.
  private(set) var log: [IncomingGroup] = []
  /// How far it has applied each device's log.
  var applied: [UInt64: Int] = [:]
  var lastStamp = StampReport()

  var origin: Origin { replica.binding.origin }
  var database: Connection { replica.database }

  static func binding(_ number: UInt64, digestKey: UInt8 = 9) -> ZoneBinding {
    ZoneBinding(
      household: household, zone: zone, zoneName: "home",
      origin: Origin(device: DeviceID(raw: Bytes16(high: number, low: 1)), incarnation: Incarnation(number)),
      digestKey: [UInt8](repeating: digestKey, count: 32))
  }

  static func connection(_ clock: VirtualClock, _ script: String) throws -> Connection {
    let connection = try Connection(":memory:", mode: .create, clock: clock)
    try connection.execute(script)
    return connection
  }

  init(
    _ number: UInt64, _ script: String, rules: Rules = .none, tables: [String]? = nil, at time: Int64 = 1_000_000,
    pairing: Int64? = nil
  ) throws {
    self.number = number
    clock = try #require(VirtualClock(milliseconds: time))
    let connection = try Device.connection(clock, script)
    try Replica.attach(connection, rules: rules, tables: tables, zone: Device.binding(number), pairing: pairing)
    replica = try Replica(connection: connection)
    random = SeededGenerator(number &* 7919)
    seedNames()
  }

  /// A device that joins with an empty file.
  init(joining number: UInt64, at time: Int64 = 1_000_000, createsTables: Bool = true) throws {
    self.number = number
    clock = try #require(VirtualClock(milliseconds: time))
    let connection = try Connection(":memory:", mode: .create, clock: clock)
    try Replica.createEmpty(connection, zone: Device.binding(number), createsTables: createsTables)
    replica = try Replica(connection: connection)
    random = SeededGenerator(number &* 7919)
    seedNames()
  }

  /// Goes on from the bytes of a file, as after a crash.
  init(_ number: UInt64, image: [UInt8], log: [IncomingGroup], applied: [UInt64: Int], at time: Int64) throws {
    self.number = number
    clock = try #require(VirtualClock(milliseconds: time))
    replica = try Replica(connection: Connection(serialized: image, clock: clock))
    random = SeededGenerator(number &* 104_729)
    self.log = log
    self.applied = applied
    seedNames()
  }

  private func seedNames() {
    replica.randomName = { [unowned self] in RecordName(raw: Bytes16(high: random.next(), low: random.next())) }
  }

  var now: Int64 {
    get { clock.milliseconds }
    set { clock.milliseconds = newValue }
  }

  /// Runs the app's statements, one millisecond later than before.
  func app(_ script: String) throws {
    now += 1
    try database.execute(script)
  }

  func seal(_ group: PendingGroup) -> UInt64 {
    let tie = groupTie(
      zone: Device.zone, origin: origin, hlc: group.hlc, payloadHashes: group.parts.map { payloadHash($0.bytes) })
    log.append(
      IncomingGroup(
        zone: Device.zone, origin: origin, hlc: group.hlc, tie: tie, sequence: UInt64(log.count + 1),
        payloads: group.parts.map(\.bytes)))
    return tie
  }

  @discardableResult
  func stamp(limit: Int = 20_000) throws -> StampReport {
    lastStamp = try replica.transaction { try replica.stamp(now: now, limit: limit) { seal($0) } }
    return lastStamp
  }

  /// Applies the next groups of another device's log.
  @discardableResult
  func pull(_ other: Device, groups: Int = .max) throws -> ApplyReport {
    let from = applied[other.number] ?? 0
    let to = min(other.log.count, from + min(groups, other.log.count))
    let report = try replica.transaction {
      try replica.apply(Array(other.log[from..<max(from, to)]), now: now) { seal($0) }
    }
    applied[other.number] = max(from, to)
    return report
  }

  @discardableResult
  func apply(_ groups: [IncomingGroup]) throws -> ApplyReport {
    try replica.transaction { try replica.apply(groups, now: now) { seal($0) } }
  }

  /// All rows of a query, each as text, for comparing.
  func rows(_ sql: String) throws -> [String] {
    try database.rows(sql).map { $0.map(show).joined(separator: "|") }
  }

  func row(_ sql: String) throws -> String { try rows(sql).joined(separator: ";") }
}

func show(_ value: SQLiteValue) -> String {
  switch value {
  case .null: "NULL"
  case .integer(let x): String(x)
  case .real(let x): "\(x)"
  case .text(let x): String(decoding: x, as: UTF8.self)
  case .blob(let x): "x" + hex(x)
  }
}

/// Stamps and exchanges until nobody has anything new, and checks that they agree.
func settle(_ devices: Device..., sourceLocation: SourceLocation = #_sourceLocation) throws {
  try settle(devices, sourceLocation: sourceLocation)
}

func settle(_ devices: [Device], sourceLocation: SourceLocation = #_sourceLocation) throws {
  for device in devices { try device.stamp() }
  for round in 0..<20 {
    var isQuiet = true
    for a in devices {
      for b in devices where a !== b {
        if (a.applied[b.number] ?? 0) < b.log.count {
          isQuiet = false
          try a.pull(b)
        }
      }
    }
    if isQuiet { break }
    #expect(round < 19, "they never settle", sourceLocation: sourceLocation)
  }
  for device in devices {
    #expect(device.replica.digest == devices[0].replica.digest, "digests differ", sourceLocation: sourceLocation)
    try checkBookkeeping(device, sourceLocation: sourceLocation)
  }
}

/// What must hold in every file at rest.
func checkBookkeeping(_ device: Device, sourceLocation: SourceLocation = #_sourceLocation) throws {
  let replica = device.replica
  #expect(try device.row("PRAGMA integrity_check") == "ok", sourceLocation: sourceLocation)
  #expect(try device.row("SELECT applying FROM lk_gate") == "0", sourceLocation: sourceLocation)
  for table in replica.tables {
    var live = 0
    var deleted = 0
    var digest = Hash32.zero
    try replica.forEachRow(table) { row in
      if row.state.isLive { live += 1 } else if row.state.newestTombstone != nil { deleted += 1 }
      let hash = recordHash(key: replica.binding.digestKey, name: row.name, table: table.wire, state: row.state) {
        FieldHash($0).value
      }
      #expect(
        hash == row.hash,
        "a stored record hash is stale: \(device.number) \(table.wire) \(row.name.short) key \(row.key as Any) \(row.state.cells) kept \(row.kept) targets \(row.targets)",
        sourceLocation: sourceLocation)
      if let hash { digest = digest &+ hash }
      #expect(
        (row.key != nil) == (row.state.isLive && row.parking == nil), "shown iff live and not parked",
        sourceLocation: sourceLocation)
    }
    let counts = try #require(try replica.counts().first { $0.name == table.wire })
    #expect(
      counts.live == live && counts.deleted == deleted && counts.digest == digest, "counts drift",
      sourceLocation: sourceLocation)
    guard table.shape != nil else { continue }
    #expect(
      try device.row("SELECT count(*) FROM lk_map\(table.id)") == "\(live - counts.parked - counts.merged)",
      sourceLocation: sourceLocation)
    #expect(
      try device.database.rows(table.lostRows).isEmpty, "mapped rows without a row", sourceLocation: sourceLocation)
    #expect(try device.row("SELECT count(*) FROM lk_log\(table.id)") == "0", sourceLocation: sourceLocation)
  }
}
