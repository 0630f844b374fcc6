/// A page of documentation before it has a look: help, the man page and docs/cli.md are three looks of the same pages.
struct Page: Sendable {
  struct Section: Sendable {
    let title: String
    let blocks: [Block]

    init(_ title: String, _ blocks: [Block]) {
      self.title = title
      self.blocks = blocks
    }
  }

  enum Block: Sendable {
    case paragraph(String)
    /// Rows of term and meaning.
    case terms([Term])
    /// Lines shown as they are.
    case code([String])
  }

  let title: String
  let sections: [Section]
}

extension Page {
  /// The page of one verb, action or group.
  init(verb path: [Verb]) {
    let name = (["latchkey"] + path.map(\.name)).joined(separator: " ")
    guard let verb = path.last else {
      self = .command
      return
    }
    var sections = [
      Section("", [.paragraph(verb.summary.capitalizedFirst + ".")] + verb.details.map(Block.paragraph)),
      Section("Usage", [.code(Page.usage(name, verb))]),
    ]
    if !verb.actions.isEmpty {
      sections.append(Section("Actions", [.terms(verb.actions.map { Term($0.name, $0.summary) })]))
    }
    if !verb.arguments.isEmpty {
      sections.append(Section("Arguments", [.terms(verb.arguments.map { Term($0.name, $0.summary) })]))
    }
    let options = verb.options.filter { !$0.isHidden }
    if !options.isEmpty { sections.append(Section("Options", [.terms(Page.terms(options))])) }
    if verb.actions.isEmpty {
      sections.append(Section("Exit codes", [.terms(Page.terms(verb.allExits))]))
    }
    if !verb.data.isEmpty { sections.append(Section("JSON data", [.terms(verb.data)])) }
    if !verb.examples.isEmpty { sections.append(Section("Examples", [.code(verb.examples)])) }
    self.init(title: name, sections: sections)
  }

  /// The page of the whole command.
  static var command: Page {
    Page(
      title: "latchkey",
      sections: [
        Section(
          "", [.paragraph("Share a SQLite database within a household, over storage that nobody has to trust.")]),
        Section("Usage", [.code(["latchkey VERB [ARGUMENTS] [OPTIONS]", "latchkey VERB --help"])]),
        Section("Verbs", [.terms(Verbs.all.map { Term($0.name, $0.summary) })]),
        Section("Options of every verb", [.terms(terms(Globals.options))]),
        Section("Topics", [.terms(Topics.all.map { Term("help \($0.name)", $0.summary) })]),
      ])
  }

  static func terms(_ options: [Option]) -> [Term] {
    options.map { option in
      let short = option.short.map { "-\($0), " } ?? ""
      let notes = (option.isRequired ? " (required)" : "") + (option.isRepeatable ? " (may be repeated)" : "")
      return Term(short + option.spelling, option.summary + notes)
    }
  }

  static func terms(_ exits: [ExitCode]) -> [Term] {
    exits.map { Term(String($0.rawValue), $0.meaning) }
  }

  private static func usage(_ name: String, _ verb: Verb) -> [String] {
    if !verb.actions.isEmpty {
      return verb.actions.flatMap { usage("\(name) \($0.name)", $0) }
    }
    let options = verb.options.filter { !$0.isHidden }
    let words =
      [name] + verb.arguments.map(\.spelling) + options.filter(\.isRequired).map(\.spelling)
      + options.filter { !$0.isRequired }.map { "[\($0.spelling)]" }
    return [words.joined(separator: " ")]
  }
}

extension Verb {
  /// All it can end with, in order.
  var allExits: [ExitCode] {
    let all = Set(exits + [.done, .other, .usage, .interrupted])
    return ExitCode.allCases.filter(all.contains)
  }
}
