/// How the command ends: the numbers scripts branch on.
///
/// The numbers are a contract and never change their meaning; a number not listed here is to be read as failure.
/// `code` in the JSON answer says which case of a number it was.
enum ExitCode: Int32, CaseIterable, Sendable {
  case done = 0
  case other = 1
  case unusableDatabase = 2
  case setAside = 3
  case cancelled = 4
  case notAttached = 10
  case storeUnavailable = 11
  case databaseBusy = 12
  case notAMember = 13
  case keyRefused = 14
  case decisionNeeded = 15
  case damageFound = 16
  case newerFormat = 17
  case usage = 64
  case interrupted = 130

  /// What the number means, as help and documentation print it.
  var meaning: String {
    switch self {
    case .done: "done"
    case .other: "another failure"
    case .unusableDatabase: "not a usable database: missing, not SQLite, corrupt, or no table can sync"
    case .setAside: "done, but something was set aside"
    case .cancelled: "cancelled at a question"
    case .notAttached: "not attached, or no identity yet"
    case .storeUnavailable: "store unreachable, missing, read-only or full"
    case .databaseBusy: "database busy or read-only"
    case .notAMember: "not a member, removed, or household or zone closed"
    case .keyRefused: "key, link or words missing, wrong, used, expired or revoked"
    case .decisionNeeded: "a person must decide"
    case .damageFound: "damage found"
    case .newerFormat: "written by a newer version of the format"
    case .usage: "wrong usage: the command line cannot be understood"
    case .interrupted: "interrupted"
    }
  }

  /// Whether what was asked for happened: `ok` in the JSON answer.
  var isSuccess: Bool {
    switch self {
    case .done, .setAside: true
    case .other, .unusableDatabase, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember,
      .keyRefused, .decisionNeeded, .damageFound, .newerFormat, .usage, .interrupted:
      false
    }
  }
}
