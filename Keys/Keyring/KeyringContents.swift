public import LatchkeyEncoding
public import LatchkeyKeys

/// What a device knows about one household it is in.
public struct HouseholdKeys: Hashable, Sendable {
  /// An epoch's key.
  public struct Epoch: Hashable, Sendable {
    public let id: EpochID
    public let key: EpochKey
    public init(id: EpochID, key: EpochKey) {
      self.id = id
      self.key = key
    }
  }

  public let id: HouseholdID
  public var name: String
  /// Whether only this person's devices can be in it.
  public var isPrivate: Bool
  /// Oldest first: the first is the epoch that the digest's key comes from.
  public var epochs: [Epoch]
  /// Where its store is.
  public var locator: String
  /// Another store on which this device keeps the household, too.
  public var mirror: String?
  /// A move to another store that is not over yet.
  public var moving: StoreMove?
  /// What a person on this device has decided about the store that the household was moved to last.
  public var decided: StoreDecision?
  /// What this device could do when it last looked: for messages, never for decisions.
  public var role: Role?
  /// Over the roster heads that this device must never see less than; nil once it has seen them.
  public var checkpoint: Hash32?
  /// Of this device's roster log.
  public var rosterIncarnation: Incarnation
  /// The invite that this device joins with, until it was let in: the claim may have to be written again in a later epoch.
  public var joining: Joining?

  /// The recovery kit whose blob was put beside this household; another one is still owed to another kit.
  public var kitBlob: DeviceID?
  /// Over the devices that were removed when a person last said that the store's credential was changed.
  public var credentialSettled: Hash32?

  /// Moving to another store, as this device does it.
  public struct StoreMove: Hashable, Sendable {
    public enum Phase: Int, Hashable, Sendable, CaseIterable {
      /// `place` is the new store: objects are copied there, and nobody was told.
      case copying = 0
      /// `place` is the former store, which still holds what was there.
      case leaving = 1
    }
    public var phase: Phase
    /// A locator.
    public var place: String
    public init(_ phase: Phase, _ place: String) { (self.phase, self.place) = (phase, place) }
  }

  /// An answer to "may the store be used that the household was moved to?"
  public struct StoreDecision: Hashable, Sendable {
    /// The locator that the roster names; the store may be reached by another one from here.
    public let store: String
    public let isAgreed: Bool
    public init(store: String, isAgreed: Bool) { (self.store, self.isAgreed) = (store, isAgreed) }
  }

  /// This person leaves, or has left; nil while it stays.
  public var ending: Ending?

  /// How a household ends for this person.
  public enum Ending: UInt64, Hashable, Sendable {
    /// Once it was let go, the rows stay in its files.
    case keeping = 1
    /// Once it was let go, the rows go from its files.
    case dropping = 2
    /// It is over, and its files are settled: kept so that nothing brings it back.
    case over = 3
  }

  /// An invite that is being used.
  public struct Joining: Hashable, Sendable {
    public let invite: InviteID
    /// The link's; nil for an invite that was sent to this device, which its own keys answer.
    public let secret: InviteSecret?
    public init(invite: InviteID, secret: InviteSecret?) { (self.invite, self.secret) = (invite, secret) }
  }

  public init(
    id: HouseholdID, name: String, isPrivate: Bool, epochs: [Epoch], locator: String, role: Role? = nil,
    checkpoint: Hash32? = nil, rosterIncarnation: Incarnation, joining: Joining? = nil, mirror: String? = nil,
    moving: StoreMove? = nil, decided: StoreDecision? = nil, kitBlob: DeviceID? = nil,
    credentialSettled: Hash32? = nil, ending: Ending? = nil
  ) {
    self.ending = ending
    self.joining = joining
    self.mirror = mirror
    self.moving = moving
    self.decided = decided
    self.kitBlob = kitBlob
    self.credentialSettled = credentialSettled
    self.id = id
    self.name = name
    self.isPrivate = isPrivate
    self.epochs = epochs
    self.locator = locator
    self.role = role
    self.checkpoint = checkpoint
    self.rosterIncarnation = rosterIncarnation
  }

  /// Keeps the keys of more epochs, where they are not known yet.
  public mutating func hold(_ opened: [EpochKeys]) {
    for keys in opened where !epochs.contains(where: { $0.id == keys.epoch }) {
      epochs.append(Epoch(id: keys.epoch, key: keys.key))
    }
  }

  /// The keys of every epoch, oldest first.
  public var epochKeys: [EpochKeys] { epochs.map { EpochKeys(household: id, epoch: $0.id, key: $0.key) } }
}

/// What a device keeps of its person's recovery kit: enough to bring it into further households, not enough to be it.
public struct KitRecord: Hashable, Sendable {
  /// Signed by a device of the person.
  public let certificate: Certificate
  public let place: KitPlace
  public init(certificate: Certificate, place: KitPlace) { (self.certificate, self.place) = (certificate, place) }
}

/// Everything secret that a device keeps.
public struct KeyringContents: Hashable, Sendable {
  public let device: DeviceKeys
  /// From the person's first device to this one.
  public var chain: CertificateChain
  public var personName: String
  public var deviceName: String
  /// Authenticates the state files beside the keyring.
  public let stateKey: SecretBytes
  /// Ascending by id.
  public private(set) var households: [HouseholdKeys]
  /// What stores ask for, by their locators: each for that store only, never sent to another.
  private var credentials: [String: Credential] = [:]
  /// Devices of this person that it has revoked here: dropped from every household in which one of them is found. Ascending.
  public var revoked: [DeviceID] = []
  /// Devices that a revoked one had added and that the person keeps. Ascending.
  public var kept: [DeviceID] = []
  /// The person's recovery kit, if it was made or used on this device.
  public var kit: KitRecord?
  /// People whose cards were pinned, and invites that came.
  public var contacts = Contacts()

  static let stateKeyBytes = 32

  public init(
    device: DeviceKeys, chain: CertificateChain, personName: String, deviceName: String,
    random: inout some RandomSource
  ) {
    self.init(
      device: device, chain: chain, personName: personName, deviceName: deviceName,
      stateKey: SecretBytes(random.bytes(Self.stateKeyBytes)), households: [])
  }

  private init(
    device: DeviceKeys, chain: CertificateChain, personName: String, deviceName: String, stateKey: SecretBytes,
    households: [HouseholdKeys]
  ) {
    self.device = device
    self.chain = chain
    self.personName = personName
    self.deviceName = deviceName
    self.stateKey = stateKey
    self.households = households
  }

  public var person: PersonID { chain.person }

  /// Reads, adds, replaces or forgets (nil) what is known about a household.
  public subscript(id: HouseholdID) -> HouseholdKeys? {
    get { households.first { $0.id == id } }
    set {
      households.removeAll { $0.id == id }
      if let newValue, newValue.id == id {
        households.insert(newValue, at: households.firstIndex { $0.id > id } ?? households.count)
      }
    }
  }

  /// The credential of the store with exactly this locator; nil forgets it.
  public subscript(credentialOf locator: String) -> Credential? {
    get { credentials[locator] }
    set { credentials[locator] = newValue }
  }

  func write(to writer: inout CBORWriter) {
    writer.array(12)
    writer.byteString(device.signing.secret.bytes)
    writer.byteString(device.box.secret.bytes)
    writer.byteString(chain.encoded)
    writer.text(personName)
    writer.text(deviceName)
    writer.byteString(stateKey.bytes)
    writer.array(households.count)
    for household in households {
      writer.array(15)
      writer.id(household.id)
      writer.text(household.name)
      writer.bool(household.isPrivate)
      writer.array(household.epochs.count)
      for epoch in household.epochs {
        writer.array(2)
        writer.id(epoch.id)
        writer.byteString(epoch.key.secret.bytes)
      }
      writer.text(household.locator)
      if let mirror = household.mirror { writer.text(mirror) } else { writer.null() }
      writer.uint(household.role?.rawValue ?? 0)
      if let checkpoint = household.checkpoint { writer.id(checkpoint) } else { writer.null() }
      writer.id(household.rosterIncarnation)
      if let joining = household.joining {
        writer.array(2)
        writer.id(joining.invite)
        if let secret = joining.secret { writer.byteString(secret.secret.bytes) } else { writer.null() }
      } else {
        writer.null()
      }
      if let kit = household.kitBlob { writer.id(kit) } else { writer.null() }
      if let settled = household.credentialSettled { writer.id(settled) } else { writer.null() }
      if let moving = household.moving {
        writer.array(2)
        writer.uint(moving.phase.rawValue)
        writer.text(moving.place)
      } else {
        writer.null()
      }
      if let decided = household.decided {
        writer.array(2)
        writer.text(decided.store)
        writer.bool(decided.isAgreed)
      } else {
        writer.null()
      }
      writer.uint(household.ending?.rawValue ?? 0)
    }
    if let kit {
      writer.array(3)
      writer.byteString(kit.certificate.encoded)
      writer.byteString(kit.place.names.bytes)
      writer.byteString(kit.place.blobs.bytes)
    } else {
      writer.null()
    }
    writer.array(credentials.count)
    for (locator, credential) in credentials.sorted(by: { $0.key < $1.key }) {
      writer.array(2)
      writer.text(locator)
      writer.text(credential.text)
    }
    writer.array(revoked.count)
    for device in revoked { writer.id(device) }
    writer.array(kept.count)
    for device in kept { writer.id(device) }
    contacts.write(to: &writer)
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> KeyringContents {
    try reader.array(exactly: 12)
    guard let signing = SigningKey(seed: SecretBytes(try reader.byteString(max: 32))),
      let box = BoxKey(secret: SecretBytes(try reader.byteString(max: 32)))
    else { throw .unexpected("device keys") }
    let device = DeviceKeys(signing: signing, box: box)
    let chain: CertificateChain
    do { chain = try CertificateChain.decode(try reader.byteString()) } catch { throw .unexpected("certificates") }
    guard chain.keys == device.publicKeys else { throw .unexpected("certificates of this device") }
    let personName = try reader.text()
    let deviceName = try reader.text()
    let stateKey = SecretBytes(try reader.byteString(max: stateKeyBytes))
    guard stateKey.bytes.count == stateKeyBytes else { throw .unexpected("32 bytes") }
    var households: [HouseholdKeys] = []
    for _ in 0..<(try reader.array()) {
      let household = try readHousehold(&reader)
      if let last = households.last, last.id >= household.id { throw .notDeterministic }
      households.append(household)
    }
    var contents = KeyringContents(
      device: device, chain: chain, personName: personName, deviceName: deviceName, stateKey: stateKey,
      households: households)
    if try !reader.null() {
      try reader.array(exactly: 3)
      guard let certificate = try? Certificate(decoding: try reader.byteString()) else {
        throw .unexpected("certificate of a kit")
      }
      let names = SecretBytes(try reader.byteString(max: 32))
      contents.kit = KitRecord(
        certificate: certificate, place: KitPlace(names: names, blobs: SecretBytes(try reader.byteString(max: 32))))
    }
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      let locator = try reader.text()
      contents[credentialOf: locator] = Credential(try reader.text())
    }
    for _ in 0..<(try reader.array()) { contents.revoked.append(try reader.id()) }
    for _ in 0..<(try reader.array()) { contents.kept.append(try reader.id()) }
    contents.contacts = try Contacts.read(&reader)
    return contents
  }

  private static func readHousehold(_ reader: inout CBORReader) throws(CBORError) -> HouseholdKeys {
    try reader.array(exactly: 15)
    let id: HouseholdID = try reader.id()
    let name = try reader.text()
    let isPrivate = try reader.bool()
    var epochs: [HouseholdKeys.Epoch] = []
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 2)
      let epoch: EpochID = try reader.id()
      guard let key = EpochKey(SecretBytes(try reader.byteString(max: EpochKey.byteCount))) else {
        throw .unexpected("epoch key")
      }
      epochs.append(HouseholdKeys.Epoch(id: epoch, key: key))
    }
    let locator = try reader.text()
    let mirror = try reader.null() ? nil : try reader.text()
    let role = Role(rawValue: try reader.uint(max: 255))
    let checkpoint: Hash32? = try reader.null() ? nil : try reader.id()
    let incarnation: Incarnation = try reader.id()
    var joining: HouseholdKeys.Joining?
    if try !reader.null() {
      try reader.array(exactly: 2)
      let invite: InviteID = try reader.id()
      var secret: InviteSecret?
      if try !reader.null() {
        secret = InviteSecret(SecretBytes(try reader.byteString(max: InviteSecret.byteCount)))
        guard secret != nil else { throw .unexpected("32 bytes") }
      }
      joining = HouseholdKeys.Joining(invite: invite, secret: secret)
    }
    let kitBlob: DeviceID? = try reader.null() ? nil : try reader.id()
    let settled: Hash32? = try reader.null() ? nil : try reader.id()
    var moving: HouseholdKeys.StoreMove?
    if try !reader.null() {
      try reader.array(exactly: 2)
      guard let phase = HouseholdKeys.StoreMove.Phase(rawValue: try reader.uint(max: 255)) else {
        throw .unexpected("phase")
      }
      moving = HouseholdKeys.StoreMove(phase, try reader.text())
    }
    var decided: HouseholdKeys.StoreDecision?
    if try !reader.null() {
      try reader.array(exactly: 2)
      let store = try reader.text()
      decided = HouseholdKeys.StoreDecision(store: store, isAgreed: try reader.bool())
    }
    return HouseholdKeys(
      id: id, name: name, isPrivate: isPrivate, epochs: epochs, locator: locator, role: role, checkpoint: checkpoint,
      rosterIncarnation: incarnation, joining: joining, mirror: mirror, moving: moving, decided: decided,
      kitBlob: kitBlob,
      credentialSettled: settled, ending: HouseholdKeys.Ending(rawValue: try reader.uint()))
  }
}
