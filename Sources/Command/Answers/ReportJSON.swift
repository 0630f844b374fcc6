import Latchkey

// What the library reports, in the shapes of docs/cli.md.

extension JSON {
  /// Text, or null.
  static func text(_ text: String?) -> JSON { text.map(JSON.text) ?? .null }

  static func count(_ count: Int) -> JSON { .integer(Int64(count)) }

  static func moment(_ milliseconds: Int64) -> JSON { .text(Moment(milliseconds).text) }

  static func warnings(_ warnings: [Warning]) -> JSON {
    .array(warnings.map { ["code": .text($0.code), "message": .text($0.message)] })
  }

  /// An object whose members follow `self`'s.
  func adding(_ members: [Member]) -> JSON {
    guard case .object(let present) = self else { return self }
    return .object(present + members)
  }
}

extension Line {
  static func warnings(_ warnings: [Warning]) -> [Line] { warnings.map { Line(.warning, $0.message) } }
}
