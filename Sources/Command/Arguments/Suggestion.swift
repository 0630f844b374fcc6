/// What somebody may have meant.
enum Suggestion {
  /// The nearest of the words, if one is near enough to be meant: the only one that begins with what was written, or
  /// one that differs by a slip (a letter too many, too few, wrong, or two exchanged), by two from six letters on.
  ///
  /// Of equally near words the first one given wins.
  static func nearest(to word: String, among words: [String]) -> String? {
    let continued = words.filter { $0.hasPrefix(word) }
    if word.count >= 3, continued.count == 1 { return continued.first }
    let limit = word.count < 2 ? 0 : word.count < 6 ? 1 : 2
    var best: (word: String, distance: Int)?
    for candidate in words {
      let distance = distance(Array(word.lowercased()), Array(candidate))
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.word
  }

  /// Damerau–Levenshtein distance in its restricted form (optimal string alignment).
  private static func distance(_ a: [Character], _ b: [Character]) -> Int {
    // A long word is never near a word of the table; the bound keeps the table small.
    guard abs(a.count - b.count) <= 2, !a.isEmpty, !b.isEmpty else { return .max }
    var rows = [Array(0...b.count)]
    for i in 1...a.count {
      var row = [i]
      for j in 1...b.count {
        var cell = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
        if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { cell = min(cell, rows[i - 2][j - 2] + 1) }
        row.append(cell)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}
