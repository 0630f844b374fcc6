/// What a verb that did its work has to say, for people and for programs at once.
struct Outcome: Sendable {
  /// What people read on standard output.
  enum Body: Sendable {
    /// Lines whose text may hold names that others chose: made printable on the way out.
    case lines([Line])
    /// Text of our own, written exactly as it is.
    case text(String)
    /// Written to standard output while the work went on: too long to be held. Not with `--json`.
    case streamed
  }

  /// `.done`, or the number that qualifies it.
  var exit: ExitCode = .done
  /// `code` in the JSON answer.
  var code = "done"
  /// One sentence: `message` in the JSON answer.
  let message: String
  let body: Body
  /// What people should also know, on standard error.
  var notes: [Line] = []
  /// Commands that lead on, on standard error and in the JSON answer.
  var next: [String] = []
  /// The answer for programs.
  let data: JSON

  init(_ message: String, _ body: Body, data: JSON) {
    self.message = message
    self.body = body
    self.data = data
  }
}
