import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let schema = """
  CREATE TABLE category(id INTEGER PRIMARY KEY, name TEXT, is_system INTEGER, note TEXT);
  CREATE TABLE entry(id INTEGER PRIMARY KEY, category INTEGER REFERENCES category(id) ON DELETE CASCADE, cents INTEGER);
  CREATE TABLE book(id INTEGER PRIMARY KEY, title TEXT);
  """

private let rules = Rules(tables: [
  "category": TableRules(dedup: [DedupColumn("name")], preferred: "is_system"),
  "book": TableRules(isSingleton: true),
])

private let sums =
  "SELECT c.name, sum(e.cents), count(*) FROM entry e JOIN category c ON c.id = e.category GROUP BY c.id ORDER BY 1, 2"

@Suite("Duplicates show as one row")
struct DuplicateTests {
  private func devices() throws -> [Device] { try (1...3).map { try Device($0, schema, rules: rules) } }

  @Test(
    "the same key on two devices is one row on all, what refers to either refers to it, and sums are what they were")
  func merged() throws {
    let all = try devices()
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 0, NULL); INSERT INTO entry VALUES (1, 1, 100)")
    try b.app("INSERT INTO category VALUES (1, ' food ', 0, 'eat'); INSERT INTO entry VALUES (1, 1, 20), (2, 1, 3)")
    try settle(all)
    for device in all {
      #expect(try device.row("SELECT count(*) FROM category") == "1")
      #expect(
        try device.row("SELECT sum(e.cents), count(*) FROM entry e JOIN category c ON c.id = e.category") == "123|3")
      #expect(try device.row("SELECT note FROM category") == "eat", "what is NULL is filled")
    }
    #expect(
      try all.map { try $0.row("SELECT name FROM category") }.allSatisfy {
        $0 == (try? a.row("SELECT name FROM category"))
      })
    let sent = all.map(\.log.count)
    try settle(all)
    #expect(all.map(\.log.count) == sent, "nothing is said once it is settled")
  }

  @Test("a preferred row survives, whoever comes last; else the lowest name does, on every device")
  func preferred() throws {
    let all = try devices()
    let (a, b, c) = (all[0], all[1], all[2])
    try a.app("INSERT INTO category VALUES (1, 'Food', 0, 'a'); INSERT INTO entry VALUES (1, 1, 100)")
    try settle(all)
    try b.app("INSERT INTO category VALUES (9, 'FOOD', 1, 'b'); INSERT INTO entry VALUES (2, 9, 50)")
    try c.app("INSERT INTO category VALUES (9, 'food', 0, 'c'); INSERT INTO entry VALUES (2, 9, 7)")
    try settle(all)
    for device in all {
      #expect(try device.rows("SELECT name, note FROM category") == ["FOOD|b"])
      #expect(try device.rows(sums) == ["FOOD|157|3"])
    }
  }

  @Test(
    "rows that became one stay one when the key is edited"
  )
  func renamed() throws {
    let all = try devices()
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 1, NULL); INSERT INTO entry VALUES (1, 1, 100)")
    try b.app("INSERT INTO category VALUES (1, 'food', 0, NULL); INSERT INTO entry VALUES (1, 1, 20)")
    try settle(all)
    try all[2].app("UPDATE category SET name = 'Groceries'")
    try settle(all)
    for device in all { #expect(try device.rows(sums) == ["Groceries|120|2"]) }
  }

  @Test("deleting what is shown deletes all that it stands for; an edit goes to what is shown")
  func deleted() throws {
    let all = try devices()
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 0, NULL)")
    try b.app("INSERT INTO category VALUES (1, 'food', 0, NULL)")
    try settle(all)
    try b.app("UPDATE category SET note = 'edited'")
    try settle(all)
    for device in all { #expect(try device.rows("SELECT note FROM category") == ["edited"]) }
    try a.app("DELETE FROM category")
    try settle(all)
    for device in all { #expect(try device.rows("SELECT * FROM category").isEmpty) }
  }

  @Test("a reference that arrives late, or to a duplicate that is not there any more, shows the survivor")
  func late() throws {
    let all = try devices()
    let (a, b, c) = (all[0], all[1], all[2])
    try a.app("INSERT INTO category VALUES (1, 'Food', 1, NULL)")
    try b.app("INSERT INTO category VALUES (5, 'food', 0, NULL)")
    try settle(a, b)
    try b.app("INSERT INTO entry VALUES (1, (SELECT id FROM category), 5)")
    try settle(all)
    for device in all { #expect(try device.rows(sums) == ["Food|5|1"]) }
    try c.app("INSERT INTO category VALUES (77, 'FOOD', 0, NULL); INSERT INTO entry VALUES (9, 77, 6)")
    try settle(all)
    for device in all { #expect(try device.rows(sums) == ["Food|11|2"]) }
    #expect(try a.replica.parkedRows().allSatisfy { $0.reason.contains("the same as") })
  }

  @Test("rows with NULL in the key are never grouped, and rules that come later group what is there")
  func nullsAndLaterRules() throws {
    let a = try Device(1, schema)
    let b = try Device(2, schema)
    try a.app("INSERT INTO category VALUES (1, 'Food', 0, NULL), (2, NULL, 0, 'x'); INSERT INTO entry VALUES (1, 1, 1)")
    try b.app("INSERT INTO category VALUES (1, 'food', 0, NULL), (2, NULL, 0, 'y'); INSERT INTO entry VALUES (1, 1, 2)")
    try settle(a, b)
    #expect(try a.row("SELECT count(*) FROM category") == "4")
    try a.replica.setRules(rules)
    try settle(a, b)
    for device in [a, b] {
      #expect(try device.row("SELECT count(*) FROM category") == "3")
      #expect(try device.row("SELECT sum(cents), count(DISTINCT category) FROM entry") == "3|1")
    }
    try a.replica.setRules(.none)
    try settle(a, b)
    for device in [a, b] { #expect(try device.row("SELECT count(*) FROM category") == "4") }
    #expect(try a.row("SELECT count(DISTINCT category) FROM entry") == "2")
  }

  @Test("a table that has one row shows one, whoever made theirs first")
  func singleton() throws {
    let all = try devices()
    for (number, device) in all.enumerated() { try device.app("INSERT INTO book VALUES (1, 'book \(number)')") }
    try settle(all)
    let title = try all[0].row("SELECT title FROM book")
    for device in all { #expect(try device.rows("SELECT title FROM book") == [title]) }
    try all[1].app("UPDATE book SET title = 'ours'")
    try settle(all)
    for device in all { #expect(try device.rows("SELECT title FROM book") == ["ours"]) }
  }

  @Test("whatever the order of arrival, every device shows the same", arguments: 1...8)
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let all = try devices()
    let names = ["Food", "food ", "Rent", "RENT", "Fun"]
    for step in 0..<40 {
      let device = all[Int(random.next() % 3)]
      device.now = 1_000_000 + Int64(step) * 1_000
      switch random.next() % 6 {
      case 0, 1:
        let name = names[Int(random.next() % 5)]
        try device.app(
          "INSERT INTO category(name, is_system, note) VALUES ('\(name)', \(random.next() % 8 == 0 ? 1 : 0), \(random.next() % 2 == 0 ? "NULL" : "'n\(step)'"))"
        )
      case 2: try device.app("INSERT INTO entry(category, cents) SELECT id, \(step) FROM category ORDER BY id LIMIT 1")
      case 3:
        try device.app(
          "UPDATE category SET name = '\(names[Int(random.next() % 5)])' WHERE id = (SELECT max(id) FROM category)")
      case 4: try device.app("UPDATE category SET note = 'e\(step)' WHERE id = (SELECT min(id) FROM category)")
      default:
        try device.app(
          random.next() % 3 == 0 ? "DELETE FROM category WHERE id = (SELECT max(id) FROM category)" : "SELECT 1")
      }
      try device.stamp()
      let other = all[Int(random.next() % 3)]
      if other !== device, random.next() % 2 == 0 { try other.pull(device, groups: 1) }
    }
    for device in all { device.now = 2_000_000 }
    try settle(all)
    let shown = try shownRows(all[0])
    for device in all {
      let other = Set(try shownRows(device)).symmetricDifference(shown).sorted()
      #expect(other.isEmpty, "seed \(seed)")
    }
    for device in all {
      #expect(
        try device.row("SELECT count(*) FROM (SELECT lower(trim(name)) n FROM category GROUP BY n HAVING count(*) > 1)")
          == "0")
    }
  }
}
