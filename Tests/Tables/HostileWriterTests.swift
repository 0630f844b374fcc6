import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite
import Testing

@testable import LatchkeyTables

/// A member's device that writes whatever the format allows.
private struct HostileWriter {
  var random: SeededGenerator
  let names: [RecordName]
  var sequence: UInt64 = 0

  init(seed: UInt64) {
    random = SeededGenerator(seed)
    names = (0..<14).map { RecordName(raw: Bytes16(high: 0x1000 + UInt64($0), low: seed)) }
  }

  mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  mutating func value() -> Value {
    switch pick(16) {
    case 0: .null
    case 1: .integer(Int64(pick(5)))
    case 2: .integer([.max, .min, 0, -1][pick(4)])
    case 3: .real([0.5, -0.0, .infinity, 3.0][pick(4)])
    case 4: .text(["a", "A", "b", "", "forbidden", "12"][pick(6)])
    case 5: .text([[0xff], [0], [97, 0, 98]][pick(3)])
    case 6: .blob([[], [1], [49]][pick(3)])
    case 7: .together([.integer(1), .null])
    case 8: .unknown([0xc0 | 12, 1])
    default: .integer(Int64(100 + pick(3)))
    }
  }

  mutating func register() -> (Register, RegisterValue) {
    let columns = [
      "id", "name", "kind", "account", "other", "cents", "memo", "entry", "n", "text", "tag", "color", "weight",
      "parent", "what",
    ]
    switch pick(24) {
    case 0: return (.tombstone, .life(nil))
    case 1: return (.home, .home(ZoneID(raw: Bytes16(high: 1, low: 1))))
    case 2: return (.hide(column: nil), .hide(names[pick(names.count)]))
    case 3: return (.born, .life(RowUnit(parent: names[0], rowCount: 2)))
    case 4...9: return (.born, .life(nil))
    default:
      let column = columns[pick(columns.count)]
      let refers = ["account", "other", "entry", "tag", "parent"].contains(column)
      return (.cell(column), .cell(refers && pick(3) > 0 ? .reference(names[pick(names.count)]) : value()))
    }
  }

  mutating func group() -> IncomingGroup {
    sequence += 1
    let origin = Origin(device: DeviceID(raw: Bytes16(high: 66, low: UInt64(pick(3)))), incarnation: Incarnation(1))
    let hlc = HLC(milliseconds: 900_000 + Int64(pick(200_000)), counter: UInt16(pick(3)))
    var builder = PayloadBuilder(origin: origin, hlc: hlc)
    for _ in 0..<1 + pick(8) {
      let tables = ["account", "entry", "line", "tag", "tagged", "node", "nowhere", "lk_state", "sqlite_schema"]
      // A name has one table, or not.
      let number = pick(names.count)
      let table = pick(12) == 0 ? tables[pick(tables.count)] : tables[number % 6]
      var registers: [Register: RegisterValue] = [:]
      for _ in 0..<1 + pick(9) {
        let (register, value) = register()
        registers[register] = value
      }
      builder.add(
        table: table, record: names[number],
        registers.sorted { $0.key < $1.key }.map {
          ($0.key, $0.value, pick(6) == 0 ? .filledIn(HLC(milliseconds: 950_000)) : .own)
        })
    }
    return IncomingGroup(
      zone: Device.zone, origin: origin, hlc: hlc, tie: UInt64(pick(4)), sequence: sequence,
      payloads: builder.finish().map(\.bytes))
  }
}

@Suite("A member that writes what no app would")
struct HostileWriterTests {
  @Test(
    "breaks nothing: no table, no other row, no agreement between devices", arguments: 1...60 as ClosedRange<UInt64>)
  func nonsense(seed: UInt64) throws {
    var writer = HostileWriter(seed: seed)
    let a = try Device(1, RandomApp.schema, at: 1_200_000)
    let b = try Device(2, RandomApp.schema, at: 1_200_000)
    try a.app(
      "INSERT INTO account VALUES (1, 'honest', 1); INSERT INTO entry(id, account, cents) VALUES (1, 1, 100); INSERT INTO tag VALUES ('kept', 1)"
    )
    try settle(a, b)
    let groups = (0..<25).map { _ in writer.group() }
    for group in groups { try a.apply([group]) }
    try b.apply(groups)
    try settle(a, b)
    try expectSame(a, b, "seed \(seed)")
    for device in [a, b] {
      #expect(
        try device.row(
          "SELECT a.name, e.cents FROM entry e JOIN account a ON a.id = e.account WHERE e.cents = 100 AND a.name = 'honest'"
        ) == "honest|100")
      #expect(try device.row("SELECT count(*) FROM lk_log1") == "0")
      // The app goes on.
      try device.app(
        "UPDATE OR IGNORE account SET name = name || '!'; INSERT INTO account(name) VALUES (NULL); UPDATE entry SET memo = 'still here'"
      )
    }
    try settle(a, b)
    try expectSame(a, b, "seed \(seed), afterwards")
  }

  @Test("a record's name written under another table takes nobody's place, whoever is heard first")
  func stolenName() throws {
    let schema =
      "CREATE TABLE t(id INTEGER PRIMARY KEY, x); CREATE TABLE u(id INTEGER PRIMARY KEY, x); CREATE TABLE c(id INTEGER PRIMARY KEY, t INTEGER NOT NULL REFERENCES t(id))"
    let a = try Device(1, schema)
    try a.app("INSERT INTO t VALUES (1, 'mine'); INSERT INTO c VALUES (1, 1)")
    try a.stamp()
    let name = try #require(try a.replica.recordName(table: "t", key: [.integer(1)]))
    let origin = Origin(device: DeviceID(raw: Bytes16(high: 66, low: 1)), incarnation: Incarnation(1))
    var builder = PayloadBuilder(origin: origin, hlc: HLC(milliseconds: 5))
    builder.add(table: "u", record: name, [(.born, .life(nil), .own), (.cell("x"), .cell(.text("stolen")), .own)])
    let liar = IncomingGroup(
      zone: Device.zone, origin: origin, hlc: HLC(milliseconds: 5), tie: 1, sequence: 1,
      payloads: builder.finish().map(\.bytes))
    for groups in [[liar] + a.log, a.log + [liar]] {
      let b = try Device(2, schema)
      for group in groups { try b.apply([group]) }
      let c = try Device(3, schema)
      try c.apply(groups)
      for device in [b, c] {
        #expect(try device.rows("SELECT t.x FROM c JOIN t ON t.id = c.t") == ["mine"])
        #expect(try device.rows("SELECT x FROM u") == ["stolen"])
        try checkBookkeeping(device)
      }
    }
  }
}
