/// Why a text is not the JSON we read.
struct JSONError: Error, Sendable, Equatable {
  /// What is wrong there, without a full stop.
  let reason: String
  /// Counted from 1.
  let line: Int
  /// Counted from 1, in characters (Unicode scalars).
  let column: Int
}

extension JSON {
  /// Reads one JSON text (RFC 8259, strictly): recipe files, reports of another device.
  ///
  /// Stricter than the RFC where leniency hides mistakes: a name that occurs twice in one object is an error, and so
  /// is nesting deeper than `depth`.
  ///
  /// - Parameters:
  ///   - bytes: UTF-8, optionally after a byte order mark.
  ///   - depth: how many arrays and objects may be open at once.
  /// - Throws: ``JSONError`` with the place of the first mistake.
  init(parsing bytes: [UInt8], depth: Int = 64) throws(JSONError) {
    var parser = JSONParser(bytes: bytes, depthLimit: depth)
    self = try parser.document()
  }
}

/// Recursive descent over the bytes; nothing is allocated before it was seen.
private struct JSONParser {
  let bytes: [UInt8]
  let depthLimit: Int
  var position = 0
  private var lastPlace = 0
  private var lastLine = 1

  init(bytes: [UInt8], depthLimit: Int) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  mutating func document() throws(JSONError) -> JSON {
    skipSpace()
    let value = try value(depth: 0)
    skipSpace()
    guard position == bytes.count else { throw error("something follows the end of the value") }
    return value
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSON {
    guard position < bytes.count else { throw error("a value is missing") }
    switch bytes[position] {
    case UInt8(ascii: "{"): return try object(depth: depth + 1)
    case UInt8(ascii: "["): return try array(depth: depth + 1)
    case UInt8(ascii: "\""): return .text(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","), UInt8(ascii: ":"):
      throw error("a value is missing")
    default: throw error("this is not the beginning of a value")
    }
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSON {
    try enter(depth)
    var members: [JSON.Member] = []
    var names: Set<String> = []
    skipSpace()
    if take("}") { return .object(members) }
    while true {
      skipSpace()
      let start = position
      guard peek("\"") else { throw error("a name in quotes is missing") }
      let name = try string()
      let line = line(at: start)
      guard names.insert(name).inserted else { throw error("the name \"\(name.printable)\" occurs twice", at: start) }
      skipSpace()
      guard take(":") else { throw error("a colon is missing after the name") }
      skipSpace()
      members.append(JSON.Member(name: name, value: try value(depth: depth), line: line))
      skipSpace()
      if take("}") { return .object(members) }
      guard take(",") else { throw error("a comma or the closing brace is missing") }
    }
  }

  private mutating func array(depth: Int) throws(JSONError) -> JSON {
    try enter(depth)
    var elements: [JSON] = []
    skipSpace()
    if take("]") { return .array(elements) }
    while true {
      skipSpace()
      elements.append(try value(depth: depth))
      skipSpace()
      if take("]") { return .array(elements) }
      guard take(",") else { throw error("a comma or the closing bracket is missing") }
    }
  }

  /// Steps over the opening brace or bracket.
  private mutating func enter(_ depth: Int) throws(JSONError) {
    guard depth <= depthLimit else { throw error("nested deeper than \(depthLimit)") }
    position += 1
  }

  private mutating func word(_ word: StaticString, _ value: JSON) throws(JSONError) -> JSON {
    let expected = word.withUTF8Buffer { Array($0) }
    guard bytes[position...].starts(with: expected) else { throw error("this is not the beginning of a value") }
    position += expected.count
    return value
  }

  private mutating func number() throws(JSONError) -> JSON {
    let start = position
    var isReal = false
    _ = take("-")
    if take("0") {
      if digit() != nil { throw error("a number does not begin with 0", at: start) }
    } else {
      try digits()
    }
    if take(".") {
      isReal = true
      try digits()
    }
    if take("e") || take("E") {
      isReal = true
      if !take("+") { _ = take("-") }
      try digits()
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if !isReal, let integer = Int64(text) { return .integer(integer) }
    guard let real = Double(text), real.isFinite else { throw error("the number is too large", at: start) }
    return .real(real)
  }

  private mutating func digits() throws(JSONError) {
    guard digit() != nil else { throw error("a digit is missing") }
    while digit() != nil { position += 1 }
  }

  private func digit() -> UInt8? {
    guard position < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position]) else { return nil }
    return bytes[position]
  }

  private mutating func string() throws(JSONError) -> String {
    let start = position
    position += 1
    var content: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: content, as: UTF8.self) else {
          throw error("the text is not UTF-8", at: start)
        }
        position += 1
        return text
      case UInt8(ascii: "\\"): content.append(contentsOf: String(try escape()).utf8)
      case 0..<0x20: throw error("a control character must be escaped")
      default:
        content.append(byte)
        position += 1
      }
    }
    throw error("the text has no closing quote", at: start)
  }

  private mutating func escape() throws(JSONError) -> Unicode.Scalar {
    let start = position
    position += 1
    guard position < bytes.count else { throw error("the escape is cut off", at: start) }
    let kind = bytes[position]
    position += 1
    switch kind {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default: throw error("there is no such escape", at: start)
    }
    let first = try fourDigits(start)
    if let scalar = Unicode.Scalar(first) { return scalar }
    // What is no scalar of its own is half of a surrogate pair; the high half must come first.
    guard first < 0xDC00, take("\\"), take("u") else { throw error("half of a surrogate pair", at: start) }
    let second = try fourDigits(start)
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
    else { throw error("half of a surrogate pair", at: start) }
    return scalar
  }

  private mutating func fourDigits(_ start: Int) throws(JSONError) -> UInt16 {
    let digits = bytes[position...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw error("four hexadecimal digits are missing", at: start) }
    position += 4
    return unit
  }

  private mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default: return
      }
    }
  }

  private func peek(_ character: Unicode.Scalar) -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: character)
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek(character) else { return false }
    position += 1
    return true
  }

  /// Counts on from the last place that was asked for: members come in order.
  private mutating func line(at place: Int) -> Int {
    lastLine += bytes[lastPlace..<place].count { $0 == 0x0A }
    lastPlace = place
    return lastLine
  }

  private func error(_ reason: String, at place: Int? = nil) -> JSONError {
    let before = bytes[..<min(place ?? position, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? before.startIndex
    // Bytes that continue a character are not counted.
    let column = before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1
    return JSONError(reason: reason, line: line, column: column)
  }
}
