import LatchkeyEncoding
import LatchkeyRecords
import Testing

private let own = origin(1)
private let hlc = at(1_700_000_000_000)
private let tie: UInt64 = 0x1234_5678_9abc_def0
private let ownStamp = Stamp(hlc: hlc, origin: own, tie: tie)

private struct Row {
  let table: String
  let record: RecordName
  let registers: [(Register, RegisterValue, StampReference)]
  let compress: Bool
}

/// What a reader must see of a row.
private func expected(_ row: Row) -> RecordState {
  RecordState(
    row.registers.map { register, value, reference in
      let stamp: Stamp =
        switch reference {
        case .own: ownStamp
        case .filledIn(let hlc): Stamp(hlc: hlc, isFilledIn: true, origin: own, tie: tie)
        case .other(let stamp): stamp
        }
      var value = value
      if case .additive(let contribution) = value, contribution.born.hlc == hlc, contribution.born.tie == 0 {
        value = .additive(Contribution(born: ownStamp, number: contribution.number))
      }
      return RegisterEntry(register, stamp, value)
    })
}

private func merged(_ rows: [(String, RecordName, RecordState)]) -> [String: [RecordName: RecordState]] {
  var out: [String: [RecordName: RecordState]] = [:]
  for (table, record, state) in rows {
    out[table, default: [:]][record] = (out[table]?[record] ?? .empty).merging(state)
  }
  return out
}

extension Generator {
  fileprivate mutating func row(_ tables: [String]) -> Row {
    var registers: [(Register, RegisterValue, StampReference)] = []
    var seen: Set<Register> = []
    for _ in 0..<(1 + below(8)) {
      let register = self.register()
      guard seen.insert(register).inserted else { continue }
      var value = self.value(of: register)
      if case .additive(let contribution) = value, chance(2) {
        value = .additive(
          Contribution(born: Stamp(hlc: hlc, origin: own, tie: 0), number: contribution.number))
      }
      let reference: StampReference =
        switch below(4) {
        case 0: .other(stamp())
        case 1: if case .cell = register { .filledIn(HLC(rawValue: UInt64(below(9)))) } else { .own }
        default: .own
        }
      registers.append((register, value, reference))
    }
    let number = below(tables.count)
    return Row(
      table: tables[number], record: record(UInt64(below(50))), registers: registers, compress: number != 0)
  }
}

@Suite("Payloads")
struct PayloadTests {
  @Test("what is written is read: random rows, stamps, values and part sizes", arguments: 0..<12)
  func roundTrip(seed: UInt64) throws {
    var random = Generator(seed: seed)
    for round in 0..<60 {
      var builder = PayloadBuilder(origin: own, hlc: hlc)
      let rows = (0..<random.below(80)).map { _ in random.row(["secret", "t", "meal", "\u{fc}"]) }
      for row in rows { builder.add(table: row.table, record: row.record, row.registers, compress: row.compress) }
      let notes = (0..<random.below(3)).map {
        Note(kind: UInt64($0), key: "k\($0)", value: random.value().encoded, stamp: ownStamp)
      }
      for note in notes { builder.add(note: note) }
      let sources = (0..<random.below(3)).map { _ in
        Source(
          zone: ZoneID(raw: random.bytes16()), origin: origin(random.next(), random.next()), sequence: random.next(),
          hash: payloadHash([]))
      }
      for source in sources { builder.add(source: source) }
      let limit = [200, 1000, 1 << 20][round % 3]
      let parts = builder.finish(maximumPartBytes: limit)
      #expect(parts.isEmpty == builder.isEmpty)
      #expect(builder.rowCount == rows.count)
      var read: [(String, RecordName, RecordState)] = []
      for (index, part) in parts.enumerated() {
        let payload = try Payload.decode(part.bytes, origin: own, hlc: hlc, tie: tie)
        #expect(payload.notes == (index == 0 ? notes : []))
        #expect(payload.sources == (index == 0 ? sources : []))
        #expect(payload.changes.allSatisfy { part.compress == ($0.table != "secret") })
        #expect(payload.changes.count == part.rowsByTable.reduce(0) { $0 + $1.count })
        #expect(index == 0 || part.bytes.count <= limit || payload.changes.count == 1)
        read += payload.changes.map { ($0.table, $0.record, $0.state) }
      }
      #expect(read.count == rows.count)
      #expect(merged(read) == merged(rows.map { ($0.table, $0.record, expected($0)) }))
    }
  }

  @Test("the same calls give the same bytes")
  func deterministic() {
    func build() -> [[UInt8]] {
      var random = Generator(seed: 5)
      var builder = PayloadBuilder(origin: own, hlc: hlc)
      for _ in 0..<300 {
        let row = random.row(["a", "b"])
        builder.add(table: row.table, record: row.record, row.registers, compress: row.compress)
      }
      return builder.finish(maximumPartBytes: 4000).map(\.bytes)
    }
    #expect(build() == build())
  }

  @Test("the order in which a row's registers are given does not matter")
  func registerOrder() {
    let registers: [(Register, RegisterValue, StampReference)] = [
      (.cell("name"), .cell(.text("Rex")), .own), (.born, .life(nil), .own), (.cell("id"), .cell(.integer(4)), .own),
    ]
    func build(_ registers: [(Register, RegisterValue, StampReference)]) -> [UInt8] {
      var builder = PayloadBuilder(origin: own, hlc: hlc)
      builder.add(table: "dog", record: record(1), registers)
      return builder.finish()[0].bytes
    }
    #expect(build(registers) == build(registers.reversed()))
  }

  @Test("the bytes of one insert are those of the format")
  func frozen() {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    builder.add(
      table: "dog", record: record(1),
      [
        (.born, .life(nil), .own), (.cell("id"), .cell(.integer(4)), .own),
        (.cell("name"), .cell(.text("Rex")), .own), (.cell("size"), .cell(.real(0.5)), .filledIn(at(1))),
      ])
    let parts = builder.finish()
    #expect(parts.count == 1 && parts[0].rowsByTable.map(\.table) == ["dog"] && parts[0].rowsByTable[0].count == 1)
    let text =
      "8501" + "81851a00010000f5f6f6f6" + "80"
      + "8183" + "63646f67" + "5000000000000000000000000000000001" + "84"
      + "830000" + "8204f6" + "8362696400" + "820404" + "83646e616d6500" + "820463526578"
      + "836473697a6501" + "8204fb3fe0000000000000" + "80"
    #expect(hex(parts[0].bytes) == text)
  }
}

@Suite("Payloads that are large")
struct LargePayloadTests {
  @Test("a thousand rows of ten columns and 120 bytes take at most 125 bytes a row before compression")
  func compact() {
    var random = Generator(seed: 3)
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    let notes = ["rain", "sun and wind", "nothing to say", "x"]
    var content = 0
    let rows = 1000
    for i in 0..<rows {
      let values: [(String, Value)] = [
        ("id", .text(random.uuid())), ("name", .text("Entry number \(i)")), ("amount", .integer(Int64(i * 37))),
        ("price", .real(Double(i) / 8)), ("note", .text(notes[random.below(4)])),
        ("date", .integer(1_700_000_000 + Int64(i))), ("flag", .integer(Int64(i & 1))), ("kind", .text("meal")),
        ("photo", .null), ("parent", .text(random.uuid())),
      ]
      content += values.reduce(0) { $0 + $1.1.byteCount }
      builder.add(
        table: "meal", record: random.name(),
        [(.born, .life(nil), .own)] + values.map { (.cell($0), .cell($1), .own) })
    }
    #expect(content / rows >= 110)
    let parts = builder.finish()
    #expect(parts.count == 1)
    #expect(parts[0].bytes.count / rows <= 125)
  }

  @Test("an insert of one row costs its names, its values and at most five bytes a column")
  func oneRow() {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    let columns = ["id", "name", "amount", "note"]
    builder.add(
      table: "meal", record: record(1),
      [(.born, .life(nil), .own)] + columns.map { (.cell($0), .cell(.text("eight by")), .own) })
    let named = columns.reduce(0) { $0 + $1.utf8.count } + "meal".utf8.count + 16
    #expect(builder.finish()[0].bytes.count <= named + columns.count * (9 + 5) + 20)
  }

  @Test("a group is cut at the size asked for, and a part is within it unless one row is larger")
  func cut() throws {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    for i in 0..<2000 {
      builder.add(
        table: "t", record: record(UInt64(i)),
        [(.born, .life(nil), .own), (.cell("x"), .cell(.blob([UInt8](repeating: UInt8(i & 255), count: 900))), .own)])
    }
    let parts = builder.finish(maximumPartBytes: 100_000)
    #expect((18...22).contains(parts.count))
    #expect(parts.allSatisfy { $0.bytes.count <= 100_000 })
    #expect(parts.reduce(0) { $0 + $1.rowsByTable[0].count } == 2000)
  }

  @Test("a row that is larger than a payload may be is written as several, and read as one")
  func largeRow() throws {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    let large = [UInt8](repeating: 7, count: Value.maximumByteCount - 9)
    builder.add(
      table: "t", record: record(1),
      [(.born, .life(nil), .own)] + ["a", "b", "c"].map { (.cell($0), .cell(.blob(large)), .own) })
    let parts = builder.finish()
    #expect(parts.count == 3)
    #expect(parts.allSatisfy { $0.bytes.count <= 32 << 20 })
    #expect(parts.flatMap(\.rowsByTable).reduce(0) { $0 + $1.count } == 1)
    var state = RecordState.empty
    for part in parts {
      for change in try Payload.decode(part.bytes, origin: own, hlc: hlc, tie: tie).changes {
        state = state.merging(change.state)
      }
    }
    #expect(state.isLive && state.cells.count == 3)
    #expect(state.cells.allSatisfy { $0.value == .blob(large) })
  }

  @Test("more rows than a block may have become several blocks")
  func manyRows() throws {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    for i in 0..<70_000 { builder.add(table: "t", record: record(UInt64(i)), [(.tombstone, .life(nil), .own)]) }
    let parts = builder.finish(maximumPartBytes: 8 << 20)
    #expect(parts.count == 1 && parts[0].rowsByTable.map(\.count) == [70_000])
    let payload = try Payload.decode(parts[0].bytes, origin: own, hlc: hlc, tie: tie)
    #expect(payload.changes.map(\.record) == (0..<70_000).map { record(UInt64($0)) })
  }

  @Test("a part never lists more stamps or holds more registers than a reader takes")
  func bounds() throws {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    for i in 0..<70_000 {
      let stamp = Stamp(hlc: HLC(rawValue: UInt64(i)), origin: origin(2), tie: 1)
      builder.add(table: "t", record: record(UInt64(i)), [(.tombstone, .life(nil), .other(stamp))])
    }
    let wide: [(Register, RegisterValue, StampReference)] = (0..<1000).map {
      (.cell("c\(1000 + $0)"), .cell(.null), .own)
    }
    for i in 0..<1050 { builder.add(table: "wide", record: record(UInt64(i)), wide) }
    let parts = builder.finish(maximumPartBytes: 64 << 20)
    #expect(parts.count == 3)
    var rows = 0
    for part in parts {
      rows += try Payload.decode(part.bytes, origin: own, hlc: hlc, tie: tie).changes.count
    }
    #expect(rows == 71_050)
  }
}
