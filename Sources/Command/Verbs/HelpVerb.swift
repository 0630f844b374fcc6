extension Verbs {
  private static let topic = Argument("TOPIC", .topic, "a topic, or a verb").optional
  private static let man = hidden(.flag("man", "print the source of the man page"))
  private static let markdown = hidden(.flag("markdown", "print docs/cli.md"))

  private static func hidden(_ option: Option) -> Option {
    var option = option
    option.isHidden = true
    return option
  }

  static let help = Verb(
    name: "help",
    summary: "explain a verb or a topic",
    details: ["Topics: \(Topics.all.map(\.name).joined(separator: ", "))."],
    arguments: [topic],
    options: [man, markdown],
    data: [Term("text", "the page, as it is shown to people")],
    examples: ["latchkey help exit-codes", "latchkey help sync"],
    body: .runs { arguments, _ throws(CommandError) in
      if arguments.has(man) { return page("The man page.", ManPage.source) }
      if arguments.has(markdown) { return page("The reference page.", ReferencePage.markdown) }
      guard let name = arguments[topic] else { return HelpPage(path: []).outcome }
      if let topic = Topics.all.first(where: { $0.name == name }) { return HelpPage(topic: topic).outcome }
      if let verb = all.first(where: { $0.name == name }) { return HelpPage(path: [verb]).outcome }
      let names = Topics.all.map(\.name) + all.map(\.name)
      let suggestion = Suggestion.nearest(to: name, among: names)
      throw .usage(
        "unknown-topic",
        "There is no help about \(name.quotedUnlessSecret)."
          + (suggestion.map { " Did you mean \"\($0)\"?" } ?? ""),
        next: (suggestion.map { ["latchkey help \($0)"] } ?? []) + ["latchkey --help"])
    })

  private static func page(_ message: String, _ text: String) -> Outcome {
    Outcome(message, .text(text), data: ["text": .text(text)])
  }
}
