import Foundation
import Testing

/// The verbs there are: a contract with scripts, and therefore written down once more here.
let verbs = [
  "init", "attach", "detach", "sync", "run", "share", "invite", "join", "inbox", "card publish", "card list",
  "card pin",
  "device add", "device list", "device rename",
  "device revoke", "invites list", "invites revoke", "requests list", "requests approve", "requests deny", "status",
  "decide", "counts", "explain", "members list", "members role", "members remove", "leave", "key show", "key rotate",
  "key verify", "key recovery-kit", "key recover", "key passphrase", "export", "store test", "store ls", "forget",
  "rules show", "rules suggest", "rules set", "recipe list", "recipe show", "recipe check", "conflicts list",
  "conflicts restore", "trash list", "trash restore", "log", "restore", "completion", "help",
]

@Suite struct VerbTests {
  @Test("a verb given an option it does not have answers with one JSON object and exit code 64", arguments: verbs)
  func unknownOption(verb: String) throws {
    let result = try Program.run("latchkey \(verb) --no-such-option --json", in: Folder())
    let answer = try Reply(result)
    #expect(result.exit == 64)
    #expect(!answer.ok)
    #expect(answer.code == "unknown-option")
    #expect(answer.message.contains("--no-such-option"))
    #expect(answer.next == ["latchkey \(verb) --help"])
    #expect(result.error.isEmpty)
  }

  @Test("the option --json is seen wherever it stands and whatever else is wrong", arguments: verbs)
  func misplaced(verb: String) throws {
    for line in ["--json \(verb) a b c d e", "\(verb) --home --json", "--json=1 \(verb) --json", "\(verb)x --json"] {
      // An app may be given any arguments.
      if line == "--json run a b c d e" { continue }
      let result = try Program.run("latchkey \(line)", in: Folder())
      #expect(result.exit == 64, "\(line)")
      #expect(try !Reply(result).ok, "\(line)")
    }
  }

  @Test("every verb explains itself on standard output, within 80 columns", arguments: verbs)
  func help(verb: String) throws {
    let result = try Program.run("latchkey \(verb) --help", in: Folder())
    #expect(result.exit == 0)
    #expect(result.error.isEmpty)
    #expect(result.output.contains("Usage:\n  latchkey \(verb)"))
    #expect(result.output.contains("Exit codes:"))
    for line in result.output.split(separator: "\n") where !line.hasPrefix("  latchkey") {
      #expect(line.count <= 80, "\(line)")
    }
    let words = verb.split(separator: " ")
    if words.count == 1 {
      #expect(try Program.run("latchkey help \(verb)", in: Folder()).output == result.output)
    }
  }

  @Test("help comes even if the rest of the line is wrong", arguments: verbs)
  func helpAmidMistakes(verb: String) throws {
    let result = try Program.run("latchkey \(verb) --no-such-option --home --help", in: Folder())
    #expect(result.exit == 0)
    #expect(result.output.contains("latchkey \(verb)"))
  }

  @Test("help and version answer with one JSON object where that is asked for")
  func helpAsJSON() throws {
    for line in ["--help", "init --help", "help exit-codes", "--version", "completion bash", "help"] {
      let result = try Program.run("latchkey \(line) --json", in: Folder())
      #expect(result.exit == 0, "\(line)")
      #expect(try Reply(result).ok, "\(line)")
    }
  }
}

/// The one object that `--json` promises.
struct Reply {
  let ok: Bool
  let code: String
  let message: String
  let next: [String]
  let data: [String: Any]

  struct Malformed: Error { let text: String }

  init(_ result: Program.Result) throws {
    let text = result.output
    guard text.hasSuffix("\n"), text.dropLast().allSatisfy({ $0 != "\n" }),
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any],
      Set(object.keys) == ["v", "ok", "code", "message", "next", "data"], object["v"] as? Int == 1,
      let ok = object["ok"] as? Bool, let code = object["code"] as? String, let message = object["message"] as? String,
      let next = object["next"] as? [String], let data = object["data"] as? [String: Any]
    else { throw Malformed(text: text) }
    (self.ok, self.code, self.message, self.next, self.data) = (ok, code, message, next, data)
  }
}
