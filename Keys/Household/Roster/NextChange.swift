public import LatchkeyEncoding

/// What a `Next` is to change. Nothing: a rotation.
public struct NextChange: Hashable, Sendable {
  /// Devices to remove, with the last entries of their logs that count. All devices of a person: the person.
  public var removing: [DeviceID: [Next.Limit]]
  /// Devices that the removed ones brought in and that stay all the same. All others go too.
  public var confirming: Set<DeviceID>
  public var roles: [PersonID: Role]
  /// For devices of persons narrowed to reader: the last entries of their logs that count.
  public var narrowing: [DeviceID: [Next.Limit]]
  /// Another place for the household, as a locator.
  public var store: String?
  /// Invites that get no key though they are open: expired ones.
  public var leavingOut: Set<InviteID>
  /// The household ends. Nothing else may change with it.
  public var closes: Bool

  public init(
    removing: [DeviceID: [Next.Limit]] = [:], confirming: Set<DeviceID> = [], roles: [PersonID: Role] = [:],
    narrowing: [DeviceID: [Next.Limit]] = [:], store: String? = nil, leavingOut: Set<InviteID> = [],
    closes: Bool = false
  ) {
    self.removing = removing
    self.confirming = confirming
    self.roles = roles
    self.narrowing = narrowing
    self.store = store
    self.leavingOut = leavingOut
    self.closes = closes
  }
}

extension Roster {
  /// Devices that go with those a change removes unless it confirms them.
  public func introduced(byRemoving change: NextChange) -> Set<DeviceID> {
    whole.introduced(by: Set(change.removing.keys).subtracting(whole.leaving))
  }

  /// The `Next` that leaves the current epochs, judged as everybody will judge it: sign it as the next entry of `origin`, cite
  /// all ``heads``, add nothing to the roster in between.
  ///
  /// Those who wrote `Leave` are dropped, and so is whom the removed brought in unless confirmed (by a member: only its own
  /// devices). The key is sealed to exactly those who stay, and to open invites if nobody is removed. All former keys at
  /// hand of epochs that were rightly begun go under it.
  ///
  /// - Parameters:
  ///   - origin: who signs.
  ///   - key: of the new epoch. New and random; for a closing, nil.
  ///   - limits: of devices that go without being named in `change`: those who left, or were brought in by the removed.
  ///   - ring: has walked this roster's entries.
  ///   - isGraceOver: go on although ends of this view were never proven here, or never sealed to this device: others may
  ///     know better, so give them time to show it.
  ///   - random: nonces.
  /// - Throws: why everybody would refuse it, or why it would be rash.
  public func next(
    _ change: NextChange, by origin: Origin, key: EpochKey?, ring: EpochRing,
    limits: (DeviceID) -> [Next.Limit] = { _ in [] }, isGraceOver: Bool = false, random: inout some RandomSource
  ) throws(RosterRefusal) -> Next {
    let parents = whole.heads(household)
    if !isGraceOver {
      let unproven = unprovenInTheWay
      if !unproven.isEmpty { throw .next(.unproven(unproven)) }
      let sealedOut = parents.filter { ring.keys[$0] == nil && next(of: $0)?.form != .closed }
      if !sealedOut.isEmpty { throw .next(.sealedOut(sealedOut)) }
    }
    let made: Next
    if change.closes {
      made = .closing(parents: parents)
    } else {
      guard let key else { throw .next(.commitment) }
      made = moved(change, origin, parents, key, ring, limits, &random)
    }
    if let refusal = refusal(of: .next(made), by: origin, key: key) { throw refusal }
    return made
  }

  private func moved(
    _ change: NextChange, _ origin: Origin, _ parents: [EpochID], _ key: EpochKey, _ ring: EpochRing,
    _ limits: (DeviceID) -> [Next.Limit], _ random: inout some RandomSource
  ) -> Next {
    let leaving = whole.leaving
    let own = whole.person(of: origin.device)
    let isOwner = whole.role(of: origin.device) == .owner
    let named = Set(change.removing.keys)
    let brought = whole.introduced(by: named.subtracting(leaving)).filter {
      !change.confirming.contains($0) && (isOwner || whole.person(of: $0) == own)
    }
    let removes = named.union(leaving).union(brought)
    var removals = removes.map {
      Next.Removal(device: $0, limits: sorted(change.removing[$0] ?? limits($0)))
    }
    removals += change.narrowing.keys.filter { !removes.contains($0) }.map {
      Next.Removal(device: $0, limits: sorted(change.narrowing[$0] ?? []))
    }
    return Next(
      parents: parents, form: .moved, commitment: key.commitment(parents: parents),
      recipients: recipients(key, removes, leavingOut: change.leavingOut), formers: formers(key, ring, &random),
      removals: removals.sorted { $0.device < $1.device },
      roles: change.roles.keys.sorted().compactMap { person in
        change.roles[person].map { Next.RoleChange(person: person, role: $0) }
      }, confirmed: change.confirming.sorted(), store: change.store)
  }

  private func sorted(_ limits: [Next.Limit]) -> [Next.Limit] {
    limits.sorted { ($0.zone, $0.incarnation) < ($1.zone, $1.incarnation) }
  }

  private func recipients(
    _ key: EpochKey, _ removes: Set<DeviceID>, leavingOut: Set<InviteID>
  ) -> [Next.Recipient] {
    var out: [Next.Recipient] = []
    var left = removes
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.sealRemoved) { left = [] }
    #endif
    for device in whole.devices where !left.contains(device) {
      guard let enrolment = whole.enrolment(of: device), let seal = key.sealOrNone(to: enrolment.chain.keys.box) else {
        continue
      }
      out.append(
        Next.Recipient(kind: enrolment.paper == .none ? .device : .kit, id: device.bytes, seal: seal))
    }
    if removes.isEmpty {
      for id in whole.invites.keys where !leavingOut.contains(id) {
        if let invite = whole.recipient(id), let seal = key.sealOrNone(to: invite.terms.boxKey) {
          out.append(Next.Recipient(kind: .invite, id: id.bytes, seal: seal))
        }
      }
    }
    return out.sorted {
      $0.kind == $1.kind ? $0.id.lexicographicallyPrecedes($1.id) : $0.kind.rawValue < $1.kind.rawValue
    }
  }

  /// Keys of epochs that began among the entries judged here, and of no others: a key whose `Next` is not judged yet may be
  /// newer than this one. Those of refused `Next`s too: somebody who did not know better may have written there.
  private func formers(_ key: EpochKey, _ ring: EpochRing, _ random: inout some RandomSource) -> [Next.Former] {
    ring.keys.keys.filter { graph[$0] != nil }.sorted().compactMap { epoch in
      guard let former = ring.keys[epoch] else { return nil }
      let box = KeyBox(former, of: epoch, under: key, random: &random)
      return Next.Former(epoch: epoch, nonce: box.nonce, box: box.box)
    }
  }
}
