internal import LatchkeyKeyring
public import LatchkeyKeys

extension Home {
  /// Whether the keys lie sealed with a passphrase. Nobody is asked for it.
  public func hasPassphrase() throws(LatchkeyError) -> Bool {
    do { return try files().hasPassphrase() } catch { throw LatchkeyError(error) }
  }

  /// Seals the keys with a passphrase, in UTF-8; where there is one, that is asked for first
  /// (``FileKeyring/setPassphrase(_:)``).
  ///
  /// - Throws: ``LatchkeyError`` of kind `usage` (too short, or the keyring is not in files), `key`, `notAttached`.
  public func setPassphrase(_ passphrase: SecretBytes) throws(LatchkeyError) {
    do { try files().setPassphrase(passphrase) } catch { throw LatchkeyError(error) }
  }

  /// Keeps the keys without a passphrase again, having asked for it.
  ///
  /// - Returns: false if there was none.
  @discardableResult
  public func removePassphrase() throws(LatchkeyError) -> Bool {
    do { return try files().removePassphrase() } catch { throw LatchkeyError(error) }
  }

  private func files() throws(LatchkeyError) -> FileKeyring {
    guard let files = keyring as? FileKeyring else {
      throw LatchkeyError(.usage, "no-keyring-file", "The keys are not kept in files: what keeps them protects them.")
    }
    return files
  }
}
