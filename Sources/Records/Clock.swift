/// The hybrid logical clock of one database file: rises with every own push group and every accepted one.
///
/// Time comes in as a parameter: the clock of the machine is never asked.
public struct Clock: Hashable, Sendable {
  /// The greatest reading given out or seen.
  public private(set) var last: HLC

  public init(last: HLC = .zero) { self.last = last }

  /// How far ahead of the local time a reading may be before its group waits, in milliseconds (format §10).
  public static let limit: Int64 = 600_000

  /// The stamp's time for a new push group.
  ///
  /// - Parameter milliseconds: when its last edit was made, in milliseconds since 1970-01-01 UTC. An edit made offline
  ///   is dated when it was made, not when it is sent.
  /// - Returns: a reading greater than every one given out or seen before.
  public mutating func tick(editedAt milliseconds: Int64) -> HLC {
    last = max(HLC(milliseconds: milliseconds), last.next)
    return last
  }

  /// Takes note of another device's reading, so that whatever is edited after seeing it is stamped as later.
  /// Only raises. The caller has checked ``isAhead(_:now:)``: a clock set to 2099 must not move this one.
  public mutating func saw(_ hlc: HLC) { last = max(last, hlc) }

  /// Whether a reading is too far ahead to be applied yet.
  ///
  /// - Parameter now: the local time, in milliseconds since 1970-01-01 UTC.
  public static func isAhead(_ hlc: HLC, now: Int64) -> Bool {
    let (limit, overflow) = now.addingReportingOverflow(Clock.limit)
    return !overflow && hlc.milliseconds > limit
  }
}
