internal import LatchkeyEncoding

/// What the entries that count have established, each fact with the entry it comes from, so that it can be asked for any
/// set of ancestors.
struct RosterFacts: Sendable {
  /// The entry that a fact comes from.
  struct Source: Sendable {
    let branch: Int
    let ordinal: UInt32
    let depth: UInt64
    let hash: EntryHash
    let hlc: UInt64

    init(_ at: Int, _ node: RosterGraph.Node) {
      branch = node.branch
      ordinal = node.ordinal
      depth = node.depth
      hash = node.entry.hash
      hlc = node.entry.hlc
    }

    /// Nil asks for all that is known.
    func isIn(_ past: Past?) -> Bool { past?.includes(branch: branch, ordinal: ordinal) ?? true }

    /// Earlier: less deep, then by hash. Any fixed order does where entries are concurrent.
    static func precedes(_ a: Source, _ b: Source) -> Bool { (a.depth, a.hash) < (b.depth, b.hash) }
    /// Newer by clock: for names.
    static func isNewer(_ a: Source, _ b: Source) -> Bool { (a.hlc, a.hash) > (b.hlc, b.hash) }
  }

  struct Enrolment: Sendable {
    let source: Source
    let chain: CertificateChain
    let deviceName: String
    let personName: String?
    let isKit: Bool
  }

  struct Invite: Sendable {
    let source: Source
    let terms: OpenInvite
    let inviter: PersonID
    var revocations: [Source] = []
    var admissions: [(source: Source, device: DeviceID)] = []

    func isRevoked(in past: Past?) -> Bool { revocations.contains { $0.isIn(past) } }

    /// Distinct devices, ascending: one that two admitters let in at the same time is one use.
    func admitted(in past: Past?) -> [DeviceID] {
      Set(admissions.filter { $0.source.isIn(past) }.map(\.device)).sorted()
    }
  }

  struct Profile: Sendable {
    let source: Source
    let personName: String
    let deviceName: String
  }

  var genesis: Genesis?
  /// In the order of `Source.precedes`.
  var enrolments: [DeviceID: [Enrolment]] = [:]
  var devicesOf: [PersonID: Set<DeviceID>] = [:]
  var roles: [PersonID: [(source: Source, role: Role)]] = [:]
  var zones: [ZoneID: [(source: Source, name: String)]] = [:]
  var closings: [ZoneID: [(source: Source, closing: CloseZone)]] = [:]
  /// Several may share an id (only if somebody copied it): rights are looked up per entry.
  var invites: [InviteID: [Invite]] = [:]
  var personProfiles: [PersonID: Profile] = [:]
  var deviceProfiles: [DeviceID: Profile] = [:]
  var households: [HouseholdKey: (source: Source, access: HouseholdAccess)] = [:]

  struct HouseholdKey: Hashable, Sendable {
    let household: HouseholdID
    let epoch: EpochID
  }

  /// What a counting operation changes.
  enum Change: Sendable {
    case genesis(Genesis)
    case zone(ZoneID, String)
    case close(CloseZone)
    case enrol(CertificateChain, deviceName: String, isKit: Bool)
    case open(OpenInvite, inviter: PersonID)
    /// The entries that opened what is revoked.
    case revoke(InviteID, opened: [EntryHash])
    case admit(Claim, CertificateChain, opened: EntryHash, role: Role?)
    case profile(DeviceID, PersonID, personName: String, deviceName: String)
    case household(HouseholdAccess)
  }

  mutating func apply(_ change: Change, at source: Source) {
    switch change {
    case .genesis(let genesis):
      self.genesis = genesis
      enrol(genesis.chain, genesis.deviceName, genesis.personName, isKit: false, source)
      roles[genesis.chain.person, default: []].append((source, .owner))
    case .zone(let zone, let name):
      zones[zone, default: []].append((source, name))
    case .close(let closing):
      closings[closing.zone, default: []].append((source, closing))
    case .enrol(let chain, let deviceName, let isKit):
      enrol(chain, deviceName, nil, isKit: isKit, source)
    case .open(let terms, let inviter):
      invites[terms.id, default: []].append(Invite(source: source, terms: terms, inviter: inviter))
    case .revoke(let id, let opened):
      for at in invites[id, default: []].indices where invites[id].map({ opened.contains($0[at].source.hash) }) == true
      {
        invites[id]?[at].revocations.append(source)
      }
    case .admit(let claim, let chain, let opened, let role):
      enrol(chain, claim.deviceName, claim.personName, isKit: false, source)
      if let kit = claim.kit, let withKit = try? chain.adding(kit) {
        enrol(withKit, claim.deviceName, nil, isKit: true, source)
      }
      if let role { roles[chain.person, default: []].append((source, role)) }
      for at in invites[claim.invite, default: []].indices where invites[claim.invite]?[at].source.hash == opened {
        invites[claim.invite]?[at].admissions.append((source, chain.keys.id))
      }
    case .profile(let device, let person, let personName, let deviceName):
      let profile = Profile(source: source, personName: personName, deviceName: deviceName)
      personProfiles[person] = newer(profile, personProfiles[person])
      deviceProfiles[device] = newer(profile, deviceProfiles[device])
    case .household(let access):
      let key = HouseholdKey(household: access.household, epoch: access.epoch)
      if let known = households[key], Source.isNewer(known.source, source) { return }
      households[key] = (source, access)
    }
  }

  private func newer(_ a: Profile, _ b: Profile?) -> Profile {
    guard let b else { return a }
    return Source.isNewer(a.source, b.source) ? a : b
  }

  private mutating func enrol(
    _ chain: CertificateChain, _ deviceName: String, _ personName: String?, isKit: Bool, _ source: Source
  ) {
    let device = chain.keys.id
    var list = enrolments[device] ?? []
    let enrolment = Enrolment(
      source: source, chain: chain, deviceName: deviceName, personName: personName, isKit: isKit)
    list.insert(enrolment, at: list.firstIndex { Source.precedes(source, $0.source) } ?? list.count)
    enrolments[device] = list
    devicesOf[chain.person, default: []].insert(device)
  }

  /// How a device came in: the earliest of the entries that brought it, among `past`.
  func enrolment(of device: DeviceID, in past: Past?) -> Enrolment? {
    enrolments[device]?.first { $0.source.isIn(past) }
  }

  /// A person's role: of concurrent settings the narrower.
  func role(of person: PersonID, in past: Past?) -> Role? {
    roles[person]?.filter { $0.source.isIn(past) }.map(\.role).min()
  }

  func deviceCount(of person: PersonID, in past: Past?) -> Int {
    (devicesOf[person] ?? []).count { enrolment(of: $0, in: past)?.chain.person == person }
  }
}
