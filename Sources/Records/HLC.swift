/// A hybrid logical clock's reading (Kulkarni et al., "Logical Physical Clocks", 2014; format §1): 48 bits of
/// milliseconds since 1970-01-01 UTC, then 16 bits of counter, in one number that orders as events do.
public struct HLC: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The number as it stands on the wire.
  public let rawValue: UInt64

  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// - Parameters:
  ///   - milliseconds: since 1970-01-01 UTC; what does not fit in 48 bits is moved to the nearest that does.
  ///   - counter: tells readings within one millisecond apart.
  public init(milliseconds: Int64, counter: UInt16 = 0) {
    rawValue = UInt64(min(max(milliseconds, 0), HLC.maximumMilliseconds)) << 16 | UInt64(counter)
  }

  /// The earliest reading.
  public static let zero = HLC(rawValue: 0)

  static let maximumMilliseconds: Int64 = 1 << 48 - 1

  /// The time part, in milliseconds since 1970-01-01 UTC: 0 ..< 2^48.
  public var milliseconds: Int64 { Int64(rawValue >> 16) }

  /// The counter within the millisecond.
  public var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// The least reading after this one. The greatest has none after it and stays (nobody gets there: ``Clock/limit``).
  public var next: HLC { HLC(rawValue: rawValue == .max ? .max : rawValue + 1) }

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

  public var description: String { "\(milliseconds).\(counter)" }
}
