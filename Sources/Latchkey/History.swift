internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyRecords
internal import LatchkeyStorage
internal import LatchkeyTables

/// All that counts in a zone, as its logs in the store say it: what a newcomer would read.
struct ZoneHistory {
  /// A record, by its table's wire name.
  struct RecordKey: Hashable {
    let table: [UInt8]
    let record: RecordName

    init(_ table: String, _ record: RecordName) {
      self.table = Array(table.utf8)
      self.record = record
    }
  }

  /// The push groups, in the order of each log.
  fileprivate(set) var groups: [LogGroup] = []
  /// Whether nothing was missing, damaged or held back, as far as can be told.
  fileprivate(set) var isComplete = true

  /// Calls `body` with what each group says of each record, oldest group first.
  func forEach(_ body: (RecordChange, LogGroup) throws -> Void) throws {
    for group in groups.sorted(by: { ($0.hlc, $0.origin, $0.firstSequence) < ($1.hlc, $1.origin, $1.firstSequence) }) {
      for bytes in group.payloads {
        let payload = try Payload.decode(
          bytes, origin: group.origin, hlc: HLC(rawValue: group.hlc), tie: group.tie)
        for change in payload.changes { try body(change, group) }
      }
    }
  }

  /// What some records would be if only some of what was written to them had been.
  func states(
    of records: Set<RecordKey>, where isCounted: (RegisterEntry) -> Bool = { _ in true }
  ) throws -> [RecordKey: RecordState] {
    var states: [RecordKey: RecordState] = [:]
    try forEach { change, _ in
      let key = RecordKey(change.table, change.record)
      guard records.contains(key) else { return }
      let counted = RecordState(change.state.registers.filter(isCounted))
      states[key] = (states[key] ?? .empty).merging(counted)
    }
    return states
  }
}

extension Home {
  /// Reads a zone's logs from the store, from their beginnings. Nothing is written, neither there nor here.
  func history(_ zone: ZoneID, _ membership: Membership, _ access: StoreAccess) async throws -> ZoneHistory {
    let kept = try state(of: membership.id)
    try checkStore(kept)
    var random = world.random()
    // As a file that is not there: all logs are others', this device's own as well.
    let reader = Origin(device: try contents().device.id, incarnation: newIncarnation(&random))
    var engine = SyncRound(state: kept, zone: zone, device: try contents().device, now: world.now(), random: random)
    var history = ZoneHistory()
    var event = Event.start
    while true {
      try Task.checkCancellation()
      switch try engine.step(event) {
      case .get(let names): event = .got(try await access.get(names))
      case .list(let prefix): event = .listed(try await access.list(prefix))
      // What the household's roster asks of this device is for a sync to do.
      case .put: event = .put
      case .delete: event = .deleted
      case .keep: event = .kept
      case .send: throw EngineError.outOfOrder("a reader of history sends nothing")
      case .database(let request):
        event = .database(try Self.answer(request, as: reader, engine.household, zone, &history))
      case .finish(let report):
        history.isComplete = report.findings.allSatisfy {
          switch $0 {
          // What somebody wrote who is not in, or had no right to, counts for nobody.
          case .notAuthorised, .unknownAuthor, .divergence: true
          default: false
          }
        }
        return history
      }
    }
  }

  /// What an empty file would answer; groups are collected.
  private static func answer(
    _ request: DatabaseRequest, as reader: Origin, _ household: HouseholdState, _ zone: ZoneID,
    _ history: inout ZoneHistory
  ) throws -> DatabaseReply {
    switch request {
    case .load:
      let own = OwnLog(household: household.household, epoch: household.epoch, zone: zone, origin: reader)
      return .loaded(belief: Belief(), own: own)
    case .apply(let groups, _, _):
      history.groups += groups
      return .applied(rows: 0, refused: nil)
    case .facts: return .facts(ZoneFacts(vector: [:], digest: .zero, unapplied: []))
    case .seal: return .sealed(rows: 0, released: 0, more: false)
    case .outbox: return .outbox([])
    case .probed, .carry, .forgetHeads: return .done
    case .supersededHeads: return .superseded([])
    case .acknowledge, .renew, .announce, .republish:
      throw EngineError.outOfOrder("a reader of history has no log")
    }
  }

  /// The history of an attached file's zone.
  func history(of replica: Replica) async throws -> ZoneHistory {
    let membership = try membership(of: replica.binding.household)
    return try await history(replica.binding.zone, membership, try await openStore(of: membership))
  }

  /// The same, for what may be written of it: what was held back would be missing in what is put back.
  func wholeHistory(of replica: Replica) async throws -> ZoneHistory {
    let history = try await history(of: replica)
    guard history.isComplete else {
      throw LatchkeyError(
        .store, "history-incomplete",
        "The store does not show all that was written in this zone, so what its rows were is not certain. Nothing was changed.",
        next: ["latchkey sync", "latchkey fsck"])
    }
    return history
  }

  /// Whoever writes for everybody must be allowed to.
  func checkMayWrite(_ replica: Replica) throws {
    guard try isReader(membership(of: replica.binding.household)) else { return }
    throw LatchkeyError(
      .membership, "reader",
      "You are a reader of this household: what you restore would count for nobody else. Nothing was changed.")
  }
}
