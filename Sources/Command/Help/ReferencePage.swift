/// docs/cli.md: the same pages as `--help`, as Markdown.
enum ReferencePage {
  static var markdown: String {
    var text = "# The latchkey command\n\nMade by `scripts/make-cli-docs` from the command's own table of verbs.\n"
    text += page(.command, level: 2)
    text += "\n## The JSON answer\n\n" + Topics.answer.map(markdown).joined(separator: "\n")
    for path in Verbs.leaves { text += page(Page(verb: path), level: 2) }
    for topic in Topics.all {
      text += "\n## \(topic.title)\n\n" + topic.blocks.map(markdown).joined(separator: "\n")
    }
    return text
  }

  private static func page(_ page: Page, level: Int) -> String {
    let marks = String(repeating: "#", count: level)
    var text = "\n\(marks) \(page.title)\n"
    for section in page.sections {
      if !section.title.isEmpty { text += "\n\(marks)# \(section.title)\n" }
      text += "\n" + section.blocks.map(markdown).joined(separator: "\n")
    }
    return text
  }

  private static func markdown(_ block: Page.Block) -> String {
    switch block {
    case .paragraph(let text): escaped(text) + "\n"
    case .code(let lines): "```\n" + lines.joined(separator: "\n") + "\n```\n"
    case .terms(let terms):
      terms.map { "- `\($0.term)` – \(escaped($0.meaning))\n" }.joined()
    }
  }

  private static func escaped(_ text: String) -> String {
    var markdown = ""
    for character in text {
      if "\\`*_<>[]|#".contains(character) { markdown += "\\" }
      markdown.append(character)
    }
    return markdown
  }
}
