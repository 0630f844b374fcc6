import Foundation
import Testing

@Suite struct CompletionTests {
  private static let shells = ["bash", "zsh", "fish"]
  private static let present = shells.filter { shell in
    ["/bin", "/usr/bin", "/usr/local/bin"].contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(shell)") }
  }

  @Test("a completion script is one its shell accepts", arguments: present)
  func syntax(shell: String) throws {
    let result = try Program.run("latchkey completion \(shell) > script && \(shell) -n script", in: Folder())
    #expect(result.exit == 0)
    #expect(result.error.isEmpty)
  }

  @Test("a completion script knows every verb", arguments: shells)
  func completeness(shell: String) throws {
    let script = try Program.run("latchkey completion \(shell)", in: Folder()).output
    for verb in verbs.flatMap({ $0.split(separator: " ") }) { #expect(script.contains(verb)) }
  }

  @Test(
    "bash offers verbs, actions, options and values where they belong",
    .enabled(if: present.contains("bash")),
    arguments: [
      ("latchkey sy", "sync"), ("latchkey --home x sy", "sync"), ("latchkey device a", "add"),
      ("latchkey sync --until", "--until-settled"), ("latchkey invite --role r", "reader"),
      ("latchkey completion z", "zsh"), ("latchkey help exit", "exit-codes"), ("latchkey attach x --tab", "--tables"),
      ("latchkey attach x", ""),
    ])
  func bash(line: String, offer: String) throws {
    let words = line.split(separator: " ").map { "'\($0)'" }
    let script = """
      latchkey completion bash > script
      bash -c '. ./script; COMP_WORDS=(\(words.joined(separator: " ").replacing("'", with: ""))); \
      COMP_CWORD=\(words.count - 1); _latchkey; echo "${COMPREPLY[@]}"'
      """
    #expect(try Program.run(script, in: Folder()).output == offer + "\n")
  }
}
