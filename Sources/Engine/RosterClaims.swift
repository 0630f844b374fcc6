internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// Who wants in: claims that lie beside an epoch's roster, which are answered here where nothing needs a person, and those in the waiting rooms
/// of invites that ask for compared words, which are only reported.
extension RosterExchange {
  mutating func claims() throws(EngineError) -> Effect? {
    let former = state.epoch
    try state.follow(now: now, random: &random)
    if state.epoch == former, let known { try state.copyLate(after: known, except: copied, random: &random) }
    let roster = state.roster.state
    report.isProvisional = state.isProvisional
    report.isLeftBehind = state.isLeftBehind
    if state.isRemoved { report.isRemoved = true }
    guard roster.device(device.id) != nil else { return try finishRoster() }
    let rooms = waitingRooms
    var open: [Lying] = []
    for (epoch, below) in visited.sorted(by: { $0.key < $1.key }) {
      guard let keys = state.keys(of: epoch) else { continue }
      let answered = Set(
        roster.invites.flatMap { invite in invite.admitted.map { keys.claimName(invite: invite.terms.id, device: $0) } }
      )
      open += below.filter {
        $0.text.hasPrefix("c/") && !answered.contains($0) && !state.ignoredClaims.contains($0)
      }.map { Lying(epoch: epoch, below: $0) }
    }
    guard !open.isEmpty else { return try nextRoom(rooms) }
    phase = .claims(open)
    return .get(
      open.compactMap { lying in state.keys(of: lying.epoch).map { $0.objectName(zone: .roster, lying.below) } })
  }

  // MARK: Waiting rooms

  /// Of invites that ask for words, for those who may let somebody in.
  var waitingRooms: [WaitingRoom] {
    let roster = state.roster.state
    guard roster.device(device.id)?.role == .owner else { return [] }
    return roster.invites.filter { $0.terms.confirm && $0.status(now: UInt64(max(now, 0))) == .open }
      .map { WaitingRoom(invite: $0.terms.id, claimKey: $0.terms.claimKey) }
  }

  mutating func nextRoom(_ rooms: [WaitingRoom]) throws(EngineError) -> Effect? {
    guard let room = rooms.first else { return try finishRoster() }
    phase = .room(room, others: Array(rooms.dropFirst()))
    return .list(room.prefix + "/")
  }

  /// Somebody waits for a person to compare words.
  mutating func note(waiting name: ObjectName, _ bytes: [UInt8], _ room: WaitingRoom) {
    guard let below = name.below(room.prefix),
      let invite = state.roster.state.invites.first(where: {
        WaitingRoom(invite: $0.terms.id, claimKey: $0.terms.claimKey) == room
      })
    else { return }
    do {
      let claim = try Claim(decoding: try Envelope.open(bytes, at: room.place(.claim, below), key: room.key))
      _ = try claim.verify(household: state.household, claimKey: invite.terms.claimKey, role: invite.terms.role)
      guard room.claimName(claim.device.id) == below, claim.invite == room.invite else {
        report.findings.append(.damaged(object: name, reason: "the claim belongs elsewhere"))
        return
      }
      guard state.roster.role(of: claim.device.id) == nil else { return }
      report.requests.append(ClaimRequest(claim: claim, terms: invite.terms, reason: .words, epoch: nil))
    } catch { report.findings.append(finding(error, name)) }
  }

  mutating func open(claim name: ObjectName, _ bytes: [UInt8], _ keys: EpochKeys) -> Claim? {
    do {
      let place = keys.place(.claim, zone: .roster, name: name)
      let claim = try Claim(decoding: try Envelope.open(bytes, at: place, key: keys.zoneKey(.roster)))
      if claim.name(keys) == name { return claim }
      report.findings.append(.damaged(object: name, reason: "the claim belongs elsewhere"))
    } catch {
      report.findings.append(.damaged(object: name, reason: "\(error)"))
    }
    return nil
  }

  /// The invite that a claim answers: several may share an id, copied by somebody.
  private func invite(of claim: Claim) -> RosterState.Invite? {
    let candidates = state.roster.state.invites.filter { $0.terms.id == claim.invite }
    return candidates.first { claim.isFromLink($0.terms.claimKey) } ?? candidates.first
  }

  /// Whether the holder of a link, and the device named, made this claim: any other is nobody's rival.
  func isGenuine(_ claim: Claim) -> Bool {
    guard let terms = invite(of: claim)?.terms else { return false }
    return (try? claim.verify(household: state.household, claimKey: terms.claimKey, role: terms.role)) != nil
  }

  /// Admits a claim if this device may and nothing needs a person (format §8, model rule 18).
  ///
  /// - Parameter rivals: other devices' claims on the same invite that are open at the same time.
  mutating func answer(_ lying: Lying, _ claim: Claim, rivals: Int) throws(EngineError) {
    let name = lying.below
    guard let invite = invite(of: claim) else { return }
    let who = "\(claim.personName) (\(claim.deviceName))"
    // One whom somebody let in who had no right to is let in by another invite.
    guard state.roster.role(of: claim.device.id) == nil else { return }
    guard !state.roster.state.limited.contains(where: { $0.device == claim.device.id && $0.isRemoved }) else {
      state.ignore(claim: name)
      report.refusedClaims.append("\(who): this device was removed, and does not come in again with these keys")
      return
    }
    let status = invite.status(now: UInt64(max(now, 0)))
    guard status == .open else {
      state.ignore(claim: name)
      report.refusedClaims.append("\(who): the invite is \(status)")
      return
    }
    func request(_ reason: ClaimRequest.Reason) {
      report.requests.append(
        ClaimRequest(claim: claim, terms: invite.terms, reason: reason, epoch: lying.epoch))
    }
    let operation: RosterOperation
    do {
      let chain = try claim.verify(household: state.household, claimKey: invite.terms.claimKey, role: invite.terms.role)
      if invite.terms.role == .mine {
        // Only the device that was asked completes the certificate: the newcomer named it.
        guard let certificate = claim.request.completed(by: device) else { return }
        operation = .addDevice(certificate, name: claim.deviceName, isKit: false)
      } else {
        _ = chain
        operation = .admit(claim: claim.bytes)
      }
    } catch {
      state.ignore(claim: name)
      report.findings.append(.damaged(object: name, reason: "claim: \(error)"))
      return
    }
    // Who must compare words first is let in by a person.
    guard !invite.terms.confirm else { return request(.words) }
    guard invite.terms.uses > UInt64(rivals) else { return request(.rivals) }
    guard state.roster.refusal(of: operation, by: state.log.origin) == nil else {
      return request(.rights)
    }
    try state.write(operation, now: now)
    // The roster does not count the uses of an invite for own devices: whoever answers it ends it.
    if invite.terms.role == .mine { try state.write(.revokeInvite(invite.terms.id), now: now) }
    state.admitted(in: lying.epoch)
    report.admitted.append(
      Admission(who: who, isOwnDevice: invite.terms.role == .mine, words: ComparisonWords(claim: claim)))
  }
}
