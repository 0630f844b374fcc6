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

extension Moment {
  /// The moment that `--since` names: so long ago (``Span``), a day, or a moment in UTC.
  init?(since text: String) {
    if let span = Span(text) {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      self.init(Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000 - span.seconds * 1000)
      return
    }
    let parts = text.split(separator: "T", omittingEmptySubsequences: false)
    let day = parts[0].split(separator: "-", omittingEmptySubsequences: false).map { Int32($0) }
    guard parts.count <= 2, day.count == 3, let year = day[0], let month = day[1], let date = day[2],
      (1970...9999).contains(year), (1...12).contains(month), (1...31).contains(date)
    else { return nil }
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday) = (year - 1900, month - 1, date)
    if parts.count == 2 {
      let clock = parts[1].hasSuffix("Z") ? parts[1].dropLast() : parts[1]
      let numbers = clock.split(separator: ":", omittingEmptySubsequences: false).map {
        Int32($0.prefix { $0 != "." })
      }
      guard (2...3).contains(numbers.count), let hour = numbers[0], let minute = numbers[1],
        let second = numbers.count == 3 ? numbers[2] : 0, (0...23).contains(hour), (0...59).contains(minute),
        (0...60).contains(second)
      else { return nil }
      (time.tm_hour, time.tm_min, time.tm_sec) = (hour, minute, second)
    }
    self.init(Int64(timegm(&time)) * 1000)
  }
}
