import Foundation
import Testing

@Suite struct DocumentationTests {
  @Test("docs/cli.md is what the command says about itself; scripts/make-cli-docs writes it")
  func referencePage() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let committed = try String(contentsOf: root.appendingPathComponent("docs/cli.md"), encoding: .utf8)
    #expect(try Program.run("latchkey help --markdown", in: Folder()).output == committed)
  }

  @Test("the man page has every verb, and no line that roff takes for an unknown request")
  func manPage() throws {
    let requests: Set<Substring> = [".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"]
    let source = try Program.run("latchkey help --man", in: Folder()).output
    for verb in verbs {
      #expect(source.contains(".SH \"latchkey \(verb.replacingOccurrences(of: "-", with: "\\-"))\""))
    }
    for line in source.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
      #expect(requests.contains(line.prefix { $0 != " " }), "\(line)")
    }
  }
}
