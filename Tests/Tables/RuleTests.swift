import Foundation
import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

private let schema = """
  CREATE TABLE asset(id INTEGER PRIMARY KEY, name TEXT);
  CREATE TABLE stock(id INTEGER PRIMARY KEY, name TEXT);
  CREATE TABLE attachment(id INTEGER PRIMARY KEY, reftype TEXT NOT NULL, refid INTEGER NOT NULL, file TEXT);
  """

private let attachments = Rules(tables: [
  "attachment": TableRules(references: [
    "refid": ReferenceRule(
      target: .chosen(
        by: "reftype", [.init(SQLiteValue("Asset"), table: "asset"), .init(SQLiteValue("Stock"), table: "stock")]),
      onDelete: .cascade, none: [.integer(-1)])
  ])
])

private let query = """
  SELECT file, reftype, coalesce((SELECT name FROM asset WHERE reftype = 'Asset' AND id = refid),
    (SELECT name FROM stock WHERE reftype = 'Stock' AND id = refid), refid) FROM attachment ORDER BY file
  """

@Suite("Rules are data that every device follows")
struct RuleTests {
  // MARK: References whose table another column says

  @Test("a reference whose table another column says points at the right row of the right table on every device")
  func chosen() throws {
    let a = try Device(1, schema, rules: attachments)
    let b = try Device(2, schema, rules: attachments)
    try a.app(
      "INSERT INTO asset VALUES (1, 'house'); INSERT INTO stock VALUES (1, 'shares'); INSERT INTO attachment VALUES (1, 'Asset', 1, 'deed'), (2, 'Stock', 1, 'note'), (3, 'Asset', -1, 'loose'), (4, 'Other', 7, 'else')"
    )
    try b.app(
      "INSERT INTO asset VALUES (1, 'boat'); INSERT INTO stock VALUES (1, 'bonds'); INSERT INTO attachment VALUES (1, 'Stock', 1, 'slip')"
    )
    try settle(a, b)
    let rows = ["deed|Asset|house", "else|Other|7", "loose|Asset|-1", "note|Stock|shares", "slip|Stock|bonds"]
    #expect(try a.rows(query) == rows)
    #expect(try b.rows(query) == rows)
  }

  @Test("when the app turns such a reference to another table, the same number means the other table's row")
  func turned() throws {
    let a = try Device(1, schema, rules: attachments)
    let b = try Device(2, schema, rules: attachments)
    try b.app("INSERT INTO stock VALUES (1, 'bonds')")
    try a.app(
      "INSERT INTO asset VALUES (1, 'house'); INSERT INTO stock VALUES (1, 'shares'); INSERT INTO attachment VALUES (1, 'Asset', 1, 'deed'), (2, 'Other', 1, 'else')"
    )
    try settle(a, b)
    try a.app("UPDATE attachment SET reftype = 'Stock'")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows(query) == ["deed|Stock|shares", "else|Stock|shares"]) }
    try b.app("DELETE FROM stock WHERE name = 'shares'")
    try settle(a, b)
    for device in [a, b] { #expect(try device.rows(query).isEmpty, "hidden with what they refer to") }
  }

  // MARK: Rules in the zone

  @Test(
    "a device that was attached without rules follows those that another set, and what it knew already is read anew")
  func followed() throws {
    let script =
      "CREATE TABLE category(id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE entry(id INTEGER PRIMARY KEY, category INTEGER, seen TEXT);"
    let a = try Device(1, script)
    let b = try Device(2, script)
    try a.app("INSERT INTO category VALUES (1, 'food'); INSERT INTO entry VALUES (1, 1, 'a')")
    try b.app("INSERT INTO category VALUES (1, 'rent')")
    try settle(a, b)
    let rules = Rules(tables: [
      "Entry": TableRules(
        references: ["CATEGORY": ReferenceRule(table: "Category", onDelete: .cascade)], localColumns: ["seen"])
    ])
    try a.replica.setRules(rules)
    try settle(a, b)
    #expect(b.replica.rules["entry"].localColumns == ["seen"])
    #expect(b.replica.rules["entry"].references["category"]?.target == .table("category"))
    let query = "SELECT c.name FROM entry e JOIN category c ON c.id = e.category"
    #expect(try a.rows(query) == ["food"])
    #expect(try b.rows(query) == ["food"], "the number that another device wrote means its own row")
    try b.app("UPDATE entry SET seen = 'b'")
    try settle(a, b)
    #expect(try a.row("SELECT seen FROM entry") == "a")
    #expect(try b.row("SELECT seen FROM entry") == "b")
    try b.app("DELETE FROM category WHERE name = 'food'")
    try settle(a, b)
    #expect(try a.rows("SELECT * FROM entry").isEmpty)
  }

  @Test("of two devices that set rules at once the later counts on both, and nobody answers for ever")
  func lastWriter() throws {
    let script = "CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT, y TEXT);"
    let a = try Device(1, script)
    let b = try Device(2, script)
    try a.app("INSERT INTO t VALUES (1, 'x', 'y')")
    try settle(a, b)
    try a.replica.setRules(Rules(tables: ["t": TableRules(localColumns: ["x"])]))
    b.now = a.now + 1_000
    try b.replica.setRules(Rules(tables: ["t": TableRules(localColumns: ["y"])]))
    try settle(a, b)
    #expect(a.replica.rules.tables["t"]?.localColumns == ["y"])
    #expect(b.replica.rules.tables["t"]?.localColumns == ["y"])
    let sent = (a.log.count, b.log.count)
    try settle(a, b)
    #expect((a.log.count, b.log.count) == sent)
    // Taken back everywhere.
    try a.replica.setRules(.none)
    try settle(a, b)
    #expect(b.replica.rules == .none)
    try a.app("UPDATE t SET y = 'z'")
    try settle(a, b)
    #expect(try b.row("SELECT y FROM t") == "z")
  }

  @Test("rules name columns as the zone does, so that they hold where the app calls them otherwise")
  func renamedElsewhere() throws {
    let a = try Device(1, "CREATE TABLE t(id INTEGER PRIMARY KEY, memo TEXT, x TEXT);")
    let b = try Device(2, "CREATE TABLE t(id INTEGER PRIMARY KEY, memo TEXT, x TEXT);")
    try settle(a, b)
    try b.app("ALTER TABLE t RENAME COLUMN memo TO note")
    try a.replica.setRules(Rules(tables: ["t": TableRules(localColumns: ["memo"])]))
    for device in [a, b] { try device.stamp() }
    try settle(a, b)
    #expect(b.replica.rules.tables["t"]?.localColumns == ["note"])
  }

  @Test("a device that joins gets the rules before the rows")
  func joining() throws {
    let a = try Device(1, schema, rules: attachments)
    try a.app("INSERT INTO stock VALUES (1, 'shares'); INSERT INTO attachment VALUES (1, 'Stock', 1, 'note')")
    try a.stamp()
    let c = try Device(joining: 3)
    try settle(a, c)
    #expect(c.replica.rules == a.replica.rules)
    #expect(try c.rows(query) == ["note|Stock|shares"])
    #expect(c.log.isEmpty, "it has nothing to say")
  }

  @Test("rules of a newer version are kept, handed on and told, and not taken away by whoever does not know them")
  func newer() throws {
    var writer = CBORWriter()
    TableRules(localColumns: ["x"]).write(to: &writer)
    var reader = CBORReader([0x82] + writer.bytes.dropFirst() + [0x82, 0x63, 0x7a, 0x7a, 0x7a, 0x18, 0x2a])
    let rules = try TableRules(from: &reader)
    #expect(rules.rulesOfNewerVersion == ["zzz"])
    #expect(rules.localColumns == ["x"])
    var again = CBORWriter()
    rules.write(to: &again)
    #expect(again.bytes == [0x82] + writer.bytes.dropFirst() + [0x82, 0x63, 0x7a, 0x7a, 0x7a, 0x18, 0x2a])
    let device = try Device(1, "CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT);", rules: Rules(tables: ["t": rules]))
    try device.replica.setRules(.none)
    #expect(device.replica.rules.tables["t"]?.rulesOfNewerVersion == ["zzz"])
  }

  // MARK: Rules that do not fit

  @Test("rules that contradict the schema or what is known are refused, and change nothing")
  func refused() throws {
    let device = try Device(1, schema, rules: attachments)
    try device.app("INSERT INTO asset VALUES (1, 'house')")
    try device.stamp()
    func refusal(_ rules: TableRules, _ table: String = "attachment") -> String {
      do {
        try device.replica.setRules(Rules(tables: [table: rules]))
        return ""
      } catch { return "\(error)" }
    }
    let choice = ReferenceTarget.Choice(SQLiteValue("Asset"), table: "asset")
    #expect(refusal(TableRules(references: ["refid": .init(target: .chosen(by: "nope", [choice]))])).contains("nope"))
    #expect(
      refusal(TableRules(references: ["refid": .init(target: .chosen(by: "reftype", []))])).contains("which tables"))
    #expect(refusal(TableRules(ownedBy: "file")).contains("refers to no table"))
    #expect(refusal(TableRules(renamed: ["file": "reftype"])).contains("there still"))
    #expect(refusal(TableRules(renamed: ["was": "is"])).contains("no column is"))
    #expect(refusal(TableRules(identity: .columns(["name"])), "asset").contains("names already"))
    #expect(refusal(TableRules(identity: .columns(["name"])), "stock") == "", "no row of it was synchronised")
    #expect(device.replica.rules.tables["attachment"] == nil)
  }

  // MARK: Columns that a rebuild renames

  @Test("a column that a rebuild of its table renames is the same column if the rules say so")
  func rebuilt() throws {
    let script = "CREATE TABLE t(id INTEGER PRIMARY KEY, memo TEXT, x TEXT);"
    let a = try Device(1, script, rules: Rules(tables: ["t": TableRules(renamed: ["memo": "note"])]))
    let b = try Device(2, script)
    try a.app("INSERT INTO t VALUES (1, 'first', 'x')")
    try settle(a, b)
    try b.app("UPDATE t SET memo = 'edited'")
    try a.app(
      "CREATE TABLE new(id INTEGER PRIMARY KEY, note TEXT, x TEXT); INSERT INTO new SELECT id, memo, x FROM t; DROP TABLE t; ALTER TABLE new RENAME TO t"
    )
    try settle(a, b)
    #expect(try a.row("SELECT note FROM t") == "edited")
    try a.app("UPDATE t SET note = 'again'")
    try settle(a, b)
    #expect(try b.row("SELECT memo FROM t") == "again")
  }

  // MARK: Suggestions

  @Test(
    "names and rows suggest references with their sentinels, identities and what stays here; rows that say otherwise weigh"
  )
  func suggestions() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("latchkey-tables-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: path) }
    do {
      let connection = try Connection(path, mode: .create)
      try connection.execute(
        """
        CREATE TABLE accountlist(ACCOUNTID INTEGER PRIMARY KEY, name TEXT, uuid TEXT UNIQUE);
        CREATE TABLE checking(id INTEGER PRIMARY KEY, ACCOUNTID INTEGER, TOACCOUNTID INTEGER, person_id INTEGER, other_id INTEGER);
        CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE other(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE sessions(id INTEGER PRIMARY KEY, token TEXT);
        INSERT INTO accountlist VALUES (1, 'a', 'u1'), (2, 'b', 'u2');
        INSERT INTO checking VALUES (1, 1, -1, NULL, 77), (2, 2, 1, NULL, 78);
        """)
      let found = try Replica.suggest(path: path)
      #expect(found.rules["checking"].references["ACCOUNTID"] == ReferenceRule(table: "accountlist"))
      #expect(
        found.rules["checking"].references["TOACCOUNTID"] == ReferenceRule(table: "accountlist", none: [.integer(-1)]))
      #expect(found.rules["checking"].references["person_id"] == ReferenceRule(table: "person"))
      #expect(found.rules["checking"].references["other_id"] == nil, "no row of it is there")
      #expect(
        found.all.first { $0.subject == .reference(column: "other_id", ReferenceRule(table: "other")) }?.confidence
          == .low)
      #expect(found.rules["accountlist"].identity == .columns(["uuid"]))
      #expect(found.rules["sessions"].isLocal)
      #expect(
        try Replica.fitting(
          Rules(tables: ["nope": TableRules(isLocal: true), "PERSON": TableRules(localColumns: ["Name", "nope"])]),
          path: path) == Rules(tables: ["person": TableRules(localColumns: ["name"])]))
    }
  }
}
