import LatchkeyEncoding
import Testing

@Suite("Hashes")
struct HashTests {
  private func hash(_ length: Int, key: [UInt8] = [], _ parts: [[UInt8]]) -> [UInt8] {
    var hasher = Blake2b(length: length, key: key)
    for part in parts { hasher.update(part) }
    return hasher.finish()
  }

  @Test("BLAKE2b is that of RFC 7693, appendix A")
  func vector() {
    let expected =
      "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
      + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
    #expect(hex(hash(64, [Array("abc".utf8)])) == expected)
    #expect(hex(hash(64, [Array("a".utf8), [], Array("bc".utf8)])) == expected)
  }

  @Test("a keyed hash is that of the reference implementation's test vectors")
  func keyed() {
    // blake2-kat: key 00…3f, input empty and 00.
    let key = (0..<64).map { UInt8($0) }
    #expect(
      hex(hash(64, key: key, []))
        == "10ebb67700b1868efb4417987acf4690ae9d972fb7a590c2f02871799aaa4786"
        + "b5e996e8f0f4eb981fc214b005f42d2ff4233499391653df7aefcbc13fc51568")
    #expect(
      hex(hash(64, key: key, [[0]]))
        == "961f6dd1e4dd30f63901690c512e78e4b45e4742ed197c3c5e45c549fd25f2e4"
        + "187b0bc9fe30492b16b0d0bc4ef9b0f34c7003fac09a5ef1532e69430234cebd")
  }

  @Test("a hash is over the CBOR array of its purpose and parts")
  func purpose() {
    let direct = hash(32, key: [9], [unhex("83" + "6f" + hex("latchkey/1/test".utf8) + "01" + "4102") ?? []])
    let built = blake2b(32, "test", key: [9], parts: 2) { writer in
      writer.uint(1 as UInt64)
      writer.byteString([2])
    }
    #expect(built == direct)
    #expect(hash32("test", key: [9], parts: 2) { $0.raw([0x01, 0x41, 0x02]) }.bytes == direct)
  }

  @Test("another purpose, key, part or length is another hash")
  func separation() {
    let base = blake2b(32, "a", parts: 1) { $0.null() }
    #expect(base != blake2b(32, "b", parts: 1) { $0.null() })
    #expect(base != blake2b(32, "a", key: [0], parts: 1) { $0.null() })
    #expect(base != blake2b(32, "a", parts: 1) { $0.bool(false) })
    #expect(Array(base.prefix(16)) != blake2b(16, "a", parts: 1) { $0.null() })
  }

  @Test("byte strings are equal iff their bytes are")
  func equality() {
    #expect(constantTimeEqual([], []) && constantTimeEqual([1, 2], [1, 2]))
    #expect(!constantTimeEqual([1, 2], [1, 3]) && !constantTimeEqual([1], [1, 2]) && !constantTimeEqual([0], []))
  }
}
