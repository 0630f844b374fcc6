/// Why something did not happen, in words for people and in a code for programs. Never holds a secret.
public struct LatchkeyError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kinds of cause that a caller acts on differently. The command's exit codes are these.
  public enum Kind: String, Sendable, CaseIterable {
    /// The database is missing, not SQLite, corrupt, or has no table that can sync.
    case database
    /// Nothing is attached, or there is no identity yet.
    case notAttached
    /// The store is unreachable, missing, read-only or full.
    case store
    /// The database is busy or cannot be written.
    case busy
    /// Not a member, or the household or zone has ended.
    case membership
    /// A key, link or word is missing, wrong, used, expired or revoked.
    case key
    /// A person must decide.
    case decision
    /// Something was damaged or forged.
    case damage
    /// Written by a newer version.
    case newer
    /// The call itself is wrong: an unknown name, a value out of range.
    case usage
    case cancelled
    /// A defect, or a failure of the system without a kind of its own.
    case other
  }

  public let kind: Kind
  /// Which case of the kind, in lower case with hyphens: stable.
  public let code: String
  /// What happened, and why, in whole sentences.
  public let message: String
  /// Commands that lead on, most useful first.
  public let next: [String]

  public init(_ kind: Kind, _ code: String, _ message: String, next: [String] = []) {
    self.kind = kind
    self.code = code
    self.message = message
    self.next = next.isEmpty ? kind.next : next
  }

  public var description: String { "\(message) [\(code)]" }
}

extension LatchkeyError.Kind {
  /// What leads on where a cause says nothing better: no error leaves a person without a next step.
  fileprivate var next: [String] {
    switch self {
    case .database: ["sqlite3 FILE 'PRAGMA integrity_check'", "latchkey attach FILE --dry-run"]
    case .notAttached: ["latchkey attach FILE"]
    case .store: ["check that the store can be reached, then run it again"]
    case .busy, .cancelled: ["run it again"]
    case .membership: ["latchkey members list"]
    case .key: ["check the files in latchkey's home folder, or restore them from a backup"]
    case .decision, .damage: ["latchkey status"]
    case .newer: ["update latchkey"]
    case .usage: ["latchkey help"]
    case .other: ["run it again", "latchkey status"]
    }
  }
}
