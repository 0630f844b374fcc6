import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

/// What a device's tables show, with records instead of local integer keys: equal on devices that converged.
func shownRows(_ device: Device) throws -> [String] {
  var out: [String] = []
  for table in device.replica.tables {
    guard table.shape != nil else { continue }
    let list = table.columns.map { quoted($0.name) }.joined(separator: ", ")
    for values in try device.database.rows("SELECT \(list) FROM \(quoted(table.name))") {
      let name = try device.replica.recordName(table: table.name, key: table.keyValues(values))
      var fields: [String] = []
      for (column, value) in zip(table.columns, values) {
        if table.keyIsLocal, column.isKey { continue }
        fields.append("\(column.name)=\(try device.replica.translate(column, in: values, value))")
      }
      out.append("\(table.wire) \(name.map { "\($0)" } ?? "unnamed") \(fields.joined(separator: " "))")
    }
  }
  return out.sorted()
}

func exported(_ device: Device) throws -> [String] {
  var out: [String] = []
  try device.replica.export { table, record, cells in
    out.append("\(table) \(record) \(cells.map { "\($0.column)=\($0.value)" }.joined(separator: " "))")
  }
  return out
}

/// Fails with what one device shows and the other does not.
func expectSame(_ a: Device, _ b: Device, _ what: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
  let (x, y) = (Set(try shownRows(a)), Set(try shownRows(b)))
  if x == y { return }
  let parked = { (device: Device) in
    try device.replica.parkedRows().map { "\($0.table) \($0.record.short) \($0.reason)" }.joined(separator: "\n    ")
  }
  Issue.record(
    """
    \(what): they show different rows
      only \(a.number): \(x.subtracting(y).sorted().joined(separator: "\n    "))
      only \(b.number): \(y.subtracting(x).sorted().joined(separator: "\n    "))
      parked on \(a.number): \(try parked(a))
      parked on \(b.number): \(try parked(b))
    """, sourceLocation: sourceLocation)
}

/// Random work of an app on a schema with everything that makes merging hard.
struct RandomApp {
  static let schema = """
    CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT UNIQUE, kind INTEGER NOT NULL DEFAULT 1);
    CREATE TABLE entry(id INTEGER PRIMARY KEY AUTOINCREMENT, account INTEGER NOT NULL REFERENCES account(id),
      other INTEGER REFERENCES account(id) ON DELETE SET NULL, cents INTEGER, memo TEXT);
    CREATE TABLE line(id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE, n INTEGER NOT NULL, text TEXT,
      UNIQUE (entry, n));
    CREATE TABLE tag(name TEXT PRIMARY KEY COLLATE NOCASE, color);
    CREATE TABLE tagged(entry INTEGER NOT NULL REFERENCES entry(id), tag TEXT NOT NULL REFERENCES tag(name) ON UPDATE CASCADE, weight REAL,
      PRIMARY KEY (entry, tag)) WITHOUT ROWID;
    CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES node(id), name TEXT, CHECK (name <> 'forbidden'));
    """

  var random: SeededGenerator

  mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  mutating func id() -> Int { 1 + pick(6) }
  mutating func word() -> String { ["a", "b", "c", "d", "A", "e"][pick(6)] }
  mutating func maybe(_ value: Int) -> String { pick(4) == 0 ? "NULL" : "\(value)" }

  mutating func statement() -> String {
    let or = ["", "", "", " OR REPLACE", " OR IGNORE"][pick(5)]
    switch pick(29) {
    case 0, 1: return "INSERT\(or) INTO account(id, name, kind) VALUES (\(maybe(id())), '\(word())', \(pick(3)))"
    case 2: return "UPDATE\(or) account SET name = '\(word())' WHERE id = \(id())"
    case 3: return "UPDATE account SET kind = \(pick(5)) WHERE id = \(id())"
    case 4: return "DELETE FROM account WHERE id = \(id())"
    case 5, 6, 7:
      return
        "INSERT\(or) INTO entry(id, account, other, cents) VALUES (\(maybe(id())), \(id()), \(maybe(id())), \(pick(100)))"
    case 8: return "UPDATE entry SET cents = cents + \(pick(9)), memo = '\(word())' WHERE id = \(id())"
    case 9: return "UPDATE entry SET account = \(id()), other = \(maybe(id())) WHERE id = \(id())"
    case 10: return "DELETE FROM entry WHERE id = \(id())"
    case 11: return "UPDATE\(or) entry SET id = \(id()) WHERE id = \(id())"
    case 12, 13:
      return "INSERT\(or) INTO line(id, entry, n, text) VALUES (\(maybe(id())), \(id()), \(pick(3)), '\(word())')"
    case 14: return "UPDATE\(or) line SET n = \(pick(3)), entry = \(id()) WHERE id = \(id())"
    case 15: return "DELETE FROM line WHERE id = \(id())"
    case 16, 17:
      return "INSERT\(or) INTO tag(name, color) VALUES ('\(word())', \(["1", "1.0", "'1'", "x'31'", "NULL"][pick(5)]))"
    case 18: return "UPDATE\(or) tag SET name = '\(word())' WHERE name = '\(word())'"
    case 19: return "DELETE FROM tag WHERE name = '\(word())'"
    case 20, 21: return "INSERT\(or) INTO tagged(entry, tag, weight) VALUES (\(id()), '\(word())', \(pick(7)))"
    case 22: return "UPDATE\(or) tagged SET weight = weight * 2, tag = '\(word())' WHERE entry = \(id())"
    case 23: return "DELETE FROM tagged WHERE entry = \(id())"
    case 24:
      // Two keys that change places, with everything that points at them.
      let (a, b) = ("'\(word())'", "'\(word())'")
      return
        "UPDATE tag SET name = 'between' WHERE name = \(a); UPDATE tag SET name = \(a) WHERE name = \(b); UPDATE tag SET name = \(b) WHERE name = 'between'"
    case 25:
      let (a, b) = (id(), id())
      return
        "UPDATE node SET id = 99 WHERE id = \(a); UPDATE node SET id = \(a) WHERE id = \(b); UPDATE node SET id = \(b) WHERE id = 99"
    case 26:
      return
        "DELETE FROM entry WHERE id = \(id()); INSERT INTO entry(id, account, cents) VALUES (\(id()), \(id()), \(pick(50)))"
    case 27: return "INSERT\(or) INTO node(id, parent, name) VALUES (\(maybe(id())), \(maybe(id())), '\(word())')"
    default:
      return [
        "UPDATE node SET parent = \(maybe(id())) WHERE id = \(id())", "DELETE FROM node WHERE id = \(id())",
        "UPDATE node SET id = \(id()) WHERE id = \(id())",
      ][pick(3)]
    }
  }
}

@Suite("Convergence")
struct ConvergenceTests {
  /// One run: random work on three devices, random delivery, then everything to everybody.
  static func run(seed: UInt64, devices count: Int = 3, steps: Int = 60, enforcing: Bool) throws {
    var app = RandomApp(random: SeededGenerator(seed))
    let devices = try (1...count).map { try Device(UInt64($0), RandomApp.schema) }
    for _ in 0..<steps {
      let device = devices[app.pick(count)]
      switch app.pick(10) {
      case 0..<6:
        let sql = app.statement()
        device.now += Int64(app.pick(2_000))
        if enforcing { try device.database.execute("PRAGMA foreign_keys = ON") }
        // What the schema refuses, the app does not get.
        try? device.database.execute(sql)
        if enforcing { try device.database.execute("PRAGMA foreign_keys = OFF") }
      case 6: try device.stamp(limit: [1, 2, 3, 20_000][app.pick(4)])
      default:
        let other = devices[app.pick(count)]
        if other !== device { try device.pull(other, groups: 1 + app.pick(3)) }
      }
    }
    while try devices.contains(where: { try $0.stamp().more }) {}
    try settle(devices)
    if !enforcing { try insertAwaited(devices) }
    let sent = devices.map(\.log.count)
    let records = try exported(devices[0])
    for device in devices.dropFirst() {
      try expectSame(devices[0], device, "seed \(seed)")
      #expect(try exported(device) == records, "seed \(seed)")
    }
    try settle(devices)
    #expect(devices.map(\.log.count) == sent, "seed \(seed): settled devices push nothing")
    // A newcomer that hears everything at once, from the last device to the first, sees the same.
    let newcomer = try Device(9, RandomApp.schema, at: devices.map(\.now).max() ?? 0)
    try newcomer.apply(devices.reversed().flatMap(\.log))
    #expect(newcomer.replica.digest == devices[0].replica.digest, "seed \(seed)")
    try expectSame(devices[0], newcomer, "seed \(seed)")
  }

  /// An app that does not enforce its references leaves some that point nowhere: only its own device shows those, until
  /// the rows are inserted.
  static func insertAwaited(_ devices: [Device]) throws {
    for _ in 0..<10 {
      var isDone = true
      for device in devices {
        for raw in try device.database.rows("SELECT tid, key FROM lk_absent") {
          let table = try #require(raw[0].integer.flatMap { device.replica.tablesByID[$0] })
          let key = literal(raw[1])
          isDone = false
          switch table.wire {
          case "account": try device.app("INSERT OR IGNORE INTO account(id) VALUES (\(key))")
          case "entry":
            try device.app(
              "INSERT OR IGNORE INTO account(id) VALUES (1000); INSERT OR IGNORE INTO entry(id, account) VALUES (\(key), 1000)"
            )
          default: try device.app("INSERT OR IGNORE INTO node(id) VALUES (\(key))")
          }
        }
        try device.stamp()
      }
      try settle(devices)
      if isDone { return }
    }
    Issue.record("rows that are referred to stay absent")
  }

  @Test("devices that heard the same show the same, whatever the order", arguments: 1...60 as ClosedRange<UInt64>)
  func converge(seed: UInt64) throws { try Self.run(seed: seed, enforcing: seed % 2 == 0) }
}
