internal import Glibc
internal import LatchkeyKeyring
public import LatchkeyKeys

/// What the library takes from outside besides files and the store: time and randomness. Tests and the simulator give their own.
public struct World: Sendable {
  /// Milliseconds since 1970-01-01 UTC.
  public let now: @Sendable () -> Int64
  /// A source of randomness fit for keys.
  public let random: @Sendable () -> any RandomSource & Sendable

  public init(now: @escaping @Sendable () -> Int64, random: @escaping @Sendable () -> any RandomSource & Sendable) {
    self.now = now
    self.random = random
  }

  /// The system's clock, and libsodium's randomness.
  public static let system = World(
    now: {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    },
    random: { SystemRandom() })
}
