/// A session with the command that reads like a page of a manual.
///
/// Prose stands at the margin. What is indented by two spaces is the session:
///
///     $ latchkey frobnicate        a line of shell; a line that begins with "> " continues it
///     any other line               is expected on standard output
///     2> latchkey: …               is expected on standard error
///     [64]                         is the expected exit code; 0 if there is none
///
/// In expected lines `*` stands for anything, `\*` for a star, and a line of three dots for any number of lines.
struct Transcript {
  struct Step {
    let lineNumber: Int
    var command: String
    var output: [String] = []
    var error: [String] = []
    var exit: Int32 = 0
  }

  private(set) var steps: [Step] = []

  init(_ text: String) {
    var blanks = 0
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      guard line.hasPrefix("  ") else {
        // A blank line is part of the output if more output follows.
        blanks = line.isEmpty ? blanks + 1 : 0
        continue
      }
      let content = line.dropFirst(2)
      if content.hasPrefix("$ ") {
        steps.append(Step(lineNumber: index + 1, command: String(content.dropFirst(2))))
      } else if !steps.isEmpty {
        let last = steps.count - 1
        if content.hasPrefix("> ") {
          steps[last].command += "\n" + content.dropFirst(2)
        } else if content.hasPrefix("2>") {
          steps[last].error.append(String(content.dropFirst(content.hasPrefix("2> ") ? 3 : 2)))
        } else if content.hasPrefix("["), content.hasSuffix("]"), let exit = Int32(content.dropFirst().dropLast()) {
          steps[last].exit = exit
        } else {
          steps[last].output += Array(repeating: "", count: blanks) + [String(content)]
        }
      }
      blanks = 0
    }
  }

  /// A session in Markdown: what stands in blocks fenced as `console`.
  init(markdown: String) {
    var isInside = false
    let lines = markdown.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
      if line == "```console" {
        isInside = true
        return ""
      }
      if line == "```" { isInside = false }
      // Prose between two sessions keeps their lines apart.
      return isInside ? "  " + line : "."
    }
    self.init(lines.joined(separator: "\n"))
  }

  /// Whether what was written is what was expected.
  static func matches(_ expected: [String], _ written: String) -> Bool {
    var lines = written.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    return matches(expected[...], lines[...], any: "...") { pattern, line in
      matches(tokens(pattern)[...], line.map(Token.character)[...], any: .any, ==)
    }
  }

  private enum Token: Equatable {
    case any
    case character(Character)
  }

  private static func tokens(_ pattern: String) -> [Token] {
    var tokens: [Token] = []
    var isEscaped = false
    for character in pattern {
      if isEscaped, character != "*" { tokens.append(.character("\\")) }
      if character == "\\", !isEscaped {
        isEscaped = true
        continue
      }
      tokens.append(character == "*" && !isEscaped ? .any : .character(character))
      isEscaped = false
    }
    return tokens + (isEscaped ? [.character("\\")] : [])
  }

  /// Matches a pattern in which one element stands for any number of elements, going back to the last such element when
  /// what follows it does not fit.
  private static func matches<Element: Equatable>(
    _ pattern: ArraySlice<Element>, _ elements: ArraySlice<Element>, any: Element,
    _ fits: (Element, Element) -> Bool
  ) -> Bool {
    var (pattern, rest) = (pattern, elements)
    var retry: (pattern: ArraySlice<Element>, rest: ArraySlice<Element>)?
    while true {
      if let first = pattern.first, first == any {
        pattern.removeFirst()
        retry = (pattern, rest)
      } else if let first = pattern.first, let element = rest.first, fits(first, element) {
        pattern.removeFirst()
        rest.removeFirst()
      } else if pattern.isEmpty, rest.isEmpty {
        return true
      } else if let again = retry, !again.rest.isEmpty {
        retry = (again.pattern, again.rest.dropFirst())
        (pattern, rest) = (again.pattern, again.rest.dropFirst())
      } else {
        return false
      }
    }
  }
}
