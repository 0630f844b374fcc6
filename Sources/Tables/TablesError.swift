internal import LatchkeyRecords
internal import LatchkeySQLite

/// Why the database side refused, with a case for each cause that a caller can act on.
public enum TablesError: Error, Equatable, Sendable {
  case missingFile(path: String)
  case fileExists(path: String)
  /// Something else than a SQLite database, or an encrypted one.
  case notADatabase(path: String)
  case corrupt(String)
  /// Another program holds the file; nothing was changed.
  case busy
  case readOnly(String)
  case full
  case io(String)
  /// The file's Latchkey tables are from a newer version.
  case newerFormat(Int)
  case notAttached
  /// Attached already, to another household, zone or device.
  case alreadyAttachedElsewhere
  /// The app has tables of its own whose names begin with `lk_`.
  case nameTaken(String)
  /// A table that was named does not exist.
  case noTable(String)
  case noColumn(table: String, column: String)
  /// A table that was named cannot sync.
  case refused(table: String, reason: String)
  /// No table can sync; each with its reason.
  case noTableCanSync([String])
  /// A rule that contradicts the schema or another rule.
  case rule(String)
  /// The household's tables cannot be made from their description: a file made by the app is needed.
  case needsTemplate([String])
  /// Rows that no store has confirmed would be gone for good.
  case wouldLose(rows: Int)
  /// The library that this process runs is too old.
  case oldLibrary(Int)
  /// Anything else that SQLite said.
  case database(String)

  package init(_ error: any Error, path: String = "") {
    switch error {
    case let error as TablesError: self = error
    case let error as SQLiteError:
      switch error {
      case .busy: self = .busy
      case .readOnly(let why): self = .readOnly(why)
      case .full: self = .full
      case .corrupt(let why): self = .corrupt(why)
      case .notADatabase: self = .notADatabase(path: path)
      case .cannotOpen: self = .missingFile(path: path)
      case .io(_, let why): self = DatabaseFile.isDirectory(path) ? .notADatabase(path: path) : .io(why)
      case .constraint, .interrupted, .tooBig, .noMemory, .other: self = .database(error.description)
      }
    default: self = .database("\(error)")
    }
  }
}

extension TablesError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .missingFile(let path): "there is no file \(path), or it may not be opened"
    case .fileExists(let path): "\(path) exists already"
    case .notADatabase(let path): "\(path) is not a SQLite database"
    case .corrupt(let why): "the database is damaged: \(why)"
    case .busy: "the database is in use by another program"
    case .readOnly(let why): "the database cannot be written: \(why)"
    case .full: "the disk is full"
    case .io(let why): "reading or writing failed: \(why)"
    case .newerFormat(let version): "the file was attached by a newer version (format \(version))"
    case .notAttached: "the file is not attached"
    case .alreadyAttachedElsewhere: "the file is attached already, to another household, zone or device"
    case .nameTaken(let name): "the app has a table \(name), a name that Latchkey needs"
    case .noTable(let name): "there is no table \(name)"
    case .noColumn(let table, let column): "the table \(table) has no column \(column)"
    case .refused(let table, let reason): "the table \(table) cannot sync: \(reason)"
    case .noTableCanSync: "no table can sync"
    case .rule(let why): why
    case .needsTemplate(let why): "a file made by the app is needed: \(why.joined(separator: "; "))"
    case .wouldLose(let rows): "\(rows) rows are in this file only: nobody else has them"
    case .oldLibrary(let version): "the SQLite library is too old (\(version))"
    case .database(let why): why
    }
  }
}
