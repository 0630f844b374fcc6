public import LatchkeyEncoding
public import LatchkeyKeys

/// A keyring in a folder of its own, which nobody but its owner may enter (0700).
///
/// `keyring` holds the keys (0600), `state-<household>` what was last believed of each household, `lock` keeps processes
/// apart. Every file ends with 32 bytes that tell whether it is whole.
///
/// Without a passphrase the keys are not encrypted: whoever can read the folder as its owner has them. With one
/// (``setPassphrase(_:)``) the file is sealed with what Argon2id makes of it, and so are the states, whose key lies in that file.
/// Who copied the folder before that has the keys all the same.
public struct FileKeyring: Keyring {
  /// Shortest passphrase that is set, in bytes of UTF-8.
  public static let minimumPassphraseBytes = 8

  /// The folder.
  public let home: String
  private let unlocking: Unlocking
  private let lock: FileLock
  private let files: SafeFile

  /// Path of the keyring file.
  public var path: String { home + "/keyring" }

  /// - Parameters:
  ///   - home: path of the folder; ``create(_:)`` makes it, and those above it that are not there.
  ///   - patience: how long to wait for another process, in milliseconds.
  ///   - passphrase: says the passphrase if the file turns out to be sealed, in UTF-8; nil where nobody can be asked. It is called
  ///     on the thread that needs the keys, and not again while what it said opens the file: this value and its copies keep that
  ///     in memory. What it throws becomes ``KeyringError/passphraseUnavailable(path:reason:)``.
  public init(
    home: String, patience: Int = 5_000, passphrase: @escaping @Sendable () throws -> SecretBytes? = { nil }
  ) {
    self.init(home: home, patience: patience, passphrase: passphrase) { _ in nil }
  }

  /// - Parameter fault: lets a step of writing fail with an error number: for tests.
  package init(
    home: String, patience: Int = 5_000, passphrase: @escaping @Sendable () throws -> SecretBytes? = { nil },
    fault: @escaping @Sendable (FileStep) -> Int32?
  ) {
    var home = home
    while home.count > 1 && home.hasSuffix("/") { home.removeLast() }
    self.home = home
    unlocking = Unlocking(passphrase)
    lock = FileLock(path: home + "/lock", patience: patience)
    files = SafeFile(fault: fault)
  }

  public func load() throws(KeyringError) -> KeyringContents { try open().contents }

  private func open() throws(KeyringError) -> (contents: KeyringContents, key: PassphraseKey?) {
    let file = try read()
    do throws(KeyringError) {
      return try KeyringFile.decode(file, path: path) { parameters throws(KeyringError) in
        try unlocking.key(parameters, path: path)
      }
    } catch {
      // Whoever asks next is asked anew.
      if case .passphraseWrong = error { unlocking.learn(nil, nil) }
      throw error
    }
  }

  private func read() throws(KeyringError) -> [UInt8] {
    guard SafeFile.exists(home) else { throw .missing(path: path) }
    try SafeFile.checkPrivateFolder(home)
    return try files.read(path)
  }

  public func create(_ contents: KeyringContents) throws(KeyringError) {
    try SafeFile.makePrivateFolder(home)
    let held = try lock.acquire()
    defer { lock.release(held) }
    guard !SafeFile.exists(path) else { throw .exists(path: path) }
    try files.replace(path, with: KeyringFile.encode(contents, sealedWith: nil))
  }

  /// Overwrites and removes the keys first, then the states: a crash in between leaves states that nothing opens. A disk may keep bytes of
  /// files that were replaced, and backups keep what they have.
  public func destroy() throws(KeyringError) {
    guard SafeFile.exists(home) else { return }
    try SafeFile.checkPrivateFolder(home)
    let held = try lock.acquire()
    defer { lock.release(held) }
    for name in try SafeFile.names(in: home) where name == "keyring" || name == "keyring.new" {
      try files.wipe("\(home)/\(name)")
    }
    for name in try SafeFile.names(in: home) where name.hasPrefix("state-") { try files.wipe("\(home)/\(name)") }
    unlocking.learn(nil, nil)
  }

  public func update<Result>(_ change: (inout KeyringContents) throws -> Result) throws -> Result {
    // Whoever has to be asked for a passphrase is asked while nobody waits for the lock.
    _ = try open()
    return try withLock {
      var (contents, key) = try open()
      let before = contents
      let result = try change(&contents)
      if contents != before { try files.replace(path, with: KeyringFile.encode(contents, sealedWith: key)) }
      return result
    }
  }

  // MARK: Passphrase

  /// Whether the file is sealed with a passphrase. Nobody is asked for it.
  public func hasPassphrase() throws(KeyringError) -> Bool { try KeyringFile.isSealed(try read(), path: path) }

  /// Seals the file with a passphrase; one that has another asks for that first.
  ///
  /// Takes most of a second and 256 MiB of memory, as every opening will. The sealed file replaces the one before in one step: a
  /// crash leaves that or this. No copy that is not sealed is written, though a disk may keep the bytes of a file that was replaced.
  ///
  /// - Throws: ``KeyringError/passphraseTooShort(minimum:)``; what ``load()`` throws.
  public func setPassphrase(_ passphrase: SecretBytes) throws(KeyringError) {
    guard passphrase.bytes.count >= Self.minimumPassphraseBytes else {
      throw .passphraseTooShort(minimum: Self.minimumPassphraseBytes)
    }
    _ = try open()
    let key = try PassphraseKey(passphrase, .new(), path: path)
    try replaceKey(with: key)
    unlocking.learn(passphrase, key)
  }

  /// Writes the keys without a passphrase again, having asked for it.
  ///
  /// - Returns: false if there was none.
  @discardableResult
  public func removePassphrase() throws(KeyringError) -> Bool {
    guard try open().key != nil else { return false }
    try replaceKey(with: nil)
    unlocking.learn(nil, nil)
    return true
  }

  private func replaceKey(with key: PassphraseKey?) throws(KeyringError) {
    let held = try lock.acquire()
    defer { lock.release(held) }
    let contents = try open().contents
    // An older version left them unsealed.
    for household in contents.households { try sealState(of: household.id, contents.stateKey) }
    try files.replace(path, with: KeyringFile.encode(contents, sealedWith: key))
  }

  private func sealState(of household: HouseholdID, _ key: SecretBytes) throws(KeyringError) {
    guard let state = try state(of: household, key) else { return }
    try files.replace(statePath(household), with: StateFile.encode(state, household: household, key: key))
  }

  // MARK: States

  public func state(of household: HouseholdID) throws(KeyringError) -> [UInt8]? {
    try state(of: household, try load().stateKey)
  }

  private func state(of household: HouseholdID, _ key: SecretBytes) throws(KeyringError) -> [UInt8]? {
    let path = statePath(household)
    let bytes: [UInt8]
    do { bytes = try files.read(path) } catch {
      if case .missing = error { return nil }
      throw error
    }
    return try StateFile.decode(bytes, household: household, key: key, path: path)
  }

  public func replaceState(
    of household: HouseholdID, former: [UInt8]?, with state: [UInt8]
  ) throws(KeyringError) -> Bool {
    let key = try load().stateKey
    let held = try lock.acquire()
    defer { lock.release(held) }
    guard try self.state(of: household, key) == former else { return false }
    try files.replace(statePath(household), with: StateFile.encode(state, household: household, key: key))
    return true
  }

  public func setState(_ state: [UInt8]?, of household: HouseholdID) throws(KeyringError) {
    let key = try load().stateKey
    let path = statePath(household)
    let held = try lock.acquire()
    defer { lock.release(held) }
    if let state {
      try files.replace(path, with: StateFile.encode(state, household: household, key: key))
    } else {
      try files.remove(path)
    }
  }

  /// Runs `body` while no other process, and no other value of this type, writes here.
  ///
  /// Not reentrant: ``create(_:)``, ``update(_:)`` and ``setState(_:of:)`` take the same lock.
  public func withLock<Result>(_ body: () throws -> Result) throws -> Result {
    let held = try lock.acquire()
    defer { lock.release(held) }
    return try body()
  }

  private func statePath(_ household: HouseholdID) -> String { "\(home)/state-\(hex(household.bytes))" }
}
