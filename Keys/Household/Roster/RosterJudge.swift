internal import LatchkeyEncoding

/// Who asks, and what it has seen.
struct RosterAuthor {
  let origin: Origin
  /// Its entry before this one.
  let previous: Int?
  /// The ancestors that its operation is judged by.
  let past: Past
  /// Of the entry itself; nil for one that is not signed yet.
  let hash: EntryHash?
}

enum RosterJudgement {
  case counts(JudgedEntry)
  case refused(RosterRefusal)
  case newer
}

/// The authority column of format §8, each row in the state made by the entry's ancestors.
extension Roster {
  /// - Parameter facts: what the ancestors amount to.
  func judge(_ operation: RosterOperation, by author: RosterAuthor, in facts: RosterFacts) -> RosterJudgement {
    do { return try verdict(operation, author, facts) } catch { return .refused(error) }
  }

  private func verdict(
    _ operation: RosterOperation, _ author: RosterAuthor, _ facts: RosterFacts
  ) throws(RosterRefusal) -> RosterJudgement {
    if case .malformed = operation { throw .malformed }
    if case .genesis(let genesis) = operation {
      let change = RosterFacts.Change.genesis(try judge(genesis, author), kit: genesis.kitChain)
      return .counts(JudgedEntry(change: change, person: genesis.chain.person, need: .reader))
    }
    if graph.isForked(author.origin, in: author.past, previous: author.previous) { throw .forked }
    guard let own = facts.enrolment(of: author.origin.device), let role = facts.role(of: own.chain.person) else {
      throw .notEnrolled
    }
    if facts.isClosed { throw .closed }
    /// The entry counts, if the author's role suffices.
    func counts(_ change: RosterFacts.Change, needs least: Role) throws(RosterRefusal) -> RosterJudgement {
      if role < least { throw .role }
      return .counts(JudgedEntry(change: change, person: own.chain.person, need: least))
    }
    func require(_ least: Role) throws(RosterRefusal) {
      if role < least { throw .role }
    }
    switch operation {
    case .genesis, .malformed:
      throw .notGenesis
    case .zone(let zone, let name):
      try require(.member)
      if zone == .roster { throw .zone }
      return try counts(.zone(zone, name), needs: .member)
    case .closeZone(let closing):
      try require(.owner)
      guard facts.zones[closing.zone] != nil else { throw .zone }
      return try counts(.close(closing), needs: .owner)
    case .addDevice(let certificate, let name, let isKit):
      return try counts(try judge(certificate, name, isKit: isKit, own, facts), needs: .reader)
    case .openInvite(let terms):
      let least: Role =
        switch terms.role {
        case .mine: .reader
        case .reader: .member
        case .member, .owner: .owner
        }
      try require(least)
      if terms.role != .mine && facts.genesis?.isPrivate == true { throw .privateHousehold }
      return try counts(.open(terms, inviter: own.chain.person), needs: least)
    case .revokeInvite(let id):
      let revocable = (facts.invites[id] ?? []).filter { role == .owner || $0.inviter == own.chain.person }
      if revocable.isEmpty { throw .invite }
      let isOwn = revocable.allSatisfy { $0.inviter == own.chain.person }
      return try counts(.revoke(id, opened: revocable.map(\.source.hash)), needs: isOwn ? .reader : .owner)
    case .admit(let bytes):
      try require(.member)
      let (change, least) = try judge(claim: bytes, facts)
      return try counts(change, needs: least)
    case .profile(let personName, let deviceName):
      return try counts(
        .profile(author.origin.device, own.chain.person, personName: personName, deviceName: deviceName),
        needs: .reader)
    case .household(let access):
      guard facts.genesis?.isPrivate == true else { throw .privateHousehold }
      return try counts(.household(access), needs: .reader)
    case .unknown:
      return .newer
    case .next, .leave, .seal, .carryKey, .deny:
      if evaluating == .firstEpochOnly {
        if case .next = operation { try require(.member) }
        return .newer
      }
    }
    switch operation {
    case .leave:
      if role == .owner && facts.owners.subtracting(facts.leaversAmong) == [own.chain.person] { throw .lastOwner }
      return try counts(.leave(own.chain.person), needs: .reader)
    case .seal(let device, let epoch, let seal):
      guard isEpoch(epoch, in: author.past) else { throw .unknownEpoch }
      guard facts.isIn(device) else { throw .notEnrolled }
      return try counts(.given(epoch, device, seal), needs: .reader)
    case .carryKey(let epoch, let outer, _):
      guard isEpoch(epoch, in: author.past), isEpoch(outer, in: author.past) else { throw .unknownEpoch }
      return try counts(.nothing, needs: .reader)
    case .deny(let epoch):
      guard isEpoch(epoch, in: author.past), isWitness(author.origin.device, of: epoch) else { throw .unknownEpoch }
      return try counts(.nothing, needs: .reader)
    case .next(let next):
      let (succession, least) = try judge(next, author, own, role, facts)
      return try counts(.next(succession), needs: least)
    default:
      return .newer
    }
  }

  private func judge(_ genesis: Genesis, _ author: RosterAuthor) throws(RosterRefusal) -> Genesis {
    guard author.hash == household, author.past.isEmpty, genesis.chain.keys.id == author.origin.device else {
      throw .notGenesis
    }
    return genesis
  }

  private func judge(
    _ certificate: Certificate, _ name: String, isKit: Bool, _ own: RosterFacts.Enrolment, _ facts: RosterFacts
  ) throws(RosterRefusal) -> RosterFacts.Change {
    guard certificate.person == own.chain.person,
      let signer = facts.enrolment(of: certificate.signer), signer.chain.person == own.chain.person
    else { throw .certificate }
    if facts.removed.contains(certificate.keys.id) { throw .removed }
    guard !facts.isIn(certificate.keys.id) else { throw .alreadyEnrolled }
    guard facts.deviceCount(of: own.chain.person) < Limits.devicesPerPerson else { throw .tooManyDevices }
    let chain: CertificateChain
    do { chain = try signer.chain.adding(certificate) } catch { throw .certificate }
    let paper: RosterFacts.Paper = !isKit ? .none : signer.paper == .foundingKit ? .foundingKit : .kit
    return .enrol(chain, deviceName: name, paper, signer: certificate.signer)
  }

  private func judge(
    claim bytes: [UInt8], _ facts: RosterFacts
  ) throws(RosterRefusal) -> (RosterFacts.Change, needs: Role) {
    if facts.genesis?.isPrivate == true { throw .privateHousehold }
    let claim: Claim
    do { claim = try Claim(decoding: bytes) } catch { throw .malformed }
    let (invite, chain): (RosterFacts.Invite, CertificateChain)
    do { (invite, chain) = try open(claim, in: facts) } catch { throw .claim(error) }
    guard let offered = invite.terms.role.role else { throw .invite }
    if facts.removed.contains(chain.keys.id) { throw .removed }
    guard facts.deviceCount(of: chain.person) < Limits.devicesPerPerson else { throw .tooManyDevices }
    let isKnown = facts.role(of: chain.person) != nil
    let change = RosterFacts.Change.admit(
      claim, chain, opened: invite.source.hash, inviter: invite.source.author, offered: offered,
      isNew: !isKnown)
    return (change, invite.terms.confirm ? .owner : .member)
  }

  /// The invite that a claim answers, in the state of `facts`, and what it shows.
  ///
  /// Of several with one id and one claim key (somebody copied an entry) the one that offers least.
  func open(_ claim: Claim, in facts: RosterFacts) throws(ClaimError) -> (RosterFacts.Invite, CertificateChain) {
    guard claim.household == household else { throw .otherHousehold }
    guard let known = facts.invites[claim.invite] else { throw .unknownInvite }
    let matching = known.filter { claim.isFromLink($0.terms.claimKey) }
    guard
      let invite = matching.min(by: {
        $0.terms.role == $1.terms.role
          ? RosterFacts.Source.precedes($0.source, $1.source) : $0.terms.role.rawValue < $1.terms.role.rawValue
      })
    else { throw .notFromLink }
    let chain = try claim.verify(household: household, claimKey: invite.terms.claimKey, role: invite.terms.role)
    if invite.terms.role == .mine && chain.person != invite.inviter { throw .otherPerson }
    if facts.isIn(claim.device.id) { throw .alreadyEnrolled }
    if invite.isRevoked { throw .revoked }
    if UInt64(invite.admitted.count) >= invite.terms.uses { throw .used }
    return (invite, chain)
  }
}
