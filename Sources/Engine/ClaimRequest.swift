public import LatchkeyEncoding
public import LatchkeyKeys

/// Somebody who wants in and is not let in by itself.
public struct ClaimRequest: Hashable, Sendable {
  /// Why a person decides.
  public enum Reason: Hashable, Sendable {
    /// The invite asks for compared words: it waits in the invite's room and holds no key.
    case words
    /// More devices than the invite lets in hold its link: one of them is not who was meant.
    case rivals
    /// This device may not let it in: somebody with more rights must.
    case rights
  }

  public let claim: Claim
  public let terms: OpenInvite
  public let reason: Reason
  /// The epoch in which it lies; nil in a waiting room.
  public let epoch: EpochID?

  /// Whom the screens of two people show: `Ben (phone)`.
  public var who: String { "\(claim.personName) (\(claim.deviceName))" }

  /// What both sides compare.
  public var words: ComparisonWords { ComparisonWords(claim: claim) }
}

extension HouseholdState {
  /// Lets somebody in on a person's word: writes the admission, and for a waiting room what its device opens the household with. Keep the
  /// state before anything is sent; the next round begins a new epoch.
  ///
  /// - Parameters:
  ///   - request: as a round has reported it; its words were compared.
  ///   - admitter: this person's name, shown to the newcomer.
  ///   - now: milliseconds since 1970.
  ///   - random: a nonce.
  /// - Throws: ``EngineError/refused(_:)`` if it is not this device's to decide.
  public mutating func admit(
    _ request: ClaimRequest, admitter: String, now: Int64, random: inout some RandomSource
  ) throws(EngineError) {
    try write(.admit(claim: request.claim.bytes), now: now)
    try seal(now: now, random: &random)
    if let epoch = request.epoch { return admitted(in: epoch) }
    let keys = try currentKeys()
    guard let seal = keys.key.seal(to: request.claim.device.box) else {
      throw .damagedState("a device that nothing can be sealed to")
    }
    try answer(request.claim.device.id, request.terms, seal, admitter, &random)
  }

  /// Tells a device that waits with an invite that it is not let in with it any more. Keep the state before it is sent.
  public mutating func refuse(
    _ device: DeviceID, _ terms: OpenInvite, by name: String, random: inout some RandomSource
  ) throws(EngineError) {
    try answer(device, terms, nil, name, &random)
  }

  /// What a device finds in the waiting room: the epoch's key, or that there is none for it.
  private mutating func answer(
    _ device: DeviceID, _ terms: OpenInvite, _ seal: KeySeal?, _ name: String, _ random: inout some RandomSource
  ) throws(EngineError) {
    guard let genesis = roster.state.genesis else { throw .damagedState("a roster without Genesis") }
    let room = WaitingRoom(invite: terms.id, claimKey: terms.claimKey)
    let content = InviteBlob(
      household: household, epoch: epoch, invite: terms.id, seal: seal, rosterHeads: roster.heads,
      householdName: genesis.householdName, inviterName: name, role: terms.role, expiry: terms.expiry,
      zones: seal == nil
        ? []
        : roster.state.zones.filter { $0.closing == nil }.map { InviteBlob.Zone(id: $0.id, name: $0.name) })
    let below = room.welcomeName(device)
    do {
      enqueueApart(
        RosterObject(
          name: room.objectName(below),
          bytes: try Envelope.seal(
            content.encoded, at: room.place(.invite, below), key: room.key, nonce: EnvelopeNonce(&random))))
    } catch { throw .tooLarge }
  }
}
