import Testing

@testable import LatchkeyCommand

@Suite struct JSONTests {
  @Test(
    "a value that was read is written as it was",
    arguments: [
      "null", "true", "false", "0", "-0.0", "1", "-17", "9223372036854775807", "-9223372036854775808", "0.5", "1e+300",
      "5.0", #""""#, #""é\"\\""#, "[]", "[1,[2,[3]]]", "{}", #"{"b":1,"a":{"c":[null]}}"#, #""😀""#,
    ])
  func roundTrip(text: String) throws {
    #expect(try JSON(parsing: Array(text.utf8)).encoded() == text)
  }

  @Test(
    "a mistake is told with its line and column",
    arguments: [
      ("", 1, 1, "a value is missing"),
      ("{\n  \"a\": 1,\n  b: 2}", 3, 3, "a name in quotes is missing"),
      ("[1,]", 1, 4, "a value is missing"),
      ("[1 2]", 1, 4, "a comma or the closing bracket is missing"),
      ("{\"é\": nul}", 1, 7, "this is not the beginning of a value"),
      ("{\"a\":1,\"a\":2}", 1, 8, "the name \"a\" occurs twice"),
      ("1 2", 1, 3, "something follows the end of the value"),
      ("01", 1, 1, "a number does not begin with 0"),
      ("1.", 1, 3, "a digit is missing"),
      ("1e999", 1, 1, "the number is too large"),
      ("\"abc", 1, 1, "the text has no closing quote"),
      ("\"\n\"", 1, 2, "a control character must be escaped"),
      ("\"\\x\"", 1, 2, "there is no such escape"),
      ("\"\\u12\"", 1, 2, "four hexadecimal digits are missing"),
      ("\"\\ud800\"", 1, 2, "half of a surrogate pair"),
      ("\"\\udc00\\ud800\"", 1, 2, "half of a surrogate pair"),
      ("\"\\", 1, 2, "the escape is cut off"),
      ("{\"a\" 1}", 1, 6, "a colon is missing after the name"),
      ("'a'", 1, 1, "this is not the beginning of a value"),
    ])
  func mistakes(text: String, line: Int, column: Int, reason: String) {
    #expect(throws: JSONError(reason: reason, line: line, column: column)) { try JSON(parsing: Array(text.utf8)) }
  }

  @Test("nesting is bounded, so that a file cannot exhaust the stack")
  func depth() throws {
    func nested(_ depth: Int) -> [UInt8] {
      Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
    }
    _ = try JSON(parsing: nested(64))
    #expect(throws: JSONError(reason: "nested deeper than 64", line: 1, column: 65)) { try JSON(parsing: nested(65)) }
    #expect(throws: JSONError.self) { try JSON(parsing: nested(1_000_000)) }
  }

  @Test("bytes that are not UTF-8 are refused")
  func encoding() {
    #expect(throws: JSONError(reason: "the text is not UTF-8", line: 1, column: 1)) {
      try JSON(parsing: [0x22, 0xC3, 0x28, 0x22])
    }
  }

  @Test("escapes are read, surrogate pairs too, and a byte order mark is passed over")
  func escapes() throws {
    let text = "\u{FEFF}\"\\u00e9\\ud83d\\ude00\\n\\t\\/\\b\\f\\r\""
    #expect(try JSON(parsing: Array(text.utf8)) == .text("é😀\n\t/\u{8}\u{C}\r"))
  }

  @Test("what a terminal would act on is escaped, and everything outside ASCII if asked for")
  func terminalSafety() {
    #expect(JSON.text("a\u{1B}[31m\u{9B}\u{7F}\u{202E}").encoded() == #""a\u001b[31m\u009b\u007f\u202e""#)
    #expect(JSON.text("é😀").encoded(ascii: true) == #""\u00e9\ud83d\ude00""#)
  }

  @Test("what JSON has no number for is written as text")
  func unwritable() {
    #expect(JSON.real(.infinity).encoded() == #""inf""#)
    #expect(JSON.real(.nan).encoded() == #""nan""#)
  }

  @Test("mutated texts are read or refused, never trapped on")
  func mutations() {
    var state: UInt64 = 2
    func next(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    let text = Array(#"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null}],"c":true}"#.utf8)
    var refused = 0
    for _ in 0..<20_000 {
      var bytes = text
      for _ in 0...next(3) { bytes[next(bytes.count)] = UInt8(next(256)) }
      bytes.removeLast(next(4))
      if (try? JSON(parsing: bytes)) == nil { refused += 1 }
    }
    #expect(refused > 10_000)
  }
}
