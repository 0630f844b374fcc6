import LatchkeyEncoding
import Testing

@Suite("Identifiers")
struct IdentifierTests {
  @Test("bytes come back, order is byte order, and a wrong length is none")
  func bytes() throws {
    var random = Generator(seed: 1)
    for _ in 0..<1000 {
      let a = random.bytes(32)
      var b = a
      b[random.below(32)] = UInt8(random.below(256))
      let (x, y) = (try #require(Hash32(a)), try #require(Hash32(b)))
      #expect(x.bytes == a && (x < y) == a.lexicographicallyPrecedes(b) && (x == y) == (a == b))
      let (p, q) = (try #require(RecordName(Array(a.prefix(16)))), try #require(RecordName(Array(b.prefix(16)))))
      #expect(p.bytes == Array(a.prefix(16)) && (p < q) == p.bytes.lexicographicallyPrecedes(q.bytes))
      let (i, j) = (try #require(Incarnation(Array(a.prefix(8)))), try #require(Incarnation(Array(b.prefix(8)))))
      #expect(i.bytes == Array(a.prefix(8)) && (i < j) == i.bytes.lexicographicallyPrecedes(j.bytes))
    }
    for count in [0, 7, 9, 15, 17, 31, 33] {
      let bytes = [UInt8](repeating: 0, count: count)
      #expect(Hash32(bytes) == nil && ZoneID(bytes) == nil && Incarnation(bytes) == nil)
    }
  }

  /// Addition of big-endian bytes, digit by digit.
  private func add(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: 32)
    var carry = 0
    for i in (0..<32).reversed() {
      let sum = Int(a[i]) + Int(b[i]) + carry
      out[i] = UInt8(sum & 255)
      carry = sum >> 8
    }
    return out
  }

  @Test("hashes add up mod 2^256, with every carry, and a sum can be taken back")
  func sums() throws {
    var random = Generator(seed: 2)
    for _ in 0..<2000 {
      // Runs of ones and zeros make carries travel, also through whole words.
      func operand() -> [UInt8] {
        (0..<4).flatMap { _ in
          switch random.below(4) {
          case 0: [UInt8](repeating: 255, count: 8)
          case 1: [UInt8](repeating: 0, count: 7) + [UInt8(random.below(2))]
          default: random.bytes(8)
          }
        }
      }
      let (a, b) = (operand(), operand())
      let (x, y) = (try #require(Hash32(a)), try #require(Hash32(b)))
      #expect((x &+ y).bytes == add(a, b))
      #expect((x &+ y) == (y &+ x))
      #expect((x &+ y) &- y == x)
      #expect(x &- x == .zero)
    }
    let most = try #require(Hash32([UInt8](repeating: 255, count: 32)))
    let one = try #require(Hash32([UInt8](repeating: 0, count: 31) + [1]))
    #expect(most &+ one == .zero && .zero &- one == most)
  }

  @Test("hexadecimal text comes back, in either case, and nothing else is it")
  func hexadecimal() {
    var random = Generator(seed: 3)
    for count in 0..<40 {
      let bytes = random.bytes(count)
      #expect(unhex(hex(bytes)) == bytes)
      #expect(unhex(hex(bytes).uppercased()) == bytes)
    }
    for text in ["0", "0g", "zz", " 00", "0x00", "0\u{fc}"] { #expect(unhex(text) == nil) }
  }
}
