extension Page {
  /// The page for a terminal: at most 80 columns.
  var text: String {
    sections.map { section in
      let heading = section.title.isEmpty ? "" : "\(section.title):\n"
      let indent = section.title.isEmpty ? 0 : 2
      return heading + section.blocks.map { $0.text(indent: indent) }.joined(separator: "\n")
    }.joined(separator: "\n")
  }
}

extension Page.Block {
  private static let width = 80

  fileprivate func text(indent: Int) -> String {
    let margin = String(repeating: " ", count: indent)
    switch self {
    case .paragraph(let text):
      return Page.Block.wrap(text, width: Page.Block.width - indent).map { margin + $0 + "\n" }.joined()
    case .code(let lines):
      return lines.flatMap { Page.Block.wrap($0, width: Page.Block.width - indent, hanging: 4) }
        .map { margin + $0 + "\n" }.joined()
    case .terms(let terms):
      let column = min((terms.map(\.term.count).max() ?? 0) + 2, 26)
      return terms.map { Page.Block.row($0, margin: margin, column: column) }.joined()
    }
  }

  private static func row(_ term: Term, margin: String, column: Int) -> String {
    let lines = wrap(term.meaning, width: width - margin.count - column)
    let padding = String(repeating: " ", count: column)
    var text = margin + term.term
    var rest = lines[...]
    if term.term.count <= column - 2, let first = rest.popFirst() {
      text += String(repeating: " ", count: column - term.term.count) + first
    }
    text += "\n"
    return text + rest.map { margin + padding + $0 + "\n" }.joined()
  }

  /// Breaks at spaces; a word that is too long for a line keeps its own.
  private static func wrap(_ text: String, width: Int, hanging: Int = 0) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      if !line.isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = String(repeating: " ", count: hanging) + word
      } else {
        line += (line.isEmpty ? "" : " ") + word
      }
    }
    return lines + [line]
  }
}
