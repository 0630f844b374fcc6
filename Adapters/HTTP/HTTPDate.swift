/// Dates of HTTP header fields, as seconds since 1970 UTC.
///
/// Source: RFC 9110 §5.6.7, all three forms; the days are counted after Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms".
public enum HTTPDate {
  /// Nil for what is none of the three forms, or no date.
  public static func parse(_ text: String) -> Int? {
    let words = text.split(whereSeparator: { $0 == " " || $0 == "," })
    switch words.count {
    // Sun, 06 Nov 1994 08:49:37 GMT
    case 6 where words[5] == "GMT":
      guard let year = number(words[3], digits: 4...4) else { return nil }
      return seconds(year, month(words[2]), number(words[1], digits: 1...2), words[4])
    // Sunday, 06-Nov-94 08:49:37 GMT
    case 4 where words[3] == "GMT":
      let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 3, let short = number(parts[2], digits: 2...2) else { return nil }
      return seconds(
        short < 70 ? 2000 + short : 1900 + short, month(parts[1]), number(parts[0], digits: 2...2), words[2])
    // Sun Nov  6 08:49:37 1994
    case 5:
      guard let year = number(words[4], digits: 4...4) else { return nil }
      return seconds(year, month(words[1]), number(words[2], digits: 1...2), words[3])
    default: return nil
    }
  }

  /// The preferred form: `Sun, 06 Nov 1994 08:49:37 GMT`.
  public static func format(_ seconds: Int) -> String {
    let moment = CivilTime(seconds)
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let day = days[((moment.daysSince1970 % 7) + 7) % 7]
    return "\(day), \(pad(moment.day, 2)) \(months[moment.month - 1]) \(pad(moment.year, 4)) "
      + "\(pad(moment.hour, 2)):\(pad(moment.minute, 2)):\(pad(moment.second, 2)) GMT"
  }

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static func month(_ text: Substring) -> Int? { months.firstIndex(of: String(text)).map { $0 + 1 } }

  private static func number(_ text: Substring, digits: ClosedRange<Int>) -> Int? {
    guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int(text)
  }

  private static func seconds(_ year: Int, _ month: Int?, _ day: Int?, _ time: Substring) -> Int? {
    let parts = time.split(separator: ":", omittingEmptySubsequences: false)
    guard let month, let day, parts.count == 3, let hour = number(parts[0], digits: 2...2),
      let minute = number(parts[1], digits: 2...2), let second = number(parts[2], digits: 2...2),
      (1...31).contains(day), hour < 24, minute < 60, second < 61
    else { return nil }
    return CivilTime.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
  }

  static func pad(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

/// A moment's parts in UTC (proleptic Gregorian calendar).
public struct CivilTime: Equatable, Sendable {
  public let year: Int
  /// 1...12
  public let month: Int
  /// 1...31
  public let day: Int
  public let hour: Int
  public let minute: Int
  public let second: Int

  /// - Parameter seconds: since 1970; any number within ten thousand years of it.
  public init(_ seconds: Int) {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let rest = seconds - days * 86_400
    (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60)
    // Eras of 400 years that begin on 1 March, so that the leap day comes last.
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  var daysSince1970: Int { Self.days(year, month, day) }

  /// Days from 1970-01-01 to a date.
  static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

/// `20130524T000000Z`, the form of signatures and of some servers' replies.
extension CivilTime {
  /// `YYYYMMDD`.
  public var compactDay: String { HTTPDate.pad(year, 4) + HTTPDate.pad(month, 2) + HTTPDate.pad(day, 2) }

  /// `YYYYMMDDTHHMMSSZ` (ISO 8601, basic form).
  public var compact: String {
    compactDay + "T" + HTTPDate.pad(hour, 2) + HTTPDate.pad(minute, 2) + HTTPDate.pad(second, 2) + "Z"
  }
}
