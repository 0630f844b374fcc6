import LatchkeyEncoding
import Testing

@Suite("Padding")
struct PaddingTests {
  @Test("lengths are padded as PADMÉ pads them, from the floor up")
  func padme() {
    // Computed from the paper's definition: the last E - S bits are zero, E = floor(log2 L), S = floor(log2 E) + 1.
    for (length, padded) in [
      (0, 4096), (1, 4096), (4096, 4096), (4097, 4352), (4352, 4352), (4353, 4608), (8191, 8192), (8192, 8192),
      (8193, 8704), (65_537, 67_584), (1_000_000, 1_015_808), (1 << 20, 1 << 20), ((1 << 20) + 1, (1 << 20) + 32_768),
    ] {
      #expect(Padding.padme(length) == padded, "\(length)")
    }
  }

  @Test("a padded length is at least the length, at most 12 % longer, stable, and rises with it")
  func properties() {
    var random = Generator(seed: 1)
    for _ in 0..<5000 {
      let length = 4096 + Int(random.next() >> UInt64(28 + random.below(35)))
      let padded = Padding.padme(length)
      #expect(padded >= length)
      #expect(Double(padded - length) <= 0.12 * Double(length))
      #expect(Padding.padme(padded) == padded)
      #expect(Padding.padme(length + 1) >= padded)
    }
  }

  @Test("heads are padded to powers of two")
  func powers() {
    for (length, padded) in [(0, 4096), (4096, 4096), (4097, 8192), (8192, 8192), (8193, 16_384), (1 << 24, 1 << 24)] {
      #expect(Padding.powerOfTwo(length) == padded)
    }
  }
}
