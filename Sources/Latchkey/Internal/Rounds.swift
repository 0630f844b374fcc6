internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyStorage
internal import LatchkeyTables

extension Home {
  /// Runs one round: performs what the engine asks, one effect after the other.
  ///
  /// - Parameters:
  ///   - replica: the attached database whose zone is to be brought up to date; nil for the roster alone.
  func round(_ membership: Membership, access: StoreAccess, replica: Replica? = nil) async throws -> RoundReport {
    let report = try await roundAlone(membership, access: access, replica: replica)
    if report.hasLeavers { try await dropLeavers(membership, access) }
    return report
  }

  /// The same, without looking after those who leave.
  func roundAlone(_ membership: Membership, access: StoreAccess, replica: Replica? = nil) async throws -> RoundReport {
    for _ in 0..<8 {
      do {
        // A claim that lies in an epoch which has ended meanwhile may not be seen.
        try claimAgain(membership)
        let report = try await attemptRound(membership, access: access, replica: replica)
        if !report.isProvisional {
          try forgetLink(membership)
          if try bringKit(membership) { _ = try await attemptRound(membership, access: access, replica: nil) }
        }
        return report
      } catch is Overtaken { continue } catch EngineError.storeMissing { throw lostStore(membership) }
    }
    throw LatchkeyError(
      .busy, "home-busy", "Other processes keep syncing the same household.", next: ["run it again"])
  }

  private func put(_ name: ObjectName, _ bytes: [UInt8], _ access: StoreAccess) async throws -> Event {
    do throws(StorageError) { try await access.store.put(name, bytes) } catch {
      if error.cause == .alreadyExists { return .collided }
      throw error
    }
    return .put
  }

  private func attemptRound(_ membership: Membership, access: StoreAccess, replica: Replica?) async throws
    -> RoundReport
  {
    let contents = try contents()
    let now = world.now()
    var kept = try state(of: membership.id)
    try checkStore(kept)
    var engine = SyncRound(
      state: kept, zone: replica?.binding.zone, device: contents.device, now: now, random: world.random())
    var performer = try replica.map { try self.performer($0, membership, now: now) }
    var event = Event.start
    while true {
      try Task.checkCancellation()
      switch try engine.step(event) {
      case .get(let names): event = .got(try await access.get(names))
      case .list(let prefix): event = .listed(try await access.list(prefix))
      case .put(let name, let bytes):
        event = try await put(name, bytes, access)
      case .send(let name, let item):
        guard let bytes = try performer?.bytes(of: item) else { throw EngineError.outOfOrder("send") }
        event = try await put(name, bytes, access)
      case .delete(let names):
        for name in names { try await access.store.delete(name) }
        event = .deleted
      case .keep(let state):
        try keep(state, after: kept)
        kept = state
        // What was just read may say that the household is somewhere else now: then nothing more is sent here.
        try checkStore(state)
        event = .kept
      case .database(let request):
        performer?.household = engine.household
        guard let reply = try performer?.perform(request) else { throw EngineError.outOfOrder("database") }
        event = .database(reply)
      case .finish(let report):
        return report
      }
    }
  }

  /// Runs a round of the roster for a device whose state is kept nowhere: a stranger who looks, or a recovery kit.
  ///
  func passingRound(
    _ state: HouseholdState, as device: DeviceKeys, access: StoreAccess, writing: PassingWrites
  ) async throws -> HouseholdState {
    var engine = SyncRound(state: state, zone: nil, device: device, now: world.now(), random: world.random())
    var event = Event.start
    while true {
      try Task.checkCancellation()
      switch try engine.step(event) {
      case .get(let names): event = .got(try await access.get(names))
      case .list(let prefix): event = .listed(try await access.list(prefix))
      case .put(let name, let bytes) where writing == .really: event = try await put(name, bytes, access)
      case .put where writing == .seemingly: event = .put
      case .delete where writing == .seemingly: event = .deleted
      case .delete(let names) where writing == .really:
        for name in names { try await access.store.delete(name) }
        event = .deleted
      case .keep: event = .kept
      case .finish: return engine.household
      case .put, .send, .delete, .database: throw EngineError.outOfOrder("a stranger writes nothing")
      }
    }
  }

  /// What becomes of what a passing round writes.
  enum PassingWrites {
    /// It goes to the store.
    case really
    /// It goes nowhere, and the round goes on as if it had.
    case seemingly
    /// A stranger has nothing to write.
    case never
  }

  func performer(_ replica: Replica, _ membership: Membership, now: Int64? = nil) throws -> DatabasePerformer {
    DatabasePerformer(
      replica: replica, household: try state(of: membership.id), device: try contents().device, now: now ?? world.now(),
      random: world.random())
  }
}
