internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyLog
public import LatchkeyStorage
internal import LatchkeyTables

extension Home {
  /// Shares an attached database with a household, which is founded unless this person owns one of that name.
  ///
  /// The rows keep their names, stamps and authors. They are published in the household's zone, read back and compared; only
  /// then is the private zone closed and what this device had published there deleted. Interrupted at any point, it is
  /// taken up again by calling it again or by the next sync.
  ///
  /// - Parameters:
  ///   - household: its name.
  ///   - store: where the household is kept; the private household's store if nil.
  ///   - credential: what that store asks for; kept for later.
  public func share(
    _ path: String, household name: String, store: String? = nil, credential: StoreCredential? = nil
  ) async throws(LatchkeyError) -> ShareReport {
    let path = absolute(path)
    return try await reporting(database: path) {
      try checkName(name, "household name")
      let replica = try Replica(path: path)
      let current = try membership(of: replica.binding.household)
      guard current.isPrivate else {
        if current.name == name, try Sharing.load(replica) != nil { return try await finishShare(replica, current) }
        throw LatchkeyError(
          .usage, "already-shared", "\(path) is shared already, with the household \(current.name).",
          next: ["latchkey invite --household \(current.name)"])
      }
      // Bring in what the person's other devices wrote, and publish what was captured here.
      let privateAccess = try await openStore(of: current)
      let round = try await self.round(current, access: privateAccess, replica: replica)
      if let closing = round.closed {
        guard let successor = try await follow(closing, replica: replica) else {
          throw try zoneEnded(closing, replica.binding.zoneName)
        }
        throw LatchkeyError(
          .usage, "already-shared", "Another device of yours has shared \(path), with the household \(successor.name).")
      }
      let locator = try stores.locator(store ?? current.locator, relativeTo: base)
      let membership = try await ownedHousehold(name, locator, current, credential)
      let access = try await openStore(of: membership)
      let zoneName = replica.binding.zoneName
      let zone = try await zoneForSharing(zoneName, membership, access)
      try await alignOwnDevices(current, access: privateAccess)
      _ = try await self.round(membership, access: access)

      let sharing = Sharing(household: current.id, zone: replica.binding.zone)
      let binding = try newBinding(membership, zone, zoneName)
      let successor = try state(of: membership.id)
      var performer = try performer(replica, current)
      try replica.transaction {
        try sharing.save(replica)
        try performer.publish(under: binding, household: successor)
      }
      return try await finishShare(replica, membership)
    }
  }

  /// The household of that name that this person owns, or a new one.
  private func ownedHousehold(
    _ name: String, _ locator: Locator, _ current: Membership, _ credential: StoreCredential?
  ) async throws -> Membership {
    if let known = try memberships().first(where: { $0.name == name && !$0.isPrivate }) {
      let state = try state(of: known.id)
      guard state.roster.role(of: try contents().device.id) == .owner else {
        throw LatchkeyError(
          .membership, "not-an-owner",
          "There is a household \(name) already, and you are not its owner: choose another name.")
      }
      return known
    }
    let access = try await openStore(locator, mode: .create, credential: credential)
    try await access.claimMarker(world)
    try keep(credential, for: locator)
    return try found(household: name, isPrivate: false, locator: locator)
  }

  private func zoneForSharing(_ name: String, _ membership: Membership, _ access: StoreAccess) async throws -> ZoneID {
    if let open = try state(of: membership.id).roster.state.zones.first(where: { $0.name == name && $0.closing == nil })
    {
      // Left by an attempt that was interrupted before the file was bound to it; otherwise another file's.
      if try await !isUsed(open.id, membership) { return open.id }
      throw LatchkeyError(
        .usage, "zone-exists", "The household \(membership.name) has a zone \(name) with rows already.",
        next: ["latchkey detach the file and attach it again with another --zone"])
    }
    let zone = newZone()
    try write([.zone(zone, name: name)], into: membership)
    return zone
  }

  private func finishShare(_ replica: Replica, _ membership: Membership) async throws -> ShareReport {
    let access = try await openStore(of: membership)
    var report = SyncReport()
    report.note(try await round(membership, access: access, replica: replica))
    try await resumeSharing(replica, membership, access, into: &report)
    let isDone = try Sharing.load(replica) == nil
    return ShareReport(
      household: membership.name, zone: replica.binding.zoneName,
      rows: try replica.counts().reduce(0) { $0 + $1.live }, isVerified: isDone, warnings: report.warnings)
  }

  /// What remains to be done after the file was bound to the household's zone: verify what was published, close the private
  /// zone, delete what this device had there. Every step may be repeated.
  func resumeSharing(
    _ replica: Replica, _ membership: Membership, _ access: StoreAccess, into report: inout SyncReport
  ) async throws {
    guard let sharing = try Sharing.load(replica), try replica.outbox(zone: replica.binding.zone).isEmpty else {
      return
    }
    guard try await isPublished(replica, membership, access) else {
      report.warnings.append(
        Warning(
          code: "not-verified",
          message:
            "What was shared could not be read back from the store yet, so the private copy there is kept. The next sync tries again."
        ))
      return
    }
    let former = try self.membership(of: sharing.household)
    let formerState = try state(of: former.id)
    let successor = CloseZone.Successor(household: membership.id, zone: replica.binding.zone)
    if formerState.roster.state.zone(sharing.zone)?.closing == nil {
      try write([.closeZone(CloseZone(zone: sharing.zone, reason: .moved, successor: successor))], into: former)
    }
    let formerAccess = try await openStore(of: former)
    _ = try await round(former, access: formerAccess)
    if let log = try replica.value(DatabasePerformer.Key.log(sharing.zone)).map({ try OwnLog(decoding: $0) }) {
      for part in log.parts {
        guard let keys = formerState.keys(of: part.epoch) else { continue }
        var names = part.heads.map { keys.headName(zone: log.zone, origin: log.origin, counter: $0) }
        if part.lastSegment > 0 {
          names += (1...part.lastSegment).map { keys.segmentName(zone: log.zone, origin: log.origin, index: $0) }
        }
        for name in names { try await formerAccess.store.delete(keys.objectName(zone: log.zone, name)) }
      }
    }
    try replica.transaction {
      try replica.setValue(DatabasePerformer.Key.log(sharing.zone), nil)
      try replica.setValue(DatabasePerformer.Key.belief(sharing.zone), nil)
      try Sharing.clear(replica)
    }
    report.add(formerAccess.counts.snapshot)
  }

  /// Reads this device's own log in the zone back from the store, as a stranger would, and compares its end.
  private func isPublished(_ replica: Replica, _ membership: Membership, _ access: StoreAccess) async throws -> Bool {
    let zone = replica.binding.zone
    guard let own = try replica.value(DatabasePerformer.Key.log(zone)).map({ try OwnLog(decoding: $0) }),
      own.counter > 0
    else {
      return true
    }
    let state = try state(of: membership.id)
    guard let keys = state.keys(of: own.epoch) else { throw EngineError.noKey(own.epoch) }
    let reader = state.rowReader(zone: zone, keys: keys)
    let head = keys.headName(zone: zone, origin: own.origin, counter: own.counter)
    let full = keys.objectName(zone: zone, head)
    guard let bytes = try await access.get([full])[full] else { return false }
    do {
      // What the store confirmed in an epoch that was left meanwhile was confirmed.
      var believed = Belief()
      if let beginning = own.beginning {
        var author = Belief.Author()
        author.mark = beginning
        believed.authors[own.origin] = author
      }
      guard case .more(var pursuit) = try reader.pursue(head: head, bytes: bytes, belief: believed, own: nil) else {
        return false
      }
      while case let wanted = pursuit.wantedSegments(limit: SyncRound.segmentsAtOnce), !wanted.isEmpty {
        let objects = try await access.get(wanted.map { keys.objectName(zone: zone, $0) })
        for name in wanted {
          guard let bytes = objects[keys.objectName(zone: zone, name)] else { return false }
          try pursuit.take(segment: name, bytes: bytes)
        }
        _ = pursuit.drain()
      }
      try pursuit.takeTail()
      let mark = pursuit.drain().author.mark
      return mark?.sequence == own.lastSequence && mark?.hash == own.lastHash
    } catch is Finding { return false }
  }

  /// A zone moved into a household that this person is in: the file follows, with whatever only it holds.
  ///
  /// - Returns: nil if this device cannot follow (yet).
  func follow(_ closing: CloseZone, replica: Replica) async throws -> Membership? {
    guard closing.reason == .moved, let successor = closing.successor else { return nil }
    try await adoptHouseholds(agree: { _ in true })
    guard let membership = try memberships().first(where: { $0.id == successor.household }) else { return nil }
    let access = try await openStore(of: membership)
    _ = try await round(membership, access: access)
    let state = try state(of: membership.id)
    guard state.roster.state.zone(successor.zone)?.closing == nil,
      state.roster.role(of: try contents().device.id) != nil
    else {
      return nil
    }
    let former = replica.binding
    let binding = try newBinding(membership, successor.zone, former.zoneName)
    var performer = try performer(replica, try self.membership(of: former.household))
    try replica.transaction {
      // What the sharing device had not seen of this one's work would otherwise be left behind.
      try performer.publish(under: binding, household: state)
      try replica.setValue(DatabasePerformer.Key.log(former.zone), nil)
      try replica.setValue(DatabasePerformer.Key.belief(former.zone), nil)
    }
    return membership
  }

  // MARK: A person's devices and households

  /// Brings the person's devices into all of its households, and its households onto all of its devices, by what the private
  /// household says. Costs no request where nothing is missing.
  func alignOwnDevices(_ privateHousehold: Membership, access: StoreAccess) async throws {
    let contents = try contents()
    let roster = try state(of: privateHousehold.id).roster.state
    if let me = roster.device(contents.device.id), me.chain != contents.chain {
      try keyring.update { $0.chain = me.chain }
    }
    guard roster.device(contents.device.id) != nil else { return }
    // A store that cannot be reached keeps nothing from being done in the others.
    var failure: (any Error)?
    do { try await adoptHouseholds(agree: { _ in true }) } catch { failure = error }
    for membership in try memberships() where !membership.isPrivate {
      do { try await alignOwnDevices(roster, in: membership, by: contents.device.id, into: privateHousehold) } catch {
        failure = failure ?? error
      }
    }
    if try !state(of: privateHousehold.id).outbox.isEmpty { _ = try await round(privateHousehold, access: access) }
    if let failure { throw failure }
  }

  /// The same for one household.
  private func alignOwnDevices(
    _ roster: RosterState, in membership: Membership, by device: DeviceID, into privateHousehold: Membership
  ) async throws {
    let shared = try state(of: membership.id)
    guard shared.roster.role(of: device) != nil else { return }
    let known = shared.roster.state
    try await dropOwn(
      Set(roster.limited.filter(\.isRemoved).map(\.device)), from: membership, access: nil)
    // Whoever vouches for another stands before it.
    let missing = roster.devices.filter { known.device($0.id) == nil }.sorted {
      $0.chain.certificates.count < $1.chain.certificates.count
    }
    var hasAdded = false
    for device in missing {
      guard let certificate = device.chain.certificates.last else { continue }
      let addition = RosterOperation.addDevice(certificate, name: device.name, isKit: device.isKit)
      let now = try state(of: membership.id)
      guard now.roster.refusal(of: addition, by: now.log.origin) == nil else { continue }
      try write([addition], into: membership)
      hasAdded = true
    }
    if hasAdded { _ = try await round(membership, access: try await openStore(of: membership)) }
    // A device that was not in when an epoch began has no seal in it: it needs a key of a later one to begin with.
    let current = try state(of: membership.id)
    if let key = current.ring.keys[current.epoch],
      roster.devices.count == 1
        ? !roster.households.contains(where: { $0.household == membership.id })
        : !roster.households.contains(where: { $0.household == membership.id && $0.epoch == current.epoch })
    {
      let access = HouseholdAccess(
        household: membership.id, name: membership.name, epoch: current.epoch, key: key,
        locator: membership.locator, checkpoint: current.roster.heads)
      try write([.household(access)], into: privateHousehold)
    }
  }

  /// Takes up households that another device of this person is in. Their stores are the person's own choice already.
  private func adoptHouseholds(agree: (String) -> Bool) async throws {
    guard let own = try memberships().first(where: \.isPrivate) else { return }
    for access in try state(of: own.id).roster.state.households {
      if let known = try contents()[access.household] {
        if known.epochs.contains(where: { $0.id == access.epoch }) { continue }
        if try state(of: known.id).ring.keys[access.epoch] == access.key { continue }
        try keyring.update { $0[access.household]?.epochs.append(.init(id: access.epoch, key: access.key)) }
        continue
      }
      guard agree(access.locator) else { continue }
      let keys = EpochKeys(household: access.household, epoch: access.epoch, key: access.key)
      let store = try await openStore(stores.locator(access.locator, relativeTo: base))
      guard let genesis = try await findGenesis(keys, store) else { throw LatchkeyError.noGenesis }
      try adopt(keys, genesis: genesis, name: access.name, isPrivate: false, locator: access.locator)
    }
  }

  /// Begins to hold a household of which this device has a key.
  func adopt(
    _ keys: EpochKeys, genesis: StoredEntry, name: String, isPrivate: Bool, locator: String,
    joining: HouseholdKeys.Joining? = nil
  ) throws {
    var random = world.random()
    let incarnation = newIncarnation(&random)
    let contents = try contents()
    let state = try HouseholdState(
      household: keys.household, epoch: keys.epoch, genesis: genesis,
      origin: Origin(device: contents.device.id, incarnation: incarnation),
      secrets: HouseholdSecrets(device: contents.device, held: [keys.epoch: keys.key]))
    try keyring.setState(state.encoded(), of: state.household)
    let household = HouseholdKeys(
      id: keys.household, name: name, isPrivate: isPrivate, epochs: [.init(id: keys.epoch, key: keys.key)],
      locator: locator, rosterIncarnation: incarnation, joining: joining)
    try keyring.update { $0[keys.household] = household }
  }

  func findGenesis(_ keys: EpochKeys, _ access: StoreAccess) async throws -> StoredEntry? {
    let prefix = keys.prefix(.roster)
    for name in try await access.list(prefix + "/").sorted(by: { $0 > $1 }) {
      guard let below = name.below(prefix),
        below.text.hasPrefix("r/") || HeadName(below) != nil,
        let bytes = try await access.get([name])[name]
      else { continue }
      if below.text.hasPrefix("r/") {
        if let entry = GenesisSearch.search(copy: below, bytes: bytes, keys: keys) { return entry }
        continue
      }
      switch GenesisSearch.search(head: below, bytes: bytes, keys: keys) {
      case .found(let entry): return entry
      case .notHere: continue
      case .look(let segment):
        let full = keys.objectName(zone: .roster, segment)
        if let bytes = try await access.get([full])[full],
          let entry = GenesisSearch.search(segment: segment, bytes: bytes, keys: keys)
        {
          return entry
        }
      }
    }
    return nil
  }
}

extension LatchkeyError {
  static let noGenesis = LatchkeyError(
    .damage, "no-genesis",
    "The store does not show the beginning of the household's roster: it is damaged, or not that household's store.",
    next: ["check the store's URL", "sync on a device that is in the household, then try again"])
}

/// A database on its way from the private household into a shared one: where its rows were.
struct Sharing {
  let household: HouseholdID
  let zone: ZoneID

  private static let key = "sharing"

  static func load(_ replica: Replica) throws -> Sharing? {
    guard let bytes = try replica.value(key) else { return nil }
    var r = CBORReader(bytes)
    try r.array(exactly: 2)
    return Sharing(household: try r.id(), zone: try r.id())
  }

  func save(_ replica: Replica) throws {
    var w = CBORWriter()
    w.array(2)
    w.id(household)
    w.id(zone)
    try replica.setValue(Self.key, w.bytes)
  }

  static func clear(_ replica: Replica) throws { try replica.setValue(key, nil) }
}
