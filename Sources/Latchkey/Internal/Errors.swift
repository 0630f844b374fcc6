internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeySQLite
internal import LatchkeyStorage
internal import LatchkeyTables

/// One translation per layer: what a person can do about it is decided here, once.
extension LatchkeyError {
  /// - Parameter path: the database that was worked on, for messages; nil if none was.
  init(_ error: any Error, database path: String? = nil) {
    switch error {
    case let error as LatchkeyError: self = error
    case let error as StorageError: self.init(error)
    case let error as TablesError: self.init(error, path: path ?? "the database")
    case let error as SQLiteError:
      self.init(TablesError(error, path: path ?? "the database"), path: path ?? "the database")
    case let error as EngineError: self.init(error)
    case let error as KeyringError: self.init(error)
    case let error as StoreCredentialError: self.init(credential: error)
    case let error as LocatorError: self.init(.usage, "bad-store-url", error.description)
    case let error as LogError:
      self.init(
        .other, "damaged-state", "What Latchkey keeps in \(path ?? "its state") does not decode: \(error).")
    case is CancellationError:
      self.init(.cancelled, "cancelled", "Cancelled. What was under way is taken up again next time.")
    default: self.init(.other, "unexpected", "Something unexpected happened: \(error).")
    }
  }

  init(_ error: StorageError) {
    let message = "\(error.what): \(error.why)\(error.detail.isEmpty ? "" : " (\(error.detail))")."
    switch error.cause {
    case .cancelled: self.init(.cancelled, "cancelled", message)
    case .storeMissing:
      self.init(
        .store, "store-missing", message,
        next: [error.advice.isEmpty ? "mount the folder or check the store's URL, then run it again" : error.advice])
    case .quotaExceeded: self.init(.store, "store-full", message, next: [error.next])
    case .readOnly, .forbidden: self.init(.store, "store-read-only", message, next: [error.next])
    case .unauthorized:
      self.init(
        .store, "store-unauthorized", message,
        next: [
          error.next,
          "give the right one with --credential-file FILE; for a household's store: latchkey store credential "
            + "--household NAME --credential-file FILE",
        ])
    default: self.init(.store, "store-" + error.code, message, next: error.next.isEmpty ? [] : [error.next])
    }
  }

  init(_ error: TablesError, path: String) {
    let message = Self.sentence(error.description)
    switch error {
    case .missingFile: self.init(.database, "missing-file", message, next: ["check the path"])
    case .wouldLose:
      self.init(
        .decision, "rows-unsent", "\(message) (\(path)). Nothing was changed.",
        next: ["keep them: --keep, or latchkey decide ID keep", "latchkey sync \(path)"])
    case .fileExists: self.init(.usage, "file-exists", message, next: ["choose a path where nothing is"])
    case .notADatabase:
      self.init(
        .database, "not-a-database", message + " It may be encrypted, or another kind of file.",
        next: ["check the path"])
    case .corrupt:
      self.init(
        .database, "corrupt", message + " Latchkey changed nothing.",
        next: ["sqlite3 \(path) 'PRAGMA integrity_check'", "restore it from a backup"])
    case .busy:
      self.init(
        .busy, "database-busy", message + " Nothing was changed.", next: ["close the app or wait, then run it again"])
    case .readOnly:
      self.init(.busy, "database-read-only", message, next: ["check the file's and its folder's permissions"])
    case .full:
      self.init(.busy, "disk-full", message + " Nothing was changed.", next: ["free some space, then run it again"])
    case .io, .database, .oldLibrary: self.init(.other, "database-failed", message)
    case .newerFormat: self.init(.newer, "newer-file", message, next: ["update latchkey"])
    case .notAttached: self.init(.notAttached, "not-attached", message, next: ["latchkey attach \(path)"])
    case .alreadyAttachedElsewhere:
      self.init(.usage, "attached-elsewhere", message, next: ["latchkey status \(path)", "latchkey detach \(path)"])
    case .nameTaken: self.init(.database, "name-taken", message)
    case .noTable: self.init(.usage, "no-such-table", message)
    case .noColumn: self.init(.usage, "no-such-column", message)
    case .refused: self.init(.usage, "table-refused", message)
    case .noTableCanSync(let reasons):
      let why = reasons.isEmpty ? "" : " " + reasons.joined(separator: "; ") + "."
      self.init(.database, "no-table-can-sync", message + why)
    case .rule: self.init(.usage, "bad-rule", message)
    case .needsTemplate:
      self.init(
        .decision, "needs-template", message,
        next: ["make an empty file with the app, then run join again with --template FILE"])
    }
  }

  init(_ error: EngineError) {
    switch error {
    case .storeMissing:
      self.init(
        .store, "store-missing",
        "The place answers, but it holds no Latchkey store: it is not mounted, was emptied, or is another place. Nothing was "
          + "changed here, and nothing is taken for deleted.",
        next: ["mount the folder or check the store's URL, then run it again"])
    case .otherStore:
      self.init(
        .store, "other-store",
        "The place holds a Latchkey store, but not the one this household is kept in. Nothing was changed.",
        next: ["check the store's URL"])
    case .badMarker(let why):
      if why == "of a newer version" {
        self.init(
          .newer, "newer-store", "The store was made by a newer version of Latchkey.", next: ["update latchkey"])
      } else {
        self.init(.damage, "damaged-marker", "The store's marker object is damaged: \(why). Nothing was changed.")
      }
    case .refused(let reason):
      self.init(
        .membership, "not-allowed", "The household does not allow this: \(Self.clause(reason)). Nothing was changed.",
        next: ["latchkey members list"])
    case .newerRoster:
      self.init(
        .newer, "newer-roster",
        "The household's roster holds an operation that this version does not know. Nothing is uploaded until it does.",
        next: ["update latchkey"])
    case .noKey(let epoch):
      self.init(
        .membership, "no-epoch-key",
        "This device was not given the key of the household's epoch \(epoch.short): it was removed, or somebody has to sync first.",
        next: ["latchkey sync", "latchkey members list"])
    case .damagedState(let what):
      self.init(.damage, "damaged-state", "What Latchkey keeps of the household is damaged: \(what).")
    case .tooLarge: self.init(.other, "too-large", "An object would be larger than the format allows.")
    case .outOfOrder(let event): self.init(.other, "defect", "A defect in Latchkey: \(event) came out of order.")
    }
  }

  init(_ error: KeyringError) {
    let message = error.description
    switch error {
    case .missing: self = .noIdentity
    case .exists: self.init(.usage, "identity-exists", message)
    case .loosePermissions:
      self.init(.key, "loose-permissions", message, next: ["chmod -R go-rwx latchkey's home folder, then run it again"])
    case .damaged: self.init(.key, "damaged-keyring", message)
    case .newer: self.init(.newer, "newer-keyring", message, next: ["update latchkey"])
    case .passphraseMissing:
      self.init(
        .key, "passphrase-missing", message,
        next: ["run it in a terminal, or let LATCHKEY_PASSPHRASE_FILE name a file with the passphrase"])
    case .passphraseWrong: self.init(.key, "passphrase-wrong", message, next: ["run it again with the right one"])
    case .passphraseUnavailable:
      self.init(.key, "passphrase-unavailable", message, next: ["check LATCHKEY_PASSPHRASE_FILE"])
    case .passphraseTooShort: self.init(.usage, "passphrase-too-short", message)
    case .unsafeParameters: self.init(.key, "unsafe-keyring", message, next: ["put back a copy of it"])
    case .busy: self.init(.busy, "home-busy", message, next: ["run it again"])
    case .readOnly: self.init(.busy, "home-read-only", message)
    case .full: self.init(.busy, "disk-full", message, next: ["free some space, then run it again"])
    case .system: self.init(.other, "keyring-failed", message)
    }
  }

  /// Why a roster takes no such entry from this device.
  private static func clause(_ refusal: RosterRefusal) -> String {
    switch refusal {
    case .role: "your role is too low"
    case .notEnrolled: "nobody has admitted this device yet, or it was removed"
    case .forked: "this device's log has two ends, which happens when keys are copied"
    case .zone: "there is no such zone, or it has ended"
    case .alreadyEnrolled: "the device is in it already"
    case .tooManyDevices: "a person may have 16 devices"
    case .privateHousehold: "only one person's devices can be in a private household"
    case .invite: "there is no such invite, or it is another member's"
    case .claim: "the claim does not hold"
    case .closed: "it was closed"
    case .removed: "this device was removed from it, and can come back only with new keys"
    case .lastOwner: "its only owner cannot leave it"
    case .unknownEpoch: "this device does not know the keys that are named"
    case .certificate: "the certificate is not by a device of that person"
    case .seal: "the key is not sealed as it has to be"
    case .next(let why): "the change of keys is not as it has to be (\(why))"
    case .malformed, .chain, .notGenesis: "the entry is not of the form that is needed (\(refusal))"
    }
  }

  /// A clause as a sentence.
  static func sentence(_ text: String) -> String {
    guard let first = text.first else { return text }
    let body = first.uppercased() + text.dropFirst()
    return body.hasSuffix(".") ? body : body + "."
  }

  static let noIdentity = LatchkeyError(
    .notAttached, "no-identity", "There is no identity on this device yet.",
    next: [
      "latchkey init --name YOUR-NAME --store URL", "or, with an invite: latchkey join --db FILE --name YOUR-NAME",
    ])
}
