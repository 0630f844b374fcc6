internal import LatchkeySQLite

/// A name as SQL text, whatever characters it has.
func quoted(_ name: String) -> String {
  if !name.utf8.contains(UInt8(ascii: "\"")) { return "\"\(name)\"" }
  return "\"" + name.replacing("\"", with: "\"\"") + "\""
}

/// A value as an SQL literal.
func literal(_ value: SQLiteValue) -> String {
  switch value {
  case .null: return "NULL"
  case .integer(let x): return x == .min ? "(-9223372036854775807 - 1)" : String(x)
  case .real(let x):
    if x.isInfinite { return x < 0 ? "-9e999" : "9e999" }
    return "\(x)"
  case .blob(let x): return "x'" + hexadecimal(x) + "'"
  case .text(let x):
    // A NUL would end the statement's text, and other bytes would not be UTF-8: such text goes as a cast blob.
    guard !x.contains(0), let text = String(validating: x, as: UTF8.self) else {
      return "CAST(x'" + hexadecimal(x) + "' AS TEXT)"
    }
    return "'" + text.replacing("'", with: "''") + "'"
  }
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// The words and signs of an SQL text, without comments and spaces: enough to see which clauses a declaration has.
/// Bare words are in upper case; quoted names and strings keep their quotes, so they are never taken for keywords.
func sqlTokens(_ sql: String) -> [String] { sqlLexemes(sql).map(\.token) }

/// The tokens, each with the offset of the byte after it.
func sqlLexemes(_ sql: String) -> [(token: String, end: Int)] {
  let bytes = Array(sql.utf8)
  var out: [(token: String, end: Int)] = []
  var i = 0
  func isWord(_ c: UInt8) -> Bool {
    (48...57).contains(c) || (65...90).contains(c) || (97...122).contains(c) || c == 95 || c == 36 || c >= 128
  }
  while i < bytes.count {
    let c = bytes[i]
    let start = i
    switch c {
    case 9, 10, 12, 13, 32: i += 1
    case UInt8(ascii: "-") where i + 1 < bytes.count && bytes[i + 1] == UInt8(ascii: "-"):
      while i < bytes.count, bytes[i] != 10 { i += 1 }
    case UInt8(ascii: "/") where i + 1 < bytes.count && bytes[i + 1] == UInt8(ascii: "*"):
      i += 2
      while i + 1 < bytes.count, !(bytes[i] == UInt8(ascii: "*") && bytes[i + 1] == UInt8(ascii: "/")) { i += 1 }
      i = min(i + 2, bytes.count)
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "["):
      let close = c == UInt8(ascii: "[") ? UInt8(ascii: "]") : c
      i += 1
      while i < bytes.count {
        if bytes[i] == close {
          if close != UInt8(ascii: "]"), i + 1 < bytes.count, bytes[i + 1] == close {
            i += 2
            continue
          }
          break
        }
        i += 1
      }
      i = min(i + 1, bytes.count)
      out.append((String(decoding: bytes[start..<i], as: UTF8.self), i))
    default:
      if isWord(c) {
        while i < bytes.count, isWord(bytes[i]) { i += 1 }
        out.append((String(decoding: bytes[start..<i], as: UTF8.self).uppercased(), i))
      } else {
        i += 1
        out.append((String(decoding: bytes[start..<i], as: UTF8.self), i))
      }
    }
  }
  return out
}
