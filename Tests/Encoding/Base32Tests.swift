import LatchkeyEncoding
import Testing

@Suite("Base 32")
struct Base32Tests {
  @Test(
    "bytes are written as RFC 4648, section 10 writes them, in lower case and without padding",
    arguments: [
      ("", ""), ("f", "co"), ("fo", "cpng"), ("foo", "cpnmu"), ("foob", "cpnmuog"), ("fooba", "cpnmuoj1"),
      ("foobar", "cpnmuoj1e8"),
    ])
  func vectors(plain: String, encoded: String) {
    #expect(Base32.encode(Array(plain.utf8)) == encoded)
  }

  @Test("twenty bytes are 32 digits, and text order is byte order")
  func order() {
    var random = Generator(seed: 1)
    for _ in 0..<2000 {
      let a = random.bytes(20)
      var b = a
      b[random.below(20)] = UInt8(random.below(256))
      #expect(Base32.encode(a).utf8.count == 32)
      #expect((Base32.encode(a) < Base32.encode(b)) == a.lexicographicallyPrecedes(b))
    }
  }

  @Test("a counter is 13 digits, comes back, and its text order is its order")
  func counters() {
    #expect(Base32.encode(counter: 0) == "0000000000000")
    #expect(Base32.encode(counter: 32) == "0000000000010")
    #expect(Base32.encode(counter: .max) == "fvvvvvvvvvvvv")
    var random = Generator(seed: 2)
    for _ in 0..<2000 {
      let a = random.next() >> UInt64(random.below(64))
      let b = random.next() >> UInt64(random.below(64))
      #expect(Base32.counter(Base32.encode(counter: a)) == a)
      #expect((Base32.encode(counter: a) < Base32.encode(counter: b)) == (a < b))
    }
  }

  @Test(
    "anything but 13 digits of at most 64 bits is no counter",
    arguments: [
      "", "0", "000000000000", "00000000000000", "g000000000000", "vvvvvvvvvvvvv", "000000000000w", "00000000000 0",
      "000000000000A", "-000000000001", "00000000000\u{fc}",
    ])
  func notCounters(text: String) {
    #expect(Base32.counter(text) == nil)
  }
}
