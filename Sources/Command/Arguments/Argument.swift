/// An argument as the table declares it: what stands on the command line without dashes, in order.
struct Argument: Sendable, Equatable {
  /// How help writes it: `DB`.
  let name: String
  let kind: ValueKind
  /// What it is, in one line without a full stop.
  let summary: String
  var isOptional = false

  init(_ name: String, _ kind: ValueKind, _ summary: String) {
    self.name = name
    self.kind = kind
    self.summary = summary
  }

  /// The same argument, which may be left out.
  var optional: Argument {
    var argument = self
    argument.isOptional = true
    return argument
  }

  /// `DB`, or `[DB]`.
  var spelling: String {
    isOptional ? "[\(name)]" : name
  }
}
