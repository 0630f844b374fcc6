import LatchkeyEncoding
import LatchkeyKeys

/// A device of the tests.
struct Actor {
  let keys: DeviceKeys
  var chain: CertificateChain
  private(set) var origin: Origin
  let name: String

  /// A person of its own.
  init(_ name: String, _ random: inout SeededRandom) {
    keys = DeviceKeys(&random)
    chain = CertificateChain(first: keys)
    origin = Origin(device: keys.id, incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1))
    self.name = name
  }

  /// A further device of the person of `other`.
  init(_ name: String, of other: Actor, _ random: inout SeededRandom) throws {
    keys = DeviceKeys(&random)
    let request = Certificate(request: keys, person: other.chain.person, signer: other.keys.id)
    guard let certificate = request.completed(by: other.keys) else { throw CertificateError.forged }
    chain = try other.chain.adding(certificate)
    origin = Origin(device: keys.id, incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1))
    self.name = name
  }

  /// Goes on under another incarnation, as after a restored backup.
  mutating func begin(_ incarnation: Incarnation) { origin = Origin(device: keys.id, incarnation: incarnation) }

  var certificate: Certificate { chain.certificates[chain.certificates.count - 1] }
}

/// Makes entries as a log would, without signatures: the roster is given verified ones.
func entry(
  _ operation: RosterOperation, by origin: Origin, sequence: UInt64, previous: EntryHash?, heads: [EntryHash],
  hlc: UInt64
) -> RosterEntry {
  let hash = hash32("entry", parts: 7) {
    $0.id(origin.device)
    $0.id(origin.incarnation)
    $0.uint(sequence)
    if let previous { $0.id(previous) } else { $0.null() }
    $0.array(heads.count)
    for head in heads { $0.id(head) }
    $0.uint(hlc)
    $0.byteString(operation.payload)
  }
  return RosterEntry(
    hash: hash, origin: origin, sequence: sequence, previous: previous, heads: heads, hlc: hlc,
    payload: operation.payload)
}

/// One household in which tests act: everything written is delivered to everybody at once, unless a test keeps a view.
struct RosterWorld {
  var random: SeededRandom
  let ana: Actor
  let key: EpochKey
  let genesis: RosterEntry
  var roster: Roster
  var hlc: UInt64 = 1
  /// Everything that was written, in that order.
  var written: [RosterEntry]

  var household: HouseholdID { genesis.hash }
  var keys: EpochKeys { EpochKeys(household: household, epoch: household, key: key) }

  init(_ seed: String, isPrivate: Bool = false) throws {
    random = SeededRandom(seed)
    ana = Actor("Ana", &random)
    key = EpochKey(&random)
    guard
      let genesis = Genesis(
        householdName: "Smith", isPrivate: isPrivate, chain: ana.chain, personName: "Ana", deviceName: "Ana's laptop",
        key: key, random: &random)
    else { throw FormatError.newer }
    self.genesis = entry(.genesis(genesis), by: ana.origin, sequence: 1, previous: nil, heads: [], hlc: 1)
    roster = Roster(household: self.genesis.hash)
    roster.add(self.genesis)
    written = [self.genesis]
  }

  /// `actor` writes what it believes to be allowed or not, citing all that `view` (by default everything) holds.
  @discardableResult
  mutating func write(_ operation: RosterOperation, by actor: Actor, in view: Roster? = nil) -> RosterVerdict {
    let made = make(operation, by: actor, in: view ?? roster)
    return roster.add(made)
  }

  mutating func make(_ operation: RosterOperation, by actor: Actor, in view: Roster) -> RosterEntry {
    hlc += 1
    let (sequence, previous) = view.position(of: actor.origin)
    let made = entry(
      operation, by: actor.origin, sequence: sequence, previous: previous, heads: view.heads, hlc: hlc << 16)
    written.append(made)
    return made
  }

  /// An invite and its link.
  mutating func invite(_ role: InviteRole, uses: UInt64 = 1, expiry: UInt64 = 1000) -> (OpenInvite, LinkKeys) {
    let link = InviteSecret(&random).keys
    let id = InviteID(random.bytes(16)) ?? .zero
    let terms = OpenInvite(
      id: id, claimKey: link.claimKey.publicKey, boxKey: link.boxKey.publicKey, role: role, expiry: expiry, uses: uses)
    return (terms, link)
  }

  func claim(_ actor: Actor, _ terms: OpenInvite, _ link: LinkKeys, kit: Certificate? = nil) -> Claim {
    Claim(
      household: household, invite: terms.id, chain: actor.chain, personName: actor.name,
      deviceName: actor.name + "'s phone", epoch: household, kit: kit, claimKey: link.claimKey, device: actor.keys)
  }

  /// Lets a person in through a link of Ana's.
  mutating func join(_ name: String, as role: InviteRole) -> Actor {
    let actor = Actor(name, &random)
    let (terms, link) = invite(role)
    write(.openInvite(terms), by: ana)
    write(.admit(claim: claim(actor, terms, link).bytes), by: ana)
    return actor
  }
}
