/// Completion for fish: one line for every word that can be offered.
enum FishCompletion {
  static var script: String {
    var lines = ["# fish completion for latchkey", "complete -c latchkey -f"]
    lines += Globals.options.map { "complete -c latchkey" + specification($0) }
    for verb in Verbs.all {
      lines.append("complete -c latchkey -n __fish_use_subcommand -a \(verb.name) -d \(quoted(verb.summary))")
    }
    for group in Verbs.groups {
      let names = group.actions.map(\.name).joined(separator: " ")
      let condition = "__fish_seen_subcommand_from \(group.name); and not __fish_seen_subcommand_from \(names)"
      for action in group.actions {
        lines.append("complete -c latchkey -n \(quoted(condition)) -a \(action.name) -d \(quoted(action.summary))")
      }
    }
    for path in Verbs.leaves {
      guard let verb = path.last else { continue }
      let condition = path.map { "__fish_seen_subcommand_from \($0.name)" }.joined(separator: "; and ")
      let start = "complete -c latchkey -n \(quoted(condition))"
      for argument in verb.arguments {
        if argument.kind.isFile { lines.append("\(start) -F") }
        if !argument.kind.words.isEmpty {
          lines.append("\(start) -a \(quoted(argument.kind.words.joined(separator: " ")))")
        }
      }
      lines += verb.options.filter { !$0.isHidden }.map { start + specification($0) }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func specification(_ option: Option) -> String {
    var text = " -l \(option.name)" + (option.short.map { " -s \($0)" } ?? "")
    if let kind = option.value?.kind {
      if !kind.words.isEmpty {
        text += " -x -a \(quoted(kind.words.joined(separator: " ")))"
      } else {
        text += kind.isFile ? " -r -F" : " -x"
      }
    }
    return text + " -d \(quoted(option.summary))"
  }

  /// Quoted for fish, whose single quotes know two escapes.
  private static func quoted(_ text: String) -> String {
    "'"
      + text.reduce(into: "") { quoted, character in
        if character == "'" || character == "\\" { quoted.append("\\") }
        quoted.append(character)
      } + "'"
  }
}
