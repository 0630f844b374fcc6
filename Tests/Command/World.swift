import Foundation
import Testing

/// A directory with people in it: a home and a database each, and a folder between them. Driven through the built command
/// only.
final class World {
  let folder: Folder
  /// Everything that any command wrote to standard output or standard error.
  private(set) var written = ""

  static let schema = """
    CREATE TABLE accounts(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE entries(id INTEGER PRIMARY KEY, account_id INTEGER NOT NULL REFERENCES accounts(id), cents INTEGER);
    INSERT INTO accounts VALUES (1, 'Joint'), (2, 'Cash');
    INSERT INTO entries VALUES (1, 1, -1250), (2, 2, -8200);
    """

  enum Stage: Int, Comparable {
    /// There is `ana.db`, and nothing else.
    case empty
    /// Ana has an identity in `ana` and a store in `store`.
    case initialised
    /// `ana.db` is attached and sent.
    case attached
    /// It is shared with the household Smith.
    case shared
    /// There is an invite in `ben.invite`.
    case invited
    /// Ben has joined with it from `ben`, into `ben.db`, and was admitted.
    case joined

    static func < (a: Stage, b: Stage) -> Bool { a.rawValue < b.rawValue }
  }

  init(_ stage: Stage) throws {
    folder = try Folder()
    try shell("sqlite3 ana.db \"\(World.schema)\"")
    let steps: [(Stage, [String])] = [
      (.initialised, ["init --home ana --name Ana --device laptop --store store"]),
      (.attached, ["attach ana.db --home ana --zone Budget", "sync ana.db --home ana"]),
      (.shared, ["share ana.db --home ana --household Smith"]),
      (.invited, ["invite --home ana --out ben.invite"]),
      (
        .joined,
        [
          "join --home ben --db ben.db --name Ben --device phone --yes --invite-file ben.invite",
          "sync ana.db --home ana", "sync ben.db --home ben",
        ]
      ),
    ]
    for (reached, lines) in steps where reached <= stage {
      for line in lines { try ok(line) }
    }
  }

  /// Runs a line of shell that must succeed.
  @discardableResult
  func shell(_ line: String) throws -> String {
    let result = try Program.run(line, in: folder)
    guard result.exit == 0 else { throw Failed(line: line, result: result) }
    return result.output
  }

  /// Runs the command with `--json` and `--no-input`, and nothing on standard input.
  func ask(_ arguments: String) throws -> (reply: Reply, exit: Int32) {
    // What follows two hyphens is an app's.
    let parts = arguments.components(separatedBy: " -- ")
    let line = ([parts[0] + " --json --no-input"] + parts.dropFirst()).joined(separator: " -- ")
    let result = try Program.run("latchkey \(line) < /dev/null", in: folder)
    written += result.output + result.error
    return (try Reply(result), result.exit)
  }

  /// Runs the command, which must succeed.
  @discardableResult
  func ok(_ arguments: String) throws -> Reply {
    let (reply, exit) = try ask(arguments)
    guard exit == 0, reply.ok else {
      throw Refused(arguments: arguments, exit: exit, code: reply.code, message: reply.message)
    }
    return reply
  }

  /// Every file with its bytes. The lock that keeps processes apart holds nothing.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for case let name as String in FileManager.default.enumerator(atPath: folder.url.path) ?? .init() {
      let url = folder.url.appendingPathComponent(name)
      guard !name.hasSuffix("/lock"), !url.hasDirectoryPath,
        try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true
      else { continue }
      files[name] = try Data(contentsOf: url)
    }
    return files
  }

  struct Failed: Error {
    let line: String
    let result: Program.Result
  }

  struct Refused: Error {
    let arguments: String
    let exit: Int32
    let code: String
    let message: String
  }
}
