/// Why a verb did not do what it was asked: everything a person and a script need to go on.
///
/// Every failure of the command ends as one of these; nothing else reaches the process's end.
struct CommandError: Error, Sendable, Equatable {
  /// The number the process ends with.
  let exit: ExitCode
  /// Which case of that number, in lower case with hyphens: `code` in the JSON answer.
  let code: String
  /// What happened and why, in whole sentences, without any secret.
  let message: String
  /// Commands that lead on, most useful first.
  let next: [String]
  /// What is known so far, for the JSON answer.
  let data: JSON

  init(_ exit: ExitCode, _ code: String, _ message: String, next: [String] = [], data: JSON = [:]) {
    self.exit = exit
    self.code = code
    self.message = message
    self.next = next
    self.data = data
  }

  /// A command line that cannot be understood.
  static func usage(_ code: String, _ message: String, next: [String]) -> CommandError {
    CommandError(.usage, code, message, next: next)
  }

  /// Ended by a signal, or by the task's cancellation that follows one.
  static let interrupted = CommandError(
    .interrupted, "interrupted", "Interrupted. What was under way is taken up again by the same command.")
}
