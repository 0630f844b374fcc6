import Synchronization

/// What the command says at its end, exactly once, whoever comes first: the verb, or the signal that interrupts it.
final class Answer: Sendable {
  private let isGiven = Atomic(false)
  private let isJSON: Bool
  private let isQuiet: Bool
  private let isASCII: Bool

  /// - Parameters:
  ///   - isJSON: one JSON object, for programs.
  ///   - isQuiet: no notes and no hints, for people.
  init(isJSON: Bool, isQuiet: Bool, isASCII: Bool) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isASCII = isASCII
  }

  /// Writes the result where it belongs: answers to standard output, all else to standard error.
  ///
  /// - Returns: the exit code to end with; nil if another answer was given before.
  func give(_ result: Result<Outcome, CommandError>) -> ExitCode? {
    guard isGiven.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else { return nil }
    let isWritten = isJSON ? Descriptor.output.write(json(result)) : writeForPeople(result)
    guard isWritten else {
      Descriptor.error.write("latchkey: the answer could not be written to standard output.\n")
      return .other
    }
    switch result {
    case .success(let outcome): return outcome.exit
    case .failure(let error): return error.exit
    }
  }

  private func json(_ result: Result<Outcome, CommandError>) -> String {
    let (exit, code, message, next, data) =
      switch result {
      case .success(let outcome): (outcome.exit, outcome.code, outcome.message, outcome.next, outcome.data)
      case .failure(let error): (error.exit, error.code, error.message, error.next, error.data)
      }
    let object: JSON = [
      "v": 1, "ok": .bool(exit.isSuccess), "code": .text(code), "message": .text(message),
      "next": .array(next.map(JSON.text)), "data": data,
    ]
    return object.encoded(ascii: isASCII) + "\n"
  }

  private func writeForPeople(_ result: Result<Outcome, CommandError>) -> Bool {
    let style = Style(for: .error, ascii: isASCII)
    switch result {
    case .success(let outcome):
      let isWritten = Descriptor.output.write(text(of: outcome.body))
      let next = isQuiet ? [] : outcome.next
      let notes = isQuiet ? [] : outcome.notes
      Descriptor.error.write(notes.map(style.rendered).joined() + hints(next))
      return isWritten
    case .failure(let error):
      Descriptor.error.write(style.failure(error.message) + hints(error.next))
      return true
    }
  }

  private func text(of body: Outcome.Body) -> String {
    switch body {
    case .lines(let lines):
      let style = Style(for: .output, ascii: isASCII)
      return lines.map(style.rendered).joined()
    case .text(let text): return text
    case .streamed: return ""
    }
  }

  private func hints(_ next: [String]) -> String {
    next.enumerated().map { ($0.offset == 0 ? "Next: " : "      ") + $0.element.printable + "\n" }.joined()
  }
}
