import Foundation
import Latchkey
import LatchkeyKeys
import LatchkeyTables
import Testing

@Suite("The main job: two people, two devices, one folder")
struct MainJobTests {
  @Test("a database is shared and joined, and both sides hold the same")
  func shareAndJoin() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    #expect(try place.rows("a.db", budgetDump) == place.rows("b.db", budgetDump))
    let (a, b) = (try await ana.counts(place.path("a.db")), try await ben.counts(place.path("b.db")))
    #expect(a.digest == b.digest && a.tables == b.tables)
    #expect(a.mode == "owner" && b.mode == "participant")
    let members = try await ben.members(household: "Smith")
    #expect(members.members.map(\.name).sorted() == ["Ana", "Ben"])
    #expect(members.members.filter(\.you).map(\.name) == ["Ben"])
  }

  @Test(
    "offline inserts with the same integer key are both kept; different fields both survive; the later edit of a field wins"
  )
  func offlineEdits() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run(
      "a.db",
      "INSERT INTO entries VALUES (4, 1, 1, 'from ana'); UPDATE entries SET note = 'ana' WHERE id = 1; UPDATE accounts SET name = 'Early' WHERE id = 2"
    )
    try await Task.sleep(for: .milliseconds(20))
    try place.run(
      "b.db",
      "INSERT INTO entries VALUES (4, 2, 2, 'from ben'); UPDATE entries SET cents = 7 WHERE id = 1; UPDATE accounts SET name = 'Late' WHERE id = 2"
    )
    try await settle(place, ana, ben)
    let rows = try place.rows("a.db", budgetDump)
    #expect(rows == (try place.rows("b.db", budgetDump)))
    for row in ["Joint|1|from ana", "Late|2|from ben", "Joint|7|ana"] { #expect(rows.contains(row)) }
  }

  @Test("a second sync with nothing to do writes nothing and deletes nothing, on both sides, and reads no object")
  func quiet() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await settle(place, ana, ben)
    // The epoch that an admission ended is looked through for an hour.
    place.clock.advance(2 * 3_600_000)
    try await settle(place, ana, ben)
    for (home, file) in [(ana, "a.db"), (ben, "b.db")] {
      let report = try await home.sync(place.path(file))
      #expect(report.requests.put == 0 && report.requests.delete == 0 && report.requests.get == 0)
      #expect(report.requests.list == 2 && report.waiting == 0 && report.parked == 0 && report.warnings.isEmpty)
    }
  }

  @Test("one changed row is one object up, and one down")
  func smallChange() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await settle(place, ana, ben)
    try place.run("a.db", "UPDATE entries SET note = 'changed' WHERE id = 2")
    let up = try await ana.sync(place.path("a.db"))
    #expect(up.requests.put == 1 && up.sent == 1 && up.bytesUp <= 8192)
    let down = try await ben.sync(place.path("b.db"))
    #expect(down.requests.get == 1 && down.received == 1 && down.requests.put == 0)
  }

  @Test("a link works once, and not after it has expired; a wrong one changes nothing")
  func links() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.invite(household: "Smith", expiresIn: 60_000)
    let carl = place.home("carl")
    func join(_ link: String, _ home: Home, _ file: String) async -> String {
      do {
        _ = try await home.join(link: link, options: JoinOptions(database: place.path(file), name: "Carl", device: "x"))
        { _ in true }
        return "joined"
      } catch { return error.code }
    }
    let altered = String(invite.link.dropLast(6)) + "AAAAAA"
    #expect(await join(altered, carl, "c.db") == "link-damaged")
    #expect(await join(String(invite.link.dropLast(9)), carl, "c.db") == "link-damaged")
    #expect(await join("latchkey://join", carl, "c.db") == "not-a-link")
    #expect(await join(invite.link, carl, "a.db") == "attached-already")
    #expect(!FileManager.default.fileExists(atPath: place.path("carl")))
    place.clock.advance(61_000)
    #expect(await join(invite.link, carl, "c.db") == "link-expired")
    let second = try await ana.invite(household: "Smith")
    #expect(await join(second.link, carl, "c.db") == "joined")
    _ = try await ana.sync(place.path("a.db"))
    #expect(await join(second.link, place.home("dora"), "d.db") == "link-used")
    #expect(try await ana.members().members.count == 3)
  }

  @Test("a store that is gone, emptied or exchanged stops the sync with a reason, and nothing is taken for deleted")
  func lostStore() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let before = try place.rows("a.db", budgetDump)
    func code() async -> String {
      do {
        _ = try await ana.sync(place.path("a.db"))
        return "synced"
      } catch { return error.code }
    }
    try FileManager.default.moveItem(atPath: place.root + "/store", toPath: place.root + "/away")
    #expect(await code() == "store-missing")
    try FileManager.default.createDirectory(atPath: place.root + "/store", withIntermediateDirectories: true)
    #expect(await code() == "store-missing")
    _ = try await place.home("other").initialize(name: "Other", device: nil, store: place.store)
    #expect(await code() == "other-store")
    try FileManager.default.removeItem(atPath: place.root + "/store")
    try FileManager.default.moveItem(atPath: place.root + "/away", toPath: place.root + "/store")
    #expect(await code() == "synced")
    #expect(try place.rows("a.db", budgetDump) == before)
  }

  @Test("sharing keeps every row and its author, and leaves nothing of the private zone in the store")
  func sharingCleansUp() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try place.run("a.db", budgetSchema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Budget")
    let empty = place.objects()
    _ = try await ana.sync(place.path("a.db"))
    let own = place.objects().subtracting(empty)
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    let left = own.intersection(place.objects())
    // Roster heads of the private household stay; the zone's head and segments go.
    #expect(left.allSatisfy { !$0.contains("/l/") })
    let explanation = try await ana.explain(place.path("a.db"), table: "accounts", key: "1")
    #expect(explanation.isLive && explanation.isShown)
  }

  @Test("a device of one's own joins the private household and follows when a file is shared")
  func ownDevices() async throws {
    let place = try Place()
    let laptop = place.home("laptop")
    let phone = place.home("phone")
    try place.run("a.db", budgetSchema)
    try await laptop.initialize(name: "Ana", device: "laptop", store: place.store)
    try await laptop.attach(place.path("a.db"), zone: "Budget")
    _ = try await laptop.sync(place.path("a.db"))
    let invite = try await laptop.addDevice()
    let joined = try await phone.join(
      link: invite.link, options: JoinOptions(database: place.path("p.db"), device: "phone")
    ) { _ in true }
    #expect(joined.rows == 5)
    #expect(try await laptop.sync(place.path("a.db")).warnings.map(\.code) == ["admitted"])
    try place.run("p.db", "INSERT INTO entries VALUES (9, 1, 9, 'phone')")
    _ = try await phone.sync(place.path("p.db"))
    _ = try await laptop.sync(place.path("a.db"))
    #expect(try place.rows("a.db", budgetDump) == place.rows("p.db", budgetDump))
    #expect(try await laptop.devices().map(\.name).sorted() == ["laptop", "phone"])
    #expect(try await phone.identity().name == "Ana")

    // Written on the phone before it knows that the laptop shares.
    try place.run("p.db", "INSERT INTO entries VALUES (10, 2, 10, 'late')")
    _ = try await laptop.share(place.path("a.db"), household: "Smith")
    _ = try await laptop.sync()
    _ = try await phone.sync(place.path("p.db"))
    _ = try await laptop.sync(place.path("a.db"))
    _ = try await phone.sync(place.path("p.db"))
    #expect(try place.rows("a.db", budgetDump) == place.rows("p.db", budgetDump))
    #expect(try await phone.counts(place.path("p.db")).household == "Smith")
    #expect(try await phone.counts(place.path("p.db")).digest == (try await laptop.counts(place.path("a.db")).digest))
  }

  @Test("two zones of one name, made by devices that had not met: one of the two is told")
  func twinZones() async throws {
    let place = try Place()
    let laptop = place.home("laptop")
    let phone = place.home("phone")
    try await laptop.initialize(name: "Ana", device: "laptop", store: place.store)
    let invite = try await laptop.addDevice()
    _ = try await phone.join(link: invite.link, options: JoinOptions(device: "phone")) { _ in true }
    _ = try await laptop.sync()
    _ = try await phone.sync()
    for database in ["a.db", "p.db"] { try place.run(database, budgetSchema) }
    try await laptop.attach(place.path("a.db"), zone: "Budget")
    try await phone.attach(place.path("p.db"), zone: "Budget")
    _ = try await laptop.sync(place.path("a.db"))
    _ = try await phone.sync(place.path("p.db"))
    let told = [
      try await laptop.sync(place.path("a.db")).warnings.map(\.code),
      try await phone.sync(place.path("p.db")).warnings.map(\.code),
    ]
    #expect(told.sorted { $0.count < $1.count } == [[], ["zone-twice"]])
  }

  @Test("case 54: a restored backup of the file goes on under a new incarnation: nothing forks, nothing is lost")
  func restoredBackup() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await settle(place, ana, ben)
    try FileManager.default.copyItem(atPath: place.path("a.db"), toPath: place.path("backup.db"))
    try place.run("a.db", "INSERT INTO entries VALUES (20, 1, 20, 'after the backup')")
    _ = try await ana.sync(place.path("a.db"))
    _ = try await ben.sync(place.path("b.db"))
    try FileManager.default.removeItem(atPath: place.path("a.db"))
    try FileManager.default.moveItem(atPath: place.path("backup.db"), toPath: place.path("a.db"))
    try place.run("a.db", "INSERT INTO entries VALUES (20, 2, 21, 'in the restored file')")
    let report = try await ana.sync(place.path("a.db"))
    #expect(report.warnings.map(\.code) == ["not-mine"])
    try await settle(place, ana, ben)
    let rows = try place.rows("a.db", budgetDump)
    #expect(rows == (try place.rows("b.db", budgetDump)))
    #expect(rows.contains("Joint|20|after the backup") && rows.contains { $0.hasSuffix("in the restored file") })
    #expect(try await ben.sync(place.path("b.db")).warnings.isEmpty)
  }

  @Test("a sync of everything goes on after a file that is missing, and then says so")
  func oneFileMissing() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    let files = ["a.db", "b.db", "c.db"]
    for file in files {
      try place.run(file, budgetSchema)
      try await ana.attach(place.path(file))
    }
    for missing in files {
      try FileManager.default.moveItem(atPath: place.path(missing), toPath: place.path("elsewhere"))
      for file in files where file != missing { try place.run(file, "UPDATE accounts SET name = 'without \(missing)'") }
      await #expect { _ = try await ana.sync() } throws: { ($0 as? LatchkeyError)?.code == "missing-file" }
      for file in files where file != missing { #expect(try await ana.sync(place.path(file)).sent == 0) }
      try FileManager.default.moveItem(atPath: place.path("elsewhere"), toPath: place.path(missing))
    }
  }

  @Test("case 54b: a home and file restored to before their first write do not collide with what they wrote later")
  func restoredBeforeFirstWrite() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try await settle(place, ana, ben)
    let files = FileManager.default
    for name in ["b.db", "ben"] { try files.copyItem(atPath: place.path(name), toPath: place.path(name + ".old")) }
    try place.run("b.db", "INSERT INTO entries VALUES (20, 1, 20, 'after the backup')")
    _ = try await ben.sync(place.path("b.db"))
    _ = try await ana.sync(place.path("a.db"))
    for name in ["b.db", "ben"] {
      try files.removeItem(atPath: place.path(name))
      try files.moveItem(atPath: place.path(name + ".old"), toPath: place.path(name))
    }
    try place.run("b.db", "INSERT INTO entries VALUES (20, 2, 21, 'in the restored file')")
    let restored = place.home("ben")
    #expect(try await restored.sync(place.path("b.db")).warnings.map(\.code) == ["not-mine"])
    try await settle(place, ana, restored)
    let rows = try place.rows("a.db", budgetDump)
    #expect(rows == (try place.rows("b.db", budgetDump)))
    #expect(rows.contains("Cash|20|after the backup") || rows.contains("Joint|20|after the backup"))
    #expect(rows.contains { $0.hasSuffix("in the restored file") })
    #expect(try await ana.sync(place.path("a.db")).warnings.isEmpty)
  }

  @Test("a delete wins over an older row's concurrent edit on every device, newcomers included; a re-insert lives")
  func deletes() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("b.db", "UPDATE entries SET note = 'edited while deleted' WHERE id = 3")
    try await Task.sleep(for: .milliseconds(20))
    try place.run("a.db", "DELETE FROM entries WHERE id = 3; DELETE FROM entries WHERE id = 2")
    try await Task.sleep(for: .milliseconds(20))
    // Later than the delete: an edit still does not revive the row.
    try place.run("b.db", "UPDATE entries SET note = 'later than the delete' WHERE id = 2")
    try await settle(place, ana, ben)
    try place.run("a.db", "INSERT INTO entries VALUES (2, 2, 5, 'again')")
    try await settle(place, ana, ben)
    let invite = try await ana.invite(household: "Smith")
    _ = try await place.home("carl").join(
      link: invite.link, options: JoinOptions(database: place.path("c.db"), name: "Carl", device: "tablet")
    ) { _ in true }
    for file in ["a.db", "b.db", "c.db"] {
      #expect(try place.rows(file, budgetDump) == ["Cash|5|again", "Joint|-100|a"])
    }
  }

  @Test("a child whose parent has not arrived waits, shows complete later, and no NULL is pushed back")
  func childFirst() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("a.db", "INSERT INTO accounts VALUES (7, 'Parent')")
    let before = place.objects()
    _ = try await ana.sync(place.path("a.db"))
    // The store withholds the head that holds the parent: Carl gets the child from Ben, and nothing newer from Ana.
    let withheld = place.objects().subtracting(before)
    #expect(withheld.count == 1)
    _ = try await ben.sync(place.path("b.db"))
    try place.run(
      "b.db", "INSERT INTO entries VALUES (70, (SELECT id FROM accounts WHERE name = 'Parent'), 70, 'child')")
    _ = try await ben.sync(place.path("b.db"))
    let invite = try await ana.invite(household: "Smith")
    try place.withhold(withheld)
    _ = try await place.home("carl").join(
      link: invite.link, options: JoinOptions(database: place.path("c.db"), name: "Carl", device: "tablet")
    ) { _ in true }
    let carl = place.home("carl")
    #expect(try await carl.counts(place.path("c.db")).tables.map(\.parked) == [0, 1])
    #expect(try place.rows("c.db", "SELECT count(*) FROM entries") == ["3"])
    #expect(try await carl.sync(place.path("c.db")).requests.put == 0)
    try place.showAgain(withheld)
    _ = try await carl.sync(place.path("c.db"))
    #expect(try place.rows("c.db", budgetDump) == place.rows("b.db", budgetDump))
    #expect(try await carl.counts(place.path("c.db")).tables.map(\.parked) == [0, 0])
  }

  @Test("a reader reads everything; what a reader changes stays there, and both sides say so")
  func reader() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.invite(household: "Smith", role: .reader)
    let rita = place.home("rita")
    _ = try await rita.join(
      link: invite.link, options: JoinOptions(database: place.path("r.db"), name: "Rita", device: "tablet")
    ) { _ in true }
    _ = try await ana.sync(place.path("a.db"))
    #expect(try place.rows("r.db", budgetDump) == place.rows("a.db", budgetDump))
    let before = try place.rows("a.db", budgetDump)
    try place.run("r.db", "UPDATE entries SET note = 'by a reader' WHERE id = 1")
    #expect(try await rita.sync(place.path("r.db")).warnings.map(\.code) == ["reader-kept-here"])
    #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["reader-wrote"])
    #expect(try place.rows("a.db", budgetDump) == before)
    #expect(try await rita.status(place.path("r.db"))[0].zone?.warnings.map(\.code) == ["reader-kept-here"])
  }

  @Test("looking at a file in WAL mode leaves nothing beside it")
  func lookingLeavesNothing() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try place.run("a.db", "PRAGMA journal_mode = wal; " + budgetSchema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"))
    _ = try await ana.sync(place.path("a.db"))
    func beside() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: place.root).filter { $0.hasPrefix("a.db") }.sorted()
    }
    let before = try beside()
    _ = try await ana.status(place.path("a.db"))
    _ = try await ana.counts(place.path("a.db"))
    _ = try await ana.explain(place.path("a.db"), table: "accounts", key: "1")
    try ana.export(place.path("a.db")) { _, _, _ in }
    #expect(try beside() == before)
  }

  @Test("nothing readable is in the store: no cell, column, table, zone, household, file, device or person")
  func noPlaintext() async throws {
    let place = try Place()
    let ana = place.home("ana")
    try place.run(
      "canaryfile.db",
      "CREATE TABLE canarytable(id INTEGER PRIMARY KEY, canarycolumn TEXT); INSERT INTO canarytable VALUES (1, 'canarycell')"
    )
    try await ana.initialize(name: "canaryperson", device: "canarydevice", store: place.store)
    try await ana.attach(place.path("canaryfile.db"), zone: "canaryzone")
    _ = try await ana.sync(place.path("canaryfile.db"))
    _ = try await ana.share(place.path("canaryfile.db"), household: "canaryhousehold")
    _ = try await ana.invite(household: "canaryhousehold")
    let needle = Array("canary".utf8)
    let names = place.objects()
    #expect(names.count > 5)
    for name in names {
      #expect(!name.contains("canary"))
      let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: place.root + "/store/" + name)))
      #expect(!bytes.indices.contains { bytes[$0...].starts(with: needle) })
    }
  }

  @Test("detach gives the file back as it was")
  func detach() async throws {
    let place = try Place()
    try place.run("a.db", budgetSchema)
    let before = try place.rows("a.db", "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2")
    let ana = place.home("ana")
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"))
    _ = try await ana.sync(place.path("a.db"))
    try await ana.detach(place.path("a.db"))
    #expect(try place.rows("a.db", "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2") == before)
    #expect(try await ana.databases().isEmpty)
  }
}

@Suite("A file that was copied")
struct CopiedFileTests {
  @Test("case 53: a file copied to another person's device goes on as that device's own, and both stay alike")
  func copiedToAnotherDevice() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try FileManager.default.copyItem(atPath: place.path("a.db"), toPath: place.path("copy.db"))
    let report = try await ben.sync(place.path("copy.db"))
    #expect(report.warnings.map(\.code) == ["copied-file"])
    try place.run("copy.db", "INSERT INTO entries VALUES (31, 2, 31, 'in the copy')")
    for _ in 0..<3 {
      _ = try await ana.sync(place.path("a.db"))
      _ = try await ben.sync(place.path("copy.db"))
      _ = try await ben.sync(place.path("b.db"))
    }
    let rows = try place.rows("a.db", budgetDump)
    #expect(try place.rows("copy.db", budgetDump) == rows)
    #expect(try place.rows("b.db", budgetDump) == rows)
    #expect(rows.contains { $0.hasSuffix("in the copy") })
    for (home, file) in [(ana, "a.db"), (ben, "b.db"), (ben, "copy.db")] {
      #expect(try await home.sync(place.path(file)).warnings.isEmpty)
    }
  }
}
