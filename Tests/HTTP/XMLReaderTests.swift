import LatchkeyHTTP
import Testing

@Suite("XML: replies of stores")
struct XMLReaderTests {
  private func read(_ text: String, _ change: (inout XMLReader.Limits) -> Void = { _ in }) throws(XMLError)
    -> XMLReader.Element
  {
    var limits = XMLReader.Limits()
    change(&limits)
    return try XMLReader.read(Array(text.utf8), limits: limits)
  }

  @Test("elements, text, attributes, CDATA, comments and instructions are told apart")
  func tree() throws {
    let root = try read(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!-- a <comment> -->
      <r a = 'one' b="t&amp;wo"><x>1</x><y/><x> a<!-- -->b<![CDATA[<&]]><?pi ?>c </x></r>

      """)
    #expect(root.name == "r" && root.attributes.map(\.value) == ["one", "t&wo"])
    #expect(root.all("x").map(\.text) == ["1", " ab<&c "])
    #expect(root.text("x") == "1" && root.first("y") != nil && root.first("z") == nil)
  }

  @Test("a namespace counts, not the prefix: default, renamed, redeclared, and twice")
  func namespaces() throws {
    for text in [
      "<multistatus xmlns='DAV:'><response/></multistatus>",
      "<D:multistatus xmlns:D='DAV:'><D:response/></D:multistatus>",
      "<a:multistatus xmlns:a='DAV:' xmlns:b='DAV:'><b:response xmlns='urn:x'/></a:multistatus>",
      "<multistatus xmlns='DAV:'><x:response xmlns:x='DAV:'/></multistatus>",
    ] {
      let root = try read(text)
      #expect(root.namespace == "DAV:" && root.name == "multistatus")
      #expect(root.first("response", in: "DAV:") != nil)
      #expect(root.first("response", in: "urn:x") == nil)
    }
    let inner = try read("<a xmlns='urn:1'><b xmlns='urn:2'><c/></b><c/></a>")
    #expect(inner.first("b")?.first("c")?.namespace == "urn:2" && inner.first("c")?.namespace == "urn:1")
    #expect(try read("<s:a><s:b/></s:a>").first("b") != nil)
    #expect(try read("<a xmlns:p='u' p:x='1' y='2'/>").attributes.map(\.namespace) == ["u", ""])
  }

  @Test("references are resolved, by name and by number; others are refused")
  func references() throws {
    #expect(try read("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;&#xe9;</a>").text == "<>&\"'A\u{1F600}\u{e9}")
    for text in [
      "<a>&nbsp;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#x110000;</a>", "<a>&#99999999;</a>", "<a>&#-5;</a>",
    ] { #expect(throws: XMLError.entity) { try read(text) } }
    for text in ["<a>&</a>", "<a>& b</a>", "<a>&aaaaaaaaaaaaaaaaaaaaaa;</a>"] {
      #expect(throws: XMLError.self) { try read(text) }
    }
  }

  @Test("a document type is refused, so that no entity can grow or fetch anything")
  func documentTypes() {
    for text in [
      "<!DOCTYPE a [<!ENTITY b 'c'><!ENTITY d '&b;&b;&b;'>]><a>&d;</a>", "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
      "<a><!ENTITY b 'c'></a>",
    ] { #expect(throws: XMLError.documentType) { try read(text) } }
  }

  @Test("depth, size, elements and attributes are bounded")
  func bounds() throws {
    let deep = String(repeating: "<a>", count: 33) + String(repeating: "</a>", count: 33)
    #expect(throws: XMLError.tooDeep) { try read(deep) }
    let million = String(repeating: "<a>", count: 1_000_000)
    #expect(throws: XMLError.tooDeep) { try read(million) }
    #expect(try read(String(deep.dropFirst(3).dropLast(4))).name == "a")
    #expect(throws: XMLError.tooLarge) {
      try read("<a>" + String(repeating: "<b/>", count: 11) + "</a>") { $0.maximumElements = 11 }
    }
    #expect(throws: XMLError.tooLarge) { try read("<a>12345</a>") { $0.maximumBytes = 11 } }
    let attributes = (0..<33).map { " a\($0)='1'" }.joined()
    #expect(throws: XMLError.tooLarge) { try read("<a\(attributes)/>") }
  }

  @Test("a document that breaks off anywhere is an error, never a smaller document")
  func brokenOff() throws {
    let text = "<?xml version='1.0'?><a x='1'><b>t&amp;</b><!-- c --><c/><![CDATA[d]]></a>"
    let bytes = Array(text.utf8)
    _ = try XMLReader.read(bytes)
    for count in 0..<bytes.count {
      #expect(throws: XMLError.self, "\(count) bytes") { try XMLReader.read(Array(bytes[..<count])) }
    }
  }

  @Test(
    "what is not well-formed is refused",
    arguments: [
      "", " ", "text", "<a></b>", "<a/><b/>", "<a/>text", "text<a/>", "</a>", "<a x=1/>", "<a x='1'y='2'/>", "<a x/>",
      "<>", "< a/>", "<a", "<a/", "<![CDATA[x]]><a/>", "<a x='1/>",
    ])
  func malformed(text: String) { #expect(throws: XMLError.self) { try read(text) } }

  @Test("UTF-8 is read, with a mark of byte order too; another encoding is refused")
  func encodings() throws {
    #expect(try read("\u{feff}<?xml version='1.0' encoding='utf-8'?><a>\u{e9}</a>").text == "\u{e9}")
    #expect(try read("<?xml version='1.0' encoding='US-ASCII'?><a/>").name == "a")
    #expect(throws: XMLError.encoding) { try read("<?xml version='1.0' encoding='ISO-8859-1'?><a/>") }
    #expect(throws: XMLError.self) { try XMLReader.read(Array("<a/>".utf8).flatMap { [0, $0] }) }
    #expect(try XMLReader.read(Array("<a>".utf8) + [0xFF, 0xFE] + Array("</a>".utf8)).text == "\u{fffd}\u{fffd}")
  }

  @Test("no bytes trap the reader: every change of one byte of a reply is read or refused")
  func mutations() {
    let bytes = Array("<?xml version='1.0'?><a xmlns='u' x='1'><p:b>&#65;t</p:b><![CDATA[d]]><!--c--></a>".utf8)
    for index in bytes.indices {
      for value in [0, 9, 33, 34, 38, 39, 47, 58, 59, 60, 61, 62, 63, 91, 93, 97, 128, 255] as [UInt8] {
        var changed = bytes
        changed[index] = value
        _ = try? XMLReader.read(changed)
      }
    }
  }
}
