import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeyRecords
import LatchkeySQLite
import LatchkeyStorage
import LatchkeyTables

/// What is left out of a run, to make a failure smaller.
struct Omissions: Equatable {
  var steps: Set<Int> = []
  var devices: Int?
  var isCalm = false
}

/// One run: devices of one household with one zone, one store, one schedule, all drawn from one seed.
///
/// Chaos, then heal (no faults, right clocks), settle (everybody syncs until nothing moves), check, quiet rounds, check.
final class World {
  let seed: UInt64
  let swarm: Swarm
  let omissions: Omissions
  /// Whether invariants are checked on the way. What the devices do does not depend on it.
  let isChecking: Bool
  var trace: Trace
  var marks = Marks()
  var store = SimulatedStore()
  var ledger: Ledger
  var oracle = Oracle()
  let devices: [Device]
  /// Comes in when all is settled.
  private(set) var latecomer: Device?
  /// How often the store was put back to an earlier state.
  private(set) var restores = 0
  let zone: ZoneID
  /// Of the first epoch.
  let keys: EpochKeys
  /// The true time, in milliseconds since 1970.
  var time: Int64 = 1_700_000_000_000
  /// Numbers everything that needs randomness for keys and nonces.
  private var draws = 0
  /// Effects within the present step.
  private var effects = 0
  /// After the faults have ended.
  private(set) var isHealed = false
  /// The trace of all until everything was settled; nil before.
  private(set) var signature: UInt64?
  var links: [Int: Invitation] = [:]

  init(
    seed: UInt64, omissions: Omissions = Omissions(), clocks: [VirtualClock], isChecking: Bool = true, isVerbose: Bool
  )
    throws
  {
    self.seed = seed
    self.isChecking = isChecking
    self.omissions = omissions
    swarm = Swarm(seed: seed, isCalm: omissions.isCalm)
    trace = Trace(isVerbose: isVerbose)
    var random = SeededRandom("world \(seed)")
    let count = min(omissions.devices ?? swarm.devices, swarm.devices)
    var devices: [Device] = []
    let seed = seed
    for index in 0..<count {
      let keys = DeviceKeys(&random)
      devices.append(
        Device(
          index: index, keys: keys, chain: CertificateChain(first: keys), clock: clocks[index],
          names: Stream(seed, "names", index)))
    }
    self.devices = devices
    latecomer = swarm.hasLatecomer && devices.count > 1 ? devices.last : nil
    zone = ZoneID(random.bytes(16)) ?? .zero
    let key = EpochKey(&random)
    var founded = try HouseholdState.found(
      name: "\(AppSchema.canary) home", isPrivate: swarm.isPrivate, chain: devices[0].chain,
      personName: "\(AppSchema.canary) Ana", deviceName: "\(AppSchema.canary) laptop", key: key,
      incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1), device: devices[0].keys, now: time, random: &random)
    keys = EpochKeys(household: founded.household, epoch: founded.epoch, key: key)
    try founded.write(.zone(zone, name: "\(AppSchema.canary) budget"), now: time)
    ledger = Ledger(keys: keys, zone: zone)
    devices[0].kept = founded
    try store.found(marker: random.bytes(16))
    setClocks()
    for device in devices { try prepare(device) }
    try attach(devices[0])
  }

  /// Randomness for keys and nonces that nothing else uses.
  func secureRandom() -> SeededRandom {
    draws += 1
    return SeededRandom("\(seed) \(draws)")
  }

  // MARK: Running

  func run() throws {
    trace.note("devices \(devices.count), steps \(swarm.steps), clocks \(swarm.clocks)")
    for step in 0..<swarm.steps {
      store.tick(swarm.faults)
      if swarm.clocks != .still { pass(milliseconds: Int64(1 + step % 7)) }
      if omissions.steps.contains(step) { continue }
      try perform(step)
    }
    try heal()
    try settle()
    if isChecking { try check("after settling") }
    if latecomer != nil {
      marks[.latecomers] += 1
      latecomer = nil
      trace.note("the latecomer")
      try settle()
    }
    let before = try present.map { try Snapshot(database(of: $0)) }
    for snapshot in before {
      let text = try snapshot.meaning().text
      trace.note(text)
    }
    for device in present { trace.note("\(device.name) \(device.replica?.digest ?? .zero)") }
    signature = trace.hash
    guard isChecking else { return }
    try check("when all are in")
    for _ in 0..<2 { try quietRound() }
    for (device, snapshot) in zip(present, before) where try Snapshot(database(of: device)) != snapshot {
      throw Violation(.quiescence, "\(device.name) changed its tables in a quiet round")
    }
    try check("after quiet rounds")
  }

  /// Devices that take part at this stage.
  var present: [Device] { devices.filter { $0 !== latecomer } }

  private enum Kind { case app, sync, time, jump, crash, migrate, members, restore }

  private func perform(_ step: Int) throws {
    var random = Stream(seed, "schedule", step)
    effects = 0
    let away = swarm.absence?.contains(step) == true ? present[Int(seed) % present.count] : nil
    guard let device = random.pick(present.filter { $0 !== away }) else { return }
    let kinds: [(Kind, Int)] = [
      (.app, swarm.appShare), (.sync, 100 - swarm.appShare), (.time, 8),
      (.jump, swarm.clocks == .wild ? 4 : swarm.clocks == .loose ? 2 : 0), (.crash, swarm.crashes > 0 ? 1 : 0),
      (.migrate, swarm.migrations.isEmpty ? 0 : 6), (.members, swarm.memberShare), (.restore, swarm.isRestored ? 4 : 0),
    ]
    switch random.pick(weighted: kinds) ?? .sync {
    case .app: for burst in 0...random.below(3) { try runApp(device, step, burst) }
    case .sync:
      for _ in 0..<(1 + random.below(14)) {
        if try !advance(device, step, &random) { break }
      }
    case .time: pass(milliseconds: [50, 1_500, 4_000, 60_000, 700_000, 86_400_000][random.below(6)])
    case .jump:
      let most: Int64 = swarm.clocks == .wild ? 3 * 86_400_000 : 200_000
      device.offset = Int64(random.below(Int(2 * most))) - most
      device.drift = random.below(3) - 1
      marks[.clockJumps] += 1
      trace.note("\(step) \(device.name) clock \(device.offset)")
      setClocks()
    case .crash:
      trace.note("\(step) \(device.name) dies")
      try crash(device)
    case .migrate: _ = try migrate(device)
    case .members: try changeMembers(device, step)
    case .restore:
      guard store.backUpOrRestore() else { return }
      // Whoever was syncing met a store that was down.
      for device in devices { device.loseRound() }
      for (index, invitation) in links where !store.has(invitation.link.secret.keys.objectName) {
        links[index]?.isThere = false
      }
      restores += 1
      marks[.restores] += 1
      trace.note("\(step) the store is put back")
    }
  }

  /// The device gets the app's next version, if there is one.
  func migrate(_ device: Device) throws -> Bool {
    guard let connection = device.connection, device.replica != nil, try hasTables(device) else { return false }
    let version = Int(try connection.integer("PRAGMA main.user_version") ?? 0)
    guard version < swarm.migrations.count else { return false }
    let before = try AppView(connection)
    try connection.execute(
      "BEGIN; \(swarm.migrations[version].sql); PRAGMA main.user_version = \(version + 1); COMMIT")
    let after = try AppView(connection)
    for (index, table) in AppSchema.tables.enumerated() {
      for column in table.columns.indices where before.has(index, column) && !after.has(index, column) {
        device.lost.insert([index, column])
      }
    }
    device.baseline.migrate(to: after)
    marks[.migrations] += 1
    trace.note("\(device.name) gets version \(version + 1)")
    return true
  }

  /// The faults end.
  func endFaults() { isHealed = true }

  /// Lets the time come of whatever was stamped ahead of it.
  func advanceTime(past milliseconds: Int64) {
    time = max(time, milliseconds) + 1_000
    setClocks()
  }

  private func pass(milliseconds: Int64) {
    time += milliseconds
    for device in devices { device.offset += Int64(device.drift) * milliseconds / 100 }
    setClocks()
  }

  private func setClocks() {
    for device in devices { device.clock.milliseconds = now(device) }
  }

  func now(_ device: Device) -> Int64 { time + device.offset }

  func database(of device: Device) throws -> Connection {
    guard let connection = device.connection else { throw Violation(.membership, "\(device.name) never joined") }
    return connection
  }

  // MARK: The app

  private func runApp(_ device: Device, _ step: Int, _ burst: Int) throws {
    guard let connection = device.connection, try hasTables(device) else { return }
    // What a reader changes stays on its device, and apps do not offer it.
    if device.role == .reader { return }
    if device.isRemoved { marks[.removedWrite] += 1 }
    var random = Stream(seed, "app", step * 4 + burst)
    // Numbered by step, so that leaving another step out does not rename what this one inserts.
    var serial = (step * 4 + burst) * 16
    var app = App(
      connection: connection, view: try AppView(connection), device: device.index, operations: swarm.operations,
      keys: swarm.keys, isWordy: swarm.isWordy)
    if trace.isVerbose { app.listener = { print("\(step) \(device.name)   \($0)") } }
    let done = try app.run(&random, serial: &serial, &marks)
    if done, device.round != nil { marks[.appWritesInRounds] += 1 }
    trace.note("\(step) \(device.name) app \(done ? "commits" : "does nothing")")
  }

  /// A newcomer's file may still lack the app's tables, which come with the zone's description.
  private func hasTables(_ device: Device) throws -> Bool {
    if !device.hasTables { device.hasTables = try device.connection.map { try Snapshot($0).isComplete } ?? false }
    return device.hasTables
  }

  // MARK: Rounds

  var faults: StoreFaults { isHealed ? .none : swarm.faults }

  /// One effect of the device's round, or a step towards joining.
  ///
  /// - Returns: false at the end of a round.
  func advance(_ device: Device, _ step: Int, _ schedule: inout Stream) throws -> Bool {
    effects += 1
    var random = Stream(seed, "faults", step * 100_000 + effects)
    guard device.isMember else { return try join(device, &random) }
    do {
      if device.round == nil { try begin(device) }
      return try performEffect(device, &random)
    } catch is RequestFailed {
      trace.note("\(step) \(device.name) request failed")
      device.loseRound()
      return false
    } catch let error as EngineError where !isHealed && error == .storeMissing {
      // The marker was not shown: the round stops, as it must.
      trace.note("\(step) \(device.name) \(error)")
      device.loseRound()
      return false
    }
  }

  private func begin(_ device: Device) throws {
    if try needsAnotherInvite(device) { return }
    if device.kept?.needsClaim == true { try claim(device) }
    guard let kept = device.kept else { return }
    var round = SyncRound(
      state: kept, zone: device.replica == nil ? nil : zone, device: device.keys, now: now(device),
      random: secureRandom())
    device.effect = try round.step(.start)
    device.round = round
    marks[.rounds] += 1
  }

  private func performEffect(_ device: Device, _ random: inout Stream) throws -> Bool {
    guard device.round != nil else { return false }
    guard let effect = device.effect else { throw Violation(.defect, "a round without an effect") }
    let diesAt = !isHealed && random.chance(swarm.crashes) ? random.below(3) : -1
    let event: Event
    switch effect {
    case .get(let names):
      event = .got(try store.get(names, faults, &random, &marks))
    case .list(let prefix):
      event = .listed(try store.list(prefix, faults, &random, &marks))
    case .put(let name, let bytes):
      event = try put(name, bytes, zone: .roster, device, &random)
    case .send(let name, let item):
      var performer = try performer(device)
      if isChecking { try checkHold(device, name) }
      event = try put(name, performer.bytes(of: item), zone: zone, device, &random)
    case .delete(let names):
      marks[.supersededHeads] += names.count
      try store.delete(names, faults, &random, &marks)
      event = .deleted
    case .keep(let state):
      if diesAt == 0 { return try die(device) }
      // Through bytes, as in a file.
      device.kept = random.chance(5) ? try HouseholdState(decoding: state.encoded(), secrets: device.secrets) : state
      ledger.learn(state.epochs)
      event = .kept
    case .database(let request):
      guard let reply = try perform(request, device, diesBeforeCommit: diesAt == 0) else { return false }
      event = .database(reply)
    case .finish(let report):
      if trace.isVerbose { print("\(device.name) \(report)") }
      trace.note("\(device.name) received \(report.received), stamped \(report.stamped), sent \(report.sent)")
      if report.sent == 0, report.received == 0, report.stamped == 0 { marks[.emptyRounds] += 1 }
      device.lastReport = report
      for case .divergence(let origin) in report.findings where isChecking {
        throw Violation(.convergence, "\(device.name) takes \(origin.device.short) for one that holds other rows")
      }
      device.loseRound()
      if !report.holds.isEmpty, !report.isRemoved { marks[.heldOutboxes] += 1 }
      if let ends = device.kept?.roster.state.epochEnds, ends.count > 1 { marks[.epochsSideBySide] += 1 }
      if !report.isProvisional { try forgetLink(device) }
      if report.hasLeavers { try dropLeavers(device, &random) }
      return false
    }
    trace.note("\(device.name) \(words(effect))")
    if diesAt > 0 {
      if case .put = event { marks[.crashesAfterPut] += 1 }
      return try die(device)
    }
    guard var round = device.round else { return false }
    device.effect = try round.step(event)
    device.round = round
    return true
  }

  private func put(
    _ name: ObjectName, _ bytes: [UInt8], zone: ZoneID, _ device: Device, _ random: inout Stream
  ) throws -> Event {
    if isChecking { try ledger.put(name, bytes) }
    if isChecking, zone == .roster {
      if let state = device.round?.household { ledger.learn(state.epochs) }
      _ = try ledger.entries(name, zone: zone, bytes)
    }
    trace.note(bytes: bytes)
    if name.text.dropFirst(33).hasPrefix("l/") { marks[.segments] += 1 }
    marks[.pushes] += 1
    do { try store.put(name, bytes, faults, &random, &marks) } catch let error as StorageError
      where error.cause == .alreadyExists
    {
      return .collided
    }
    return .put
  }

  private func die(_ device: Device) throws -> Bool {
    trace.note("\(device.name) dies")
    try crash(device)
    return false
  }

  /// The process ends between two effects: what was committed and kept stays.
  private func crash(_ device: Device) throws {
    marks[.crashes] += 1
    device.loseRound()
    device.kept = try device.kept.map { try HouseholdState(decoding: $0.encoded(), secrets: device.secrets) }
    if device.replica != nil, let connection = device.connection { try device.reopen(connection) }
  }

  func performer(_ device: Device) throws -> DatabasePerformer {
    guard let replica = device.replica, let round = device.round else { throw Violation(.defect, "no database") }
    return DatabasePerformer(
      replica: replica, household: round.household, device: device.keys, now: now(device), random: secureRandom())
  }

  // MARK: Database effects

  /// One transaction, and what it must have done.
  ///
  /// - Returns: nil if the process died before it committed.
  private func perform(_ request: DatabaseRequest, _ device: Device, diesBeforeCommit: Bool) throws -> DatabaseReply? {
    let connection = try database(of: device)
    var performer = try performer(device)
    performer.stampLimit = swarm.stampLimit
    if diesBeforeCommit {
      let image = try connection.serialized()
      _ = try performer.perform(request)
      device.replica = nil
      device.connection = nil
      try device.reopen(Connection(serialized: image, clock: device.clock))
      marks[.crashesInTransactions] += 1
      try crash(device)
      trace.note("\(device.name) dies in a transaction")
      return nil
    }
    switch request {
    case .apply, .seal, .renew, .carry:
      if case .renew = request {
        // Only a store that has lost something makes a device give up its log, or says that it has.
        if restores == 0, swarm.faults.absent == 0 { throw Violation(.fork, "\(device.name) gives up its log") }
        marks[.renewals] += 1
      }
      if case .carry = request { marks[.carries] += 1 }
      guard isChecking else { return try performer.perform(request) }
      if case .apply(let groups, let origin, _) = request { try checkLimit(device, origin, groups) }
      let before = try Snapshot(connection)
      let reply = try performer.perform(request)
      try observe(device, before: before, reply, performer)
      if case .apply(let groups, let origin, _) = request {
        for group in groups {
          for sequence in group.firstSequence...group.lastSequence {
            device.accepted.insert(EntryPlace(origin: origin, sequence: sequence))
          }
        }
      }
      return reply
    case .republish:
      guard isChecking else { return try performer.perform(request) }
      let before = try Snapshot(connection)
      let reply = try performer.perform(request)
      if let log = try performer.ownLog() { device.republished[log.origin] = log.lastSequence }
      marks[.republished] += 1
      try observe(device, before: before, reply, performer)
      return reply
    case .load, .facts, .announce, .probed, .outbox, .acknowledge, .supersededHeads, .forgetHeads:
      return try performer.perform(request)
    }
  }
}

private func words(_ effect: Effect) -> String {
  switch effect {
  case .get(let names): "get \(names.map(\.text).joined(separator: " "))"
  case .list(let prefix): "list \(prefix)"
  case .put(let name, let bytes): "put \(name) \(bytes.count)"
  case .send(let name, _): "send \(name)"
  case .delete(let names): "delete \(names.map(\.text).joined(separator: " "))"
  case .keep: "keep"
  case .database(let request):
    switch request {
    case .load: "load"
    case .facts: "facts"
    case .carry(let origin): "carry \(origin)"
    case .probed(let epochs): "probed \(epochs.count)"
    case .apply(let groups, let origin, _): "apply \(groups.count) of \(origin)"
    case .seal: "seal"
    case .outbox: "outbox"
    case .acknowledge(let item): "acknowledge \(item.id)"
    case .supersededHeads: "superseded heads"
    case .forgetHeads: "forget heads"
    case .renew: "renew"
    case .announce: "announce"
    case .republish: "republish"
    }
  case .finish: "finish"
  }
}
