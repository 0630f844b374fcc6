public import LatchkeyEncoding

/// Where a device keeps its keys, and beside them what it has last believed of each household.
///
/// ``FileKeyring`` keeps them in a folder; an app may keep them in its platform's key store instead.
public protocol Keyring: Sendable {
  /// Everything that is kept.
  func load() throws(KeyringError) -> KeyringContents

  /// Begins a keyring. Throws ``KeyringError/exists(path:)`` rather than replace one.
  func create(_ contents: KeyringContents) throws(KeyringError)

  /// Forgets everything for good: keys, and what was believed of each household. Nothing brings them back.
  func destroy() throws(KeyringError)

  /// Changes it, alone among processes and all or nothing: whatever `change` throws leaves it as it was.
  ///
  /// Not reentrant: `change` must not ask the same keyring for anything that writes.
  func update<Result>(_ change: (inout KeyringContents) throws -> Result) throws -> Result

  /// The state last kept for a household; nil if there is none.
  func state(of household: HouseholdID) throws(KeyringError) -> [UInt8]?

  /// Keeps a state, durably once it returns: it outlives a restored database and shows that it was restored.
  ///
  /// - Parameter state: nil forgets it.
  func setState(_ state: [UInt8]?, of household: HouseholdID) throws(KeyringError)

  /// Keeps a state in place of the one that it was made from, alone among processes.
  ///
  /// A household's state holds this device's own log: two processes that both went on from one state would give one
  /// sequence number to two entries.
  ///
  /// - Parameter former: what the caller read; nil for none.
  /// - Returns: false, with nothing changed, if another state has been kept meanwhile.
  func replaceState(of household: HouseholdID, former: [UInt8]?, with state: [UInt8]) throws(KeyringError) -> Bool
}
