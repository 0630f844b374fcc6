/// What a command line asks for.
enum Request: Sendable {
  case version
  /// Help about the verb of that path; the whole command if it is empty.
  case help(path: [Verb])
  case run(Runner, ParsedArguments)
}

/// Reads a command line against the table of verbs, in the manner of getopt_long: long options with `=` or a separate
/// value, one-letter flags bundled, options before and after arguments, `--` ending the options. Nothing may be
/// abbreviated, so that a script keeps its meaning when verbs and options are added.
struct Parser: Sendable {
  let verbs: [Verb]

  /// - Parameter words: the command line without the program's name.
  /// - Throws: a ``CommandError`` with exit code 64.
  func parse(_ words: [String]) throws(CommandError) -> (Globals, Request) {
    var tokens = tokens(of: words, preferring: [])
    let plain = tokens.compactMap { if case .plain(let word) = $0 { word } else { nil } }
    let path = try path(plain)
    let here = Place(path: path)
    // An option may take a value with one verb and none with another: the verb's own say which.
    tokens = self.tokens(of: words, preferring: here.options)
    if tokens.contains(where: { $0.is(Globals.help) }) {
      return (Globals(try assigned(tokens, at: here, lenient: true)), .help(path: path))
    }
    if tokens.contains(where: { $0.is(Globals.version) }) {
      return (Globals(try assigned(tokens, at: here, lenient: true)), .version)
    }
    guard let verb = path.last else {
      try refuseUnknown(tokens, at: here)
      throw .usage("missing-verb", "Nothing to do: a verb is missing.", next: ["latchkey --help"])
    }
    let given = try assigned(tokens, at: here, lenient: false)
    switch verb.body {
    case .runs(let runner): return (Globals(given), .run(runner, given))
    case .groups(let actions):
      throw .usage(
        "missing-action", "\"\(here.name)\" needs one of: \(actions.map(\.name).joined(separator: ", ")).",
        next: actions.map { "\(here.name) \($0.name)" })
    }
  }

  /// Whether the one JSON object is asked for; answers even where the rest cannot be understood.
  static func asksForJSON(_ words: [String]) -> Bool {
    words.prefix { $0 != "--" }.contains("--\(Globals.json.name)")
  }

  // MARK: Words to tokens

  private enum Token {
    case option(Option, value: String?)
    /// A value is missing after the last word.
    case unfinished(Option)
    /// `--flag=value`.
    case overfull(Option)
    case unknown(String)
    case plain(String)

    func `is`(_ sought: Option) -> Bool {
      if case .option(let option, _) = self { option.name == sought.name } else { false }
    }
  }

  /// Options of every verb, so that words can be told apart before the verb is known.
  private var knownOptions: [Option] {
    func options(_ verb: Verb) -> [Option] { verb.options + verb.actions.flatMap(options) }
    return Globals.options + verbs.flatMap(options)
  }

  private func tokens(of words: [String], preferring own: [Option]) -> [Token] {
    let known = own + knownOptions
    var tokens: [Token] = []
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" {
        tokens += rest.map(Token.plain)
        break
      } else if word.hasPrefix("--") {
        tokens.append(longOption(word, known: known, rest: &rest))
      } else if word.hasPrefix("-"), word != "-" {
        for letter in word.dropFirst() {
          let option = known.first { $0.short == letter }
          tokens.append(option.map { .option($0, value: nil) } ?? .unknown("-\(letter)"))
        }
      } else {
        tokens.append(.plain(word))
      }
    }
    return tokens
  }

  private func longOption(_ word: String, known: [Option], rest: inout ArraySlice<String>) -> Token {
    let body = word.dropFirst(2)
    let name = body.prefix { $0 != "=" }
    let attached = name.endIndex == body.endIndex ? nil : String(body[body.index(after: name.endIndex)...])
    guard let option = known.first(where: { $0.name == name }) else { return .unknown("--\(name)") }
    if option.value == nil {
      return attached == nil ? .option(option, value: nil) : .overfull(option)
    }
    if let attached { return .option(option, value: attached) }
    // A known option in the place of a value is a forgotten value, not a value.
    guard let next = rest.first, !known.contains(where: { next == "--\($0.name)" }), next != "--" else {
      return .unfinished(option)
    }
    rest.removeFirst()
    return .option(option, value: next)
  }

  // MARK: Tokens to verb

  /// Where on the command line we are, for messages.
  private struct Place {
    let path: [Verb]

    var name: String { (["latchkey"] + path.map(\.name)).joined(separator: " ") }
    var help: [String] { ["\(name) --help"] }
    var options: [Option] { Globals.options + (path.last?.options ?? []) }
    var arguments: [Argument] { path.last?.arguments ?? [] }
  }

  private func path(_ plain: [String]) throws(CommandError) -> [Verb] {
    guard let word = plain.first else { return [] }
    guard let verb = verbs.first(where: { $0.name == word }) else {
      throw unknown("verb", word, among: verbs, at: Place(path: []))
    }
    guard !verb.actions.isEmpty, plain.count > 1 else { return [verb] }
    guard let action = verb.actions.first(where: { $0.name == plain[1] }) else {
      throw unknown("action", plain[1], among: verb.actions, at: Place(path: [verb]))
    }
    return [verb, action]
  }

  private func unknown(_ what: String, _ word: String, among verbs: [Verb], at place: Place) -> CommandError {
    let suggestion = Suggestion.nearest(to: word, among: verbs.map(\.name))
    let hint = suggestion.map { " Did you mean \"\($0)\"?" } ?? ""
    return .usage(
      "unknown-\(what)", "\"\(place.name)\" has no \(what) \(word.quotedUnlessSecret).\(hint)",
      next: (suggestion.map { ["\(place.name) \($0) --help"] } ?? []) + place.help)
  }

  // MARK: Tokens to values

  private func refuseUnknown(_ tokens: [Token], at place: Place) throws(CommandError) {
    for case .unknown(let word) in tokens { throw unknownOption(word, at: place) }
  }

  private func unknownOption(_ word: String, at place: Place) -> CommandError {
    let names = place.options.filter { !$0.isHidden }.map(\.name)
    let suggestion = Suggestion.nearest(to: String(word.drop { $0 == "-" }), among: names)
    let hint = suggestion.map { " Did you mean \"--\($0)\"?" } ?? ""
    return .usage(
      "unknown-option", "\"\(place.name)\" has no option \(word.quotedUnlessSecret).\(hint)", next: place.help)
  }

  /// Gives every token its place in the verb's declaration.
  ///
  /// - Parameter lenient: passes over what is wrong: for help, which is wanted most by who got something wrong.
  private func assigned(_ tokens: [Token], at place: Place, lenient: Bool) throws(CommandError) -> ParsedArguments {
    var options: [String: [String]] = [:]
    var plain: [String] = []
    for token in tokens {
      do throws(CommandError) {
        switch token {
        case .plain(let word): plain.append(word)
        case .unknown(let word): throw unknownOption(word, at: place)
        case .unfinished(let option):
          throw .usage("missing-value", "--\(option.name) needs a value: \(option.spelling).", next: place.help)
        case .overfull(let option):
          throw .usage("unexpected-value", "--\(option.name) takes no value.", next: place.help)
        case .option(let option, let value):
          try assign(option, value, to: &options, at: place)
        }
      } catch {
        if !lenient { throw error }
      }
    }
    if lenient { return ParsedArguments(options: options, arguments: [:]) }
    let arguments = try assign(plain.dropFirst(place.path.count), at: place)
    for option in place.options where option.isRequired && options[option.name] == nil {
      throw .missing(option, next: place.help)
    }
    return ParsedArguments(options: options, arguments: arguments)
  }

  private func assign(
    _ given: Option, _ value: String?, to options: inout [String: [String]], at place: Place
  ) throws(CommandError) {
    guard let option = place.options.first(where: { $0.name == given.name }) else {
      throw unknownOption("--\(given.name)", at: place)
    }
    guard let value, let kind = option.value?.kind else {
      options[option.name] = []
      return
    }
    if let objection = kind.objection(to: value) {
      throw .usage(
        "bad-value", "--\(option.name) cannot be \(value.quotedUnlessSecret): \(objection)", next: place.help)
    }
    if options[option.name] != nil, !option.isRepeatable {
      throw .usage("repeated-option", "--\(option.name) is given twice.", next: place.help)
    }
    options[option.name, default: []].append(value)
  }

  private func assign(_ plain: ArraySlice<String>, at place: Place) throws(CommandError) -> [String: [String]] {
    var arguments: [String: [String]] = [:]
    var rest = plain
    for argument in place.arguments {
      guard let first = rest.popFirst() else {
        if argument.isOptional { break }
        throw .missing(argument, next: place.help)
      }
      var words = [first]
      if argument.isRepeatable {
        words += rest
        rest = []
      }
      for word in words {
        if let objection = argument.kind.objection(to: word) {
          throw .usage(
            "bad-value", "\(argument.name) cannot be \(word.quotedUnlessSecret): \(objection)", next: place.help)
        }
      }
      arguments[argument.name] = words
    }
    guard let extra = rest.first else { return arguments }
    if extra.looksSecret {
      throw .usage(
        "secret-argument",
        "An invite link does not belong on the command line, where other programs and the shell's history see it: "
          + "give it on standard input or with --invite-file. Better make a new invite.",
        next: place.help)
    }
    throw .usage("unexpected-argument", "\"\(place.name)\" has no place for \"\(extra.printable)\".", next: place.help)
  }
}
