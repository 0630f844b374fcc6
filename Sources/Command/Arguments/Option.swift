/// An option as the table declares it: `--name VALUE`, or a flag.
struct Option: Sendable, Equatable {
  /// What an option takes.
  struct Value: Sendable, Equatable {
    /// How help writes it: `FILE`.
    let placeholder: String
    let kind: ValueKind
  }

  /// Without the dashes.
  let name: String
  /// One letter after one dash; flags only, so that letters can be bundled.
  let short: Character?
  /// nil for a flag.
  let value: Value?
  /// What it does, in one line without a full stop.
  let summary: String
  var isRequired = false
  /// May be given more than once; the values add up.
  var isRepeatable = false
  /// Works, but is not shown: for scripts of this project.
  var isHidden = false

  static func flag(_ name: String, short: Character? = nil, _ summary: String) -> Option {
    Option(name: name, short: short, value: nil, summary: summary)
  }

  static func taking(_ placeholder: String, _ kind: ValueKind, _ name: String, _ summary: String) -> Option {
    Option(name: name, short: nil, value: Value(placeholder: placeholder, kind: kind), summary: summary)
  }

  /// The same option, without which the verb cannot run.
  var required: Option {
    var option = self
    option.isRequired = true
    return option
  }

  /// The same option, explained for one verb.
  func saying(_ summary: String) -> Option {
    var option = Option(name: name, short: short, value: value, summary: summary)
    option.isRequired = isRequired
    option.isRepeatable = isRepeatable
    option.isHidden = isHidden
    return option
  }

  /// `--name VALUE`, or `--name`.
  var spelling: String {
    value.map { "--\(name) \($0.placeholder)" } ?? "--\(name)"
  }
}
