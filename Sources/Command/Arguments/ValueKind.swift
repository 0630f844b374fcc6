/// What a value on the command line is: checked when it is read, offered by completion.
enum ValueKind: Sendable, Equatable {
  case text
  case file
  case directory
  /// A SQLite database file.
  case database
  /// Where a store is: `folder:PATH`, a bare path, or another scheme.
  case store
  /// One of these words.
  case choice([String])
  /// A length of time such as `24h`; see ``Span``.
  case span
  /// Names with commas between them.
  case names
  /// A topic of help, or a verb.
  case topic

  /// The words completion offers; none where files are offered, or nothing can be.
  var words: [String] {
    switch self {
    case .choice(let words): words
    case .topic: Topics.all.map(\.name) + Verbs.all.map(\.name)
    case .text, .file, .directory, .database, .store, .span, .names: []
    }
  }

  /// Whether completion offers files.
  var isFile: Bool {
    switch self {
    case .file, .directory, .database, .store: true
    case .text, .choice, .span, .names, .topic: false
    }
  }

  /// Why a value is not of this kind; nil if it is.
  func objection(to value: String) -> String? {
    switch self {
    case .choice(let words):
      if words.contains(value) { return nil }
      let suggestion = Suggestion.nearest(to: value, among: words).map { " Did you mean \"\($0)\"?" } ?? ""
      return "it is one of \(words.joined(separator: ", ")).\(suggestion)"
    case .span:
      return Span(value) == nil ? "it is a length of time such as 10m, 24h or 7d (at most 365d)." : nil
    case .names:
      return value.split(separator: ",", omittingEmptySubsequences: false).contains("")
        ? "it is names with one comma between them." : nil
    case .text, .file, .directory, .database, .store, .topic:
      return value.isEmpty ? "it must not be empty." : nil
    }
  }
}
