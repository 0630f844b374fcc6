internal import LatchkeyEncoding
internal import LatchkeyKeyring
internal import LatchkeyKeys
public import LatchkeyStorage

/// What stores ask for before they let this device in. Kept in the keyring for each store by its locator, and given to that
/// store only: a household that moves to another place, or an invite that names one, takes no credential along.
extension Home {
  /// Changes the credential of a household's store: tried out first, then kept for later.
  ///
  /// - Parameters:
  ///   - household: its name; nil for the only shared one.
  ///   - credential: as ``StoreCredential/init(file:)`` reads it.
  /// - Returns: the household, and the URL of its store.
  /// - Throws: ``LatchkeyError`` of kind `store` where the store does not take it; the former one is kept then.
  @discardableResult
  public func setCredential(
    of household: String? = nil, _ credential: StoreCredential
  ) async throws(LatchkeyError) -> (household: String, store: String) {
    try await reporting {
      let membership = try membership(named: household)
      let locator = try stores.locator(membership.locator, relativeTo: base)
      let access = try await openStore(locator, credential: credential)
      try await requireStore(access)
      try keep(credential, for: locator)
      return (membership.name, locator.text)
    }
  }

  /// As ``setCredential(of:_:)``, from a file that only its owner can read (0600).
  @discardableResult
  public func setCredential(
    of household: String? = nil, from file: String
  ) async throws(LatchkeyError) -> (household: String, store: String) {
    let credential: StoreCredential
    do { credential = try StoreCredential(file: absolute(file)) } catch { throw LatchkeyError(credential: error) }
    return try await setCredential(of: household, credential)
  }

  /// Keeps a credential, in the keyring, for the store with exactly this locator.
  func keep(_ credential: StoreCredential?, for locator: Locator) throws {
    guard let credential, try keptCredential(for: locator) != credential else { return }
    try keyring.update { $0[credentialOf: locator.text] = Credential(credential.text) }
  }

  func keptCredential(for locator: Locator) throws -> StoreCredential? {
    // A folder asks for none, and the keyring may ask for a passphrase.
    guard stores.takesCredential(locator), let kept = try contentsIfAny()?[credentialOf: locator.text] else {
      return nil
    }
    return try StoreCredential(parsing: kept.text, source: "the keyring's credential for \(locator.text)")
  }
}

extension LatchkeyError {
  /// A file or a text that holds no credential.
  public init(credential error: StoreCredentialError) {
    self.init(
      .key, "credential-unusable", Self.sentence(error.description) + " It was not used.",
      next: ["write lines \"name = value\" into a file that only you can read (chmod 600 FILE): latchkey help stores"])
  }
}
