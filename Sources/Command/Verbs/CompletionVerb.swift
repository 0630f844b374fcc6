extension Verbs {
  private static let shell = Argument("SHELL", .choice(["bash", "zsh", "fish"]), "bash, zsh or fish")

  static let completion = Verb(
    name: "completion",
    summary: "print a shell's completion script",
    arguments: [shell],
    data: [Term("script", "the script")],
    examples: [
      "latchkey completion bash > ~/.local/share/bash-completion/completions/latchkey",
      "latchkey completion zsh > ~/.zfunc/_latchkey",
      "latchkey completion fish > ~/.config/fish/completions/latchkey.fish",
    ],
    body: .runs { arguments, _ throws(CommandError) in
      let name = try arguments.required(shell)
      let script =
        switch name {
        case "zsh": ZshCompletion.script
        case "fish": FishCompletion.script
        default: BashCompletion.script
        }
      return Outcome("Completion for \(name).", .text(script), data: ["script": .text(script)])
    })
}
