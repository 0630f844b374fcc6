internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
public import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyStorage

/// A recovery kit that was made: show its words once, and keep them nowhere but on paper.
public struct RecoveryKit: Sendable {
  /// 24 words, a secret: with them and the store anybody is this person.
  public let words: [String]
  public let person: String
  /// Households that it opens.
  public let households: [String]
  /// Households that it does not open yet, and why.
  public let missing: [HouseholdFailure]
  /// Where to look with the words: the stores' URLs.
  public let stores: [String]
}

/// What recovering brought back.
public struct RecoveryReport: Sendable {
  public let person: String
  public let device: String
  public let households: [String]
  /// Households that the kit knows of and that could not be entered, and why.
  public let missing: [HouseholdFailure]
  /// Open zones: what `attach` makes files of.
  public let zones: [(household: String, zone: String)]
  /// Whether the person's private household is among them: it leads to all others, and to the person's other devices.
  public let isComplete: Bool
}

/// A device on paper: whoever loses all devices comes back with 24 words and a store.
///
/// A kit is a device of the person whose keys derive from the words (format §8, *Kit*). It is let in like any other, so every epoch's key is
/// sealed to it; what it finds a household by lies in the store under a name that only the words give.
extension Home {
  static let kitName = "recovery kit"

  /// Makes a recovery kit and brings it into every household of this device. A kit that was made before stays good until it is revoked.
  ///
  /// - Throws: ``LatchkeyError`` of kind `notAttached`, `membership` (not let in anywhere yet), `store` where no household could be reached.
  public func makeRecoveryKit() async throws(LatchkeyError) -> RecoveryKit {
    try await reporting {
      let contents = try contents()
      var random = world.random()
      let phrase = RecoveryPhrase(&random)
      let keys = KitKeys(phrase)
      guard
        let certificate = Certificate(request: keys.device, person: contents.person, signer: contents.device.id)
          .completed(by: contents.device)
      else { throw LatchkeyError(.other, "unexpected", "No certificate could be made for the kit.") }
      // Kept first: what is let in and not known any more would be a stranger to its own person.
      let record = KitRecord(certificate: certificate, place: keys.place)
      let former = contents.kit
      try keyring.update { $0.kit = record }
      var opened: [Membership] = []
      var missing: [HouseholdFailure] = []
      var isMade = false
      for membership in try memberships().sorted(by: { $0.isPrivate && !$1.isPrivate }) {
        do {
          let access = try await openStore(of: membership)
          _ = try await round(membership, access: access)
          try write(
            [.addDevice(certificate, name: Self.kitName, isKit: true)], into: membership)
          // From here on it is sent, now or with a later sync: the words must be shown.
          isMade = true
          _ = try await round(membership, access: access)
          opened.append(membership)
        } catch { missing.append(try HouseholdFailure(membership.name, error)) }
      }
      guard isMade else {
        try keyring.update { $0.kit = former }
        throw missing.first?.why
          ?? LatchkeyError(
            .notAttached, "no-household", "This device is in no household that a kit could open.",
            next: ["latchkey init --name NAME --store URL"])
      }
      var stores: [String] = []
      for membership in opened where !stores.contains(membership.locator) { stores.append(membership.locator) }
      return RecoveryKit(
        words: phrase.words, person: contents.personName, households: opened.map(\.name), missing: missing,
        stores: stores)
    }
  }

  /// Puts beside a household what this person's kit finds it by, once the kit is in.
  ///
  /// - Returns: whether there is something to send.
  func bringKit(_ membership: Membership) throws -> Bool {
    let contents = try contents()
    guard let kit = contents.kit, let known = contents[membership.id], known.kitBlob != kit.certificate.keys.id else {
      return false
    }
    let state = try state(of: membership.id)
    guard state.roster.state.device(kit.certificate.keys.id) != nil, state.holds.isEmpty else { return false }
    try change(membership.id) { state, random in
      try state.seal(now: world.now(), random: &random)
      try state.enqueueBlob(of: kit.certificate.keys, at: kit.place, random: &random)
    }
    try keyring.update { $0[membership.id]?.kitBlob = kit.certificate.keys.id }
    return true
  }

  /// Becomes a device of the person again, with the words of a recovery kit and a store alone.
  ///
  /// The kit vouches for this device in every household that it is in, and begins a new epoch there. Other devices of the person stay until
  /// they are revoked. Interrupted, it is taken up again by calling it again with the same words.
  ///
  /// - Parameters:
  ///   - phrase: the words.
  ///   - store: where to look: the store of any household that the kit opens; the private one leads to all others.
  ///   - device: this device's name; the host's if nil.
  /// - Throws: ``LatchkeyError`` of kind `key` (nothing there for this kit; the kit was revoked), `usage` (another identity is here), `damage`,
  ///   `store`.
  public func recover(
    _ phrase: RecoveryPhrase, store: String, device: String? = nil
  ) async throws(LatchkeyError) -> RecoveryReport {
    try await reporting {
      let kit = KitKeys(phrase)
      let deviceName = device ?? hostName()
      try checkName(deviceName, "device name")
      if let existing = try contentsIfAny() {
        guard existing.chain.certificates.last?.signer == kit.device.id else {
          throw LatchkeyError(
            .usage, "identity-exists",
            "This device has an identity already: \(existing.personName). Recovering makes a new one.",
            next: ["use another --home DIR"])
        }
      }
      let locator = try stores.locator(store, relativeTo: base)
      let access = try await openStore(locator)
      guard case .store = try await StoreMarker.read(access.store) else { throw EngineError.storeMissing }
      var waiting = try await blobs(of: kit, locator, access)
      var seen: Set<HouseholdID> = []
      var done: [String] = []
      var missing: [HouseholdFailure] = []
      while !waiting.isEmpty {
        let next = waiting.removeFirst()
        guard seen.insert(next.keys.household).inserted else { continue }
        do {
          let further = try await enter(next, with: kit, deviceName)
          done.append(next.name)
          waiting += further.filter { !seen.contains($0.keys.household) }
        } catch { missing.append(try HouseholdFailure(next.name, error)) }
      }
      guard !done.isEmpty, let contents = try contentsIfAny() else {
        throw missing.first?.why ?? LatchkeyError.unknownKit
      }
      if let own = try memberships().first(where: \.isPrivate) {
        do { try await alignOwnDevices(own, access: try await openStore(of: own)) } catch {
          // Said already, household by household; the next sync goes on with it.
          let failure = try HouseholdFailure(own.name, error)
          if missing.isEmpty { missing.append(failure) }
        }
      }
      var zones: [(String, String)] = []
      for membership in try memberships() {
        for zone in try state(of: membership.id).roster.state.zones where zone.closing == nil {
          zones.append((membership.name, zone.name))
        }
      }
      return RecoveryReport(
        person: contents.personName, device: contents.deviceName, households: done, missing: missing, zones: zones,
        isComplete: try memberships().contains(where: \.isPrivate))
    }
  }

  /// A household that a kit can open.
  private struct Recoverable {
    let keys: EpochKeys
    let name: String
    let isPrivate: Bool
    /// Roster entries that the store must show.
    let heads: [EntryHash]
    let locator: Locator
  }

  /// What the words open in a store: the private household first, which leads to all others.
  private func blobs(of kit: KitKeys, _ locator: Locator, _ access: StoreAccess) async throws -> [Recoverable] {
    let prefix = kit.place.prefix
    let names = try await access.list(prefix + "/")
    guard !names.isEmpty else { throw LatchkeyError.unknownKit }
    var found: [Recoverable] = []
    var damage: String?
    for (name, bytes) in try await access.get(names).sorted(by: { $0.key < $1.key }) {
      do {
        guard let below = name.below(prefix) else { continue }
        let blob = try KitBlob(decoding: try Envelope.open(bytes, at: kit.place.place(below), key: kit.place.key))
        guard blob.name(kit.place) == below, let keys = blob.open(with: kit.device) else {
          damage = "it does not hold what its name says"
          continue
        }
        found.append(
          Recoverable(
            keys: keys, name: blob.householdName, isPrivate: blob.isPrivate, heads: blob.rosterHeads, locator: locator))
      } catch { damage = "\(error)" }
    }
    guard !found.isEmpty else {
      throw LatchkeyError(
        .damage, "damaged-kit", "What the store holds for this kit is damaged: \(damage ?? "nothing is left").",
        next: ["try another store of the household (--store URL)"])
    }
    return found.sorted { $0.isPrivate && !$1.isPrivate }
  }

  /// Enters a household as a kit, has it vouch for this device, and begins to hold it.
  ///
  /// - Returns: further households that this one knows of.
  private func enter(_ known: Recoverable, with kit: KitKeys, _ deviceName: String) async throws -> [Recoverable] {
    let access = try await openStore(known.locator)
    guard let genesis = try await findGenesis(known.keys, access) else { throw LatchkeyError.noGenesis }
    var random = world.random()
    var paper = try HouseholdState(
      household: known.keys.household, epoch: known.keys.epoch, genesis: genesis,
      origin: Origin(device: kit.device.id, incarnation: newIncarnation(&random)),
      secrets: HouseholdSecrets(device: kit.device, held: [known.keys.epoch: known.keys.key]))
    paper = try await passingRound(paper, as: kit.device, access: access, writing: .really)
    guard known.heads.allSatisfy(paper.roster.contains) else {
      throw LatchkeyError(
        .damage, "behind-checkpoint",
        "The store shows an older roster of \(known.name) than the kit was made for: it was rolled back, or has not caught up.",
        next: ["try again later", "try another store of the household (--store URL)"])
    }
    guard let own = paper.roster.state.device(kit.device.id) else {
      throw LatchkeyError(
        .key, "kit-revoked",
        "The kit was revoked, or its person removed from \(known.name): it opens nothing any more.",
        next: ["ask an owner for an invite"])
    }
    let contents = try identity(vouchedBy: kit, chain: own.chain, in: paper, deviceName)
    if paper.roster.state.device(contents.device.id) == nil, let certificate = contents.chain.certificates.last {
      let addition = RosterOperation.addDevice(certificate, name: contents.deviceName, isKit: false)
      try paper.write(addition, now: world.now())
      try paper.seal(now: world.now(), random: &random)
      // In a new epoch from now on: this device's key begins there, and what comes after it is its own.
      var mixed = AnyRandomSource(random)
      try paper.writeNext(NextChange(), now: world.now(), random: &mixed)
      try paper.seal(now: world.now(), random: &mixed)
      paper = try await passingRound(paper, as: kit.device, access: access, writing: .really)
    }
    if try self.contents()[known.keys.household] == nil {
      try adopt(
        try paper.currentKeys(), genesis: genesis, name: known.name, isPrivate: known.isPrivate,
        locator: known.locator.text)
      try keyring.update { $0[known.keys.household]?.kitBlob = kit.device.id }
    }
    _ = try await round(try membership(of: known.keys.household), access: access)
    return try paper.roster.state.households.map { access in
      Recoverable(
        keys: EpochKeys(household: access.household, epoch: access.epoch, key: access.key), name: access.name,
        isPrivate: false, heads: access.checkpoint, locator: try stores.locator(access.locator, relativeTo: base))
    }
  }

  /// This device's identity as one that the kit vouches for; made where there is none yet.
  private func identity(
    vouchedBy kit: KitKeys, chain: CertificateChain, in paper: HouseholdState, _ deviceName: String
  ) throws -> KeyringContents {
    if let existing = try contentsIfAny() { return existing }
    var random = world.random()
    let keys = DeviceKeys(&random)
    guard
      let certificate = Certificate(request: keys, person: chain.person, signer: kit.device.id).completed(
        by: kit.device),
      let ownChain = try? chain.adding(certificate), let paperCertificate = chain.certificates.last
    else {
      throw LatchkeyError(
        .key, "too-many-devices", "This person has as many devices as one may have: 16.",
        next: ["latchkey device revoke NAME   (on one of them)"])
    }
    var contents = KeyringContents(
      device: keys, chain: ownChain, personName: paper.roster.state.person(chain.person)?.name ?? deviceName,
      deviceName: deviceName, random: &random)
    contents.kit = KitRecord(certificate: paperCertificate, place: kit.place)
    try keyring.create(contents)
    return contents
  }
}

extension KeyringContents {
  /// The kit's certificate where this device's own chain shows who signed it: what Genesis and claims carry.
  var kitToBring: Certificate? {
    guard let certificate = kit?.certificate, (try? chain.adding(certificate)) != nil else { return nil }
    return certificate
  }
}

extension LatchkeyError {
  static let unknownKit = LatchkeyError(
    .key, "kit-unknown",
    "The store holds nothing for these words: it is another store, or the words are those of another kit.",
    next: ["check the store's URL (--store)", "check that all words come from one sheet"])
}
