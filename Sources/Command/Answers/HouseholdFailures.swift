import Latchkey

extension JSON {
  /// `[{household, code, message}]`.
  static func failures(_ failures: [HouseholdFailure]) -> JSON {
    .array(
      failures.map {
        ["household": .text($0.household), "code": .text($0.why.code), "message": .text($0.why.message)]
      })
  }
}

extension Outcome {
  /// Says in which households something was not done; nothing where it was done in all.
  mutating func note(_ failures: [HouseholdFailure], _ what: String, code: String, next: [String] = []) {
    guard !failures.isEmpty else { return }
    notes += failures.map { Line(.warning, "\(what)\($0.household): \($0.why.message)") }
    exit = .setAside
    self.code = code
    self.next = next
  }
}
