public import LatchkeyEncoding

/// What a household's roster amounts to: who is in it with which role, its zones, its invites. Every list is sorted, so
/// that equal sets of entries give equal values.
public struct RosterState: Hashable, Sendable {
  public struct Person: Hashable, Sendable {
    public let id: PersonID
    public let name: String
    public let role: Role
  }

  public struct Device: Hashable, Sendable {
    public let keys: DevicePublicKeys
    public let name: String
    public let person: PersonID
    public let role: Role
    /// Causal depth of the entry that brought it in (format §8, *enrolment*): lower is earlier.
    public let enrolment: UInt64
    /// From the person's first device to this one.
    public let chain: CertificateChain
    /// A device on paper.
    public let isKit: Bool
    /// A kit that ranks as one: from Genesis, from its person's claim, or added by such a kit.
    public let isFoundingKit: Bool

    public var id: DeviceID { keys.id }
  }

  public struct Zone: Hashable, Sendable {
    public let id: ZoneID
    public let name: String
    /// Nil while it is open.
    public let closing: CloseZone?
  }

  public struct Invite: Hashable, Sendable {
    /// The entry that opened it.
    public let opened: EntryHash
    public let terms: OpenInvite
    /// Who opened it.
    public let inviter: PersonID
    public let isRevoked: Bool
    /// Devices that were admitted with it, ascending.
    public let admitted: [DeviceID]

    public enum Status: Hashable, Sendable { case open, used, revoked, expired }

    /// - Parameter now: milliseconds since 1970, by the own clock.
    public func status(now: UInt64) -> Status {
      if admitted.count >= terms.uses { return .used }
      if isRevoked { return .revoked }
      return now > terms.expiry ? .expired : .open
    }
  }

  /// What people should be told.
  public enum Alarm: Hashable, Sendable {
    /// An invite let in more devices than it may: the store, or somebody, showed admitters different worlds.
    case overused(InviteID, admitted: [DeviceID])
    /// One author wrote two entries at one position: evidence of copied keys or of a dishonest device.
    case fork(Origin, sequence: UInt64, [EntryHash])
  }

  /// A `Next` by somebody entitled whose commitment, seals or former keys are wrong: it counts for nothing, its author
  /// tried to split the household, and people should be told.
  public struct Flawed: Hashable, Sendable {
    public let epoch: EpochID
    public let author: DeviceID
    public let why: NextRefusal
  }

  /// A device that a `Next` removed, or whose person it narrowed to reader: what it wrote counts up to the limits.
  public struct Limited: Hashable, Sendable {
    public let device: DeviceID
    /// By zone and incarnation; logs that are not listed count not at all. Where several `Next`s state a limit, the
    /// farthest: nothing that somebody counted is un-counted.
    public let limits: [Next.Limit]
    public let isRemoved: Bool
  }

  /// A `Next` that came to nothing because a better one had removed its author: its epoch is read, never written, and its
  /// removals are for owners to repeat.
  public struct Void: Hashable, Sendable {
    public let epoch: EpochID
    public let author: DeviceID
    /// Those of its removals that are still in.
    public let removals: [DeviceID]
    public let roles: [Next.RoleChange]
  }

  public let household: HouseholdID
  /// Nil until Genesis has arrived.
  public let genesis: Genesis?
  public let people: [Person]
  public let devices: [Device]
  public let zones: [Zone]
  public let invites: [Invite]
  /// Other households of this person; in a private household only.
  public let households: [HouseholdAccess]
  public let alarms: [Alarm]
  /// Whether something here needs a newer version: nothing may be uploaded.
  public let isNewer: Bool

  /// The epoch to write to; nil before Genesis has arrived and in a closed household.
  public let currentEpoch: EpochID?
  /// The epochs that the next `Next` follows, ascending. More than one: somebody has to join them.
  public let epochEnds: [EpochID]
  /// Whether an owner has ended the household.
  public let isClosed: Bool
  /// Devices of persons who wrote `Leave`; the next `Next` drops them. Ascending.
  public let leaving: [DeviceID]
  /// Removed and narrowed devices, ascending.
  public let limited: [Limited]
  /// Entries that were right when they were made and fell with a removal or narrowing, ascending.
  public let fallen: [EntryHash]
  /// In the order of epochs.
  public let void: [Void]
  /// In the order of epochs.
  public let flawed: [Flawed]
  /// `Next`s whose key nobody has shown here; taken as right. While the current epoch does not build on them, nothing is
  /// written. Ascending.
  public let unproven: [EpochID]
  /// `Next`s that were recomputed and are right: keep them, and give them to ``Roster/init(household:evaluating:proven:)``.
  public let proven: Set<EpochID>
  /// Where the household's store is, if a `Next` named one: to be used only after a person on this device has agreed.
  public let store: String?

  public var householdName: String? { genesis?.householdName }
  public var isPrivate: Bool { genesis?.isPrivate ?? false }

  public func device(_ id: DeviceID) -> Device? { devices.first { $0.id == id } }
  public func person(_ id: PersonID) -> Person? { people.first { $0.id == id } }
  public func zone(_ id: ZoneID) -> Zone? { zones.first { $0.id == id } }
}

extension Roster {
  /// Where the household's store is, if a `Next` named one: ``RosterState/store``, without all the rest of it.
  public var store: String? { whole.store }

  /// What the roster amounts to now, without entries that wait, are refused, fell or need a newer version.
  ///
  /// Computed from all that is known each time: keep it while the roster does not change.
  public var state: RosterState {
    let alarms =
      whole.invites.keys.sorted().flatMap { whole.invites[$0] ?? [] }.compactMap(overuse)
      + graph.forks().map { RosterState.Alarm.fork($0.0, sequence: $0.1, $0.2) }
    return RosterState(
      household: household, genesis: whole.genesis, people: people, devices: whole.devices.compactMap(device),
      zones: zones, invites: invites,
      households: whole.households.values.map(\.access).sorted { ($0.household, $0.epoch) < ($1.household, $1.epoch) },
      alarms: alarms, isNewer: isNewer, currentEpoch: whole.current(household), epochEnds: whole.heads(household),
      isClosed: whole.isClosed, leaving: whole.leaving.sorted(), limited: limited,
      fallen: whole.fallen.map(\.hash).sorted(), void: void, flawed: flawed,
      unproven: forms.keys.filter { forms[$0] == .unproven }.sorted(),
      proven: Set(forms.keys.filter { forms[$0] == .wellFormed }), store: whole.store)
  }

  private func device(_ id: DeviceID) -> RosterState.Device? {
    guard let first = whole.enrolment(of: id), let role = whole.role(of: first.chain.person) else { return nil }
    return RosterState.Device(
      keys: first.chain.keys, name: whole.deviceProfiles[id]?.deviceName ?? first.deviceName,
      person: first.chain.person, role: role, enrolment: first.source.depth, chain: first.chain,
      isKit: first.paper != .none, isFoundingKit: first.paper == .foundingKit)
  }

  private var people: [RosterState.Person] {
    whole.people.compactMap { id in
      guard let role = whole.role(of: id) else { return nil }
      let named = (whole.devicesOf[id] ?? []).flatMap { whole.enrolments[$0] ?? [] }
        .filter { $0.chain.person == id && $0.personName != nil }
        .min { RosterFacts.Source.precedes($0.source, $1.source) }
      let name = whole.personProfiles[id]?.personName ?? named?.personName ?? ""
      return RosterState.Person(id: id, name: name, role: role)
    }
  }

  private var zones: [RosterState.Zone] {
    whole.zones.keys.sorted().compactMap { id in
      whole.zones[id]?.max { RosterFacts.Source.isNewer($1.source, $0.source) }.map { newest in
        let closing = whole.closings[id]?.min { RosterFacts.Source.precedes($0.source, $1.source) }?.closing
        return RosterState.Zone(id: id, name: newest.name, closing: closing)
      }
    }
  }

  private var invites: [RosterState.Invite] {
    whole.invites.keys.sorted().flatMap { id in
      (whole.invites[id] ?? []).sorted { $0.source.hash < $1.source.hash }.map(invite)
    }
  }

  private func invite(_ invite: RosterFacts.Invite) -> RosterState.Invite {
    RosterState.Invite(
      opened: invite.source.hash, terms: invite.terms, inviter: invite.inviter, isRevoked: invite.isRevoked,
      admitted: invite.admitted.sorted())
  }

  private func overuse(_ invite: RosterFacts.Invite) -> RosterState.Alarm? {
    UInt64(invite.admitted.count) > invite.terms.uses
      ? .overused(invite.terms.id, admitted: invite.admitted.sorted()) : nil
  }

  private var flawed: [RosterState.Flawed] {
    forms.keys.sorted().compactMap { epoch in
      guard case .flawed(let why)? = forms[epoch], let at = graph[epoch] else { return nil }
      return RosterState.Flawed(epoch: epoch, author: graph.nodes[at].entry.origin.device, why: why)
    }
  }

  private var void: [RosterState.Void] {
    whole.void.map { one in
      RosterState.Void(
        epoch: one.source.hash, author: one.source.author, removals: one.removes.filter(whole.isIn).sorted(),
        roles: one.succession.next.roles)
    }
    .sorted { $0.epoch < $1.epoch }
  }

  private var limited: [RosterState.Limited] {
    var farthest: [DeviceID: [LogName: [Next.Limit]]] = [:]
    for one in whole.accepted {
      for removal in one.succession.next.removals {
        let isNarrowed = whole.role(of: removal.device) == .reader
        guard whole.removed.contains(removal.device) || isNarrowed else { continue }
        farthest[removal.device, default: [:]] = merge(removal.limits, into: farthest[removal.device] ?? [:])
      }
    }
    return farthest.keys.sorted().map { device in
      let logs = farthest[device] ?? [:]
      return RosterState.Limited(
        device: device, limits: logs.keys.sorted().flatMap { logs[$0] ?? [] },
        isRemoved: whole.removed.contains(device))
    }
  }

  private func merge(_ limits: [Next.Limit], into known: [LogName: [Next.Limit]]) -> [LogName: [Next.Limit]] {
    var out = known
    for limit in limits {
      let name = LogName(zone: limit.zone, incarnation: limit.incarnation)
      let former = out[name] ?? []
      let reach = former.first?.sequence ?? 0
      if limit.sequence > reach || former.isEmpty {
        out[name] = [limit]
      } else if limit.sequence == reach && !former.contains(limit) {
        // Two branches of a fork: both count as far as somebody counted them.
        out[name] = (former + [limit]).sorted { $0.hash < $1.hash }
      }
    }
    return out
  }

  /// Judges a claim found in the store, as an admitter does before it writes `admit`, or `addDevice` for *mine*.
  ///
  /// - Parameters:
  ///   - name: where it lay, below the roster's prefix; `keys`: of the epoch in which it lay there.
  ///   - now: milliseconds since 1970 by the admitter's own clock; the claimant's does not matter.
  /// - Returns: the invite that it answers.
  public func assess(
    _ claim: Claim, at name: ObjectName, keys: EpochKeys, now: UInt64
  ) throws(ClaimError) -> RosterState.Invite {
    guard claim.name(keys) == name else { throw .wrongName }
    let (answered, _) = try open(claim, in: whole)
    guard now <= answered.terms.expiry else { throw .expired }
    return invite(answered)
  }
}

/// One log of a device.
private struct LogName: Hashable, Comparable {
  let zone: ZoneID
  let incarnation: Incarnation
  static func < (a: Self, b: Self) -> Bool { (a.zone, a.incarnation) < (b.zone, b.incarnation) }
}
