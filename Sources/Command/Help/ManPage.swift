/// The man page, in the man(7) macros every roff has.
enum ManPage {
  /// The source of latchkey(1).
  static var source: String {
    var roff = ".TH LATCHKEY 1 \"\" \"latchkey \(version)\"\n"
    roff += ".SH NAME\nlatchkey \\- share a SQLite database within a household\n"
    for section in Page.command.sections {
      roff += section.title.isEmpty ? ".SH DESCRIPTION\n" : ".SH \(quoted(section.title.uppercased()))\n"
      roff += section.blocks.map(source).joined()
    }
    for path in Verbs.leaves {
      let page = Page(verb: path)
      roff += ".SH \(quoted(page.title))\n"
      for section in page.sections {
        if !section.title.isEmpty { roff += ".SS \(quoted(section.title))\n" }
        roff += section.blocks.map(source).joined()
      }
    }
    for topic in Topics.all {
      roff += ".SH \(quoted(topic.title.uppercased()))\n" + topic.blocks.map(source).joined()
    }
    return roff
  }

  private static func source(_ block: Page.Block) -> String {
    switch block {
    case .paragraph(let text): ".PP\n\(line(text))\n"
    case .code(let lines): ".PP\n.nf\n" + lines.map { line($0) + "\n" }.joined() + ".fi\n"
    case .terms(let terms):
      terms.map { ".TP\n\\fB\(escaped($0.term))\\fR\n\(line($0.meaning))\n" }.joined()
    }
  }

  /// A line of text; a dot or quote at its beginning would be a request.
  private static func line(_ text: String) -> String {
    let isRequest = text.hasPrefix(".") || text.hasPrefix("'")
    return (isRequest ? "\\&" : "") + escaped(text)
  }

  private static func quoted(_ text: String) -> String { "\"\(escaped(text))\"" }

  private static func escaped(_ text: String) -> String {
    var roff = ""
    for character in text {
      switch character {
      case "\\": roff += "\\e"
      case "-": roff += "\\-"
      case "\"": roff += "\\(dq"
      default: roff.append(character)
      }
    }
    return roff
  }
}
