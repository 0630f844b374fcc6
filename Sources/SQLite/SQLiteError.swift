internal import CLatchkeySQLite

/// Why SQLite refused, with a case for each cause that a caller can act on.
public enum SQLiteError: Error, Equatable, Sendable {
  /// Which rule of the schema a row breaks.
  public enum Constraint: Equatable, Sendable {
    case unique, primaryKey, notNull, check, foreignKey, trigger, dataType, other
  }

  /// Another connection holds the file; nothing was changed. Waiting and trying again is right.
  case busy
  /// The file or its folder cannot be written.
  case readOnly(String)
  /// The disk is full.
  case full
  /// The file is damaged.
  case corrupt(String)
  /// The file is something else than a SQLite database (or is encrypted).
  case notADatabase
  /// There is no such file, or it may not be opened.
  case cannotOpen(String)
  /// The operating system failed to read or write.
  case io(code: Int32, message: String)
  /// The statement would break a constraint; the statement was undone, the transaction goes on.
  case constraint(Constraint, message: String)
  /// ``Connection/interrupt()`` was called.
  case interrupted
  /// A value is larger than SQLite takes.
  case tooBig
  /// No memory.
  case noMemory
  /// Anything else: bad SQL, a missing table, an unknown function or collation.
  case other(code: Int32, message: String)

  init(code extended: Int32, message: String) {
    switch extended & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: self = .busy
    case SQLITE_READONLY, SQLITE_PERM: self = .readOnly(message)
    case SQLITE_FULL: self = .full
    case SQLITE_CORRUPT: self = .corrupt(message)
    case SQLITE_NOTADB: self = .notADatabase
    case SQLITE_CANTOPEN, SQLITE_AUTH: self = .cannotOpen(message)
    case SQLITE_IOERR: self = .io(code: extended, message: message)
    case SQLITE_INTERRUPT: self = .interrupted
    case SQLITE_TOOBIG: self = .tooBig
    case SQLITE_NOMEM: self = .noMemory
    case SQLITE_MISMATCH: self = .constraint(.dataType, message: message)
    case SQLITE_CONSTRAINT:
      let kind: Constraint =
        switch extended >> 8 {
        case 8, 10: .unique  // SQLITE_CONSTRAINT_UNIQUE, _ROWID
        case 6: .primaryKey
        case 5: .notNull
        case 1: .check
        case 3: .foreignKey
        case 7: .trigger
        case 12: .dataType
        default: .other
        }
      self = .constraint(kind, message: message)
    default: self = .other(code: extended, message: message)
    }
  }
}

extension SQLiteError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .busy: "the database is in use by another program"
    case .readOnly(let why): "the database cannot be written: \(why)"
    case .full: "the disk is full"
    case .corrupt(let why): "the database is damaged: \(why)"
    case .notADatabase: "the file is not a SQLite database"
    case .cannotOpen(let why): "the database cannot be opened: \(why)"
    case .io(let code, let why): "reading or writing failed (\(code)): \(why)"
    case .constraint(_, let why): why
    case .interrupted: "interrupted"
    case .tooBig: "a value is too large"
    case .noMemory: "out of memory"
    case .other(_, let why): why
    }
  }
}
