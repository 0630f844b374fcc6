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
    "case 40: the same key on two devices is one row on all, what refers to either refers to it, and sums are what they were"
  )
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
    #expect(try a.replica.parkedRows().isEmpty, "a duplicate is shown, as another row")
    let counts = try #require(try a.replica.counts().first { $0.name == "category" })
    #expect(counts.live == 3 && counts.merged == 2 && counts.parked == 0 && counts.local == 1)
    let shown = try #require(try a.replica.explain(table: "category", key: [.integer(1)]))
    #expect(shown.duplicates.count == 2 && shown.mergedInto == nil)
    for name in shown.duplicates {
      let merged = try #require(try a.replica.explain(name))
      #expect(merged.mergedInto == Explanation.Row(record: shown.record, key: "1") && merged.isLive && !merged.isShown)
    }
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

  @Test("an edit of what shows for several stays, whoever comes to be shown later")
  func editStays() throws {
    let all = try devices()
    try all[0].app("INSERT INTO category VALUES (1, 'Food', 0, 'a')")
    try all[1].app("INSERT INTO category VALUES (1, 'food', 0, NULL)")
    try settle(all)
    all[2].now += 5_000
    try all[2].app("UPDATE category SET note = 'mine'")
    try settle(all)
    all[1].now += 50_000
    try all[1].app("INSERT INTO category VALUES (50, 'FOOD', 1, NULL)")
    try settle(all)
    for device in all { #expect(try device.rows("SELECT name, note FROM category") == ["FOOD|mine"]) }
    all[0].now += 90_000
    try all[0].app("UPDATE category SET note = NULL")
    try settle(all)
    for device in all { #expect(try device.rows("SELECT name, note FROM category") == ["FOOD|NULL"], "an edit, too") }
  }

  @Test("a duplicate that was given another key is by itself, and its deletion takes what refers to it along")
  func rekeyed() throws {
    let all = try devices()
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 1, NULL)")
    try b.app("INSERT INTO category VALUES (2, 'food', 0, NULL); INSERT INTO entry VALUES (1, 2, 7)")
    try b.stamp()
    try a.pull(b)
    // Before it knows of the alias.
    b.now += 60_000
    try b.app("UPDATE category SET name = 'Pets' WHERE id = 2")
    try settle(all)
    for device in all { #expect(try device.rows(sums) == ["Pets|7|1"]) }
    all[2].now += 90_000
    try all[2].app("DELETE FROM category WHERE name = 'Pets'")
    try settle(all)
    for device in all {
      #expect(try device.rows("SELECT name FROM category") == ["Food"])
      #expect(try device.rows("SELECT * FROM entry").isEmpty, "hidden with its row, not moved to another")
    }
  }

  @Test("of rows that one device makes of one key again and again two become one with another, and the rest is told")
  func madeAgain() throws {
    let all = try devices()
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 1, NULL)")
    try settle(all)
    for start in 0..<5 {
      b.now += 10_000
      try b.app(
        "INSERT INTO category VALUES (\(100 + start), 'Food', 0, NULL); INSERT INTO entry VALUES (\(start + 1), \(100 + start), 1)"
      )
      try settle(all)
      #expect(try b.replica.repeatedlyMade().map(\.maker) == (start < 2 ? [] : [b.origin.device]))
    }
    for device in all {
      #expect(try device.row("SELECT count(*) FROM category") == "4")
      #expect(try device.rows(sums) == ["Food|1|1", "Food|1|1", "Food|1|1", "Food|2|2"])
    }
  }

  @Test("a row that others need comes back under its name, also where it was shown as another")
  func neededDuplicate() throws {
    let script = schema.replacingAll(
      "category INTEGER REFERENCES category(id) ON DELETE CASCADE", "category INTEGER NOT NULL REFERENCES category(id)")
    let all = try (1...3).map { try Device($0, script, rules: rules) }
    let (a, b) = (all[0], all[1])
    try a.app("INSERT INTO category VALUES (1, 'Food', 1, NULL)")
    try b.app("INSERT INTO category VALUES (2, 'food', 0, NULL)")
    try settle(all)
    try b.app("INSERT INTO entry VALUES (1, (SELECT id FROM category), 7)")
    try b.stamp()
    a.now += 20_000
    try a.app("DELETE FROM category")
    try settle(all)
    for device in all { #expect(try device.row("SELECT sum(cents), count(DISTINCT category) FROM entry") == "7|1") }
    for device in all {
      #expect(try device.row("SELECT count(*) FROM entry e JOIN category c ON c.id = e.category") == "1")
    }
  }

  @Test("a table that has one row keeps the household's when somebody comes with a row of their own")
  func householdsRowStays() throws {
    for number in UInt64(4)..<8 {
      let a = try Device(1, schema, rules: rules)
      try a.app("INSERT INTO book VALUES (1, 'Smith'); INSERT INTO category VALUES (1, 'Food', 0, 'theirs')")
      try a.stamp()
      let b = try Device(number, schema, rules: rules, pairing: 1_000_000)
      try b.app(
        "INSERT INTO book VALUES (7, 'Default book'); INSERT INTO category VALUES (1, 'Rent', 0, NULL), (2, 'food', 0, 'mine')"
      )
      try b.pull(a)
      let report = try b.replica.transaction { try b.replica.pair(now: b.now) { b.seal($0) } }
      #expect(report.paired == 2 && report.added == 1 && report.received == 0)
      try settle(a, b)
      for device in [a, b] {
        #expect(try device.rows("SELECT title FROM book") == ["Smith"])
        #expect(try device.rows("SELECT name, note FROM category ORDER BY name") == ["Food|theirs", "Rent|NULL"])
      }
      #expect(try b.replica.journal().map(\.value).contains(.text("Default book")))
    }
  }

  @Test(
    "case 40c: whatever the order in which duplicates arrive, every device shows what the records amount to, newcomers too",
    arguments: 1...60)
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let all = try devices()
    let names = ["Food", "food ", "Rent", "RENT", "Fun"]
    func some<T>(_ choices: [T]) -> T { choices[Int(random.next() % UInt64(choices.count))] }
    for step in 0..<40 {
      let device = some(all)
      device.now = 1_000_000 + Int64(step) * 1_000
      let one = "(SELECT id FROM category ORDER BY id LIMIT 1 OFFSET \(random.next() % 3))"
      switch random.next() % 9 {
      case 0, 1, 2:
        let isPreferred = random.next() % 8 == 0 ? 1 : 0
        try device.app(
          "INSERT INTO category(name, is_system, note) VALUES ('\(some(names))', \(isPreferred), \(some(["NULL", "'n\(step)'"])))"
        )
      case 3, 4: try device.app("INSERT INTO entry(category, cents) SELECT \(one), \(step)")
      case 5: try device.app("UPDATE category SET name = '\(some(names))' WHERE id = \(one)")
      case 6: try device.app("UPDATE category SET note = \(some(["NULL", "'e\(step)'"])) WHERE id = \(one)")
      case 7: try device.app("UPDATE category SET is_system = \(some([0, 1])) WHERE id = \(one)")
      default: try device.app(some([true, false, false]) ? "DELETE FROM category WHERE id = \(one)" : "SELECT 1")
      }
      try device.stamp(limit: some([1, 20_000]))
      let other = some(all)
      if other !== device, random.next() % 2 == 0 { try other.pull(device, groups: some([1, 3])) }
    }
    for device in all { device.now = 2_000_000 }
    for device in all { while try device.stamp().more {} }
    try settle(all)
    let newcomer = try Device(joining: 9, at: 2_000_000)
    for device in all.reversed() {
      while (newcomer.applied[device.number] ?? 0) < device.log.count { try newcomer.pull(device, groups: 2) }
    }
    let expected = try DuplicateOracle(all[0]).rows
    for device in all + [newcomer] {
      let other = Set(try shownRows(device)).symmetricDifference(expected).sorted()
      #expect(other.isEmpty, "seed \(seed), device \(device.number)")
    }
    #expect(newcomer.log.isEmpty && newcomer.replica.digest == all[0].replica.digest)
  }
}

extension String {
  fileprivate func replacingAll(_ text: String, _ other: String) -> String {
    split(separator: text, omittingEmptySubsequences: false).joined(separator: other)
  }
}
