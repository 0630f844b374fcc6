public import LatchkeyEncoding

/// A keyring in a folder of its own, which nobody but its owner may enter (0700).
///
/// `keyring` holds the keys (0600), `state-<household>` what was last believed of each household, `lock` keeps processes
/// apart. Every file ends with 32 bytes that tell whether it is whole. The keys are not encrypted: whoever can read the
/// folder as its owner has them.
public struct FileKeyring: Keyring {
  /// The folder.
  public let home: String
  private let lock: FileLock
  private let files: SafeFile

  /// Path of the keyring file.
  public var path: String { home + "/keyring" }

  /// - Parameters:
  ///   - home: path of the folder; ``create(_:)`` makes it, and those above it that are not there.
  ///   - patience: how long to wait for another process, in milliseconds.
  public init(home: String, patience: Int = 5_000) {
    self.init(home: home, patience: patience) { _ in nil }
  }

  /// - Parameter fault: lets a step of writing fail with an error number: for tests.
  package init(home: String, patience: Int = 5_000, fault: @escaping @Sendable (FileStep) -> Int32?) {
    var home = home
    while home.count > 1 && home.hasSuffix("/") { home.removeLast() }
    self.home = home
    lock = FileLock(path: home + "/lock", patience: patience)
    files = SafeFile(fault: fault)
  }

  public func load() throws(KeyringError) -> KeyringContents {
    guard SafeFile.exists(home) else { throw .missing(path: path) }
    try SafeFile.checkPrivateFolder(home)
    return try KeyringFile.decode(try files.read(path), path: path)
  }

  public func create(_ contents: KeyringContents) throws(KeyringError) {
    try SafeFile.makePrivateFolder(home)
    let held = try lock.acquire()
    defer { lock.release(held) }
    guard !SafeFile.exists(path) else { throw .exists(path: path) }
    try files.replace(path, with: KeyringFile.encode(contents))
  }

  public func update<Result>(_ change: (inout KeyringContents) throws -> Result) throws -> Result {
    guard SafeFile.exists(home) else { throw KeyringError.missing(path: path) }
    return try withLock {
      var contents = try load()
      let before = contents
      let result = try change(&contents)
      if contents != before { try files.replace(path, with: KeyringFile.encode(contents)) }
      return result
    }
  }

  public func state(of household: HouseholdID) throws(KeyringError) -> [UInt8]? {
    let key = try load().stateKey
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
    guard try self.state(of: household) == former else { return false }
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
