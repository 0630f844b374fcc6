#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A moment as answers write it: always UTC, so that two devices' answers can be compared.
struct Moment: Sendable, Equatable {
  /// Since 1970-01-01 UTC.
  let milliseconds: Int64

  init(_ milliseconds: Int64) { self.milliseconds = milliseconds }

  /// For programs (RFC 3339): `2026-03-01T12:00:05.250Z`.
  var text: String {
    let parts = parts
    return "\(parts.day)T\(parts.time).\(Moment.padded(parts.milliseconds, 3))Z"
  }

  /// For people: `2026-03-01 12:00:05 UTC`.
  var shown: String {
    let parts = parts
    return "\(parts.day) \(parts.time) UTC"
  }

  private var parts: (day: String, time: String, milliseconds: Int) {
    // Rounded down: what is before 1970 has its milliseconds after the second, too.
    let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    var seconds = time_t(remainder < 0 ? quotient - 1 : quotient)
    var time = tm()
    gmtime_r(&seconds, &time)
    let day = [Int(time.tm_mon) + 1, Int(time.tm_mday)].map { "-" + Moment.padded($0, 2) }.joined()
    return (
      Moment.padded(Int(time.tm_year) + 1900, 4) + day,
      [time.tm_hour, time.tm_min, time.tm_sec].map { Moment.padded(Int($0), 2) }.joined(separator: ":"),
      Int(remainder < 0 ? remainder + 1000 : remainder)
    )
  }

  private static func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
