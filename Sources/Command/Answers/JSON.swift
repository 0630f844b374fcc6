/// A JSON value (RFC 8259) whose text is the same for the same value: members keep the order they were given.
///
/// Answers are built from it and recipe files are read into it. Integers stay integers; a real always shows a point
/// or an exponent, so a reader can tell `5` from `5.0`.
enum JSON: Sendable, Equatable {
  case null
  case bool(Bool)
  case integer(Int64)
  case real(Double)
  case text(String)
  case array([JSON])
  case object([Member])

  /// A name with its value; names are unique within an object.
  struct Member: Sendable, Equatable {
    let name: String
    let value: JSON
    /// The line that the name stood on, counted from 1, if the member was read from a text.
    let line: Int?

    init(name: String, value: JSON, line: Int? = nil) {
      self.name = name
      self.value = value
      self.line = line
    }

    /// Where it stood makes no difference.
    static func == (a: Self, b: Self) -> Bool { a.name == b.name && a.value == b.value }
  }

  /// The member of that name, if this is an object that has it.
  subscript(name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  /// The text, if this is one.
  var text: String? {
    guard case .text(let text) = self else { return nil }
    return text
  }

  /// The integer, if this is one.
  var integer: Int64? {
    guard case .integer(let integer) = self else { return nil }
    return integer
  }

  /// The elements, if this is an array.
  var array: [JSON]? {
    guard case .array(let elements) = self else { return nil }
    return elements
  }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral
{
  init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member(name: $0.0, value: $0.1) })
  }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(stringLiteral value: String) { self = .text(value) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(nilLiteral: ()) { self = .null }
}
