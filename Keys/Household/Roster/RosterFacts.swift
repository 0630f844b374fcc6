internal import LatchkeyEncoding

/// What a set of entries has established: the state that operations are judged in (format §8).
///
/// Built from what each counting entry changes. Changes may be applied in any order in which ancestors come first; the
/// outcome is the same.
struct RosterFacts: Sendable {
  /// The entry that a fact comes from.
  struct Source: Sendable {
    let node: Int
    let depth: UInt64
    let hash: EntryHash
    let hlc: UInt64
    let author: DeviceID

    init(_ at: Int, _ node: RosterGraph.Node) {
      self.node = at
      depth = node.depth
      hash = node.entry.hash
      hlc = node.entry.hlc
      author = node.entry.origin.device
    }

    /// Earlier: less deep, then by hash. Any fixed order does where entries are concurrent.
    static func precedes(_ a: Source, _ b: Source) -> Bool { (a.depth, a.hash) < (b.depth, b.hash) }
    /// Newer by clock: for names.
    static func isNewer(_ a: Source, _ b: Source) -> Bool { (a.hlc, a.hash) > (b.hlc, b.hash) }
  }

  /// How much a device on paper weighs. Only a founding kit ranks as a kit (format §8, *rank*): one that a stolen device
  /// added must not outrank its owner.
  enum Paper: Int, Hashable, Sendable {
    case none = 0
    case kit = 1
    /// From Genesis, from its person's Claim, or added by such a kit.
    case foundingKit = 2
  }

  struct Enrolment: Sendable {
    let source: Source
    let chain: CertificateChain
    let deviceName: String
    let personName: String?
    let paper: Paper
    /// Who let it in: the certificate's signer or the inviter, and the author.
    let by: Set<DeviceID>
  }

  struct Invite: Sendable {
    let source: Source
    let terms: OpenInvite
    let inviter: PersonID
    var isRevoked = false
    /// Distinct devices: one that two admitters let in at the same time is one use.
    var admitted: Set<DeviceID> = []

    var isOpen: Bool { !isRevoked && UInt64(admitted.count) < terms.uses }
    /// Whether it may be given epoch keys.
    var takesKeys: Bool { isOpen && !terms.confirm }
  }

  struct Profile: Sendable {
    let source: Source
    let personName: String
    let deviceName: String
  }

  struct HouseholdKey: Hashable, Sendable {
    let household: HouseholdID
    let epoch: EpochID
  }

  struct RoleSetting: Sendable {
    let source: Source
    let role: Role
  }

  /// Somebody who was given an epoch's key.
  enum Holder: Hashable, Sendable {
    case device(DeviceID)
    /// An invite, by the entry that opened it.
    case invite(EntryHash)
  }

  /// What a `Next` does, as judged in the state of its ancestors.
  struct Succession: Sendable {
    let next: Next
    let rank: SuccessionRank
    let removes: Set<DeviceID>
    let roles: [PersonID: Role]
    let holders: Set<Holder>
    /// Invites (by the entries that opened them) that its epoch is safe from: closed before it, or by it.
    let shut: Set<EntryHash>
  }

  /// A `Next` that counts, with what of its removals and roles counts.
  struct Accepted: Sendable {
    let source: Source
    let succession: Succession
    let removes: Set<DeviceID>
    let roles: [PersonID: Role]
    var cuts: Bool { !removes.isEmpty || !roles.isEmpty }
  }

  /// What a counting operation changes.
  enum Change: Sendable {
    case genesis(Genesis, kit: CertificateChain?)
    case zone(ZoneID, String)
    case close(CloseZone)
    case enrol(CertificateChain, deviceName: String, Paper, signer: DeviceID)
    case open(OpenInvite, inviter: PersonID)
    /// The entries that opened what is revoked.
    case revoke(InviteID, opened: [EntryHash])
    /// `isNew`: the person had no role, so that the invite's is set.
    case admit(Claim, CertificateChain, opened: EntryHash, inviter: DeviceID, offered: Role, isNew: Bool)
    case profile(DeviceID, PersonID, personName: String, deviceName: String)
    case household(HouseholdAccess)
    case leave(PersonID)
    case given(EpochID, DeviceID, KeySeal)
    case next(Succession)
    /// Noted by whoever walks the epochs; changes nothing here.
    case nothing

    /// Devices that it brings in.
    var enrols: [DeviceID] {
      switch self {
      case .genesis(let genesis, let kit): [genesis.chain.keys.id] + (kit.map { [$0.keys.id] } ?? [])
      case .enrol(let chain, _, _, _): [chain.keys.id]
      case .admit(let claim, let chain, _, _, _, _): [chain.keys.id] + (claim.kit.map { [$0.keys.id] } ?? [])
      default: []
      }
    }
  }

  var genesis: Genesis?
  /// In the order of `Source.precedes`. Those of removed devices stay: see ``isIn(_:)``.
  private(set) var enrolments: [DeviceID: [Enrolment]] = [:]
  private(set) var devicesOf: [PersonID: Set<DeviceID>] = [:]
  /// Settings that no other one knew.
  private var settings: [PersonID: [RoleSetting]] = [:]
  /// What invites offered to those who were let in: the role of somebody whose setting fell while another admission stands.
  private var offers: [PersonID: [RoleSetting]] = [:]
  private(set) var zones: [ZoneID: [(source: Source, name: String)]] = [:]
  private(set) var closings: [ZoneID: [(source: Source, closing: CloseZone)]] = [:]
  /// Several may share an id (only if somebody copied it): rights are looked up per entry.
  private(set) var invites: [InviteID: [Invite]] = [:]
  private(set) var personProfiles: [PersonID: Profile] = [:]
  private(set) var deviceProfiles: [DeviceID: Profile] = [:]
  private(set) var households: [HouseholdKey: (source: Source, access: HouseholdAccess)] = [:]

  /// The `Next`s that count, in the order in which they were taken.
  private(set) var accepted: [Accepted] = []
  /// The `Next`s whose author was removed by a better one: read, never written.
  var void: [Accepted] = []
  /// Entries that were right when they were made and count no more.
  var fallen: [Source] = []
  private(set) var removed: Set<DeviceID> = []
  private var leaves: [PersonID: [Source]] = [:]
  /// Whom the makers of epochs gave their keys to.
  private(set) var holders: [EpochID: Set<Holder>] = [:]
  /// What `Seal`s gave to whom; right or wrong is for who holds the key to say.
  private(set) var seals: [EpochID: [DeviceID: Set<KeySeal>]] = [:]
  /// The accepted ones that no other accepted one knew.
  private(set) var ends: [Accepted] = []

  // MARK: Reading

  /// A device that is in: brought in by an entry that counts, and not removed.
  func isIn(_ device: DeviceID) -> Bool { enrolments[device] != nil && !removed.contains(device) }

  /// Present devices, ascending.
  var devices: [DeviceID] { enrolments.keys.filter { !removed.contains($0) }.sorted() }

  /// How a present device came in: the earliest of the entries that brought it.
  func enrolment(of device: DeviceID) -> Enrolment? {
    removed.contains(device) ? nil : enrolments[device]?.first
  }

  func person(of device: DeviceID) -> PersonID? { enrolment(of: device)?.chain.person }

  /// A person's role: of concurrent settings the narrower. Nil for somebody without a present device.
  func role(of person: PersonID) -> Role? {
    guard (devicesOf[person] ?? []).contains(where: isIn) else { return nil }
    return (settings[person] ?? offers[person])?.map(\.role).min()
  }

  func role(of device: DeviceID) -> Role? { person(of: device).flatMap { role(of: $0) } }

  func deviceCount(of person: PersonID) -> Int { (devicesOf[person] ?? []).count { self.person(of: $0) == person } }

  /// Present devices of a person, ascending.
  func devices(of person: PersonID) -> [DeviceID] {
    (devicesOf[person] ?? []).filter { self.person(of: $0) == person }.sorted()
  }

  /// Persons with a present device, ascending.
  var people: [PersonID] { Set(devices.compactMap { person(of: $0) }).sorted() }

  var owners: Set<PersonID> { Set(people.filter { role(of: $0) == .owner }) }

  /// Persons who wrote `Leave` and whom no `Next` has answered yet. While that would leave no owner, owners stay.
  var leaversAmong: Set<PersonID> {
    let asked = Set(leaves.keys.filter { role(of: $0) != nil })
    let owners = owners
    return owners.isSubset(of: asked) ? asked.subtracting(owners) : asked
  }

  /// Present devices of those who leave.
  var leaving: Set<DeviceID> { Set(leaversAmong.flatMap { devices(of: $0) }) }

  /// Devices that the removed ones brought in, and those that these brought in, and so on.
  func introduced(by removed: Set<DeviceID>) -> Set<DeviceID> {
    var all = removed
    var grown = true
    while grown {
      grown = false
      for device in devices where !all.contains(device) {
        if (enrolments[device] ?? []).contains(where: { !$0.by.isDisjoint(with: all) }) {
          all.insert(device)
          grown = true
        }
      }
    }
    return all.subtracting(removed)
  }

  /// The invite that an epoch key is sealed to under this id: of several (somebody copied an entry) the earliest.
  func recipient(_ id: InviteID) -> Invite? {
    invites[id]?.filter(\.takesKeys).min { Source.precedes($0.source, $1.source) }
  }

  /// The epochs that the next one follows, ascending.
  func heads(_ household: HouseholdID) -> [EpochID] {
    ends.isEmpty ? (genesis == nil ? [] : [household]) : ends.map(\.source.hash).sorted()
  }

  /// Whether nothing goes on here: *closed* loses to *moved*.
  var isClosed: Bool { !ends.isEmpty && ends.allSatisfy { $0.succession.next.form == .closed } }

  /// The best of the ends that may be written to.
  var best: Accepted? {
    ends.filter { $0.succession.next.form == .moved }.min { $0.succession.rank < $1.succession.rank }
  }

  /// The epoch to write to.
  func current(_ household: HouseholdID) -> EpochID? {
    ends.isEmpty ? (genesis == nil ? nil : household) : best?.source.hash
  }

  /// The newest store that a `Next` named, on the way to the current epoch.
  var store: String? { accepted.last { $0.succession.next.store != nil }?.succession.next.store }

  /// Invites that closed since the current epoch began: whoever holds such a link may hold its key, or be sent it by
  /// somebody who has not heard.
  func closedSince() -> [Invite] {
    if isClosed { return [] }
    let shut = best?.succession.shut ?? []
    return invites.values.joined().filter { !$0.terms.confirm && !$0.isOpen && !shut.contains($0.source.hash) }
      .sorted { Source.precedes($0.source, $1.source) }
  }

  /// Who was given an epoch's key.
  ///
  /// - Parameter key: if it is known, wrong seals give nothing; else every seal is taken as right, which is the safe side.
  func holders(of epoch: EpochID, key: EpochKey?) -> Set<Holder> {
    var all = holders[epoch] ?? []
    for (device, seals) in seals[epoch] ?? [:] {
      guard let box = enrolments[device]?.first?.chain.keys.box else { continue }
      if let key, !seals.contains(where: { key.sealOrNone(to: box) == $0 }) { continue }
      all.insert(.device(device))
    }
    return all
  }

  /// Whether a holder may have the key of an epoch that is written to.
  func isEntitled(_ holder: Holder) -> Bool {
    switch holder {
    case .device(let device): isIn(device) && !leaving.contains(device)
    case .invite(let opened): invites.values.joined().contains { $0.source.hash == opened && $0.isOpen }
    }
  }

  // MARK: Building

  mutating func apply(_ change: Change, at source: Source, _ graph: RosterGraph) {
    switch change {
    case .genesis(let genesis, let kit):
      self.genesis = genesis
      enrol(genesis.chain, genesis.deviceName, genesis.personName, .none, by: [], source)
      if let kit { enrol(kit, genesis.deviceName, nil, .foundingKit, by: [], source) }
      Self.set(.owner, of: genesis.chain.person, source, graph, in: &settings)
    case .zone(let zone, let name):
      zones[zone, default: []].append((source, name))
    case .close(let closing):
      closings[closing.zone, default: []].append((source, closing))
    case .enrol(let chain, let deviceName, let paper, let signer):
      enrol(chain, deviceName, nil, paper, by: [signer, source.author], source)
    case .open(let terms, let inviter):
      invites[terms.id, default: []].append(Invite(source: source, terms: terms, inviter: inviter))
    case .revoke(let id, let opened):
      for at in (invites[id] ?? []).indices where opened.contains(invites[id]?[at].source.hash ?? .zero) {
        invites[id]?[at].isRevoked = true
      }
    case .admit(let claim, let chain, let opened, let inviter, let offered, let isNew):
      enrol(chain, claim.deviceName, claim.personName, .none, by: [inviter, source.author], source)
      if let kit = claim.kit, let withKit = try? chain.adding(kit) {
        enrol(withKit, claim.deviceName, nil, .foundingKit, by: [inviter, source.author], source)
      }
      if isNew { Self.set(offered, of: chain.person, source, graph, in: &settings) }
      Self.set(offered, of: chain.person, source, graph, in: &offers)
      for at in (invites[claim.invite] ?? []).indices where invites[claim.invite]?[at].source.hash == opened {
        invites[claim.invite]?[at].admitted.insert(chain.keys.id)
      }
    case .profile(let device, let person, let personName, let deviceName):
      let profile = Profile(source: source, personName: personName, deviceName: deviceName)
      personProfiles[person] = newer(profile, personProfiles[person])
      deviceProfiles[device] = newer(profile, deviceProfiles[device])
    case .household(let access):
      let key = HouseholdKey(household: access.household, epoch: access.epoch)
      if let known = households[key], Source.isNewer(known.source, source) { return }
      households[key] = (source, access)
    case .leave(let person):
      leaves[person, default: []].append(source)
    case .next, .given, .nothing:
      break
    }
  }

  /// Whom an entry gave a key to: that stays so, whether the entry counts or not.
  mutating func note(_ change: Change, at source: Source) {
    switch change {
    case .genesis(let genesis, let kit):
      holders[source.hash, default: []].insert(.device(genesis.chain.keys.id))
      if let kit { holders[source.hash, default: []].insert(.device(kit.keys.id)) }
    case .given(let epoch, let device, let seal):
      seals[epoch, default: [:]][device, default: []].insert(seal)
    case .next(let succession):
      holders[source.hash, default: []].formUnion(succession.holders.union([.device(source.author)]))
    default:
      break
    }
  }

  /// Takes a `Next` that counts. Whatever its ancestors did is applied already.
  mutating func take(_ one: Accepted, _ graph: RosterGraph) {
    accepted.append(one)
    ends.removeAll { graph.isBefore($0.source.node, one.source.node) }
    if !accepted.contains(where: { graph.isBefore(one.source.node, $0.source.node) }) { ends.append(one) }
    removed.formUnion(one.removes)
    for person in one.roles.keys.sorted() {
      if let role = one.roles[person] { Self.set(role, of: person, one.source, graph, in: &settings) }
    }
    // Links known to the removed die with them, whether the removal itself lapsed or not.
    if !one.succession.removes.isEmpty {
      for id in invites.keys {
        for at in (invites[id] ?? []).indices {
          guard let node = invites[id]?[at].source.node else { continue }
          if graph.isBefore(node, one.source.node) { invites[id]?[at].isRevoked = true }
        }
      }
    }
    // A `Next` that knew a Leave has answered it.
    guard one.succession.next.form == .moved else { return }
    for person in leaves.keys {
      leaves[person]?.removeAll { graph.isBefore($0.node, one.source.node) }
      if leaves[person]?.isEmpty == true { leaves[person] = nil }
    }
  }

  private static func set(
    _ role: Role, of person: PersonID, _ source: Source, _ graph: RosterGraph,
    in settings: inout [PersonID: [RoleSetting]]
  ) {
    var list = settings[person] ?? []
    if list.contains(where: { graph.isBefore(source.node, $0.source.node) }) { return }
    list.removeAll { graph.isBefore($0.source.node, source.node) }
    list.append(RoleSetting(source: source, role: role))
    settings[person] = list
  }

  private func newer(_ a: Profile, _ b: Profile?) -> Profile {
    guard let b else { return a }
    return Source.isNewer(a.source, b.source) ? a : b
  }

  private mutating func enrol(
    _ chain: CertificateChain, _ deviceName: String, _ personName: String?, _ paper: Paper, by: Set<DeviceID>,
    _ source: Source
  ) {
    let device = chain.keys.id
    var list = enrolments[device] ?? []
    let enrolment = Enrolment(
      source: source, chain: chain, deviceName: deviceName, personName: personName, paper: paper, by: by)
    list.insert(enrolment, at: list.firstIndex { Source.precedes(source, $0.source) } ?? list.count)
    enrolments[device] = list
    devicesOf[chain.person, default: []].insert(device)
  }
}
