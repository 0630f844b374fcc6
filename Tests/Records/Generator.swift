import LatchkeyEncoding
import LatchkeyRecords

/// A seeded generator (SplitMix64; Steele, Lea, Flood 2014): every run of the tests makes the same choices.
struct Generator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }

  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
  mutating func chance(_ oneIn: Int) -> Bool { below(oneIn) == 0 }
  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
  }
  mutating func bytes16() -> Bytes16 { Bytes16(high: next(), low: next()) }
  mutating func name() -> RecordName { RecordName(raw: bytes16()) }
}

func device(_ number: UInt64) -> DeviceID { DeviceID(raw: Bytes16(high: number, low: 0)) }
func origin(_ number: UInt64, _ incarnation: UInt64 = 1) -> Origin {
  Origin(device: device(number), incarnation: Incarnation(incarnation))
}
func record(_ number: UInt64) -> RecordName { RecordName(raw: Bytes16(high: 0, low: number)) }
func at(_ milliseconds: Int64, _ counter: UInt16 = 0) -> HLC { HLC(milliseconds: milliseconds, counter: counter) }

extension Generator {
  /// From few times, origins and ties, so that equal and nearly equal stamps are common.
  mutating func stamp(_ isFilledIn: Bool = false) -> Stamp {
    Stamp(
      hlc: HLC(rawValue: UInt64(below(5))), isFilledIn: isFilledIn,
      origin: origin(UInt64(below(2)), UInt64(below(2))), tie: UInt64(below(2)))
  }

  mutating func value(depth: Int = 1) -> Value {
    switch below(depth > 0 ? 12 : 11) {
    case 0: .null
    case 1: .integer(Int64(below(3)))
    case 2: .integer(Int64(bitPattern: next()))
    case 3: .real(Double(bitPattern: next()))
    case 4: .real(Double(below(3)))
    case 5: .text(Array("text \(below(3))".utf8))
    case 6: .text(bytes(below(6)))
    case 7: .blob(bytes(below(40)))
    case 8: .reference(RecordName(raw: bytes16()))
    case 9: .text(Array(uuid().utf8))
    case 10: .unknown([0xcc, UInt8(below(24))])
    default: .together((0..<below(4)).map { _ in value(depth: 0) })
    }
  }

  mutating func uuid() -> String {
    let digits = hex(bytes(16))
    var out = ""
    for (index, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(index) { out.append("-") }
      out.append(digit)
    }
    return out
  }

  /// A value that a register accepts; few different ones, so that equal stamps meet equal and different values.
  mutating func value(of register: Register) -> RegisterValue {
    switch register {
    case .born, .tombstone:
      .life(chance(2) ? nil : RowUnit(parent: record(UInt64(below(2))), rowCount: UInt64(below(3))))
    case .home: .home(ZoneID(raw: Bytes16(high: 0, low: UInt64(below(3)))))
    case .alias:
      .alias(
        Alias(
          canonical: record(UInt64(below(2))), keyHash: Bytes16(high: UInt64(below(2)), low: 0),
          isPreferred: chance(2)))
    case .lend: .lend(chance(2) ? nil : ZoneID(raw: Bytes16(high: 0, low: UInt64(below(3)))))
    case .hide: .hide(chance(2) ? nil : record(UInt64(below(3))))
    case .additive:
      .additive(
        Contribution(born: stamp(), number: chance(2) ? .integer(Int64(below(9))) : .real(Double(below(9)) / 4)))
    case .cell: .cell(value())
    case .unknown: .raw([0x18, UInt8(24 + below(3))])
    }
  }

  mutating func register() -> Register {
    let columns = ["a", "b", "longer name", "u\u{308}", "\u{fc}"]
    return switch below(16) {
    case 0, 1, 2: .born
    case 3, 4: .tombstone
    case 5: .home
    case 6: .alias
    case 7: .lend
    case 8: .hide(column: chance(2) ? nil : columns[below(5)])
    case 9, 10: .additive(column: columns[below(2)], origin(UInt64(below(2)), UInt64(below(2))))
    case 11: .unknown(chance(2) ? [0x07] : [0x82, 0x09, 0x61, 0x78])
    default: .cell(columns[below(5)])
    }
  }

  mutating func entry() -> RegisterEntry {
    let register = self.register()
    var isFilledIn = false
    if case .cell = register { isFilledIn = chance(3) }
    return RegisterEntry(register, stamp(isFilledIn), value(of: register))
  }

  mutating func entries(_ bound: Int) -> [RegisterEntry] { (0..<below(bound)).map { _ in entry() } }
}
