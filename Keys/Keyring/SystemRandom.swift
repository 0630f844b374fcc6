public import LatchkeyKeys

/// The operating system's randomness: what real keys are made of.
public struct SystemRandom: RandomSource, Sendable {
  private var generator = SystemRandomNumberGenerator()

  public init() {}

  public mutating func bytes(_ count: Int) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(count)
    while out.count < count {
      let word = generator.next()
      for shift in stride(from: 0, to: 64, by: 8) where out.count < count {
        out.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return out
  }
}
