internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyTables

/// What reading and verifying everything in a store found.
public struct CheckReport: Equatable, Sendable {
  public struct Finding: Equatable, Sendable {
    /// `damaged`, `missing`, `fork`, `rollback`, `unknown-object`, `unknown-author` or `newer`: stable.
    public let code: String
    /// The object's name in the store; nil for what concerns a whole log.
    public let object: String?
    /// What it means.
    public let message: String
    /// Whether it is damage; else it is for people to know.
    public let isDamage: Bool
  }

  /// Names of the households whose objects were read.
  public internal(set) var households: [String] = []
  /// Objects read, and their bytes.
  public internal(set) var objects = 0
  public internal(set) var bytes = 0
  /// Objects in the same stores that this check does not open: other households', other zones', invites, cards.
  public internal(set) var foreign = 0
  public internal(set) var findings: [Finding] = []
  /// How many logs contradict themselves.
  public internal(set) var contradictions = 0
  /// The signed statements that do, as a file for others to verify (docs/format.md §13): no rows, no secrets. Nil if there are none.
  public internal(set) var evidence: String?

  public var hasDamage: Bool { findings.contains(where: \.isDamage) }
}

extension Home {
  /// Reads and verifies everything in the store that this device can open: with a database, every epoch of its household, the roster and all zones;
  /// without, the rosters of all households. Nothing is written, here or there.
  ///
  /// - Parameter path: an attached database; what it has read before must still be there.
  /// - Throws: ``LatchkeyError`` of kind `store`, `membership`, `newer`, `database`. What is found is not thrown.
  public func check(_ path: String? = nil) async throws(LatchkeyError) -> CheckReport {
    try await reporting(database: path) {
      var report = CheckReport()
      var contradictions: [Contradiction] = []
      for membership in try self.memberships(of: path) {
        let access = try await openStore(of: membership)
        // As the store shows it now.
        let state = try await passingRound(
          try state(of: membership.id), as: try contents().device, access: access, writing: .seemingly)
        let replica = try path.map { try Replica(path: absolute($0), mode: .readOnly) }
        let zones = replica == nil ? [] : state.roster.state.zones.map(\.id)
        var walk = StoreWalk(state: state, zones: zones, accepted: try replica.map { [try accepted($0)] } ?? [])
        var event = Event.start
        while let effect = try walk.step(event) {
          try Task.checkCancellation()
          switch effect {
          case .list(let prefix): event = .listed(try await access.list(prefix))
          case .get(let names): event = .got(try await access.get(names))
          case .put, .send, .delete, .keep, .database, .finish: throw EngineError.outOfOrder("a check writes nothing")
          }
        }
        let check = walk.check
        report.households.append(membership.name)
        report.objects += check.objects
        report.bytes += check.bytes
        report.foreign += check.foreign
        report.findings += check.findings.map {
          CheckReport.Finding(code: $0.code, object: $0.object?.text, message: $0.message, isDamage: $0.isDamage)
        }
        contradictions += check.contradictions
      }
      report.contradictions = contradictions.count
      if !contradictions.isEmpty { report.evidence = Evidence.text(contradictions) }
      return report
    }
  }

  private func memberships(of path: String?) throws -> [Membership] {
    guard let path else { return try memberships() }
    return [try membership(of: try Replica(path: absolute(path), mode: .readOnly).binding.household)]
  }

  /// What a file has read of its zone, and what the store has confirmed of its own log.
  private func accepted(_ replica: Replica) throws -> (zone: ZoneID, belief: Belief) {
    let zone = replica.binding.zone
    var belief =
      try replica.value(DatabasePerformer.Key.belief(zone)).map { try Belief(decoding: $0) } ?? Belief()
    if let log = try replica.value(DatabasePerformer.Key.log(zone)).map({ try OwnLog(decoding: $0) }) {
      belief.authors[log.origin] = log.asBelieved
    }
    return (zone, belief)
  }
}
