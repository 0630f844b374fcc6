internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
public import LatchkeyStorage

/// How far a household has moved to another store.
public struct StoreMoveReport: Equatable, Sendable {
  public let household: String
  /// URLs, without secrets.
  public let from: String
  public let to: String
  /// Objects that this call copied, and their bytes. Each was read back.
  public internal(set) var objects = 0
  public internal(set) var bytes = 0
  /// The former store holds nothing of the household any more.
  public internal(set) var isEmptied = false
  /// Devices that have not been seen in the new store yet. The former one is emptied once there are none.
  public internal(set) var waitingFor: [String] = []
}

/// A household that was moved, and whose new store nobody on this device has agreed to yet.
public struct StoreDecision: Equatable, Sendable {
  public let household: String
  public let householdID: String
  /// URLs, without secrets.
  public let from: String
  public let to: String
  /// Who moved it, by name.
  public let movedBy: String
  /// A person has refused; agreeing is possible all the same.
  public let isRefused: Bool
}

/// Moving a household to another store: byte by byte, since no object knows where it lies.
///
/// In this order, and each step may be repeated: everything is copied and read back; a `Next` names the new store, for those who
/// read the old one; what was written meanwhile is copied, too; this device goes on in the new store. Every other device stops
/// with a decision as soon as it reads the `Next`, and goes on in the new store once a person there has agreed, bringing along what
/// only the old one shows. When all of them were seen in the new store, the old one is emptied.
extension Home {
  /// Moves a household to another store. Called again with the same URL it goes on where it was interrupted, and afterwards
  /// empties the former store once every device has moved.
  ///
  /// - Parameters:
  ///   - url: where to: an empty place, or a store.
  ///   - household: its name; nil for the only shared one, or for the private one where there is none.
  ///   - credential: what the new store asks for; kept for later. The old store's is not tried there.
  ///   - progress: objects and bytes copied.
  /// - Throws: ``LatchkeyError`` of kind `membership` (not an owner), `store`, `usage`, `damage` (something else lies there under a name
  ///   of the household's). The household stays where it is then.
  public func moveStore(
    to url: String, household: String? = nil, credential: StoreCredential? = nil,
    progress: (@Sendable (_ done: Int, _ total: Int, _ bytes: Int) -> Void)? = nil
  ) async throws(LatchkeyError) -> StoreMoveReport {
    try await reporting {
      let membership = try movable(household)
      let target = try stores.locator(url, relativeTo: base)
      if membership.locator == target.text { return try await finishMove(membership, progress) }
      try checkMove(membership, target)
      let from = try await openStore(try stores.locator(membership.locator, relativeTo: base))
      if try state(of: membership.id).roster.store != target.text {
        _ = try await round(membership, access: from)
        let state = try state(of: membership.id)
        guard state.roster.role(of: state.log.origin.device) == .owner else {
          throw LatchkeyError(
            .membership, "not-an-owner", "Only an owner of \(membership.name) moves it to another store.",
            next: ["latchkey members list"])
        }
      }
      let to = try await openStore(target, mode: .create, credential: credential)
      try await carryMarker(from, to, mayBeAnother: true)
      try keep(credential, for: target)
      try keyring.update { $0[membership.id]?.moving = HouseholdKeys.StoreMove(.copying, target.text) }
      var report = StoreMoveReport(household: membership.name, from: membership.locator, to: target.text)
      try await copyEverything(membership, from.store, to.store, comparesAll: true, into: &report, progress)
      if try state(of: membership.id).roster.store != target.text {
        // Before it is written: this device has agreed to what it says.
        try keyring.update { $0[membership.id]?.decided = .init(store: target.text, isAgreed: true) }
        try await beginEpoch(membership, from, NextChange(store: target.text))
      } else {
        _ = try await roundAlone(membership, access: from)
      }
      // The new epoch, and what others have written while the rest was copied.
      try await copyEverything(membership, from.store, to.store, comparesAll: false, into: &report, progress)
      try await settle(membership, in: to, leaving: membership.locator)
      report.waitingFor = try devicesElsewhere(try state(of: membership.id))
      if report.waitingFor.isEmpty {
        return try await finishMove(try self.membership(of: membership.id), progress, report)
      }
      return report
    }
  }

  /// Households that were moved and wait here for a person to agree, or were refused.
  public func storeDecisions() throws(LatchkeyError) -> [StoreDecision] {
    do { return try memberships().compactMap(storeDecision) } catch { throw LatchkeyError(error) }
  }

  func storeDecision(_ membership: Membership) throws -> StoreDecision? {
    let state = try state(of: membership.id)
    guard let named = try unagreedStore(state) else { return nil }
    return StoreDecision(
      household: membership.name, householdID: membership.id.description, from: membership.locator, to: named,
      movedBy: mover(state, named), isRefused: try contents()[membership.id]?.decided?.isAgreed == false)
  }

  /// Agrees, for this device, to the store that the household was moved to: brings along what only the former one shows, and goes
  /// on in the new one.
  ///
  /// - Parameters:
  ///   - household: its name; nil for the only shared one.
  ///   - url: where the new store is reached from here, if not where the household says.
  ///   - credential: what it asks for; kept for later. The former store's is not tried there.
  /// - Returns: the new store's URL, and what is to be known.
  /// - Throws: ``LatchkeyError`` of kind `usage` (there is nothing to agree to), `store` (not there, or another household's).
  @discardableResult
  public func agreeToStore(
    household: String? = nil, at url: String? = nil, credential: StoreCredential? = nil
  ) async throws(LatchkeyError) -> (store: String, warnings: [Warning]) {
    try await reporting {
      let membership = try movable(household)
      guard let named = try unagreedStore(try state(of: membership.id)) else {
        throw LatchkeyError.notMoved(membership.name)
      }
      let target = try stores.locator(url ?? named, relativeTo: url == nil ? "" : base)
      let to = try await openStore(target, credential: credential)
      try await requireStore(to)
      let objects = HouseholdObjects(try state(of: membership.id))
      guard try await !objects.list(to.store).isEmpty else {
        throw LatchkeyError(
          .store, "other-store",
          "\(target.text) holds a Latchkey store, but nothing of the household \(membership.name). Nothing was changed.",
          next: ["check the store's URL"])
      }
      try keep(credential, for: target)
      var warnings: [Warning] = []
      do {
        // What this device, or another that has not moved either, wrote after the household was copied.
        let from = try await openStore(try stores.locator(membership.locator, relativeTo: base))
        var report = StoreMoveReport(household: membership.name, from: membership.locator, to: target.text)
        try await copyEverything(membership, from.store, to.store, comparesAll: false, into: &report, nil)
      } catch let error as StorageError where error.cause != .cancelled {
        warnings.append(
          Warning(
            code: "former-store-unreachable",
            message: "The former store \(membership.locator) could not be looked through for late writes: \(error)"))
      }
      try keyring.update { $0[membership.id]?.decided = .init(store: named, isAgreed: true) }
      try await settle(membership, in: to, leaving: nil)
      return (target.text, warnings)
    }
  }

  /// Says no, for this device: nothing is synchronised with the household until somebody agrees after all.
  public func refuseStore(household: String? = nil) throws(LatchkeyError) {
    do {
      let membership = try movable(household)
      guard let named = try unagreedStore(try state(of: membership.id)) else {
        throw LatchkeyError.notMoved(membership.name)
      }
      try keyring.update { $0[membership.id]?.decided = .init(store: named, isAgreed: false) }
    } catch { throw LatchkeyError(error) }
  }

  // MARK: Agreement

  /// Throws unless the household is where this device looks for it, as far as is known here.
  func checkStore(_ state: HouseholdState) throws {
    guard let named = try unagreedStore(state), let household = try contents()[state.household] else { return }
    if household.decided?.isAgreed == false {
      throw LatchkeyError(
        .decision, "store-refused",
        "The household \(household.name) is kept in \(named) now, and somebody on this device has refused to use that place. Nothing is "
          + "sent or received.",
        next: ["latchkey decide store-\(state.household.short) agree"])
    }
    throw LatchkeyError(
      .decision, "store-moved",
      "\(mover(state, named)) has moved the household \(household.name) to \(named). That place is used once somebody on this device "
        + "has agreed; until then nothing is sent or received.",
      next: [
        "latchkey decide store-\(state.household.short) agree", "latchkey decide store-\(state.household.short) refuse",
      ])
  }

  /// The store that the household is in, if a person here has not agreed to it.
  private func unagreedStore(_ state: HouseholdState) throws -> String? {
    // Whoever was removed is told that, wherever the others are.
    guard let named = state.roster.store, let household = try contents()[state.household], household.locator != named,
      !state.isRemoved,
      household.decided != .init(store: named, isAgreed: true)
    else { return nil }
    return named
  }

  private func mover(_ state: HouseholdState, _ store: String) -> String {
    let roster = state.roster.state
    guard let device = moving(state, to: store)?.origin.device else { return "An owner" }
    return roster.device(device).flatMap { roster.person($0.person)?.name } ?? device.short
  }

  /// The `Next` by which the household came to a store.
  private func moving(_ state: HouseholdState, to store: String) -> RosterEntry? {
    state.roster.entries.last { entry in
      guard case .next(let next) = entry.operation else { return false }
      return next.store == store && state.roster.verdict(of: entry.hash) == .counts
    }
  }

  // MARK: Steps

  /// The household of that name; without one the only shared one, or the private one where there is none.
  func movable(_ name: String?) throws -> Membership {
    if name == nil, try memberships().allSatisfy(\.isPrivate) { return try privateMembership() }
    return try membership(named: name)
  }

  /// A move is finished before another begins: what lies in the place in between would be forgotten.
  private func checkMove(_ membership: Membership, _ target: Locator) throws {
    guard let moving = try contents()[membership.id]?.moving, moving.place != target.text else { return }
    let isTold = try state(of: membership.id).roster.store == moving.place
    guard moving.phase == .leaving || isTold else { return }
    throw LatchkeyError(
      .usage, "move-unfinished",
      "\(membership.name) is on its way \(moving.phase == .leaving ? "out of" : "to") \(moving.place): that is finished first.",
      next: [
        "latchkey store move \(moving.phase == .leaving ? membership.locator : moving.place) --household \(membership.name)"
      ])
  }

  /// Makes the place the same store as the other one: it keeps its id wherever it is moved to.
  ///
  /// - Parameter mayBeAnother: whether a store with an id of its own will do.
  func carryMarker(_ from: StoreAccess, _ to: StoreAccess, mayBeAnother: Bool) async throws {
    guard case .store(let marker) = try await StoreMarker.read(from.store) else { throw EngineError.storeMissing }
    switch try await StoreMarker.read(to.store) {
    case .store(let other):
      guard mayBeAnother || other == marker else {
        throw LatchkeyError(
          .usage, "other-store", "\(to.locator.text) is another store already: a mirror begins in an empty place.",
          next: ["choose an empty place"])
      }
    case .absent(empty: true): try await to.store.put(.marker, marker.encoded)
    case .absent(empty: false), .newerFormat, .notAStore: try await to.claimMarker(world)
    }
  }

  /// Copies everything that is the household's, and what might be.
  func copyEverything(
    _ membership: Membership, _ from: any ObjectStore, _ to: any ObjectStore, comparesAll: Bool,
    into report: inout StoreMoveReport, _ progress: (@Sendable (_ done: Int, _ total: Int, _ bytes: Int) -> Void)?
  ) async throws {
    let objects = HouseholdObjects(try state(of: membership.id))
    let entries = try await from.listAll().filter {
      objects.contains($0.name) || HouseholdObjects.isUnattributed($0.name)
    }
    let there = try await to.listAll()
    do {
      let copy = try await StoreCopy.copy(
        entries, from: from, to: to,
        there: Dictionary(there.map { ($0.name, $0.size) }, uniquingKeysWith: { a, _ in a }),
        comparesAll: comparesAll, progress: progress)
      report.objects += copy.objects
      report.bytes += copy.bytes
    } catch StoreCopy.Failure.different(let name) {
      throw LatchkeyError(
        .damage, "copies-differ",
        "\(name) is not the same in both places: one of them was changed or damaged. The household stays in \(membership.locator).",
        next: ["latchkey store ls \(report.to)", "choose an empty place"])
    }
  }

  /// Goes on in another store.
  private func settle(_ membership: Membership, in to: StoreAccess, leaving: String?) async throws {
    let marker = try await to.store.get(.marker)
    let state = try change(membership.id) { state, _ in
      state.adopt(marker: marker)
      return state
    }
    try keyring.update { contents in
      contents[membership.id]?.locator = to.locator.text
      if contents[membership.id]?.mirror == to.locator.text { contents[membership.id]?.mirror = nil }
      contents[membership.id]?.moving = leaving.map { HouseholdKeys.StoreMove(.leaving, $0) }
    }
    let moved = try self.membership(of: membership.id)
    // A word in the new store: by this the others see that this device has moved.
    let contents = try contents()
    if leaving == nil, !state.isProvisional, !state.isRemoved {
      let names = state.roster.state.device(contents.device.id)
      try write(
        [.profile(personName: contents.personName, deviceName: names?.name ?? contents.deviceName)], into: moved)
    }
    _ = try await round(moved, access: to)
  }

  /// Devices of which nothing in the roster was written after the household moved to where it is now.
  private func devicesElsewhere(_ state: HouseholdState) throws -> [String] {
    guard let store = state.roster.store, let entry = moving(state, to: store), case .next(let next) = entry.operation
    else { return [] }
    let seen = Set(
      state.roster.entries.filter { $0.hash == entry.hash || state.roster.isBefore(entry.hash, $0.hash) }
        .map(\.origin.device))
    // Whoever came in later has never been anywhere else.
    let there = Set(next.recipients.filter { $0.kind == .device }.map(\.id))
    return state.roster.state.devices.filter { there.contains($0.id.bytes) && !seen.contains($0.id) }.map(\.name)
      .sorted()
  }

  /// Empties the former store once every device has moved.
  private func finishMove(
    _ membership: Membership, _ progress: (@Sendable (_ done: Int, _ total: Int, _ bytes: Int) -> Void)?,
    _ begun: StoreMoveReport? = nil
  ) async throws -> StoreMoveReport {
    guard let moving = try contents()[membership.id]?.moving, moving.phase == .leaving else {
      return StoreMoveReport(
        household: membership.name, from: membership.locator, to: membership.locator, isEmptied: true)
    }
    var report = begun ?? StoreMoveReport(household: membership.name, from: moving.place, to: membership.locator)
    let to = try await openStore(try stores.locator(membership.locator, relativeTo: base))
    if begun == nil { _ = try await round(membership, access: to) }
    let state = try state(of: membership.id)
    report.waitingFor = try devicesElsewhere(state)
    guard report.waitingFor.isEmpty else { return report }
    let from = try await openStore(try stores.locator(moving.place, relativeTo: base))
    // Nothing goes that is not in the new store.
    try await copyEverything(membership, from.store, to.store, comparesAll: false, into: &report, progress)
    for entry in try await HouseholdObjects(state).list(from.store) { try await from.store.delete(entry.name) }
    let left = try await from.store.listAll()
    if left.allSatisfy({ $0.name == .marker || HouseholdObjects.isUnattributed($0.name) }) {
      // The marker last: a place that still holds something stays recognisable.
      for entry in left where entry.name != .marker { try await from.store.delete(entry.name) }
      try await from.store.delete(.marker)
    }
    try keyring.update { $0[membership.id]?.moving = nil }
    report.isEmptied = true
    return report
  }
}

extension LatchkeyError {
  static func notMoved(_ household: String) -> LatchkeyError {
    LatchkeyError(
      .usage, "not-moved", "\(household) is where this device looks for it: there is nothing to decide.",
      next: ["latchkey status"])
  }
}

extension Warning {
  init(_ moving: HouseholdKeys.StoreMove, household: Home.Membership) {
    switch moving.phase {
    case .copying:
      self.init(
        code: "move-unfinished",
        message:
          "Moving \(household.name) to \(moving.place) was interrupted: \"latchkey store move \(moving.place)\" goes on with it."
      )
    case .leaving:
      self.init(
        code: "former-store-kept",
        message:
          "\(household.name) has moved, and the former store \(moving.place) still holds a copy: once every device has moved, \"latchkey store move "
          + "\(household.locator)\" empties it.")
    }
  }
}
