/// What was given to a verb, checked against the table.
struct ParsedArguments: Sendable {
  private let options: [String: [String]]
  private let arguments: [String: [String]]

  /// - Parameters:
  ///   - options: values by option name; a flag that was given has no values.
  ///   - arguments: values by argument name.
  init(options: [String: [String]], arguments: [String: [String]]) {
    self.options = options
    self.arguments = arguments
  }

  /// Whether the option was given.
  func has(_ option: Option) -> Bool { options[option.name] != nil }

  /// The option's value, if it was given.
  subscript(option: Option) -> String? { options[option.name]?.last }

  /// Every value of an option that may be given more than once, comma lists taken apart.
  func names(_ option: Option) -> [String] {
    (options[option.name] ?? []).flatMap { $0.split(separator: ",").map(String.init) }
  }

  /// The argument's value, if it was given.
  subscript(argument: Argument) -> String? { arguments[argument.name]?.first }

  /// Every value of an argument that may be given more than once.
  func all(_ argument: Argument) -> [String] { arguments[argument.name] ?? [] }

  /// The value of an option without which the verb cannot run.
  func required(_ option: Option) throws(CommandError) -> String {
    guard let value = self[option] else { throw .missing(option) }
    return value
  }

  /// The value of an argument without which the verb cannot run.
  func required(_ argument: Argument) throws(CommandError) -> String {
    guard let value = self[argument] else { throw .missing(argument) }
    return value
  }
}

extension CommandError {
  static func missing(_ option: Option, next: [String] = ["latchkey --help"]) -> CommandError {
    .usage("missing-option", "\(option.spelling) is missing: \(option.summary).", next: next)
  }

  static func missing(_ argument: Argument, next: [String] = ["latchkey --help"]) -> CommandError {
    .usage("missing-argument", "\(argument.name) is missing: \(argument.summary).", next: next)
  }
}
