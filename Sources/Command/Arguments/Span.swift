/// A length of time as people write it: a whole number and a unit (`s`, `m`, `h`, `d`, `w`).
struct Span: Sendable, Equatable {
  /// From 1 second to 365 days.
  let seconds: Int64

  /// - Parameter text: such as `90s`, `10m`, `24h`, `7d`, `2w`.
  /// - Returns: nil if it is none of these, zero, or longer than 365 days.
  init?(_ text: String) {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    guard let last = text.last, let unit = units[last] else { return nil }
    let digits = text.dropLast()
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }), let count = Int64(digits) else {
      return nil
    }
    let (seconds, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow, (1...365 * 86_400).contains(seconds) else { return nil }
    self.seconds = seconds
  }
}
