/// Why keys are not at hand. No case carries a secret.
public enum KeyringError: Error, Equatable, Sendable {
  /// There is none yet.
  case missing(path: String)
  /// There is one already; it is not overwritten.
  case exists(path: String)
  /// Others than its owner can read or change it, or it belongs to somebody else.
  case loosePermissions(path: String)
  /// Cut off, altered, or not a keyring.
  case damaged(path: String)
  /// Written by a newer version.
  case newer(path: String)
  /// It is sealed with a passphrase, and nobody said one.
  case passphraseMissing(path: String)
  /// It is sealed with a passphrase, and the one that was said is another.
  case passphraseWrong(path: String)
  /// Whoever was to say the passphrase failed.
  case passphraseUnavailable(path: String, reason: String)
  /// A new passphrase is shorter than ``FileKeyring/minimumPassphraseBytes``.
  case passphraseTooShort(minimum: Int)
  /// It asks for a stretching of the passphrase that is weaker than this version accepts, or larger than it is willing to do.
  case unsafeParameters(path: String)
  /// Another process has held it for longer than the caller waits.
  case busy(path: String)
  /// May not be written: permissions, or a read-only disk.
  case readOnly(path: String)
  /// No space is left.
  case full(path: String)
  /// The system refused for another reason.
  case system(path: String, step: String, code: Int32)
}

extension KeyringError: CustomStringConvertible {
  /// What, why, what next, in a sentence for people.
  public var description: String {
    switch self {
    case .missing(let path):
      "There is no keyring at \(path). Make one with `latchkey init`, or name its folder with --home."
    case .exists(let path):
      "There is a keyring at \(path) already; it was left as it is."
    case .loosePermissions(let path):
      "Others could read or change \(path). Make it yours alone (chmod go-rwx) before its keys are used."
    case .damaged(let path):
      "The keyring file \(path) is cut off or altered. Put back a copy of it, or enrol this device anew."
    case .newer(let path):
      "The keyring file \(path) was written by a newer version of Latchkey. Use that version."
    case .passphraseMissing(let path):
      "The keyring \(path) is sealed with a passphrase, and none was given."
    case .passphraseWrong(let path):
      "The passphrase does not open the keyring \(path)."
    case .passphraseUnavailable(let path, let reason):
      "The passphrase of the keyring \(path) could not be read: \(reason)"
    case .passphraseTooShort(let minimum):
      "A passphrase has at least \(minimum) bytes. Several words that do not belong together are better than few signs."
    case .unsafeParameters(let path):
      "The keyring file \(path) asks for its passphrase to be stretched less than is safe, or more than is sane. It was altered."
    case .busy(let path):
      "Another process holds \(path). Try again when it has finished."
    case .readOnly(let path):
      "\(path) may not be written. Check the folder's permissions and whether its disk is read-only."
    case .full(let path):
      "No space is left to write \(path). Nothing was changed."
    case .system(let path, let step, let code):
      "The system refused to \(step) \(path) (error \(code))."
    }
  }
}
