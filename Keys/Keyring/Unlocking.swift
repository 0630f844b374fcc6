internal import LatchkeyKeys
internal import Synchronization

/// Holds what opens a keyring file, once somebody has said the passphrase: shared by all copies of one ``FileKeyring``.
final class Unlocking: Sendable {
  private struct Known {
    var passphrase: SecretBytes?
    var key: PassphraseKey?
  }

  private let provider: @Sendable () throws -> SecretBytes?
  private let known = Mutex(Known())

  init(_ provider: @escaping @Sendable () throws -> SecretBytes?) { self.provider = provider }

  /// The key that a file with these parameters asks for. Others wait meanwhile, so that nobody is asked twice.
  func key(_ parameters: PassphraseParameters, path: String) throws(KeyringError) -> PassphraseKey {
    // Nobody is asked for what would not be used.
    guard parameters.isAcceptable else { throw .unsafeParameters(path: path) }
    return try known.withLock { known throws(KeyringError) in
      if let key = known.key, key.parameters == parameters { return key }
      let passphrase: SecretBytes
      if let said = known.passphrase { passphrase = said } else { passphrase = try ask(path) }
      let key = try PassphraseKey(passphrase, parameters, path: path)
      known = Known(passphrase: passphrase, key: key)
      return key
    }
  }

  /// What was said is right from now on; nil: nothing is to be said.
  func learn(_ passphrase: SecretBytes?, _ key: PassphraseKey?) {
    known.withLock { $0 = Known(passphrase: passphrase, key: key) }
  }

  private func ask(_ path: String) throws(KeyringError) -> SecretBytes {
    let said: SecretBytes?
    do { said = try provider() } catch { throw .passphraseUnavailable(path: path, reason: "\(error)") }
    guard let said, !said.bytes.isEmpty else { throw .passphraseMissing(path: path) }
    return said
  }
}
