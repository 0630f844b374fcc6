extension Verbs {
  /// Stands in for the work of a verb while the library under it is being built.
  static let unwired: Runner = { _, _ throws(CommandError) in
    throw CommandError(.other, "not-in-this-build", "This build of latchkey cannot do that yet.")
  }
}
