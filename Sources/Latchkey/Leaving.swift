internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyTables

/// What leaving a household did.
public struct LeaveReport: Equatable, Sendable {
  public let household: String
  /// None for an owner yet: its files are settled by the sync that finds that another owner's device has let it go.
  public let files: [EndedFile]
}

/// A file whose household is over for this person.
public struct EndedFile: Equatable, Sendable {
  public let path: String
  /// Rows that were taken out of it; nil if they were kept.
  public let removed: Int?
  /// The zone of the private household that it belongs to now; nil if it belongs to none.
  public let zone: String?
  /// Why nothing was done with it: it stays attached.
  public let failure: LatchkeyError?
}

extension Home {
  /// Leaves a household: this person's devices are dropped by the next of the others that syncs, and read nothing written after that. Nobody
  /// else's rows change.
  ///
  /// What waits in this device's files of the household is sent first. Then the files are detached, and either keep their rows, which become this
  /// person's own under new names, or lose those that were shared. Other devices of the person ask what shall become of theirs.
  ///
  /// - Parameters:
  ///   - database: a file of the household; nil to name the household instead.
  ///   - keeping: whether the rows stay in the files. Where there is a private household, they are synced with it afterwards.
  /// - Throws: ``LatchkeyError`` of kind `membership` for the last owner, `usage` for the private household, `decision` where rows that are not kept
  ///   could not be sent, `store`. The person is still in then.
  @discardableResult
  public func leave(
    database: String? = nil, household: String? = nil, keeping: Bool = false
  ) async throws(LatchkeyError) -> LeaveReport {
    try await reporting(database: database) {
      let membership = try leaving(database, household)
      guard !membership.isPrivate else {
        throw LatchkeyError(
          .usage, "private-household", "Your private household is yours alone: there is nothing to leave.")
      }
      let access = try await openStore(of: membership)
      _ = try await round(membership, access: access)
      let state = try state(of: membership.id)
      let files = try files(of: membership)
      if !state.roster.state.leaving.contains(state.log.origin.device) {
        if let refusal = state.roster.refusal(of: .leave, by: state.log.origin) { throw EngineError.refused(refusal) }
        // What waits in this person's files goes out first: afterwards nothing does. A file that cannot be opened now may hold what nobody
        // else has.
        for path in files {
          let replica = try Replica(path: path)
          _ = try await round(membership, access: access, replica: replica)
          let waiting = try replica.counts().reduce(0) { $0 + $1.waiting }
          if waiting > 0, !keeping { throw LatchkeyError(TablesError.wouldLose(rows: waiting), database: path) }
        }
        try keyring.update { $0[membership.id]?.ending = keeping ? .keeping : .dropping }
        try write([.leave], into: membership)
        _ = try await round(membership, access: access)
      }
      // Owners who all leave at once all stay: an owner is out only once another one's device has let it go.
      if state.roster.role(of: state.log.origin.device) == .owner {
        return LeaveReport(household: membership.name, files: [])
      }
      return LeaveReport(household: membership.name, files: try await end(membership, keeping: keeping))
    }
  }

  /// The household that `leave` is about.
  public func householdToLeave(database: String? = nil, household: String? = nil) throws(LatchkeyError) -> String {
    do { return try leaving(database, household).name } catch { throw LatchkeyError(error, database: database) }
  }

  private func leaving(_ database: String?, _ household: String?) throws -> Membership {
    guard let database else { return try membership(named: household) }
    let bound = try Replica(path: absolute(database), mode: .readOnly).binding
    let membership = try membership(of: bound.household)
    if let household, household != membership.name {
      throw LatchkeyError(
        .usage, "other-household", "\(database) belongs to \(membership.name), not to \(household).",
        next: ["latchkey leave \(database)"])
    }
    return membership
  }

  /// This device's attached files of a household that are there.
  func files(of membership: Membership) throws -> [String] {
    try databases().filter { try fileExists($0) && binding($0)?.household == membership.id }
  }

  /// Settles the files of a household that this person wanted to leave and was let go from.
  ///
  /// - Returns: false if it did not want to.
  func finishLeaving(_ membership: Membership) async throws -> Bool {
    guard let ending = try contents()[membership.id]?.ending, ending != .over else { return false }
    if let failure = try await end(membership, keeping: ending == .keeping).compactMap(\.failure).first {
      throw failure
    }
    return true
  }

  /// Detaches all files of a household that is over for this person, and marks it as over if that worked for all.
  func end(_ membership: Membership, keeping: Bool) async throws -> [EndedFile] {
    var ended: [EndedFile] = []
    for path in try files(of: membership) {
      do {
        guard keeping else {
          let rows = try Replica.detachAndEmpty(path: path)
          try forget(path)
          ended.append(EndedFile(path: path, removed: rows, zone: nil, failure: nil))
          continue
        }
        let name = try binding(path)?.zoneName
        try Replica.detach(path: path)
        try forget(path)
        let zone = try await keepAsOwn(path, name)
        ended.append(EndedFile(path: path, removed: nil, zone: zone, failure: nil))
      } catch {
        ended.append(
          EndedFile(path: path, removed: nil, zone: nil, failure: LatchkeyError(error, database: path)))
      }
    }
    if ended.allSatisfy({ $0.failure == nil }) { try keyring.update { $0[membership.id]?.ending = .over } }
    return ended
  }

  /// Attaches a file to the private household, if there is one, under a name that is free there.
  private func keepAsOwn(_ path: String, _ name: String?) async throws -> String? {
    guard let own = try memberships().first(where: \.isPrivate), let name else { return nil }
    let taken = Set(try state(of: own.id).roster.state.zones.filter { $0.closing == nil }.map(\.name))
    var free = name
    var number = 2
    while taken.contains(free) {
      free = "\(name) \(number)"
      number += 1
    }
    _ = try await attach(path, zone: free)
    return free
  }
}
