internal import LatchkeyEncoding

/// Where random bytes come from: a parameter, so that this room stays pure and a simulated world can be repeated.
///
/// Real keys need a source that nobody can predict (the keyring room has the system's).
public protocol RandomSource {
  /// `count` bytes, 0 or more, that were never given before.
  mutating func bytes(_ count: Int) -> [UInt8]
}

/// Some source of randomness, as one concrete type.
public struct AnyRandomSource: RandomSource, Sendable {
  private var source: any RandomSource & Sendable

  public init(_ source: any RandomSource & Sendable) { self.source = source }

  public mutating func bytes(_ count: Int) -> [UInt8] { source.bytes(count) }
}

/// Bytes that follow from a seed: for tests, the simulator and frozen vectors, never for real keys.
///
/// Block i is `H_64(seed; "seeded-random", i)`, blocks are used one after the other.
public struct SeededRandom: RandomSource, Sendable {
  private let seed: [UInt8]
  private var counter: UInt64 = 0
  private var block: [UInt8] = []

  /// - Parameter seed: any text; equal seeds give equal bytes.
  public init(_ seed: String) {
    self.seed = hash32("seeded-random", parts: 1) { $0.text(seed) }.bytes
  }

  public mutating func bytes(_ count: Int) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(count)
    while out.count < count {
      if block.isEmpty {
        block = blake2b(64, "seeded-random", key: seed, parts: 1) { $0.uint(counter) }
        counter += 1
      }
      let taken = min(count - out.count, block.count)
      out.append(contentsOf: block.prefix(taken))
      block.removeFirst(taken)
    }
    return out
  }
}
