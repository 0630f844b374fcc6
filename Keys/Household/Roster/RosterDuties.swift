public import LatchkeyEncoding

/// What a device owes the others, beside what its people want.
public struct RosterDuties: Sendable {
  /// To append one after the other, each citing all heads. Ask again once they are in the roster: more may follow.
  public let operations: [RosterOperation]
  /// Why a `Next` is due; nil if none is, or if this device may not write it. It is not urgent for one device alone: whoever
  /// caused it writes it at once, others after a random delay.
  public let next: NextReason?

  public enum NextReason: Hashable, Sendable {
    /// Several epochs end side by side: join them.
    case join([EpochID])
    /// The current epoch must not be written to any more.
    case leave([UploadHold])
    /// The current epoch's key was never sealed to this device. Due only after a grace time in which somebody may seal it.
    case sealedOut(EpochID)
    /// Nobody has shown the keys of these. Due only after a grace time in which somebody may: then this device goes on as if
    /// they were right, which is what all do who cannot tell.
    case unproven([EpochID])

    /// Whether others must have had time to settle it first: days, not minutes.
    public var needsGrace: Bool {
      switch self {
      case .join, .leave: false
      case .sealedOut, .unproven: true
      }
    }
  }
}

extension Roster {
  /// What `origin` owes the others now (format §8, *Duties*): show what proves a `Next` wrong, seal keys to devices that
  /// lack them, carry keys that lost, revoke expired invites, leave an epoch that too many can read.
  ///
  /// - Parameters:
  ///   - ring: has walked this roster's entries, and this roster has learnt from it.
  ///   - now: milliseconds since 1970, by the own clock; decides about expired invites only.
  ///   - random: nonces.
  public func duties(
    of origin: Origin, ring: EpochRing, now: UInt64, random: inout some RandomSource
  ) -> RosterDuties {
    guard !isNewer, !whole.isClosed, let own = whole.role(of: origin.device), let current = whole.current(household),
      !whole.leaving.contains(origin.device)
    else { return RosterDuties(operations: [], next: nil) }
    var operations = exposures(by: origin, ring, &random)
    let unproven = unprovenInTheWay
    if !unproven.isEmpty {
      return RosterDuties(
        operations: allowed(operations, origin), next: own >= .member ? .unproven(unproven) : nil)
    }
    let ends = whole.heads(household)
    for end in ends { operations += seals(of: end, ring) }
    let dirt = dirt(of: current)
    if dirt.isEmpty { operations += carries(to: current, ring, &random) }
    operations += expired(now)
    operations = allowed(operations, origin)
    guard own >= .member else { return RosterDuties(operations: operations, next: nil) }
    let reason: RosterDuties.NextReason? =
      if ends.contains(where: { ring.keys[$0] == nil && next(of: $0)?.form != .closed }) {
        .sealedOut(ends.first { ring.keys[$0] == nil } ?? current)
      } else if ends.count > 1 {
        .join(ends)
      } else if !dirt.isEmpty {
        .leave(dirt)
      } else {
        nil
      }
    return RosterDuties(operations: operations, next: reason)
  }

  private func allowed(_ operations: [RosterOperation], _ origin: Origin) -> [RosterOperation] {
    operations.filter { refusal(of: $0, by: origin) == nil }
  }

  /// A flawed `Next` protects nothing: whoever holds what shows it makes that known where its non-recipients look.
  private func exposures(
    by origin: Origin, _ ring: EpochRing, _ random: inout some RandomSource
  ) -> [RosterOperation] {
    forms.keys.sorted().compactMap { epoch in
      guard forms[epoch]?.isFlawed == true, let next = next(of: epoch) else { return nil }
      guard let key = ring.keys[epoch] ?? ring.stray(of: epoch) else {
        return ring.unopenable.contains(epoch) && !isDenied(epoch) ? .deny(epoch) : nil
      }
      guard !isShown(key, of: epoch, ring), let parent = next.parents.first(where: { ring.keys[$0] != nil }),
        let outer = ring.keys[parent]
      else { return nil }
      return .carryKey(epoch, under: parent, KeyBox(key, of: epoch, under: outer, random: &random))
    }
  }

  /// Whether somebody has carried this very key: others may have carried what proves nothing.
  private func isShown(_ key: EpochKey, of epoch: EpochID, _ ring: EpochRing) -> Bool {
    graph.nodes.indices.contains { at in
      guard judged[at] != nil, case .carryKey(epoch, let under, let box) = graph.nodes[at].entry.operation,
        let outer = ring.keys[under]
      else { return false }
      return box.open(epoch, under: outer) == key
    }
  }

  private func isDenied(_ epoch: EpochID) -> Bool {
    graph.nodes.indices.contains { at in
      judged[at] != nil && graph.nodes[at].entry.operation == .deny(epoch)
    }
  }

  /// For devices that were enrolled beside a `Next`, and so are not among its recipients.
  private func seals(of epoch: EpochID, _ ring: EpochRing) -> [RosterOperation] {
    guard let key = ring.keys[epoch] else { return [] }
    let holders = whole.holders(of: epoch, key: key)
    let leaving = whole.leaving
    return whole.devices.compactMap { device in
      guard !holders.contains(.device(device)), !leaving.contains(device),
        let box = whole.enrolment(of: device)?.chain.keys.box, let seal = key.seal(to: box)
      else { return nil }
      return .seal(device, epoch: epoch, seal)
    }
  }

  /// A key that no box under the current one opens would be lost to whoever comes later.
  private func carries(
    to current: EpochID, _ ring: EpochRing, _ random: inout some RandomSource
  ) -> [RosterOperation] {
    guard let outer = ring.keys[current] else { return [] }
    let wanted = Set(ring.keys.keys.filter { graph[$0] != nil })
    let reached = ring.reach(from: current, wanted: wanted)
    return wanted.subtracting(reached).sorted().compactMap { epoch in
      ring.keys[epoch].map {
        .carryKey(epoch, under: current, KeyBox($0, of: epoch, under: outer, random: &random))
      }
    }
  }

  private func expired(_ now: UInt64) -> [RosterOperation] {
    Set(whole.invites.values.joined().filter { $0.isOpen && now > $0.terms.expiry }.map(\.terms.id)).sorted()
      .map { .revokeInvite($0) }
  }
}
