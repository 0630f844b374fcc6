import LatchkeyEncoding
import LatchkeyRecords
import Testing

private let own = origin(1)
private let hlc = at(1_700_000_000_000)
private let tie: UInt64 = 77

private func decode(_ bytes: [UInt8]) throws(PayloadError) -> Payload {
  try Payload.decode(bytes, origin: own, hlc: hlc, tie: tie)
}

/// A payload written by hand: `[version, stamps, [], blocks, []]`.
private func payload(
  version: UInt64 = 1, stamps: String = "80", sources: String = "80", blocks: String = "80", notes: String = "80",
  count: UInt8 = 0x85
) -> [UInt8] {
  var writer = CBORWriter()
  writer.raw([count])
  writer.uint(version)
  for part in [stamps, sources, blocks, notes] { writer.raw(unhex(part) ?? []) }
  return writer.bytes
}

private func block(_ columns: String, names: String = "50" + String(repeating: "00", count: 16)) -> String {
  "8183" + "6174" + names + columns
}

private func cause(_ bytes: [UInt8]) -> PayloadError? {
  do throws(PayloadError) {
    _ = try decode(bytes)
    return nil
  } catch {
    return error
  }
}

@Suite("Payloads that are refused")
struct PayloadRefusalTests {
  @Test("a newer version is refused as newer, whatever follows")
  func newer() {
    #expect(cause(payload(version: 2)) == .newer(2))
    #expect(cause([0x83, 0x18, 0x63, 0xff, 0xff]) == .newer(99))
    #expect(cause([0x86, 0x02]) == .malformed(.truncated))
    #expect(cause(payload(version: 0)) == .malformed(.unexpected("array of 5")))
  }

  @Test("an empty payload is one; a longer array, a shorter one and trailing bytes are not")
  func shape() {
    #expect(cause(payload()) == nil)
    #expect(cause(payload(count: 0x86) + [0x80]) == .malformed(.unexpected("array of 5")))
    #expect(cause(payload(count: 0x84)) == .malformed(.unexpected("array of 5")))
    #expect(cause(payload() + [0x00]) == .malformed(.trailing))
    #expect(cause([]) == .malformed(.truncated))
    #expect(cause([0x80]) == .malformed(.unexpected("array of 5")))
  }

  @Test(
    "blocks and columns that contradict themselves are refused",
    arguments: [
      ("no rows", block("81830000" + "8204f6", names: "40"), PayloadError.invalid("record names")),
      ("half a name", block("81830000" + "8204f6", names: "4100"), .invalid("record names")),
      ("no columns", block("80"), .invalid("block without columns")),
      (
        "a nameless table", "8183" + "60" + "50" + String(repeating: "00", count: 16) + "80",
        .invalid("table without a name")
      ),
      ("a column twice", block("82" + "830000" + "8204f6" + "830000" + "8204f6"), .invalid("columns out of order")),
      (
        "columns out of order", block("82" + "830100" + "8204f6" + "830000" + "8204f6"),
        .invalid("columns out of order")
      ),
      ("a stamp that is not listed", block("81" + "830001" + "8204f6"), .malformed(.limit("integer over 0"))),
      ("two stamps for one row", block("81" + "83008200008204f6"), .invalid("one stamp a row")),
      ("two values for one row", block("81" + "8300008200" + "82f6f6"), .invalid("one value a row")),
      ("an unknown form", block("81" + "8300008205f6"), .invalid("form of values")),
      (
        "packed values of born", block("81" + "830000" + "8201" + "50" + String(repeating: "00", count: 16)),
        .invalid("packed values of this register")
      ),
      ("fewer packed values than rows", block("81" + "83617800" + "8201" + "4100"), .invalid("16 bytes a row")),
      ("a cell without a name", block("81" + "836000" + "8204f6"), .malformed(.unexpected("name"))),
      ("a born that is an integer", block("81" + "830000" + "820405"), .malformed(.unexpected("array"))),
      ("hide as a number", block("81" + "830500" + "8204f6"), .malformed(.unexpected("register"))),
      ("a longer hide", block("81" + "83" + "8305f6f6" + "00" + "8204f6"), .malformed(.unexpected("array of 2"))),
      ("a map as a value", block("81" + "83617800" + "8204a0"), .malformed(.unexpected("value"))),
      ("an array as a value", block("81" + "83617800" + "820480"), .malformed(.unexpected("value"))),
      (
        "a together cell in another", block("81" + "83617800" + "8204" + "cb81cb80"),
        .malformed(.unexpected("value that is not an array"))
      ),
      (
        "UTF-8 under the tag of what is not", block("81" + "83617800" + "8204" + "c84161"),
        .malformed(.notDeterministic)
      ),
      (
        "a reference of 15 bytes", block("81" + "83617800" + "8204" + "c94f" + String(repeating: "00", count: 15)),
        .malformed(.unexpected("16 bytes"))
      ),
      (
        "an integer over 64 bits with sign", block("81" + "83617800" + "8204" + "1bffffffffffffffff"),
        .malformed(.range)
      ),
    ])
  func blocks(name: String, blocks: String, error: PayloadError) {
    #expect(cause(payload(blocks: blocks)) == error, "\(name)")
  }

  @Test("half an origin, and the group's tie at another origin's stamp, are refused")
  func stamps() {
    let device = "50" + String(repeating: "01", count: 16)
    let eight = "48" + String(repeating: "02", count: 8)
    #expect(cause(payload(stamps: "81" + "8500f4" + device + "f6" + eight)) == .invalid("half an origin"))
    #expect(cause(payload(stamps: "81" + "8500f4" + "f6" + eight + eight)) == .invalid("half an origin"))
    #expect(
      cause(payload(stamps: "81" + "8500f4" + device + eight + "f6"))
        == .invalid("the group's tie at another origin's stamp"))
    #expect(cause(payload(stamps: "81" + "8500f4" + device + eight + eight)) == nil)
  }

  @Test("a few bytes that stand for millions of registers are refused before memory is taken")
  func registerBomb() throws {
    var writer = CBORWriter()
    writer.raw(unhex("85018080") ?? [])
    writer.array(1)
    writer.array(3)
    writer.text("t")
    writer.byteString([UInt8](repeating: 0, count: 16 * 65_536))
    writer.array(17)
    for i in 0..<17 {
      writer.array(3)
      writer.text("c\(10 + i)")
      writer.uint(0)
      writer.array(2)
      writer.uint(4)
      writer.null()
    }
    writer.array(0)
    #expect(cause(writer.bytes) == .limit("more than 1048576 registers"))
  }

  @Test(
    "heads that promise more than there is are refused",
    arguments: ["9b7fffffffffffffff", "9affffffff", "9bffffffffffffffff"])
  func longHeads(head: String) {
    #expect(cause(payload(stamps: head)) != nil)
    #expect(cause(payload(blocks: head)) != nil)
    #expect(cause(payload(notes: head)) != nil)
    #expect(cause(payload(blocks: "8183" + "6174" + "5bffffffffffffffff")) != nil)
  }

  @Test("deep nesting is refused, not a stack overflow")
  func deep() {
    let nested = String(repeating: "cc", count: 100_000) + "00"
    #expect(
      cause(payload(blocks: block("81" + "83617800" + "8204" + nested))) == .malformed(.limit("nesting too deep")))
    #expect(cause(payload(notes: "81" + "83" + "01" + "6161" + String(repeating: "81", count: 100_000) + "00")) != nil)
  }

  @Test("unknown registers, values and notes are kept and handed on, byte for byte")
  func handedOn() throws {
    let unknownValue = "cc8301a1616101f5"
    let blocks = block(
      "83" + "8307008204" + "a1616101"  // register 7, its value a map
        + "83" + "617800" + "8204" + unknownValue  // a cell with a value of tag 12
        + "83" + "82096161" + "00" + "820450" + String(repeating: "05", count: 16))  // register [9, "a"]
    let first = try decode(payload(blocks: blocks, notes: "81" + "83" + "1863" + "616b" + "a1616101"))
    let state = first.changes[0].state
    #expect(state[.unknown([0x07])]?.value == .raw([0xa1, 0x61, 0x61, 0x01]))
    #expect(state.cell("x") == .unknown(unhex(unknownValue) ?? []))
    #expect(first.notes[0].kind == 99 && first.notes[0].value == [0xa1, 0x61, 0x61, 0x01])
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    builder.add(table: "t", record: first.changes[0].record, state.registers.map { ($0.register, $0.value, .own) })
    builder.add(note: first.notes[0])
    #expect(try decode(builder.finish()[0].bytes) == first)
  }
}

@Suite("Payloads that are damaged or hostile")
struct PayloadFuzzTests {
  /// Bytes that often mean something here.
  private static let heads: [UInt8] = [
    0x00, 0x01, 0x04, 0x17, 0x18, 0x1b, 0x20, 0x40, 0x50, 0x5b, 0x60, 0x7b, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x9b,
    0x9f, 0xa0, 0xbf, 0xc8, 0xc9, 0xcb, 0xdb, 0xf4, 0xf6, 0xf9, 0xfb, 0xff,
  ]

  private func samples(_ random: inout Generator) -> [[UInt8]] {
    (0..<8).flatMap { _ in
      var builder = PayloadBuilder(origin: own, hlc: hlc)
      for _ in 0..<random.below(6) {
        var seen: Set<Register> = []
        let entries = random.entries(8).filter { seen.insert($0.register).inserted }
        builder.add(
          table: random.chance(2) ? "t" : "meal", record: random.name(),
          entries.map { ($0.register, $0.value, random.chance(3) ? .own : .other($0.stamp)) })
      }
      builder.add(note: Note(kind: 1, key: "t", value: [0x01], stamp: Stamp(hlc: hlc, origin: own, tie: tie)))
      return builder.finish().map(\.bytes)
    }
  }

  @Test("any bytes are read or refused; what is read can be written and read again", arguments: 0..<6)
  func mutations(seed: UInt64) throws {
    var random = Generator(seed: 900 + seed)
    var accepted = 0
    for _ in 0..<150 {
      let all = samples(&random)
      for sample in all {
        var bytes = sample
        for _ in 0..<(1 + random.below(2)) {
          if bytes.isEmpty { break }
          let position = random.below(bytes.count)
          switch random.below(7) {
          case 0: bytes[position] ^= 1 << UInt8(random.below(8))
          case 1: bytes[position] = Self.heads[random.below(Self.heads.count)]
          case 2: bytes.insert(Self.heads[random.below(Self.heads.count)], at: position)
          case 3: bytes.remove(at: position)
          case 4: bytes.removeSubrange(position..<min(bytes.count, position + random.below(20)))
          case 5:
            let other = all[random.below(all.count)]
            let from = random.below(other.count)
            bytes.insert(contentsOf: other[from..<min(other.count, from + random.below(40))], at: position)
          default: bytes.insert(contentsOf: random.bytes(1 + random.below(9)), at: position)
          }
        }
        let payload: Payload
        do { payload = try decode(bytes) } catch { continue }
        accepted += 1
        try writesAgain(payload)
      }
    }
    #expect(accepted > 60)
  }

  /// Everything that was read is handed on by a carry.
  private func writesAgain(_ payload: Payload) throws {
    var builder = PayloadBuilder(origin: own, hlc: hlc)
    for change in payload.changes {
      builder.add(
        table: change.table, record: change.record,
        change.state.registers.map { ($0.register, $0.value, .other($0.stamp)) })
    }
    for note in payload.notes { builder.add(note: note) }
    for source in payload.sources { builder.add(source: source) }
    let parts = builder.finish()
    guard !builder.isEmpty else { return }
    #expect(parts.count == 1)
    let again = try decode(parts[0].bytes)
    #expect(again.notes == payload.notes)
    #expect(again.sources == payload.sources)
    #expect(Set(again.changes) == Set(payload.changes))
    #expect(again.changes.count == payload.changes.count)
  }

  @Test("random bytes never trap the reader", arguments: 0..<4)
  func noise(seed: UInt64) {
    var random = Generator(seed: 50 + seed)
    let header: [UInt8] = [0x85, 0x01, 0x80, 0x80]
    for _ in 0..<8000 {
      let noise = (0..<random.below(60)).map { _ in
        random.chance(2) ? Self.heads[random.below(Self.heads.count)] : UInt8(random.below(256))
      }
      _ = try? decode(noise)
      _ = try? decode(header + noise)
    }
  }
}
