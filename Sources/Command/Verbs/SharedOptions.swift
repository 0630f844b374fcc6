import Latchkey
import LatchkeyStorage

// Options and arguments that several verbs understand.

extension Option {
  static let name = Option.taking("NAME", .text, "name", "your name, as others in the household see it")
  static let device = Option.taking("NAME", .text, "device", "this device's name (default: the computer's)")
  static let store = Option.taking("URL", .store, "store", "where the data is kept: folder:PATH or a path")
  static let credentialFile = Option.taking(
    "FILE", .file, "credential-file", "what the store asks for, from this file, which only you can read")
  static let household = Option.taking("NAME", .text, "household", "the household, if you are in several")
  static let zone = Option.taking("NAME", .text, "zone", "the zone's name (default: the file's name)")
  static let template = Option.taking(
    "FILE", .file, "template", "an empty database of the app, copied for the new file")
  static let words = Option.taking("WORDS", .text, "words", "the ten words of the other screen, instead of typing them")
  static let out = Option.taking("FILE", .file, "out", "write it to this new file, which only you can read")
}

extension Argument {
  static let database = Argument("DB", .database, "the SQLite database file")
}

extension ParsedArguments {
  /// What `--credential-file` holds; nil where it is not given.
  func credential() throws(CommandError) -> StoreCredential? {
    guard let file = self[Option.credentialFile] else { return nil }
    do { return try StoreCredential(file: file) } catch { throw CommandError(LatchkeyError(credential: error)) }
  }
}
