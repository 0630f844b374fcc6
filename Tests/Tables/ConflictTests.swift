import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

@Suite("Values that lost a true conflict are kept")
struct ConflictTests {
  let schema = "CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT, body TEXT);"

  func pair() throws -> (Device, Device) {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO note VALUES (1, 'Milk', 'two'), (2, 'Eggs', 'ten');")
    try settle(a, b)
    for device in [a, b] { try confirm(device) }
    return (a, b)
  }

  /// As if the store had confirmed all that the device wrote.
  func confirm(_ device: Device) throws {
    device.now += 1
    try device.replica.transaction {
      try device.replica.noteSent(upTo: Int64(bitPattern: device.replica.lastClock.rawValue), now: device.now)
    }
  }

  func said(_ device: Device) throws -> [String] {
    try device.replica.journal().map { entry in
      let texts = [entry.value, entry.winner].map { value -> String in
        if case .text(let bytes)? = value { return String(decoding: bytes, as: UTF8.self) }
        return "-"
      }
      return "\(entry.cause.name) \(entry.column ?? "-") \(texts[0])>\(texts[1])"
    }
  }

  @Test("an edit that waits and is beaten, and one that comes in too late, are kept where they met, and come back")
  func met() throws {
    let (a, b) = try pair()
    try a.app("UPDATE note SET title = 'Oat milk' WHERE id = 1;")
    b.now = a.now + 60_000
    try b.app("UPDATE note SET title = 'Soy milk' WHERE id = 1;")
    try a.stamp()
    try b.stamp()
    #expect(try b.pull(a).conflicts == 1)
    #expect(try a.pull(b).conflicts == 1)
    #expect(try said(b) == ["outdated title Oat milk>Soy milk"])
    #expect(try said(a) == ["overwritten title Oat milk>Soy milk"])
    let entry = try #require(try a.replica.journal().first)
    #expect(entry.written?.author == a.origin.device && entry.won?.author == b.origin.device)
    #expect(entry.present == .text(Array("Soy milk".utf8)))
    a.now = b.now + 60_000
    try a.replica.transaction { try a.replica.restore(journalEntry: entry.id) }
    try settle(a, b)
    #expect(try b.row("SELECT title FROM note WHERE id = 1") == "Oat milk")
    #expect(try a.replica.journal().isEmpty)
  }

  @Test("an edit made upon another, equal edits, and edits of other columns are no conflict")
  func none() throws {
    let (a, b) = try pair()
    try a.app("UPDATE note SET title = 'Oat milk' WHERE id = 1;")
    try settle(a, b)
    try confirm(a)
    b.now = a.now + 10_000
    try b.app("UPDATE note SET title = 'Soy milk' WHERE id = 1; UPDATE note SET body = 'six' WHERE id = 2;")
    try a.app("UPDATE note SET title = 'Six eggs' WHERE id = 2;")
    try settle(a, b)
    try confirm(a)
    try confirm(b)
    try a.app("UPDATE note SET body = 'same' WHERE id = 1;")
    try b.app("UPDATE note SET body = 'same' WHERE id = 1;")
    try settle(a, b)
    #expect(try said(a).isEmpty)
    #expect(try said(b).isEmpty)
  }

  @Test("an edit that was made before the other was in the store cannot have known of it")
  func beforeConfirmed() throws {
    let (a, b) = try pair()
    try a.app("UPDATE note SET title = 'Oat milk' WHERE id = 1;")
    b.now = a.now + 1_000
    try b.app("UPDATE note SET title = 'Soy milk' WHERE id = 1;")
    try a.stamp()
    a.now = b.now + 60_000
    try confirm(a)
    try b.stamp()
    try a.pull(b)
    #expect(try said(a) == ["overwritten title Oat milk>Soy milk"])
  }

  @Test("edits of a row that was deleted are kept on both sides")
  func deleted() throws {
    let (a, b) = try pair()
    try a.app("DELETE FROM note WHERE id = 1;")
    b.now = a.now + 60_000
    try b.app("UPDATE note SET title = 'Soy milk' WHERE id = 1;")
    try a.stamp()
    try b.stamp()
    try b.pull(a)
    try a.pull(b)
    #expect(try said(b) == ["deleted title Soy milk>-"])
    #expect(try said(a) == ["deleted title Soy milk>-"])
    #expect(try b.replica.trash().count == 1)
    // There is no row to put it into; the row comes back whole from the trash.
    let entry = try #require(try b.replica.journal().first)
    #expect(throws: TablesError.self) {
      try b.replica.transaction { try b.replica.restore(journalEntry: entry.id) }
    }
    let trashed = try #require(try b.replica.trash().first)
    try b.replica.transaction { _ = try b.replica.restoreTrash([trashed.id], now: b.now) { b.seal($0) } }
    try settle(a, b)
    #expect(try a.row("SELECT title, body FROM note WHERE id = 1") == "Soy milk|two")
  }

  @Test("what is carried for somebody is no news, and what a newcomer reads is no conflict")
  func carried() throws {
    let (a, b) = try pair()
    let d = try Device(4, schema)
    try d.pull(a)
    try b.app("UPDATE note SET title = 'Soy milk' WHERE id = 1;")
    try settle(a, b)
    // Somebody whose log was given up publishes all that its file has.
    _ = try d.replica.transaction { try d.replica.carryAll(now: d.now) { d.seal($0) } }
    try b.pull(d)
    let c = try Device(joining: 3)
    try c.pull(b)
    try c.pull(a)
    #expect(try said(b).isEmpty)
    #expect(try said(c).isEmpty)
  }

  @Test("what was written as a reader is noted once a cell, stays noted, and is taken back or published")
  func reader() throws {
    for isPublished in [true, false] {
      let (a, b) = try pair()
      let names = try (1...2).map { try #require(try a.replica.recordName(table: "note", key: [.integer($0)])) }
      func noting(_ group: PendingGroup) throws -> UInt64 {
        // A reader's log is nobody's: it is not sealed for anybody.
        let tie = groupTie(
          zone: Device.zone, origin: b.origin, hlc: group.hlc, payloadHashes: group.parts.map { payloadHash($0.bytes) })
        try b.replica.noteKeptHere(group, tie: tie, now: b.now)
        return tie
      }
      try b.app(
        "UPDATE note SET title = 'mine' WHERE id = 1; DELETE FROM note WHERE id = 2; INSERT INTO note VALUES (3, 'new', 'n');"
      )
      _ = try b.replica.transaction { try b.replica.stamp(now: b.now, emit: noting) }
      try b.app("UPDATE note SET title = 'mine again' WHERE id = 1;")
      _ = try b.replica.transaction { try b.replica.stamp(now: b.now, emit: noting) }
      #expect(try b.replica.rowsKeptHere() == 3)
      #expect(try b.replica.journal().count { $0.record == names[0] } == 1)
      b.now += Replica.journalTime + 1
      try b.replica.transaction { try b.replica.prune(now: b.now) }
      #expect(try b.replica.rowsKeptHere() == 3)
      if isPublished {
        let rows = try b.replica.transaction { try b.replica.publishKeptHere(now: b.now) { b.seal($0) } }
        #expect(rows == 3)
      } else {
        let rows = try b.replica.transaction {
          try b.replica.revertKeptHere(
            to: { _, record in (try? a.replica.record(record)) ?? .empty }, now: b.now
          ) { b.seal($0) }
        }
        #expect(rows == 3)
      }
      #expect(try b.replica.rowsKeptHere() == 0)
      a.now = b.now
      try settle(a, b)
      try expectSame(a, b, "afterwards")
      let expected = isPublished ? "mine again|two;new|n" : "Milk|two;Eggs|ten"
      #expect(try a.row("SELECT title, body FROM note ORDER BY id") == expected)
      #expect(try b.row("SELECT title, body FROM note ORDER BY id") == expected)
    }
  }
}
