internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys

/// A device of one's own.
public struct DeviceReport: Equatable, Sendable {
  public let name: String
  public let id: String
  public let isThis: Bool
  /// A recovery kit: a device on paper.
  public let isKit: Bool
}

/// What revoking a device of one's own did.
public struct RevocationReport: Equatable, Sendable {
  /// Names of the devices that went, the one that was asked for first.
  public let devices: [String]
  /// Households that it is still in, and why: the next sync of any device of this person tries again.
  public let pending: [HouseholdFailure]
}

/// One of several households in which something could not be done.
public struct HouseholdFailure: Equatable, Sendable {
  public let household: String
  public let why: LatchkeyError

  /// - Throws: what it was, if somebody cancelled: that means all of them.
  init(_ household: String, _ error: any Error) throws(LatchkeyError) {
    let why = LatchkeyError(error)
    if why.kind == .cancelled { throw why }
    (self.household, self.why) = (household, why)
  }
}

/// One's own devices: adding one is ``Home/addDevice(expiresIn:)``.
extension Home {
  /// The devices of this person in any household of this device.
  public func devices() throws(LatchkeyError) -> [DeviceReport] {
    do {
      let contents = try contents()
      var seen: Set<DeviceID> = []
      let own = try ownDevices().filter { seen.insert($0.device.id).inserted }
      if own.isEmpty {
        return [
          DeviceReport(
            name: contents.deviceName, id: contents.device.id.description, isThis: true, isKit: false)
        ]
      }
      return own.map {
        DeviceReport(
          name: $0.device.name, id: $0.device.id.description, isThis: $0.device.id == contents.device.id,
          isKit: $0.device.isKit)
      }
    } catch { throw LatchkeyError(error) }
  }

  /// Each device of this person in each household, the private one first: a kit may have brought in one that only some of them know.
  private func ownDevices() throws -> [(device: RosterState.Device, household: Membership)] {
    let person = try contents().person
    return try memberships().sorted { $0.isPrivate && !$1.isPrivate }.flatMap { membership in
      try state(of: membership.id).roster.state.devices.filter { $0.person == person }.map { ($0, membership) }
    }
  }

  /// Calls this device something else, for everybody who sees its rows.
  ///
  /// - Returns: households whose store could not be reached: they hear of it with the next sync.
  @discardableResult
  public func renameDevice(_ name: String) async throws(LatchkeyError) -> [HouseholdFailure] {
    try await reporting {
      try checkName(name, "device name")
      let contents = try contents()
      try keyring.update { $0.deviceName = name }
      var pending: [HouseholdFailure] = []
      for membership in try memberships() {
        let state = try state(of: membership.id)
        let profile = RosterOperation.profile(personName: contents.personName, deviceName: name)
        guard state.roster.refusal(of: profile, by: state.log.origin) == nil else { continue }
        try write([profile], into: membership)
        do { _ = try await round(membership, access: try await openStore(of: membership)) } catch {
          pending.append(try HouseholdFailure(membership.name, error))
        }
      }
      return pending
    }
  }

  /// Revokes a device of one's own that was lost or sold: it reads nothing that is written afterwards, in any household, and what it writes
  /// counts for nobody. Its rows count as far as the store, or this device, shows them now. No owner is needed for that.
  ///
  /// Devices that the revoked one added go along unless they are kept: whoever found it may have added one. This device stays, and so does
  /// the recovery kit that it knows.
  ///
  /// - Parameters:
  ///   - device: a name, or the beginning of an id: six characters or more.
  ///   - keeping: names of devices that stay though the revoked one added them.
  ///   - isRehearsal: changes nothing, and says which would go.
  /// - Throws: ``LatchkeyError`` of kind `usage` (no such device, this device), `membership`, `store`.
  @discardableResult
  public func revokeDevice(
    _ device: String, keeping: Set<String> = [], isRehearsal: Bool = false
  ) async throws(LatchkeyError) -> RevocationReport {
    try await reporting {
      let contents = try contents()
      var unreachable: [HouseholdID: HouseholdFailure] = [:]
      for membership in try memberships() {
        do { _ = try await round(membership, access: try await openStore(of: membership)) } catch {
          unreachable[membership.id] = try HouseholdFailure(membership.name, error)
        }
      }
      let own = try ownDevices()
      let named = own.filter { $0.device.name == device }
      let matches =
        named.isEmpty ? own.filter { $0.device.id.description.hasPrefix(device) && device.count >= 6 } : named
      guard let first = matches.first, Set(matches.map(\.device.id)).count == 1 else {
        throw LatchkeyError(
          .usage, matches.isEmpty ? "no-such-device" : "ambiguous-device",
          matches.isEmpty
            ? "You have no device \(device)."
            : "Several of your devices are called \(device): use the beginning of an id.",
          next: ["latchkey device list"])
      }
      guard first.device.id != contents.device.id else {
        throw LatchkeyError(
          .usage, "this-device", "That is this device: revoke it on another one of yours, or forget its keys here.",
          next: ["latchkey forget"])
      }
      if let unknown = keeping.first(where: { name in !own.contains { $0.device.name == name } }) {
        throw LatchkeyError(
          .usage, "no-such-device", "You have no device \(unknown) to keep. Nothing was changed.",
          next: ["latchkey device list"])
      }
      let stays = Set([contents.device.id] + (contents.kit.map { [$0.certificate.keys.id] } ?? []))
        .union(own.filter { keeping.contains($0.device.name) }.map(\.device.id))
      let gone = Self.withAdded([first.device.id], among: own.map(\.device), keeping: stays)
      var names = [first.device.name]
      for other in own where gone.contains(other.device.id) && other.device.id != first.device.id {
        if !names.contains(other.device.name) { names.append(other.device.name) }
      }
      if isRehearsal { return RevocationReport(devices: names, pending: []) }
      // Kept first: whatever cannot be reached now is done by a later sync.
      let kept = Set(own.map(\.device.id)).subtracting(gone)
      try keyring.update {
        $0.revoked = Set($0.revoked).union(gone).sorted()
        $0.kept = Set($0.kept).union(kept).subtracting(gone).sorted()
      }
      var pending: [HouseholdFailure] = []
      for membership in try memberships().sorted(by: { $0.isPrivate && !$1.isPrivate }) {
        if let failure = unreachable[membership.id] {
          pending.append(failure)
          continue
        }
        do {
          try await dropRevoked(from: membership, access: try await openStore(of: membership))
        } catch { pending.append(try HouseholdFailure(membership.name, error)) }
      }
      return RevocationReport(devices: names, pending: pending)
    }
  }

  /// Removes from a household what this person has revoked here and is still in it, and what that had added. Costs no request where nothing is.
  func dropRevoked(from membership: Membership, access: StoreAccess) async throws {
    let contents = try contents()
    guard !contents.revoked.isEmpty else { return }
    let own = try state(of: membership.id).roster.state.devices.filter { $0.person == contents.person }
    let stays = Set(contents.kept + [contents.device.id] + (contents.kit.map { [$0.certificate.keys.id] } ?? []))
    let gone = Self.withAdded(Set(contents.revoked), among: own, keeping: stays.subtracting(contents.revoked))
    try await dropOwn(gone, from: membership, access: access)
  }

  /// Devices, and those that they added, and those that these added: whoever signed a device's certificate added it.
  private static func withAdded(
    _ devices: Set<DeviceID>, among own: [RosterState.Device], keeping stays: Set<DeviceID>
  ) -> Set<DeviceID> {
    var gone = devices
    while true {
      let more = own.filter { other in
        guard !gone.contains(other.id), !stays.contains(other.id), let last = other.chain.certificates.last else {
          return false
        }
        return gone.contains(last.signer) && last.signer != other.id
      }
      if more.isEmpty { return gone }
      gone.formUnion(more.map(\.id))
    }
  }

  /// Removes devices of this person from a household where they still are. Costs no request where none is.
  ///
  /// - Parameter access: the household's store; opened if nil and needed.
  func dropOwn(_ devices: Set<DeviceID>, from membership: Membership, access: StoreAccess?) async throws {
    let me = try contents().device.id
    func present() throws -> Set<DeviceID> {
      let roster = try self.state(of: membership.id).roster.state
      guard let person = roster.device(me)?.person else { return [] }
      let own = roster.devices.filter { $0.person == person && $0.id != me }.map(\.id)
      return devices.intersection(own)
    }
    guard try !present().isEmpty else { return }
    let store: StoreAccess
    if let access { store = access } else { store = try await openStore(of: membership) }
    _ = try await round(membership, access: store)
    let gone = try present()
    guard !gone.isEmpty else { return }
    let roster = try self.state(of: membership.id).roster.state
    guard let own = roster.device(me) else { return }
    guard own.role >= .member else {
      throw LatchkeyError(
        .membership, "reader-cannot-revoke",
        "You are a reader of \(membership.name): one of its members has to begin the epoch without that device.",
        next: ["ask an owner: latchkey members remove NAME, and a new invite"])
    }
    let limits = try await limits(of: gone, membership, store)
    var change = NextChange(removing: Dictionary(uniqueKeysWithValues: gone.map { ($0, limits[$0] ?? []) }))
    // Who else came in through the device stays: other people, and own devices that were not named.
    let staying = roster.devices.filter { !gone.contains($0.id) && (own.role == .owner || $0.person == own.person) }
    change.confirming = Set(staying.map(\.id))
    try await beginEpoch(membership, store, change)
  }
}
