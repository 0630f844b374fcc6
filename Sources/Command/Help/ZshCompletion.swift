/// Completion for zsh: a function for the command, and one for every verb and action.
enum ZshCompletion {
  static var script: String {
    let ofVerbs = Verbs.all.flatMap { functions(path: ["latchkey"], $0) }
    return "#compdef latchkey\n" + ofVerbs.joined() + group(["latchkey"], Verbs.all, Globals.options)
      + "\n_latchkey \"$@\"\n"
  }

  private static func functions(path: [String], _ verb: Verb) -> [String] {
    let path = path + [verb.name]
    guard verb.actions.isEmpty else {
      return verb.actions.flatMap { functions(path: path, $0) } + [group(path, verb.actions, [])]
    }
    let options = verb.options.filter { !$0.isHidden } + Globals.options
    let arguments = verb.arguments.enumerated().map { index, argument in
      quoted("\(index + 1):\(argument.name):\(action(argument.kind))")
    }
    let specifications = options.flatMap(specification) + arguments
    return ["\n_\(path.joined(separator: "_"))() {\n  _arguments \\\n    \(joined(specifications))\n}\n"]
  }

  private static func group(_ path: [String], _ verbs: [Verb], _ options: [Option]) -> String {
    let function = "_" + path.joined(separator: "_")
    let specifications = options.flatMap(specification) + ["'1:verb:->verb'", "'*::argument:->argument'"]
    let descriptions = verbs.map { quoted("\($0.name):\($0.summary.escapingColons)") }
    let cases = verbs.map { "        (\($0.name)) \(function)_\($0.name) ;;\n" }.joined()
    return """

      \(function)() {
        local curcontext=$curcontext state line
        typeset -A opt_args
        local -a verbs=(
          \(descriptions.joined(separator: "\n    "))
        )
        _arguments -C \\
          \(joined(specifications))
        case $state in
          (verb) _describe verb verbs ;;
          (argument)
            case $line[1] in
      \(cases)      esac ;;
        esac
      }

      """
  }

  private static func joined(_ specifications: [String]) -> String {
    specifications.joined(separator: " \\\n    ")
  }

  private static func specification(_ option: Option) -> [String] {
    let explanation = "[\(option.summary.escapingBrackets)]"
    let value = option.value.map { ":\($0.placeholder):\(action($0.kind))" } ?? ""
    let long = "--\(option.name)\(option.value == nil ? "" : "=")\(explanation)\(value)"
    return [quoted((option.isRepeatable ? "*" : "") + long)]
      + (option.short.map { [quoted("-\($0)\(explanation)")] } ?? [])
  }

  private static func action(_ kind: ValueKind) -> String {
    if !kind.words.isEmpty { return "(\(kind.words.joined(separator: " ")))" }
    if kind == .directory { return "_files -/" }
    return kind.isFile ? "_files" : " "
  }

  private static func quoted(_ text: String) -> String { text.inSingleQuotes }
}

extension String {
  /// Quoted for a shell of the Bourne family.
  var inSingleQuotes: String {
    "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }

  fileprivate var escapingColons: String { escaping(":\\") }
  fileprivate var escapingBrackets: String { escaping("[]:\\") }

  private func escaping(_ special: String) -> String {
    reduce(into: "") { text, character in
      if special.contains(character) { text.append("\\") }
      text.append(character)
    }
  }
}
