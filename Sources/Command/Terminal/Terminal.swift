import LatchkeyKeys

/// The person at the other end, or what stands in for one: notes, questions, secrets.
///
/// Answers do not go through here (see ``Answer``); everything here is standard error and standard input.
struct Terminal: Sendable {
  let progress: Progress
  private let style: Style
  private let globals: Globals

  init(globals: Globals, progress: Progress) {
    self.globals = globals
    self.progress = progress
    style = Style(for: .error, ascii: globals.ascii)
  }

  // MARK: Notes

  /// Something worth knowing while work goes on; not with `-q`.
  func note(_ line: Line) {
    if !globals.quiet { write(style.rendered(line)) }
  }

  /// Something only `-v` asks for.
  func detail(_ text: @autoclosure () -> String) {
    if globals.verbose { write(style.rendered(Line(.detail, text()))) }
  }

  private func write(_ text: String) {
    progress.pause { _ = Descriptor.error.write(text) }
  }

  // MARK: Questions

  /// Asks a y/N question; everything but yes is no. `--yes` answers it.
  ///
  /// - Parameters:
  ///   - summary: what will happen, and what others will see; shown before the question.
  ///   - question: without `[y/N]`.
  ///   - next: the command that does it without asking.
  /// - Throws: exit code 4 if the answer is no, 15 if nobody can be asked.
  func confirm(_ summary: [Line], _ question: String, next: [String]) throws(CommandError) {
    if globals.yes { return }
    let answer = try ask(summary, "\(question) [y/N] ", next: next).lowercased()
    guard answer == "y" || answer == "yes" else { throw Terminal.cancelled }
  }

  /// Asks for a name to be typed, for what cannot be undone. `--yes` does not answer it.
  ///
  /// - Parameter given: the value of `--confirm`, which answers it if it is the name.
  /// - Throws: exit code 4 if the answer is another, 15 if nobody can be asked.
  func confirm(_ summary: [Line], typing name: String, given: String?, next: [String]) throws(CommandError) {
    if let given {
      if given == name { return }
      throw CommandError(.cancelled, "name-differs", "--confirm names something else. Nothing was changed.", next: next)
    }
    let answer = try ask(summary, "Type \"\(name.printable)\" to go on: ", next: next)
    guard answer == name else { throw Terminal.cancelled }
  }

  /// Asks for something that a person knows and that is no secret. `--yes` does not answer it.
  ///
  /// - Throws: exit code 15 if nobody can be asked, 4 if nothing is answered.
  func answer(_ summary: [Line], _ question: String, next: [String]) throws(CommandError) -> String {
    let answer = try ask(summary, question, next: next)
    guard !answer.isEmpty else { throw Terminal.cancelled }
    return answer
  }

  /// Asks for words that another person reads out. Neither `--yes` nor anything else answers it.
  ///
  /// - Returns: nil if nothing was typed, or nobody can be asked.
  func words(_ summary: [Line], _ question: String) -> String? {
    guard !globals.noInput, Descriptor.input.isTerminal else { return nil }
    write(summary.map(style.rendered).joined() + question)
    let typed = Terminal.asking { readAnswer() }
    return typed.flatMap { $0.isEmpty ? nil : $0 }
  }

  private func ask(_ summary: [Line], _ question: String, next: [String]) throws(CommandError) -> String {
    guard !globals.noInput else {
      throw CommandError(
        .decisionNeeded, "confirmation-needed",
        "This needs a person's yes, and --no-input forbids asking. Nothing was changed.", next: next)
    }
    write(summary.map(style.rendered).joined() + question)
    let answer = Terminal.asking { readAnswer() }
    if answer == nil || !Descriptor.input.isTerminal { write("\n") }
    guard let answer else { throw Terminal.cancelled }
    return answer
  }

  /// One line of standard input; of the terminal itself if standard input is used up (it carried an invite).
  private func readAnswer() -> String? {
    let line: [UInt8]?
    if let given = Descriptor.input.readLine(limit: 1024) {
      line = given
    } else if !Descriptor.input.isTerminal, let terminal = Descriptor.controllingTerminal() {
      defer { terminal.closeFile() }
      line = terminal.readLine(limit: 1024)
    } else {
      line = nil
    }
    return line.map { String(decoding: $0, as: UTF8.self).trimmed }
  }

  private static func asking<Result>(_ body: () -> Result) -> Result {
    Interrupt.isAsking.store(true, ordering: .relaxed)
    defer { Interrupt.isAsking.store(false, ordering: .relaxed) }
    return body()
  }

  private static let cancelled = CommandError(.cancelled, "cancelled", "Not confirmed. Nothing was changed.")

  // MARK: Secrets

  /// Reads a secret that is one line: from a file only its owner can read, from what is piped to standard input, or
  /// typed without being shown.
  ///
  /// - Parameters:
  ///   - what: such as "the invite link".
  ///   - file: where to read it from instead.
  ///   - next: commands that give it.
  /// - Throws: exit code 14 if there is none, or if others can read the file; 1 if the file cannot be read.
  func readSecret(_ what: String, file: String?, next: [String]) throws(CommandError) -> String {
    let text: String?
    if let file {
      text = String(decoding: try SmallFile.read(file, isSecret: true), as: UTF8.self)
        .split(whereSeparator: \.isNewline).lazy.map { String($0).trimmed }.first { !$0.isEmpty }
    } else if Descriptor.input.isTerminal {
      guard !globals.noInput else {
        throw CommandError(
          .keyRefused, "secret-missing", "\(what.capitalizedFirst) is missing, and --no-input forbids asking for it.",
          next: next)
      }
      text = Echo.off(on: .input) {
        write("Paste \(what) (it is not shown): ")
        defer { write("\n") }
        return Terminal.asking { Descriptor.input.readLine() }
      }.map { String(decoding: $0, as: UTF8.self).trimmed }
    } else {
      text = Descriptor.input.firstLine
    }
    guard let text, !text.isEmpty else {
      throw CommandError(.keyRefused, "secret-missing", "\(what.capitalizedFirst) is missing.", next: next)
    }
    return text
  }

  /// The same for a secret of several lines, which ends with an empty line where it is typed.
  func readSecretText(_ what: String, file: String?, next: [String]) throws(CommandError) -> String {
    if let file { return String(decoding: try SmallFile.read(file, isSecret: true), as: UTF8.self) }
    guard Descriptor.input.isTerminal else {
      guard let text = Descriptor.input.readAll(limit: 1 << 16), !text.isEmpty else {
        throw CommandError(.keyRefused, "secret-missing", "\(what.capitalizedFirst) are missing.", next: next)
      }
      return String(decoding: text, as: UTF8.self)
    }
    return try readSecret(what, file: nil, next: next)
  }

  /// The passphrase that opens a sealed keyring: from the file that `LATCHKEY_PASSPHRASE_FILE` names, else typed without being
  /// shown. Standard input is left alone where it is no terminal: it may carry an invite.
  ///
  /// - Returns: nil where nobody can be asked.
  /// - Throws: exit code 14 if others can read the file; 1 if it cannot be read.
  func passphrase() throws(CommandError) -> SecretBytes? {
    if let file = Environment.value("LATCHKEY_PASSPHRASE_FILE") { return try Terminal.passphrase(in: file) }
    guard !globals.noInput else { return nil }
    if Descriptor.input.isTerminal { return typed("Passphrase of your keys (it is not shown): ", on: .input) }
    guard let terminal = Descriptor.controllingTerminal() else { return nil }
    defer { terminal.closeFile() }
    return typed("Passphrase of your keys (it is not shown): ", on: terminal)
  }

  /// A passphrase to set: from a file only its owner can read, from what is piped to standard input, or typed twice.
  ///
  /// - Throws: exit code 14 if there is none, or the two differ.
  func newPassphrase(file: String?, next: [String]) throws(CommandError) -> SecretBytes {
    let passphrase: SecretBytes?
    if let file {
      passphrase = try Terminal.passphrase(in: file)
    } else if Descriptor.input.isTerminal {
      passphrase = globals.noInput ? nil : typed("New passphrase (it is not shown): ", on: .input)
      if let passphrase, !passphrase.bytes.isEmpty {
        guard typed("The same once more: ", on: .input) == passphrase else {
          throw CommandError(
            .keyRefused, "passphrases-differ", "The two passphrases differ. Nothing was changed.", next: next)
        }
      }
    } else {
      passphrase = Descriptor.input.readLine().map(Terminal.withoutReturn)
    }
    guard let passphrase, !passphrase.bytes.isEmpty else {
      throw CommandError(
        .keyRefused, "secret-missing", "The new passphrase is missing. Nothing was changed.", next: next)
    }
    return passphrase
  }

  private func typed(_ prompt: String, on terminal: Descriptor) -> SecretBytes? {
    Echo.off(on: terminal) {
      write(prompt)
      defer { write("\n") }
      return Terminal.asking { terminal.readLine(limit: 4096) }
    }.map(Terminal.withoutReturn)
  }

  /// The first line, as it is: spaces may belong to it.
  private static func passphrase(in file: String) throws(CommandError) -> SecretBytes {
    let content = try SmallFile.read(file, isSecret: true)
    return withoutReturn(Array(content.prefix { $0 != UInt8(ascii: "\n") }))
  }

  private static func withoutReturn(_ line: [UInt8]) -> SecretBytes {
    SecretBytes(line.last == UInt8(ascii: "\r") ? Array(line.dropLast()) : line)
  }
}

extension Descriptor {
  /// The first line that is not blank.
  fileprivate var firstLine: String? {
    while let line = readLine() {
      let text = String(decoding: line, as: UTF8.self).trimmed
      if !text.isEmpty { return text }
    }
    return nil
  }
}

extension String {
  /// Without white space at both ends.
  var trimmed: String {
    var rest = self[...].drop(while: \.isWhitespace)
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }

  var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
