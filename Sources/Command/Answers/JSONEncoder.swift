extension JSON {
  /// The value on one line, safe to show on a terminal: control characters, line separators and characters that turn
  /// the direction of text are escaped.
  ///
  /// - Parameter ascii: escapes everything outside ASCII too.
  /// - Returns: JSON text without a line end. A real that JSON cannot write (infinite, not a number) becomes a text.
  func encoded(ascii: Bool = false) -> String {
    var text = ""
    encode(into: &text, ascii: ascii)
    return text
  }

  private func encode(into text: inout String, ascii: Bool) {
    switch self {
    case .null: text += "null"
    case .bool(let value): text += value ? "true" : "false"
    case .integer(let value): text += String(value)
    case .real(let value): text += value.isFinite ? JSON.number(value) : "\"\(value)\""
    case .text(let value): JSON.quote(value, into: &text, ascii: ascii)
    case .array(let elements):
      text += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { text += "," }
        element.encode(into: &text, ascii: ascii)
      }
      text += "]"
    case .object(let members):
      text += "{"
      for (index, member) in members.enumerated() {
        if index > 0 { text += "," }
        JSON.quote(member.name, into: &text, ascii: ascii)
        text += ":"
        member.value.encode(into: &text, ascii: ascii)
      }
      text += "}"
    }
  }

  /// The shortest decimal that reads back as the same number, written plainly from 0.0001 to below 10^16 in size and with
  /// an exponent outside: as many languages print it. Swift changes to the exponent at 2^53 already.
  private static func number(_ value: Double) -> String {
    (9_007_199_254_740_992..<1e16).contains(value.magnitude) ? "\(Int64(value)).0" : "\(value)"
  }

  private static func quote(_ value: String, into text: inout String, ascii: Bool) {
    text += "\""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where !scalar.isPrintable || (ascii && !scalar.isASCII):
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
          text += "\\u" + unit.hexadecimal
        }
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

extension UInt16 {
  /// Four hexadecimal digits, lower case.
  fileprivate var hexadecimal: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 4 - digits.count) + digits
  }
}
