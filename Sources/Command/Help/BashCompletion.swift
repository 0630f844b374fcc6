/// Completion for bash, from version 3.2 on. Files are left to the shell, which is asked where no word fits.
enum BashCompletion {
  static var script: String {
    let taking = Verbs.options.filter { $0.value != nil }
    var lines = [
      "# bash completion for latchkey",
      "_latchkey() {",
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path='' words='' i",
      "  COMPREPLY=()",
      "  for ((i = 1; i < COMP_CWORD; i++)); do",
      "    case ${COMP_WORDS[i]} in",
      "      \(taking.map { "--\($0.name)" }.joined(separator: " | "))) ((i++)) ;;",
      "      -*) ;;",
      "      *)",
      "        case $path in",
      "          \((["''"] + Verbs.groups.map(\.name)).joined(separator: " | "))) path=${path:+$path }${COMP_WORDS[i]} ;;",
      "        esac ;;",
      "    esac",
      "  done",
      "  case $previous in",
    ]
    for option in taking {
      let words = option.value?.kind.words ?? []
      let offer = words.isEmpty ? "" : "COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$current\")); "
      lines.append("    --\(option.name)) \(offer)return ;;")
    }
    lines += ["  esac", "  case $path in"]
    lines.append("    '') words='\(Verbs.all.map(\.name).joined(separator: " ")) \(flags(Globals.options))' ;;")
    for group in Verbs.groups {
      lines.append("    '\(group.name)') words='\(group.actions.map(\.name).joined(separator: " "))' ;;")
    }
    for path in Verbs.leaves {
      guard let verb = path.last else { continue }
      let words = verb.arguments.flatMap(\.kind.words) + [flags(verb.options.filter { !$0.isHidden } + Globals.options)]
      let name = path.map(\.name).joined(separator: " ")
      lines.append("    '\(name)') words='\(words.joined(separator: " "))' ;;")
    }
    lines += [
      "  esac",
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))",
      "}",
      "complete -o default -F _latchkey latchkey",
    ]
    return lines.joined(separator: "\n") + "\n"
  }

  private static func flags(_ options: [Option]) -> String {
    options.map { "--\($0.name)" }.joined(separator: " ")
  }
}
