internal import LatchkeyKeys

extension ComparisonWords {
  /// Compares with what somebody typed, and tells what is wrong with it.
  ///
  /// - Parameter otherwise: what it means if the words are right and others.
  /// - Throws: ``LatchkeyError`` of kind `key`, unless they are the same.
  func require(_ typed: String, otherwise: LatchkeyError) throws(LatchkeyError) {
    switch compare(typed) {
    case .same: return
    case .different: throw otherwise
    case .count(let count):
      throw LatchkeyError(
        .key, "words-count", "There are \(Self.count) words to compare, and \(count) were given. Nothing was changed.",
        next: ["type all \(Self.count) words"])
    case .unknownWord(let position, let word, let suggestions):
      let hint = suggestions.isEmpty ? "" : " Perhaps \(suggestions.joined(separator: " or ")) is meant."
      throw LatchkeyError(
        .key, "words-unknown", "Word \(position), \(word), is none of the list.\(hint) Nothing was changed.",
        next: ["ask for word \(position) again"])
    case .slip(let positions):
      let which = positions.map(String.init).joined(separator: ", ")
      throw LatchkeyError(
        .key, "words-mistyped",
        "The words do not belong together: one was misheard or mistyped. They differ from what is seen here at \(which). "
          + "Nothing was changed.",
        next: ["ask for the words again"])
    }
  }
}
