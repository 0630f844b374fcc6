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
      if isRevoked { return .revoked }
      if admitted.count >= terms.uses { return .used }
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

  public var householdName: String? { genesis?.householdName }
  public var isPrivate: Bool { genesis?.isPrivate ?? false }

  public func device(_ id: DeviceID) -> Device? { devices.first { $0.id == id } }
  public func person(_ id: PersonID) -> Person? { people.first { $0.id == id } }
  public func zone(_ id: ZoneID) -> Zone? { zones.first { $0.id == id } }
}

extension Roster {
  /// What the roster amounts to now, without entries that wait, are refused or need a newer version.
  ///
  /// Computed from all that is known each time: keep it while the roster does not change.
  public var state: RosterState {
    var devices: [RosterState.Device] = []
    for (id, enrolments) in facts.enrolments {
      guard let first = enrolments.first, let role = facts.role(of: first.chain.person, in: nil) else { continue }
      devices.append(
        RosterState.Device(
          keys: first.chain.keys, name: facts.deviceProfiles[id]?.deviceName ?? first.deviceName,
          person: first.chain.person, role: role, enrolment: first.source.depth, chain: first.chain,
          isKit: first.isKit))
    }
    devices.sort { $0.id < $1.id }
    let alarms =
      facts.invites.keys.sorted().flatMap { facts.invites[$0] ?? [] }.compactMap(overuse)
      + graph.forks().map { RosterState.Alarm.fork($0.0, sequence: $0.1, $0.2) }
    return RosterState(
      household: household, genesis: facts.genesis, people: people(Set(devices.map(\.person))), devices: devices,
      zones: zones, invites: invites, households: households, alarms: alarms, isNewer: isNewer)
  }

  private func people(_ ids: Set<PersonID>) -> [RosterState.Person] {
    ids.sorted().compactMap { id in
      guard let role = facts.role(of: id, in: nil) else { return nil }
      let named = (facts.devicesOf[id] ?? []).flatMap { facts.enrolments[$0] ?? [] }
        .filter { $0.chain.person == id && $0.personName != nil }
        .min { RosterFacts.Source.precedes($0.source, $1.source) }
      let name = facts.personProfiles[id]?.personName ?? named?.personName ?? ""
      return RosterState.Person(id: id, name: name, role: role)
    }
  }

  private var zones: [RosterState.Zone] {
    facts.zones.keys.sorted().compactMap { id in
      facts.zones[id]?.max { RosterFacts.Source.isNewer($1.source, $0.source) }.map { newest in
        let closing = facts.closings[id]?.min { RosterFacts.Source.precedes($0.source, $1.source) }?.closing
        return RosterState.Zone(id: id, name: newest.name, closing: closing)
      }
    }
  }

  private var invites: [RosterState.Invite] {
    facts.invites.keys.sorted().flatMap { id in
      (facts.invites[id] ?? []).sorted { $0.source.hash < $1.source.hash }.map { invite in
        RosterState.Invite(
          opened: invite.source.hash, terms: invite.terms, inviter: invite.inviter,
          isRevoked: invite.isRevoked(in: nil), admitted: invite.admitted(in: nil))
      }
    }
  }

  private var households: [HouseholdAccess] {
    facts.households.values.map(\.access).sorted { ($0.household, $0.epoch) < ($1.household, $1.epoch) }
  }

  private func overuse(_ invite: RosterFacts.Invite) -> RosterState.Alarm? {
    let admitted = invite.admitted(in: nil)
    return UInt64(admitted.count) > invite.terms.uses ? .overused(invite.terms.id, admitted: admitted) : nil
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
    let (invite, _) = try open(claim, in: nil)
    guard now <= invite.terms.expiry else { throw .expired }
    return RosterState.Invite(
      opened: invite.source.hash, terms: invite.terms, inviter: invite.inviter, isRevoked: false,
      admitted: invite.admitted(in: nil))
  }
}
