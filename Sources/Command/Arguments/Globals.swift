/// What every verb understands.
struct Globals: Sendable {
  let home: String?
  let json: Bool
  let noInput: Bool
  let yes: Bool
  let dryRun: Bool
  let quiet: Bool
  let verbose: Bool
  let ascii: Bool

  static let home = Option.taking(
    "DIR", .directory, "home", "keep identity, keys and settings in DIR (instead of LATCHKEY_HOME)")
  static let json = Option.flag("json", "answer with exactly one JSON object, on failure too")
  static let noInput = Option.flag("no-input", "never ask; what is piped to standard input is still read")
  static let yes = Option.flag("yes", short: "y", "yes to every y/N question")
  static let dryRun = Option.flag("dry-run", short: "n", "say what would be done, and change nothing")
  static let quiet = Option.flag("quiet", short: "q", "no progress, no hints")
  static let verbose = Option.flag("verbose", short: "v", "say more on standard error")
  static let ascii = Option.flag("ascii", "no characters outside ASCII in marks and JSON")
  static let version = Option.flag("version", "print the version")
  static let help = Option.flag("help", short: "h", "print help, also after a verb")

  /// In the order help shows them.
  static let options = [home, json, noInput, yes, dryRun, quiet, verbose, ascii, version, help]

  init(_ given: ParsedArguments) {
    home = given[Globals.home]
    json = given.has(Globals.json)
    noInput = given.has(Globals.noInput)
    yes = given.has(Globals.yes)
    dryRun = given.has(Globals.dryRun)
    quiet = given.has(Globals.quiet)
    verbose = given.has(Globals.verbose)
    ascii = given.has(Globals.ascii)
  }
}
