import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Crashes")
struct CrashTests {
  private struct Crash: Error {}
  private static let schema =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE c(id INTEGER PRIMARY KEY, t INTEGER REFERENCES t(id), x)"

  @Test("case 20b: a pass that fails half-way is undone whole, and the next gives out the same")
  func failedStamp() throws {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    try a.app("INSERT INTO t VALUES (1, 1), (2, 2)")
    a.now += 10_000
    try a.app("INSERT INTO c VALUES (1, 2, 'child')")
    let before = try a.database.serialized()
    for failing in 0..<2 {
      var count = 0
      #expect(throws: Crash.self) {
        try a.replica.transaction {
          _ = try a.replica.stamp(now: a.now) { _ in
            count += 1
            if count > failing { throw Crash() }
            return 1
          }
        }
      }
      #expect(try a.database.serialized() == before)
    }
    try settle(a, b)
    #expect(try b.rows("SELECT t.x, c.x FROM c JOIN t ON t.id = c.t") == ["2|child"])
  }

  @Test("an image of any commit goes on without loss or repetition")
  func images() throws {
    let a = try Device(1, Self.schema)
    var b = try Device(2, Self.schema)
    func crash(_ device: Device) throws -> Device {
      try Device(
        device.number, image: device.database.serialized(), log: device.log, applied: device.applied, at: device.now)
    }
    try a.app("INSERT INTO t VALUES (1, 1), (2, 2)")
    try b.app("INSERT INTO t VALUES (1, 'b')")
    b = try crash(b)
    try b.stamp()
    b = try crash(b)
    try a.stamp()
    try b.pull(a)
    try b.app("UPDATE t SET x = 'edited' WHERE x = 2; INSERT INTO c VALUES (1, 1, 'c')")
    b = try crash(b)
    try b.pull(a)
    try settle(a, b)
    let groups = b.log.count
    b = try crash(b)
    try settle(a, b)
    #expect(b.log.count == groups)
    #expect(try a.rows("SELECT x FROM t ORDER BY x") == ["1", "b", "edited"])
    #expect(try a.row("SELECT t.x, c.x FROM c JOIN t ON t.id = c.t") == "b|c")
  }

  @Test("case 52: the same group twice, and groups of one device out of order, change nothing more")
  func replay() throws {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    for i in 1...5 {
      a.now += 10_000
      try a.app(
        "INSERT OR REPLACE INTO t VALUES (1, \(i)); INSERT INTO c VALUES (\(i), 1, \(i)); DELETE FROM c WHERE id = \(i - 2)"
      )
      try a.stamp()
    }
    b.now = a.now
    try b.apply(a.log.reversed())
    let image = try shownRows(b)
    #expect(image == (try shownRows(a)))
    #expect(try b.apply(a.log).applied == 0)
    #expect(try b.apply([a.log[2], a.log[0], a.log[2]]).applied == 0)
    #expect(try shownRows(b) == image)
    #expect(b.log.isEmpty == false || b.replica.digest == a.replica.digest)
  }

  @Test("case 50: a group stamped too far ahead waits for its time and does not move the clock; then it is applied")
  func ahead() throws {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    try settle(a, b)
    a.now += 4_000_000_000
    try a.app("INSERT INTO t VALUES (1, 'from the future')")
    try a.stamp()
    #expect(try b.pull(a).held == 1)
    #expect(try b.rows("SELECT * FROM t").isEmpty)
    #expect(b.replica.lastClock.milliseconds <= b.now)
    #expect(try b.replica.heldGroups().count == 1)
    try b.app("INSERT INTO t VALUES (5, 'now')")
    try b.stamp()
    #expect(try b.apply([]).applied == 0)
    b.now = a.now - 500_000
    #expect(try b.apply([]).applied == 1)
    #expect(try b.replica.heldGroups().isEmpty)
    #expect(try b.rows("SELECT x FROM t ORDER BY x") == ["from the future", "now"])
  }

  @Test("a payload that cannot be read stops its device's log there and nobody else's")
  func unreadable() throws {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    let c = try Device(3, Self.schema)
    try a.app("INSERT INTO t VALUES (1, 'a')")
    try c.app("INSERT INTO t VALUES (1, 'c')")
    try a.stamp()
    try c.stamp()
    let good = try #require(a.log.last)
    let newer = IncomingGroup(
      zone: good.zone, origin: good.origin, hlc: good.hlc, tie: good.tie, sequence: 1,
      payloads: [[0x85, 2, 0x80, 0x80, 0x80, 0x80]])
    let noise = IncomingGroup(
      zone: good.zone, origin: good.origin, hlc: good.hlc, tie: good.tie, sequence: 1, payloads: [[1, 2, 3]])
    for bad in [newer, noise] {
      let report = try b.apply([bad, good] + c.log)
      #expect(report.refused.map(\.sequence) == [1])
    }
    #expect(try b.rows("SELECT x FROM t") == ["c"])
    try b.apply([good])
    #expect(try b.rows("SELECT x FROM t ORDER BY x") == ["a", "c"])
  }

  @Test("carried to an empty file, every record is the same with its own stamps")
  func carry() throws {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    try a.app("INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO c VALUES (1, 2, 'c'); ")
    try settle(a, b)
    try b.app("UPDATE t SET x = 'by b' WHERE x = 'a'; DELETE FROM c")
    try settle(a, b)
    var carried: [IncomingGroup] = []
    _ = try a.replica.transaction {
      try a.replica.carryAll(now: a.now, rowsPerGroup: 2) { group in
        carried.append(
          IncomingGroup(
            zone: Device.zone, origin: a.origin, hlc: group.hlc, tie: 5, sequence: UInt64(carried.count + 1),
            payloads: group.parts.map(\.bytes)))
        return 5
      }
    }
    #expect(carried.count > 1)
    let c = try Device(joining: 3)
    try c.apply(carried)
    #expect(c.replica.digest == a.replica.digest)
    #expect(try shownRows(c) == shownRows(a))
    let name = try #require(try a.replica.recordName(table: "t", key: [.integer(1)]))
    #expect(try c.replica.record(name) == a.replica.record(name))
    // Another digest key: made again on both.
    for device in [a, c] {
      var binding = device.replica.binding
      binding.digestKey = [UInt8](repeating: 1, count: 32)
      let before = device.replica.digest
      try device.replica.transaction { try device.replica.rebind(to: binding) }
      #expect(device.replica.digest != before)
      try checkBookkeeping(device)
    }
    #expect(c.replica.digest == a.replica.digest)
  }
}
