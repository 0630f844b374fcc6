/// An argument as the table declares it: what stands on the command line without dashes, in order.
struct Argument: Sendable, Equatable {
  /// How help writes it: `DB`.
  let name: String
  let kind: ValueKind
  /// What it is, in one line without a full stop.
  let summary: String
  var isOptional = false
  /// May be given more than once; only the last of a verb's arguments.
  var isRepeatable = false

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

  /// The same argument, which may be given more than once.
  var repeated: Argument {
    var argument = self
    argument.isRepeatable = true
    return argument
  }

  /// `DB`, `[DB]`, or `ID...`.
  var spelling: String {
    let name = isRepeatable ? "\(name)..." : name
    return isOptional ? "[\(name)]" : name
  }
}
