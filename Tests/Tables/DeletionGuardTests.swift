import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Very many deletions at once wait for a person")
struct DeletionGuardTests {
  static let schema = """
    CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE entry(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES account(id) ON DELETE CASCADE, cents INTEGER);
    CREATE TABLE tag(name TEXT PRIMARY KEY);
    """
  static func accounts(_ count: Int) -> String {
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count)) INSERT INTO account SELECT i, 'a' || i FROM n;"
  }

  /// As apps do that have foreign keys on.
  func delete(_ device: Device, _ condition: String) throws {
    try device.app("PRAGMA foreign_keys = ON; DELETE FROM account WHERE \(condition); PRAGMA foreign_keys = OFF;")
  }

  func pair(accounts: Int = 100) throws -> (Device, Device) {
    let a = try Device(1, Self.schema)
    let b = try Device(2, Self.schema)
    try a.app(
      Self.accounts(accounts)
        + "INSERT INTO entry VALUES (1, 1, 10), (2, 2, 20), (3, 99, 30); INSERT INTO tag VALUES ('x');")
    try settle(a, b)
    #expect(try b.row("SELECT count(*) FROM account") == "\(accounts)")
    return (a, b)
  }

  func decide(_ device: Device, _ author: Device, isAllowed: Bool) throws {
    device.now += 10
    _ = try device.replica.transaction {
      try device.replica.settleDeletions(by: author.origin.device, isAllowed: isAllowed, now: device.now) {
        device.seal($0)
      }
    }
  }

  @Test(
    "a day's deletions are too many from fifty rows and a fifth of the table on, and those of other days are not counted"
  )
  func threshold() {
    let day = MassDeletion.time
    let times = { (count: Int, start: Int64) in (0..<count).map { start + Int64($0) } }
    #expect(MassDeletion.marks(times(49, 0), of: 49).allSatisfy { !$0 })
    #expect(MassDeletion.marks(times(50, 0), of: 250).allSatisfy { $0 })
    #expect(MassDeletion.marks(times(50, 0), of: 251).allSatisfy { !$0 })
    let twoDays = times(30, 0) + times(30, day + 1_000)
    #expect(MassDeletion.marks(twoDays, of: 100).allSatisfy { !$0 })
    let mixed = times(10, 0) + times(50, 3 * day)
    #expect(
      MassDeletion.marks(mixed, of: 100) == [Bool](repeating: false, count: 10) + [Bool](repeating: true, count: 50))
  }

  @Test("sixty of a hundred rows deleted by another stay until a person allows it; other rows and tables go on")
  func allow() throws {
    let (a, b) = try pair()
    try a.app(
      "UPDATE account SET name = 'new' WHERE id = 61; DELETE FROM tag; INSERT INTO tag VALUES ('y');"
    )
    try delete(a, "id <= 60")
    try a.stamp()
    #expect(try a.row("SELECT count(*) FROM account") == "40", "nothing is held where a person did it")
    let report = try b.pull(a)
    // The two entries that went with their accounts wait with them.
    #expect(report.heldDeletions == 62)
    #expect(try b.row("SELECT count(*) FROM account") == "100")
    #expect(try b.row("SELECT count(*) FROM entry") == "3")
    #expect(try b.row("SELECT name FROM account WHERE id = 61") == "new")
    #expect(try b.row("SELECT group_concat(name) FROM tag") == "y")
    let held = try b.replica.heldDeletions()
    #expect(held.map(\.author) == [a.origin.device])
    #expect(held.first?.tables.map { "\($0.name) \($0.rows)" } == ["account 60", "entry 2"])
    #expect(try b.replica.guardedPositions().map(\.origin) == [a.origin])
    #expect(b.replica.digest != a.replica.digest)
    try checkBookkeeping(b)
    try decide(b, a, isAllowed: true)
    #expect(try b.row("SELECT count(*) FROM account") == "40")
    #expect(try b.row("SELECT count(*) FROM entry") == "1")
    #expect(try b.replica.heldDeletions().isEmpty && b.replica.guardedPositions().isEmpty)
    #expect(b.replica.digest == a.replica.digest)
    #expect(try b.replica.trash().count == 63)
    try checkBookkeeping(b)
  }

  @Test("a no inserts the rows again, for everybody, whoever had let them go")
  func restore() throws {
    let (a, b) = try pair()
    let c = try Device(3, Self.schema)
    try settle(a, b, c)
    try delete(a, "id <= 60")
    try a.stamp()
    try b.pull(a)
    try c.pull(a)
    try decide(c, a, isAllowed: true)
    #expect(try c.row("SELECT count(*) FROM account") == "40")
    try b.app("UPDATE account SET name = 'kept' WHERE id = 7;")
    try decide(b, a, isAllowed: false)
    #expect(try b.replica.heldDeletions().isEmpty)
    try settle(a, b, c)
    for device in [a, b, c] {
      #expect(try device.row("SELECT count(*) FROM account") == "100")
      #expect(try device.row("SELECT count(*) FROM entry") == "3")
      #expect(try device.row("SELECT count(*) FROM account WHERE name = 'kept'") == "1")
    }
    try expectSame(a, b, "after restoring")
    try expectSame(a, c, "after restoring")
  }

  @Test("what waits is the same after a restart, and later deletions of the same author wait, too")
  func restart() throws {
    let (a, b) = try pair()
    try delete(a, "id <= 50")
    try a.stamp()
    try b.pull(a)
    let again = try Device(2, image: try b.database.serialized(), log: b.log, applied: b.applied, at: b.now)
    #expect(try again.replica.heldDeletions() == b.replica.heldDeletions())
    a.now += 2 * MassDeletion.time
    again.now = a.now
    try delete(a, "id = 51")
    try a.stamp()
    #expect(try again.pull(a).heldDeletions == 1)
    #expect(try again.row("SELECT count(*) FROM account") == "100")
    #expect(try again.replica.heldDeletions().first?.rows == 53)
    try decide(again, a, isAllowed: true)
    #expect(try again.row("SELECT count(*) FROM account") == "49")
    #expect(again.replica.digest == a.replica.digest)
  }

  @Test("deletions that come in small batches are counted together, from the batch on that makes them too many")
  func trickle() throws {
    let (a, b) = try pair()
    try delete(a, "id BETWEEN 10 AND 49")
    try a.stamp()
    #expect(try b.pull(a).heldDeletions == 0)
    #expect(try b.row("SELECT count(*) FROM account") == "60")
    try delete(a, "id BETWEEN 50 AND 69")
    try a.stamp()
    #expect(try b.pull(a).heldDeletions == 20)
    #expect(try b.row("SELECT count(*) FROM account") == "60")
  }

  @Test("what the app here deletes itself, or inserts again elsewhere, needs no decision any more")
  func moot() throws {
    let (a, b) = try pair()
    let c = try Device(3, Self.schema)
    try settle(a, b, c)
    try delete(a, "id <= 60")
    try a.stamp()
    try b.pull(a)
    try c.pull(a)
    try delete(b, "id <= 59")
    try b.stamp()
    #expect(try b.replica.heldDeletions().first?.rows == 1)
    try checkBookkeeping(b)
    // Another device puts the last one back.
    try decide(c, a, isAllowed: true)
    try c.replica.transaction {
      let entry = try #require(try c.replica.trash().first { $0.key == "60" })
      _ = try c.replica.restoreTrash([entry.id], now: c.now) { c.seal($0) }
    }
    try b.pull(c)
    #expect(try b.replica.heldDeletions().isEmpty)
    #expect(try b.replica.guardedPositions().isEmpty)
    try settle(a, b, c)
    #expect(try b.row("SELECT count(*) FROM account") == "41")
    try expectSame(a, b, "after all")
  }

  @Test("a file that is being filled takes what others deleted before as history")
  func newcomer() throws {
    let (a, b) = try pair()
    try delete(b, "id <= 80")
    try b.stamp()
    let c = try Device(joining: 3)
    try c.pull(a)
    #expect(try c.pull(b).heldDeletions == 0)
    #expect(try c.row("SELECT count(*) FROM account") == "20")
    try c.replica.transaction { try c.replica.endImport() }
    try b.app(
      "INSERT INTO account SELECT id + 1000, name FROM account; INSERT INTO account SELECT id + 2000, name FROM account;"
    )
    try b.stamp()
    try c.pull(b)
    try b.app("DELETE FROM account;")
    try b.stamp()
    #expect(try c.pull(b).heldDeletions > 49)
  }

  @Test(
    "rows that went with their table are asked about: a yes deletes them for everybody, a no brings them back from what others have"
  )
  func lost() throws {
    for isDeleting in [true, false] {
      let (a, b) = try pair()
      try b.app(
        "CREATE TABLE new(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO new SELECT * FROM account WHERE id > 70; DROP TABLE account; ALTER TABLE new RENAME TO account;"
      )
      try b.stamp()
      #expect(try b.replica.lostRows().map { "\($0.table) \($0.rows)" } == ["account 70"])
      #expect(try a.pull(b).applied == 0)
      b.now += 10
      if isDeleting {
        _ = try b.replica.transaction { try b.replica.deleteLostRows(now: b.now) { b.seal($0) } }
        #expect(try a.pull(b).heldDeletions == 70)
        try decide(a, b, isAllowed: true)
        #expect(try a.row("SELECT count(*) FROM account") == "30")
      } else {
        let back = try b.replica.transaction {
          try b.replica.recoverLostRows(
            from: { _, record in (try? a.replica.record(record)) ?? .empty }, now: b.now
          ) { b.seal($0) }
        }
        #expect(back == 70)
        #expect(try b.row("SELECT count(*) FROM account") == "100")
        #expect(try b.row("SELECT count(*) FROM entry") == "3")
      }
      #expect(try b.replica.lostRows().isEmpty)
      try settle(a, b)
      try expectSame(a, b, "after deciding")
    }
  }

  @Test("whatever is decided, in whatever order things arrive, all devices come to the same rows", arguments: 1...12)
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let devices = try (1...3).map { try Device($0, Self.schema) }
    try devices[0].app(Self.accounts(120))
    try settle(devices)
    for _ in 0..<12 {
      let device = devices[Int.random(in: 0..<3, using: &random)]
      let first = Int.random(in: 1...120, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: try delete(device, "id BETWEEN \(first) AND \(first + 70)")
      case 1: try device.app("UPDATE account SET name = 'n\(first)' WHERE id BETWEEN \(first) AND \(first + 9);")
      case 2:
        try device.app(
          "INSERT OR IGNORE INTO entry(account, cents) SELECT id, \(first) FROM account WHERE id > \(first) LIMIT 5;")
      case 3: try delete(device, "id = \(first)")
      default:
        let other = devices[Int.random(in: 0..<3, using: &random)]
        if other !== device { try device.pull(other, groups: Int.random(in: 1...3, using: &random)) }
      }
      if Bool.random(using: &random) { try device.stamp() }
      if Int.random(in: 0..<4, using: &random) == 0, let held = try device.replica.heldDeletions().first,
        let author = devices.first(where: { $0.origin.device == held.author })
      {
        try decide(device, author, isAllowed: Bool.random(using: &random))
      }
      device.now += Int64.random(in: 0...5_000, using: &random)
    }
    // Everybody decides in the end; a no may bring rows to those who had let them go.
    for _ in 0..<6 {
      for device in devices { try device.stamp() }
      for a in devices { for b in devices where a !== b { try a.pull(b) } }
      for device in devices {
        for held in try device.replica.heldDeletions() {
          guard let author = devices.first(where: { $0.origin.device == held.author }) else { continue }
          try decide(device, author, isAllowed: Bool.random(using: &random))
        }
      }
    }
    try settle(devices)
    for device in devices { #expect(try device.row("SELECT count(*) FROM lk_guard") == "0") }
    try expectSame(devices[0], devices[1], "seed \(seed)")
    try expectSame(devices[0], devices[2], "seed \(seed)")
  }
}
