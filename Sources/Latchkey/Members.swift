internal import LatchkeyEncoding
internal import LatchkeyEngine
public import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyTables

/// Who may read and write: taking people in is ``Home/invite(household:role:expiresIn:)``, this is everything after.
///
/// Whatever takes a right away begins a new epoch: a fresh key, sealed to those who stay. What was written before stays readable to
/// whoever could read it; what is written afterwards is not, and cannot even be found.
extension Home {
  // MARK: Invites

  /// The invites of a household, by the roster as this device knows it.
  ///
  /// - Parameter household: its name; nil for the only shared one.
  public func invites(household: String? = nil) throws(LatchkeyError) -> [InviteReport] {
    do {
      let membership = try membership(named: household)
      let roster = try state(of: membership.id).roster.state
      let now = UInt64(max(world.now(), 0))
      return roster.invites.map { invite in
        InviteReport(
          id: invite.terms.id.description, role: invite.terms.role.name,
          status: "\(invite.status(now: now))", expires: Int64(clamping: invite.terms.expiry),
          inviter: roster.person(invite.inviter)?.name ?? invite.inviter.short,
          used: invite.admitted.map { roster.device($0)?.name ?? $0.short })
      }
    } catch { throw LatchkeyError(error) }
  }

  /// Withdraws an invite: nobody is let in with it any more, and what is written from now on is not readable with its link.
  ///
  /// - Parameter id: the invite's id, or the beginning of it: six characters or more.
  /// - Throws: ``LatchkeyError`` of kind `usage` (no such invite), `key` (used already), `membership` (not this person's to withdraw),
  ///   `store`.
  public func revokeInvite(_ id: String, household: String? = nil) async throws(LatchkeyError) {
    try await reporting {
      let membership = try membership(named: household)
      let access = try await openStore(of: membership)
      func matching() throws -> Set<InviteID> {
        Set(
          try state(of: membership.id).roster.state.invites.map(\.terms.id).filter {
            $0.description.hasPrefix(id) && id.count >= 6
          })
      }
      // A round lets in who has claimed: one that is known is withdrawn before that.
      var matches = try matching()
      if matches.isEmpty {
        _ = try await round(membership, access: access)
        matches = try matching()
      }
      let roster = try state(of: membership.id).roster.state
      guard let invite = matches.first, matches.count == 1 else {
        throw LatchkeyError(
          .usage, matches.isEmpty ? "no-such-invite" : "ambiguous-invite",
          matches.isEmpty
            ? "The household \(membership.name) has no invite \(id)."
            : "Several invites begin with \(id).", next: ["latchkey invites list"])
      }
      let statuses = Set(roster.invites.filter { $0.terms.id == invite }.map { $0.status(now: 0) })
      guard statuses.contains(.open) else {
        if statuses.contains(.revoked) { return }
        throw LatchkeyError(
          .key, "link-used", "The invite was used already: whoever it let in stays.",
          next: ["latchkey invites list", "latchkey members remove NAME"])
      }
      try write([.revokeInvite(invite)], into: membership)
      for terms in roster.invites.map(\.terms) where terms.id == invite {
        try await refuseOthers(terms, except: nil, membership, access)
      }
      // The round that sends it also begins the epoch that leaves the link behind.
      _ = try await round(membership, access: access)
    }
  }

  // MARK: Members

  /// Removes a person with all devices, for good: they keep what they could read, and read nothing that is written afterwards.
  ///
  /// Their rows count as far as the store, or this device, shows them now. Open invites end. People whom the removed one invited go
  /// along unless they are kept: their invites may have been for nobody else's eyes.
  ///
  /// - Parameters:
  ///   - member: a name, or the beginning of an id: six characters or more.
  ///   - keeping: names of people whom the removed one invited and who stay.
  ///   - isRehearsal: changes nothing, and says who would go.
  /// - Returns: the names of whoever was removed, the one that was asked for first.
  /// - Throws: ``LatchkeyError`` of kind `usage` (no such member, oneself), `membership` (not an owner; the last owner), `store`.
  @discardableResult
  public func removeMember(
    _ member: String, household: String? = nil, keeping: Set<String> = [], isRehearsal: Bool = false
  ) async throws(LatchkeyError) -> [String] {
    try await reporting {
      let (membership, access, person) = try await memberToChange(member, household)
      let roster = try state(of: membership.id).roster.state
      if let unknown = keeping.first(where: { name in !roster.people.contains { $0.name == name } }) {
        throw LatchkeyError(
          .usage, "no-such-member",
          "The household \(membership.name) has no member \(unknown) to keep. Nothing was changed.",
          next: ["latchkey members list"])
      }
      let me = try contents().person
      var people: Set<PersonID> = [person.id]
      // Whoever was let in by links of removed people alone goes along, and so on.
      while true {
        let more = roster.people.filter { other in
          guard !people.contains(other.id), other.id != roster.genesis?.chain.person, other.id != me,
            !keeping.contains(other.name)
          else {
            return false
          }
          let devices = roster.devices.filter { $0.person == other.id }.map(\.id)
          let inviters = roster.invites.filter { !Set($0.admitted).isDisjoint(with: devices) }.map(\.inviter)
          return !inviters.isEmpty && inviters.allSatisfy(people.contains)
        }
        if more.isEmpty { break }
        people.formUnion(more.map(\.id))
      }
      let names = [person.name] + roster.people.filter { people.contains($0.id) && $0.id != person.id }.map(\.name)
      if isRehearsal { return names }
      let gone = Set(roster.devices.filter { people.contains($0.person) }.map(\.id))
      let limits = try await limits(of: gone, membership, access)
      var change = NextChange(removing: Dictionary(uniqueKeysWithValues: gone.map { ($0, limits[$0] ?? []) }))
      change.confirming = Set(roster.devices.map(\.id)).subtracting(gone)
      try await beginEpoch(membership, access, change)
      return names
    }
  }

  /// Changes what a person may do.
  ///
  /// - Returns: the person's name.
  /// - Throws: as ``removeMember(_:household:)``.
  @discardableResult
  public func setRole(_ role: Role, of member: String, household: String? = nil) async throws(LatchkeyError) -> String {
    try await reporting {
      let (membership, access, person) = try await memberToChange(member, household)
      guard person.role != role else { return person.name }
      let devices = Set(
        try state(of: membership.id).roster.state.devices.filter { $0.person == person.id }.map(\.id))
      var change = NextChange(roles: [person.id: role])
      if role == .reader {
        let limits = try await limits(of: devices, membership, access)
        change.narrowing = Dictionary(uniqueKeysWithValues: devices.map { ($0, limits[$0] ?? []) })
      }
      try await beginEpoch(membership, access, change)
      return person.name
    }
  }

  /// Begins a new epoch with a fresh key though nobody goes: after a key may have been seen by somebody.
  ///
  /// - Returns: the beginning of the new epoch's id.
  @discardableResult
  public func rotateKey(household: String? = nil) async throws(LatchkeyError) -> String {
    try await reporting {
      let membership = try membership(named: household)
      let access = try await openStore(of: membership)
      _ = try await round(membership, access: access)
      try await beginEpoch(membership, access, NextChange())
      return try state(of: membership.id).epoch.short
    }
  }

  /// Drops those who wrote `Leave`: a duty of whoever stays.
  func dropLeavers(_ membership: Membership, _ access: StoreAccess) async throws {
    let state = try state(of: membership.id)
    let leaving = Set(state.roster.state.leaving)
    guard !leaving.isEmpty, !leaving.contains(state.log.origin.device),
      state.roster.role(of: state.log.origin.device) ?? .reader >= .member
    else { return }
    let limits = try await limits(of: leaving, membership, access)
    let kept = Set(state.roster.state.devices.map(\.id)).subtracting(leaving)
    var change = NextChange()
    if state.roster.role(of: state.log.origin.device) == .owner { change.confirming = kept }
    do { try await beginEpoch(membership, access, change, limits: limits) } catch EngineError.refused {
      // Not for this device: somebody with more rights will.
    }
  }

  private func memberToChange(
    _ member: String, _ household: String?
  ) async throws -> (Membership, StoreAccess, RosterState.Person) {
    let membership = try membership(named: household)
    let access = try await openStore(of: membership)
    _ = try await round(membership, access: access)
    let state = try state(of: membership.id)
    let people = state.roster.state.people
    let named = people.filter { $0.name == member }
    let matches = named.isEmpty ? people.filter { $0.id.description.hasPrefix(member) && member.count >= 6 } : named
    guard let person = matches.first, matches.count == 1 else {
      throw LatchkeyError(
        .usage, matches.isEmpty ? "no-such-member" : "ambiguous-member",
        matches.isEmpty
          ? "The household \(membership.name) has no member \(member)."
          : "Several members are called \(member): use the beginning of an id.", next: ["latchkey members list"])
    }
    guard person.id != (try contents().person) else {
      throw LatchkeyError(
        .usage, "yourself", "That is you: another owner changes your role or removes you.",
        next: ["latchkey leave --household \(membership.name)"])
    }
    guard state.roster.role(of: state.log.origin.device) == .owner else {
      throw LatchkeyError(
        .membership, "not-an-owner", "Only an owner of \(membership.name) changes what others may do.",
        next: ["latchkey members list"])
    }
    return (membership, access, person)
  }

  /// Writes a `Next` and sends it.
  func beginEpoch(
    _ membership: Membership, _ access: StoreAccess, _ change: NextChange, limits: [DeviceID: [Next.Limit]] = [:]
  ) async throws {
    try self.change(membership.id) { state, random in
      // Only those count as brought in by somebody removed that the roster says so.
      var change = change
      if !change.confirming.isEmpty {
        change.confirming = state.roster.introduced(byRemoving: change).intersection(change.confirming)
      }
      try state.writeNext(change, limits: { limits[$0] ?? [] }, now: world.now(), random: &random)
      try state.seal(now: world.now(), random: &random)
    }
    _ = try await roundAlone(membership, access: access)
  }

  /// How far devices' rows count: what the store shows of their logs in every zone and epoch, or this device's files have accepted,
  /// whichever is more.
  func limits(
    of devices: Set<DeviceID>, _ membership: Membership, _ access: StoreAccess
  ) async throws -> [DeviceID: [Next.Limit]] {
    let state = try state(of: membership.id)
    var farthest: [DeviceID: [ZoneID: [Incarnation: Mark]]] = [:]
    func note(_ origin: Origin, _ zone: ZoneID, _ mark: Mark) {
      guard devices.contains(origin.device) else { return }
      let known = farthest[origin.device]?[zone]?[origin.incarnation]
      if mark.sequence > known?.sequence ?? 0 {
        farthest[origin.device, default: [:]][zone, default: [:]][origin.incarnation] = mark
      }
    }
    for zone in state.roster.state.zones where zone.closing == nil {
      for keys in state.epochs {
        let prefix = keys.prefix(zone.id)
        let below = try await access.list(prefix + "/h/").compactMap { $0.below(prefix) }
        let reader = state.rowReader(zone: zone.id, keys: keys)
        for name in reader.newHeads(among: below, belief: Belief(), own: nil) {
          let full = keys.objectName(zone: zone.id, name)
          guard let bytes = try await access.get([full])[full], let head = try? reader.open(head: name, bytes: bytes)
          else { continue }
          note(head.body.origin, zone.id, Mark(sequence: head.body.lastSequence, hash: head.body.lastHash))
        }
      }
    }
    for path in try databases() {
      guard let replica = try? Replica(path: path, mode: .readOnly), replica.binding.household == membership.id,
        let bytes = try replica.value(DatabasePerformer.Key.belief(replica.binding.zone))
      else { continue }
      for (origin, author) in try Belief(decoding: bytes).authors {
        if let mark = author.mark { note(origin, replica.binding.zone, mark) }
      }
    }
    return farthest.mapValues { zones in
      zones.flatMap { zone, logs in
        logs.map { Next.Limit(zone: zone, incarnation: $0.key, sequence: $0.value.sequence, hash: $0.value.hash) }
      }.sorted { ($0.zone, $0.incarnation) < ($1.zone, $1.incarnation) }
    }
  }
}

/// An invite, as the roster has it.
public struct InviteReport: Sendable, Equatable {
  public let id: String
  public let role: String
  /// `open`, `used`, `revoked` or `expired`.
  public let status: String
  /// Milliseconds since 1970.
  public let expires: Int64
  /// Who opened it.
  public let inviter: String
  /// Names of the devices that were let in with it.
  public let used: [String]
}
