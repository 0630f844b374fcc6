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
  case counts(RosterFacts.Change)
  case refused(RosterRefusal)
  case newer
}

/// The authority column of format §8, each row in the state made by the entry's ancestors.
extension Roster {
  func judge(_ operation: RosterOperation, by author: RosterAuthor) -> RosterJudgement {
    do { return try verdict(operation, author) } catch { return .refused(error) }
  }

  private func verdict(
    _ operation: RosterOperation, _ author: RosterAuthor
  ) throws(RosterRefusal) -> RosterJudgement {
    if case .malformed = operation { throw .malformed }
    if case .genesis(let genesis) = operation { return .counts(.genesis(try judge(genesis, author))) }
    if graph.isForked(author.origin, in: author.past, previous: author.previous) { throw .forked }
    guard let own = facts.enrolment(of: author.origin.device, in: author.past),
      let role = facts.role(of: own.chain.person, in: author.past)
    else { throw .notEnrolled }
    func require(_ least: Role) throws(RosterRefusal) {
      if role < least { throw .role }
    }
    switch operation {
    case .genesis, .malformed:
      throw .notGenesis
    case .zone(let zone, let name):
      try require(.member)
      if zone == .roster { throw .zone }
      return .counts(.zone(zone, name))
    case .closeZone(let closing):
      try require(.owner)
      guard facts.zones[closing.zone]?.contains(where: { $0.source.isIn(author.past) }) == true else { throw .zone }
      return .counts(.close(closing))
    case .addDevice(let certificate, let name, let isKit):
      return .counts(.enrol(try judge(certificate, own, author.past), deviceName: name, isKit: isKit))
    case .openInvite(let terms):
      switch terms.role {
      case .mine: break
      case .reader: try require(.member)
      case .member, .owner: try require(.owner)
      }
      if terms.role != .mine && facts.genesis?.isPrivate == true { throw .privateHousehold }
      return .counts(.open(terms, inviter: own.chain.person))
    case .revokeInvite(let id):
      let opened = (facts.invites[id] ?? [])
        .filter { $0.source.isIn(author.past) && (role == .owner || $0.inviter == own.chain.person) }
        .map(\.source.hash)
      if opened.isEmpty { throw .invite }
      return .counts(.revoke(id, opened: opened))
    case .admit(let claim):
      try require(.member)
      return .counts(try judge(claim, role, author.past))
    case .profile(let personName, let deviceName):
      return .counts(
        .profile(author.origin.device, own.chain.person, personName: personName, deviceName: deviceName))
    case .household(let access):
      guard facts.genesis?.isPrivate == true else { throw .privateHousehold }
      return .counts(.household(access))
    case .next:
      try require(.member)
      return .newer
    case .leave, .seal, .unknown:
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
    _ certificate: Certificate, _ own: RosterFacts.Enrolment, _ past: Past
  ) throws(RosterRefusal) -> CertificateChain {
    guard certificate.person == own.chain.person,
      let signer = facts.enrolment(of: certificate.signer, in: past), signer.chain.person == own.chain.person
    else { throw .certificate }
    guard facts.enrolment(of: certificate.keys.id, in: past) == nil else { throw .alreadyEnrolled }
    guard facts.deviceCount(of: own.chain.person, in: past) < Limits.devicesPerPerson else { throw .tooManyDevices }
    do { return try signer.chain.adding(certificate) } catch { throw .certificate }
  }

  private func judge(
    _ bytes: [UInt8], _ role: Role, _ past: Past
  ) throws(RosterRefusal) -> RosterFacts.Change {
    if facts.genesis?.isPrivate == true { throw .privateHousehold }
    let claim: Claim
    do { claim = try Claim(decoding: bytes) } catch { throw .malformed }
    let (invite, chain): (RosterFacts.Invite, CertificateChain)
    do { (invite, chain) = try open(claim, in: past) } catch { throw .claim(error) }
    guard let offered = invite.terms.role.role else { throw .invite }
    if invite.terms.confirm && role < .owner { throw .role }
    guard facts.deviceCount(of: chain.person, in: past) < Limits.devicesPerPerson else { throw .tooManyDevices }
    let isKnown = facts.role(of: chain.person, in: past) != nil
    return .admit(claim, chain, opened: invite.source.hash, role: isKnown ? nil : offered)
  }

  /// The invite that a claim answers, in the state of `past`, and what it shows.
  ///
  /// Of several with one id and one claim key (somebody copied an entry) the one that offers least.
  func open(_ claim: Claim, in past: Past?) throws(ClaimError) -> (RosterFacts.Invite, CertificateChain) {
    guard claim.household == household else { throw .otherHousehold }
    let known = (facts.invites[claim.invite] ?? []).filter { $0.source.isIn(past) }
    if known.isEmpty { throw .unknownInvite }
    let matching = known.filter { claim.isFromLink($0.terms.claimKey) }
    guard
      let invite = matching.min(by: {
        $0.terms.role == $1.terms.role
          ? RosterFacts.Source.precedes($0.source, $1.source) : $0.terms.role.rawValue < $1.terms.role.rawValue
      })
    else { throw .notFromLink }
    let chain = try claim.verify(household: household, claimKey: invite.terms.claimKey, role: invite.terms.role)
    if invite.terms.role == .mine && chain.person != invite.inviter { throw .otherPerson }
    if facts.enrolment(of: claim.device.id, in: past) != nil { throw .alreadyEnrolled }
    if invite.isRevoked(in: past) { throw .revoked }
    if UInt64(invite.admitted(in: past).count) >= invite.terms.uses { throw .used }
    return (invite, chain)
  }
}
