internal import LatchkeyEncoding
internal import LatchkeyEngine
public import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyLog
public import LatchkeyStorage

/// This device's place in its households: identity, keys, rosters and the list of attached databases, in one directory.
///
/// Everything starts here: make one `Home` per directory, ``initialize(name:device:store:)`` it once (or ``join(link:options:agree:)``
/// with an invite), then attach databases and sync them. Several processes may use one directory; each call takes the
/// directory's lock where it changes it.
///
/// ```swift
/// var stores = StoreRegistry()
/// stores.registerFolders()
/// let home = Home(directory: "latchkey-home", stores: stores)
/// try await home.initialize(name: "Ana", device: "laptop", store: "folder:/mnt/nas/latchkey")
/// try await home.attach("budget.db", zone: "Budget")
/// let report = try await home.sync("budget.db")
/// ```
public actor Home {
  let directory: String
  let stores: StoreRegistry
  let world: World
  let keyring: any Keyring
  var judged: [HouseholdID: Judged] = [:]
  /// Turns on databases that were taken here, by path: they keep others from showing rows, not this one.
  var turns: [String: TurnReference] = [:]
  /// What relative store paths are resolved against.
  let base: String

  /// - Parameters:
  ///   - directory: made on first use, for this user only (0700).
  ///   - stores: the schemes that store URLs may have.
  ///   - base: an absolute path that relative folders in store URLs start from; the process's current directory if nil.
  ///   - keyring: where keys are kept; files in the directory if nil.
  ///   - world: time and randomness.
  public init(
    directory: String, stores: StoreRegistry, base: String? = nil, keyring: (any Keyring)? = nil, world: World = .system
  ) {
    self.directory = absolute(directory)
    self.stores = stores
    self.world = world
    self.base = base ?? currentDirectory()
    self.keyring = keyring ?? FileKeyring(home: self.directory)
  }

  /// Runs `body`, translating whatever it throws.
  func reporting<T>(database path: String? = nil, _ body: () async throws -> T) async throws(LatchkeyError) -> T {
    do { return try await body() } catch { throw LatchkeyError(error, database: path) }
  }

  // MARK: Identity

  /// Makes this device's identity, and its person's private household in a store, which is made a store if the place is empty.
  ///
  /// Called again with an identity but no private household, it makes that household only; the person keeps the name.
  ///
  /// - Parameters:
  ///   - name: the person's name, shown to those the person shares with.
  ///   - device: this device's name; the host's if nil.
  ///   - store: where the private household is kept.
  ///   - credential: what that store asks for; kept for later.
  /// - Throws: ``LatchkeyError`` of kind `usage` (bad name or URL, identity exists), `store`.
  @discardableResult
  public func initialize(
    name: String, device: String?, store: String, credential: StoreCredential? = nil
  ) async throws(LatchkeyError) -> Identity {
    try await reporting {
      try checkName(name, "name")
      let locator = try stores.locator(store, relativeTo: base)
      let deviceName = device ?? hostName()
      try checkName(deviceName, "device name")
      let existing = try contentsIfAny()
      if let existing, existing.households.contains(where: \.isPrivate) {
        throw LatchkeyError(
          .usage, "identity-exists",
          "There is an identity on this device already: \(existing.personName) (\(existing.deviceName)).",
          next: ["latchkey status", "latchkey attach DB"])
      }
      let access = try await openStore(locator, mode: .create, credential: credential)
      try await access.claimMarker(world)
      if existing == nil { try createIdentity(name: name, device: deviceName) }
      try keep(credential, for: locator)
      let membership = try found(household: "\(existing?.personName ?? name)'s own", isPrivate: true, locator: locator)
      _ = try await round(membership, access: access)
      return try identity()
    }
  }

  func createIdentity(name: String, device: String) throws {
    var random = world.random()
    let keys = DeviceKeys(&random)
    try keyring.create(
      KeyringContents(
        device: keys, chain: CertificateChain(first: keys), personName: name, deviceName: device, random: &random))
  }

  /// Who this device is.
  public func identity() throws(LatchkeyError) -> Identity {
    do {
      let contents = try contents()
      return Identity(
        name: contents.personName, person: contents.chain.person.description, device: contents.deviceName,
        deviceID: contents.device.id.description,
        households: contents.households.filter { $0.ending != .over }.map {
          .init(name: $0.name, id: $0.id.description, isPrivate: $0.isPrivate, store: $0.locator)
        })
    } catch { throw LatchkeyError(error) }
  }

  func contents() throws -> KeyringContents {
    guard let contents = try contentsIfAny() else { throw LatchkeyError.noIdentity }
    return contents
  }

  func contentsIfAny() throws -> KeyringContents? {
    do { return try keyring.load() } catch KeyringError.missing { return nil }
  }

  // MARK: Households

  /// A household as this device holds it.
  struct Membership {
    var id: HouseholdID
    var name: String
    var isPrivate: Bool
    var locator: String
  }

  func membership(_ household: HouseholdKeys) -> Membership {
    Membership(
      id: household.id, name: household.name, isPrivate: household.isPrivate, locator: household.locator)
  }

  /// Without those that are over.
  func memberships() throws -> [Membership] { try contents().households.filter { $0.ending != .over }.map(membership) }

  func membership(of household: HouseholdID) throws -> Membership {
    guard let found = try memberships().first(where: { $0.id == household }) else {
      throw LatchkeyError(
        .membership, "not-a-member", "This device holds no keys of the household that the database belongs to.",
        next: ["join it with an invite: latchkey join --db FILE"])
    }
    return found
  }

  func privateMembership() throws -> Membership {
    guard let found = try memberships().first(where: \.isPrivate) else {
      throw LatchkeyError(
        .notAttached, "no-private-household",
        "There is an identity, but no private household to keep databases in yet.",
        next: ["latchkey init --name NAME --store URL"])
    }
    return found
  }

  /// The household of that name, or the only shared one.
  func membership(named name: String?) throws -> Membership {
    let all = try memberships()
    if let name {
      let matches = all.filter { $0.name == name || $0.id.description.hasPrefix(name) && name.count >= 6 }
      guard let first = matches.first, matches.count == 1 else {
        throw LatchkeyError(
          .usage, matches.isEmpty ? "no-such-household" : "ambiguous-household",
          matches.isEmpty ? "There is no household \(name) on this device." : "Several households are called \(name).",
          next: all.map { "--household \($0.name)" })
      }
      return first
    }
    let shared = all.filter { !$0.isPrivate }
    if shared.count == 1 { return shared[0] }
    if shared.isEmpty {
      throw LatchkeyError(
        .usage, "no-shared-household", "This device takes part in no shared household.",
        next: ["latchkey share DB --household NAME"])
    }
    throw LatchkeyError(
      .usage, "which-household", "There are several households: say which.",
      next: shared.map { "--household \($0.name)" })
  }

  func state(of household: HouseholdID) throws -> HouseholdState {
    guard let bytes = try keyring.state(of: household) else {
      throw LatchkeyError(
        .damage, "missing-state", "What Latchkey keeps of the household beside the keyring is missing.",
        next: ["restore the directory \(directory) from a backup, or join again with an invite"])
    }
    let secrets = try secrets(of: household)
    // Judging a roster is the work of most calls: it is done once for the same bytes.
    if let judged = judged[household], judged.bytes == bytes, judged.secrets == secrets { return judged.state }
    let state = try HouseholdState(decoding: bytes, secrets: secrets)
    judged[household] = Judged(bytes: bytes, secrets: secrets, state: state)
    return state
  }

  /// A household's state as it was last read, with what it was read from.
  struct Judged {
    let bytes: [UInt8]
    let secrets: HouseholdSecrets
    let state: HouseholdState
  }

  /// What this device opens the household's epochs with.
  private func secrets(of household: HouseholdID) throws -> HouseholdSecrets {
    let contents = try contents()
    let known = contents[household]
    return HouseholdSecrets(
      device: contents.device,
      held: Dictionary((known?.epochs ?? []).map { ($0.id, $0.key) }, uniquingKeysWith: { first, _ in first }),
      link: known?.joining.map {
        HouseholdSecrets.Link(invite: $0.invite, box: $0.secret?.keys.boxKey ?? contents.device.box)
      })
  }

  /// Keeps a state in place of the one it was made from. If another process has kept one meanwhile, nothing is kept: this
  /// device's log would get two entries with one number.
  func keep(_ state: HouseholdState, after former: HouseholdState?) throws {
    guard try keyring.replaceState(of: state.household, former: former?.encoded(), with: state.encoded()) else {
      throw Overtaken()
    }
  }

  /// Another process changed what this one was working on; begin again.
  struct Overtaken: Error {}

  /// Founds a household and puts it into the keyring: its state first, so that a key never lacks its roster.
  func found(household name: String, isPrivate: Bool, locator: Locator) throws -> Membership {
    let contents = try contents()
    var random = world.random()
    let key = EpochKey(&random)
    let incarnation = newIncarnation(&random)
    var state = try HouseholdState.found(
      name: name, isPrivate: isPrivate, chain: contents.chain, personName: contents.personName,
      deviceName: contents.deviceName, key: key, kit: contents.kitToBring, incarnation: incarnation,
      device: contents.device, now: world.now(), random: &random)
    try state.seal(now: world.now(), random: &random)
    try keep(state, after: nil)
    let household = HouseholdKeys(
      id: state.household, name: name, isPrivate: isPrivate, epochs: [.init(id: state.epoch, key: key)],
      locator: locator.text, role: .owner, rosterIncarnation: incarnation)
    try keyring.update { $0[state.household] = household }
    return membership(household)
  }

  /// Writes operations into a household's roster and seals them; they are sent with the next round.
  @discardableResult
  func write(_ operations: [RosterOperation], into membership: Membership) throws -> HouseholdState {
    guard !operations.isEmpty else { return try state(of: membership.id) }
    return try change(membership.id) { state, random in
      for operation in operations { try state.write(operation, now: world.now()) }
      try state.seal(now: world.now(), random: &random)
      return state
    }
  }

  /// Changes what is kept of a household, alone among processes: where another one was quicker, once more from what that has kept.
  ///
  /// - Parameter body: makes the change; may be called several times. Nothing is kept of what it throws from.
  /// - Throws: what `body` throws; ``LatchkeyError`` of kind `busy` if others keep being quicker.
  @discardableResult
  func change<T>(
    _ household: HouseholdID, _ body: (inout HouseholdState, inout AnyRandomSource) throws -> T
  ) throws -> T {
    for _ in 0..<8 {
      var random = AnyRandomSource(world.random())
      let former = try state(of: household)
      var state = former
      let result = try body(&state, &random)
      do {
        try keep(state, after: former)
        return result
      } catch is Overtaken { continue }
    }
    throw LatchkeyError(
      .busy, "home-busy", "Other processes keep changing the same household's state.", next: ["run it again"])
  }
}

func newIncarnation(_ random: inout some RandomSource) -> Incarnation { Incarnation(random.bytes(8)) ?? Incarnation(0) }

/// Names are shown on other people's screens: not empty, not long, no control characters (format §12).
func checkName(_ name: String, _ what: String) throws(LatchkeyError) {
  guard !name.isEmpty, name.utf8.count <= 1024,
    !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
  else {
    throw LatchkeyError(
      .usage, "bad-name", "A \(what) has 1 to 1,024 bytes and no control characters.")
  }
}
