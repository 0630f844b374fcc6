/// Randomness of the simulated world: SplitMix64 (Steele, Lea, Flood 2014), one stream for each concern and step.
///
/// A stream is named, not shared: what one step draws cannot move what another draws, so an operation that is left out
/// when a failure is shrunk does not reshuffle the rest.
struct Stream: RandomNumberGenerator {
  private var state: UInt64

  /// - Parameters:
  ///   - seed: of the run.
  ///   - concern: what the numbers are for, such as `"faults"`.
  ///   - index: which step, device or round they are for.
  init(_ seed: UInt64, _ concern: StaticString, _ index: Int = 0) {
    var hash = seed &* 0x9e37_79b9_7f4a_7c15
    concern.withUTF8Buffer { for byte in $0 { hash = Stream.mix(hash ^ UInt64(byte)) } }
    state = Stream.mix(hash ^ Stream.mix(UInt64(bitPattern: Int64(index))))
  }

  private static func mix(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9e37_79b9_7f4a_7c15
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// A number in `0 ..< bound`; 0 for a bound of 0.
  mutating func below(_ bound: Int) -> Int { bound <= 0 ? 0 : Int(next() % UInt64(bound)) }

  /// True `percent` times in a hundred.
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  mutating func pick<T>(_ items: [T]) -> T? { items.isEmpty ? nil : items[below(items.count)] }

  /// One of `items`, each as often as its weight says.
  mutating func pick<T>(weighted items: [(T, Int)]) -> T? {
    var at = below(items.reduce(0) { $0 + $1.1 })
    for (item, weight) in items {
      if at < weight { return item }
      at -= weight
    }
    return nil
  }
}
