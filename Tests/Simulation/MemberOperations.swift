import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeyTables

/// Who may read and write changes while everybody works: what people do with `members`, `invites`, `leave` and `key rotate`.
extension World {
  private enum MemberOperation { case remove, removeOwn, narrow, widen, rotate, leave, withdraw }

  /// Somebody changes who may read and write, from what the device knows at that moment.
  func changeMembers(_ device: Device, _ step: Int) throws {
    var random = Stream(seed, "members", step)
    device.loseRound()
    let operations: [(MemberOperation, Int)] = [
      (.remove, 3), (.removeOwn, 1), (.narrow, 2), (.widen, 3), (.rotate, 2), (.leave, 1), (.withdraw, 2),
    ]
    // Most are not everybody's to do.
    for _ in 0..<5 where try change(random.pick(weighted: operations) ?? .rotate, device, &random) { return }
  }

  /// - Returns: whether there was something to do.
  private func change(_ operation: MemberOperation, _ device: Device, _ random: inout Stream) throws -> Bool {
    guard let state = device.kept, let role = device.role, !device.isRemoved else { return false }
    let roster = state.roster.state
    guard let me = roster.device(device.keys.id) else { return false }
    let others = roster.people.filter { $0.id != me.person }
    var change = NextChange()
    switch operation {
    case .remove:
      guard role == .owner, let person = random.pick(others) else { return false }
      try remove(roster.devices.filter { $0.person == person.id }.map(\.id), device, state, &random)
      return true
    case .removeOwn:
      let own = roster.devices.filter { $0.person == me.person && $0.id != me.id }.map(\.id)
      guard role >= .member, let gone = random.pick(own) else { return false }
      try remove([gone], device, state, &random)
      return true
    case .narrow:
      guard role == .owner, let person = random.pick(others.filter { $0.role != .reader }) else { return false }
      change.roles = [person.id: .reader]
      let devices = Set(roster.devices.filter { $0.person == person.id }.map(\.id))
      guard let limits = try limits(of: devices, device, state, &random) else { return true }
      change.narrowing = Dictionary(uniqueKeysWithValues: devices.map { ($0, limits[$0] ?? []) })
      marks[.narrowings] += 1
    case .widen:
      guard role == .owner, let person = random.pick(others.filter { $0.role != .owner }) else { return false }
      change.roles = [person.id: person.role == .reader && random.chance(70) ? .member : .owner]
      marks[.widenings] += 1
    case .rotate:
      guard role >= .member else { return false }
      marks[.rotations] += 1
    case .leave:
      guard !swarm.isPrivate, roster.leaving.isEmpty, try write(.leave, device) else { return false }
      marks[.leaves] += 1
      return true
    case .withdraw:
      let open = roster.invites.filter { $0.status(now: 0) == .open }.map(\.terms.id)
      guard let invite = random.pick(open), try write(.revokeInvite(invite), device) else { return false }
      marks[.withdrawals] += 1
      return true
    }
    try begin(change, limits: [:], device, state)
    return true
  }

  private func remove(
    _ gone: [DeviceID], _ device: Device, _ state: HouseholdState, _ random: inout Stream
  ) throws {
    guard let limits = try limits(of: Set(gone), device, state, &random) else { return }
    var change = NextChange(removing: Dictionary(uniqueKeysWithValues: gone.map { ($0, limits[$0] ?? []) }))
    // Mostly those whom they let in are to stay.
    if random.chance(70) {
      change.confirming = state.roster.introduced(byRemoving: change).subtracting(gone)
      if state.roster.role(of: device.keys.id) != .owner {
        let own = state.roster.state.device(device.keys.id)?.person
        change.confirming = change.confirming.filter { state.roster.state.device($0)?.person == own }
      }
    }
    marks[.removals] += 1
    try begin(change, limits: [:], device, state)
  }

  /// Drops those who wrote `Leave`, as a device does after a round that met them.
  func dropLeavers(_ device: Device, _ random: inout Stream) throws {
    guard let state = device.kept else { return }
    let leaving = Set(state.roster.state.leaving)
    guard !leaving.isEmpty, !leaving.contains(device.keys.id), device.role ?? .reader >= .member,
      let limits = try limits(of: leaving, device, state, &random)
    else { return }
    var change = NextChange()
    if device.role == .owner {
      change.confirming = state.roster.introduced(byRemoving: change).subtracting(leaving)
    }
    try begin(change, limits: limits, device, state)
  }

  /// - Returns: whether the operation counts.
  private func write(_ operation: RosterOperation, _ device: Device) throws -> Bool {
    guard var state = device.kept, state.roster.refusal(of: operation, by: state.log.origin) == nil else {
      return false
    }
    var secure = secureRandom()
    try state.write(operation, now: now(device))
    try state.seal(now: now(device), random: &secure)
    keep(state, device)
    trace.note("\(device.name) writes \(words(operation))")
    return true
  }

  private func begin(
    _ change: NextChange, limits: [DeviceID: [Next.Limit]], _ device: Device, _ former: HouseholdState
  ) throws {
    let state: HouseholdState
    do { state = try next(change, limits, device, former) } catch EngineError.refused(let why) {
      trace.note("\(device.name) may not: \(why)")
      return
    }
    keep(state, device)
    let gone = change.removing.keys.sorted().map(\.short).joined(separator: " ")
    let roles = change.roles.sorted { $0.key < $1.key }.map { "\($0.key.short) \($0.value)" }.joined(separator: " ")
    trace.note("\(device.name) begins \(state.epoch.short): without \(gone), roles \(roles)")
  }

  private func next(
    _ change: NextChange, _ limits: [DeviceID: [Next.Limit]], _ device: Device, _ former: HouseholdState
  ) throws -> HouseholdState {
    var state = former
    var secure = AnyRandomSource(secureRandom())
    let now = now(device)
    func known(_ device: DeviceID) -> [Next.Limit] { limits[device] ?? [] }
    try state.writeNext(change, limits: known, isGraceOver: false, now: now, random: &secure)
    try state.seal(now: now, random: &secure)
    return state
  }

  private func keep(_ state: HouseholdState, _ device: Device) {
    device.kept = state
    ledger.learn(state.epochs)
  }

  /// How far devices' rows count: what the store shows of their logs, or this device has accepted, whichever is more. Nil if the store does
  /// not answer.
  private func limits(
    of devices: Set<DeviceID>, _ device: Device, _ state: HouseholdState, _ random: inout Stream
  ) throws -> [DeviceID: [Next.Limit]]? {
    var farthest: [Origin: LatchkeyLog.Mark] = [:]
    func note(_ origin: Origin, _ mark: LatchkeyLog.Mark) {
      if devices.contains(origin.device), mark.sequence > farthest[origin]?.sequence ?? 0 { farthest[origin] = mark }
    }
    do {
      for keys in state.epochs {
        let prefix = keys.prefix(zone) + "/"
        let below = try store.list(prefix + "h/", faults, &random, &marks).compactMap {
          ObjectName(String($0.text.dropFirst(prefix.utf8.count)))
        }
        let reader = state.rowReader(zone: zone, keys: keys)
        for name in reader.newHeads(among: below, belief: Belief(), own: nil) {
          let full = keys.objectName(zone: zone, name)
          guard let bytes = try store.get([full], faults, &random, &marks)[full],
            let head = try? reader.open(head: name, bytes: bytes)
          else { continue }
          note(head.body.origin, LatchkeyLog.Mark(sequence: head.body.lastSequence, hash: head.body.lastHash))
        }
      }
    } catch is RequestFailed { return nil }
    if let replica = device.replica, let bytes = try replica.value(DatabasePerformer.Key.belief(zone)) {
      for (origin, author) in try Belief(decoding: bytes).authors {
        if let mark = author.mark { note(origin, mark) }
      }
    }
    var out: [DeviceID: [Next.Limit]] = [:]
    for (origin, mark) in farthest.sorted(by: { $0.key < $1.key }) {
      out[origin.device, default: []].append(
        Next.Limit(zone: zone, incarnation: origin.incarnation, sequence: mark.sequence, hash: mark.hash))
    }
    return out
  }

  /// Of a device that was removed no more is taken than counts, as the reader knows it.
  func checkLimit(_ device: Device, _ origin: Origin, _ groups: [LogGroup]) throws {
    guard let state = device.round?.household, state.epoch != keys.epoch,
      let limited = state.roster.state.limited.first(where: { $0.device == origin.device })
    else { return }
    let limit = limited.limits.filter { $0.zone == zone && $0.incarnation == origin.incarnation }.map(\.sequence).max()
    for group in groups where group.lastSequence > limit ?? 0 {
      throw Violation(.limit, "\(device.name) takes \(origin) \(group.lastSequence), of which \(limit ?? 0) count")
    }
  }

  /// Nothing is sent while somebody has the key who must not: judged by who was given it, not by what the product says of it.
  func checkHold(_ device: Device, _ name: ObjectName) throws {
    guard let state = device.round?.household, state.roster.role(of: device.keys.id) != nil else { return }
    let roster = state.roster.state
    var given: Set<DeviceID> = []
    for entry in state.roster.entries {
      switch entry.operation {
      case .next(let next) where entry.hash == state.epoch:
        given.insert(entry.origin.device)
        given.formUnion(next.recipients.filter { $0.kind == .device }.compactMap { DeviceID($0.id) })
      case .seal(let to, epoch: state.epoch, _): given.insert(to)
      default: continue
      }
    }
    let gone = Set(roster.limited.filter(\.isRemoved).map(\.device)).union(roster.leaving)
    if let one = given.intersection(gone).min() {
      throw Violation(.hold, "\(device.name) sends \(name) though \(one.short) has the key of \(state.epoch.short)")
    }
  }
}

private func words(_ operation: RosterOperation) -> String {
  switch operation {
  case .leave: "Leave"
  case .revokeInvite(let id): "RevokeInvite \(id.short)"
  default: "an operation"
  }
}
