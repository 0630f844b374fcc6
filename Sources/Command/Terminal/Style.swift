/// How text for people looks on one stream.
struct Style: Sendable, Equatable {
  let isColoured: Bool
  let isASCII: Bool

  /// Colours only on a terminal that can show them, and only if nobody objects.
  init(for stream: Descriptor, ascii: Bool) {
    isColoured = stream.isTerminal && Environment.value("NO_COLOR") == nil && Environment.value("TERM") != "dumb"
    isASCII = ascii
  }

  /// The line with its mark, printable, with its end. A mark never differs from another by colour alone.
  func rendered(_ line: Line) -> String {
    let text = line.text.printable
    switch line.mark {
    case .none: return text + "\n"
    case .done: return coloured(isASCII ? "ok" : "✓", 32) + " \(text)\n"
    case .warning: return coloured("!", 33) + " \(text)\n"
    case .detail: return "  \(text)\n"
    }
  }

  /// The first line of a failure.
  func failure(_ message: String) -> String {
    coloured("latchkey:", 31) + " \(message.printable)\n"
  }

  /// Between parts of a line.
  var separator: String { isASCII ? " - " : " · " }

  /// - Parameter colour: an SGR parameter of ECMA-48.
  private func coloured(_ text: String, _ colour: Int) -> String {
    isColoured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
  }
}
