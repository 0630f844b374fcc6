/// One line of an answer or a note.
struct Line: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
  enum Mark: Sendable {
    /// No mark: a heading or a row.
    case none
    /// Something was done.
    case done
    /// Something needs attention.
    case warning
    /// Belongs to the line above.
    case detail
  }

  let mark: Mark
  let text: String

  init(_ mark: Mark, _ text: String) {
    self.mark = mark
    self.text = text
  }

  init(stringLiteral text: String) {
    self.init(.none, text)
  }
}
