import LatchkeyEncoding
import Testing

@Suite("Object names")
struct ObjectNameTests {
  @Test(
    "one to four segments of lower-case letters, digits and inner hyphens",
    arguments: [
      "latchkey-store", "a", "0", "a/b", "a/b/c", "a/b/c/d", "a--b", "0123456789abcdef/h/x-0000000000001",
      String(repeating: "a", count: 120),
    ])
  func names(text: String) {
    #expect(ObjectName(text)?.text == text)
  }

  @Test(
    "nothing else is a name: what a store's software leaves behind least of all",
    arguments: [
      "", "/", "a/", "/a", "a//b", "a/b/c/d/e", "-a", "a-", "a/-b", "a/b-", "-", "A", "a/B", ".", "..", "a/../b",
      ".tmp",
      "a.tmp", "a b", "a_b", "a\\b", "a\u{0}", "a\n", "\u{e4}", "a\u{308}", "a:b", "a%20", "~a", "a (conflicted copy)",
      "\u{ff41}", String(repeating: "a", count: 121),
    ])
  func notNames(text: String) {
    #expect(ObjectName(text) == nil)
  }

  @Test("a listing is asked for by whole segments")
  func prefixes() {
    for text in ["", "a/", "a/b/", "a/b/c/"] { #expect(ObjectName.isListablePrefix(text), "\(text)") }
    let others = [
      "a", "/", "//", "a//", "a/b", "a/b/c/d/", "A/", "-a/", "../", String(repeating: "a", count: 120) + "/",
    ]
    for text in others { #expect(!ObjectName.isListablePrefix(text), "\(text)") }
  }

  @Test("names are ordered byte by byte, and the marker is one")
  func order() {
    let names = ["a-b", "a/b", "a0", "aa", "b"].compactMap { ObjectName($0) }
    #expect(names.count == 5)
    #expect(Array(names.reversed()).sorted() == names)
    #expect(ObjectName(ObjectName.marker.text) == .marker)
  }
}
