/// What does a verb's work.
typealias Runner = @Sendable (ParsedArguments, Context) async throws(CommandError) -> Outcome

/// One verb as the table declares it. Parsing, help, the man page, completion and docs/cli.md all come from here.
struct Verb: Sendable {
  /// A verb does something itself, or groups actions that do (`device add`, `device list`).
  enum Body: Sendable {
    case runs(Runner)
    case groups([Verb])
  }

  let name: String
  /// What it does, in one line without a full stop.
  let summary: String
  /// More about it, a paragraph each.
  var details: [String] = []
  var arguments: [Argument] = []
  var options: [Option] = []
  /// What it can end with besides 0, 1, 64 and 130, which every verb can.
  var exits: [ExitCode] = []
  /// The members of `data` in its JSON answer, with what each is.
  var data: [Term] = []
  /// Command lines worth showing.
  var examples: [String] = []
  let body: Body

  /// The actions of a group; none for a verb that does something itself.
  var actions: [Verb] {
    switch body {
    case .runs: []
    case .groups(let actions): actions
    }
  }
}

/// A term and what it means: a row in help, the man page and the documentation.
struct Term: Sendable, Equatable {
  let term: String
  let meaning: String

  init(_ term: String, _ meaning: String) {
    self.term = term
    self.meaning = meaning
  }
}
