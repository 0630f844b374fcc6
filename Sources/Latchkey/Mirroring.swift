internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyLog
internal import LatchkeyMirror
public import LatchkeyStorage
internal import LatchkeyTables

/// A household that is kept on two stores.
public struct MirrorReport: Equatable, Sendable {
  public let household: String
  /// URLs, without secrets.
  public let store: String
  public let mirror: String
  /// Objects that were copied there, and their bytes. Each was read back.
  public let objects: Int
  public let bytes: Int
}

/// A household on two stores, by one device's doing: it writes to both, reads from either, and brings over to the one what only
/// the other has, other devices' objects included. They know nothing of it, and go on with the household's own store.
extension Home {
  /// Keeps a household on a second store, too, from this device. Called again it brings the two to the same state.
  ///
  /// - Parameters:
  ///   - url: an empty place, or this mirror already.
  ///   - household: its name; nil for the only shared one, or for the private one where there is none.
  ///   - credential: what the mirror asks for; kept for later.
  /// - Throws: ``LatchkeyError`` of kind `usage` (another store), `store`, `damage` (the two hold different bytes under one name).
  public func mirrorStore(
    to url: String, household: String? = nil, credential: StoreCredential? = nil,
    progress: (@Sendable (_ done: Int, _ total: Int, _ bytes: Int) -> Void)? = nil
  ) async throws(LatchkeyError) -> MirrorReport {
    try await reporting {
      let membership = try movable(household)
      let target = try stores.locator(url, relativeTo: base)
      guard target.text != membership.locator else {
        throw LatchkeyError(
          .usage, "same-store", "\(target.text) is where \(membership.name) is kept: a mirror is another place.",
          next: ["choose an empty place"])
      }
      let from = try await openStore(try stores.locator(membership.locator, relativeTo: base))
      _ = try await round(membership, access: from)
      let to = try await openStore(target, mode: .create, credential: credential)
      try await carryMarker(from, to, mayBeAnother: false)
      try keep(credential, for: target)
      var copied = StoreMoveReport(household: membership.name, from: membership.locator, to: target.text)
      try await copyEverything(membership, from.store, to.store, comparesAll: true, into: &copied, progress)
      try keyring.update { $0[membership.id]?.mirror = target.text }
      return MirrorReport(
        household: membership.name, store: membership.locator, mirror: target.text, objects: copied.objects,
        bytes: copied.bytes)
    }
  }

  /// Keeps a household on its own store only. What lies on the mirror stays there.
  ///
  /// - Returns: the mirror's URL; nil if there was none.
  @discardableResult
  public func stopMirroring(household: String? = nil) throws(LatchkeyError) -> String? {
    do {
      let membership = try movable(household)
      let mirror = try contents()[membership.id]?.mirror
      if mirror != nil { try keyring.update { $0[membership.id]?.mirror = nil } }
      return mirror
    } catch { throw LatchkeyError(error) }
  }

  // MARK: Opening

  /// Opens both stores, or whichever of the two can be used.
  func openMirrored(_ first: Locator, _ second: Locator) async throws -> StoreAccess {
    let counts = RequestCounts()
    let (one, two) = (await side(first, counts), await side(second, counts))
    switch (one, two) {
    case (.failure(let error), .failure): throw error
    case (.success(let (access, _)), .failure(let error)):
      return access.noting(
        "mirror-unreachable", "The mirror \(second.text) cannot be used now, and falls behind: \(error)")
    case (.failure(let error), .success(let (access, _))):
      return access.noting(
        "store-unreachable-mirror-used",
        "The store \(first.text) cannot be used now; the mirror \(second.text) was used alone, and other devices do not see what was sent: "
          + "\(error)")
    case (.success(let (access, marker)), .success(let (other, otherMarker))):
      guard marker == otherMarker else {
        return access.noting(
          "mirror-is-another-store", "The mirror \(second.text) was not used: it is another store by now.")
      }
      let both = MirrorStore(first: access.store, second: other.store)
      return StoreAccess(
        store: both, counts: counts, locator: first,
        mirror: StoreAccess.Mirrored(both: both, first: access.store, second: other.store))
    }
  }

  /// One of the two, if it shows the marker: an unmounted folder answers, and is empty.
  private func side(
    _ locator: Locator, _ counts: RequestCounts
  ) async -> Result<(StoreAccess, StoreMarker), any Error> {
    do {
      let access = try await openStore(locator, counts: counts)
      guard case .store(let marker) = try await StoreMarker.read(access.store) else { throw EngineError.storeMissing }
      return .success((access, marker))
    } catch { return .failure(error) }
  }

  // MARK: Healing

  /// After a round: brings over what one of the two lacks, and says what is wrong with either.
  func keepMirror(_ membership: Membership, _ access: StoreAccess, into report: inout SyncReport) async throws {
    func warn(_ code: String, _ message: String) {
      let warning = Warning(code: code, message: message)
      if !report.warnings.contains(warning) { report.warnings.append(warning) }
    }
    for note in access.notes { warn(note.code, note.message) }
    guard let mirror = access.mirror else { return }
    let standing = mirror.both.standing
    for side in MirrorStore.Side.allCases {
      guard let failure = standing[side]?.failure else { continue }
      warn(
        "mirror-behind",
        "One of the two stores of \(membership.name) failed, and is behind until the next sync: \(failure)")
      return
    }
    if let different = standing.values.map(\.different).first(where: { !$0.isEmpty }), let name = different.min() {
      warn(
        "mirror-differs",
        "The two stores of \(membership.name) hold different bytes under \(different.count) of the names, such as \(name): nothing was "
          + "overwritten.")
    }
    let newest = try newestHeads(membership)
    let behind = standing.values.reduce(into: Set<ObjectName>()) { $0.formUnion($1.behind) }
      .filter { !isSuperseded($0, newest) }
    do {
      for prefix in Set(behind.map { $0.text.prefix { $0 != "/" } + "/" }).sorted() where prefix.utf8.count == 33 {
        try await level(String(prefix), mirror, newest)
      }
    } catch let error as StorageError where error.cause != .cancelled {
      warn("mirror-behind", "The two stores of \(membership.name) could not be brought to the same state: \(error)")
    }
  }

  /// Copies below a prefix to each of the two what only the other has.
  private func level(
    _ prefix: String, _ mirror: StoreAccess.Mirrored, _ newest: [String: UInt64]
  ) async throws {
    let (one, two) = (
      try await mirror.first.listAll(prefix: prefix), try await mirror.second.listAll(prefix: prefix)
    )
    let (inFirst, inSecond) = (Set(one.map(\.name)), Set(two.map(\.name)))
    // A head that a newer one has followed is deleted by its author, in the household's own store: it is not brought back.
    for (entries, there, from, to) in [
      (one, inSecond, mirror.first, mirror.second), (two, inFirst, mirror.second, mirror.first),
    ] {
      let missing = entries.filter { !there.contains($0.name) && !isSuperseded($0.name, newest) }
      do {
        _ = try await StoreCopy.copy(missing, from: from, to: to, there: [:], comparesAll: false)
      } catch is StoreCopy
        .Failure
      {
        // Written there meanwhile, with other bytes: the next listing of both shows it.
        continue
      }
    }
    for entry in two where !inFirst.contains(entry.name) && isSuperseded(entry.name, newest) {
      try await mirror.second.delete(entry.name)
    }
  }

  /// The newest head that was accepted, or written, of each log of the household, by `PREFIX/TAG`.
  private func newestHeads(_ membership: Membership) throws -> [String: UInt64] {
    let state = try state(of: membership.id)
    var newest: [String: UInt64] = [:]
    func note(_ epoch: EpochID, _ zone: ZoneID, _ tag: (EpochKeys) -> String, _ counter: UInt64) {
      guard let keys = state.keys(of: epoch) else { return }
      let key = "\(keys.prefix(zone))/\(tag(keys))"
      newest[key] = max(newest[key] ?? 0, counter)
    }
    func note(_ belief: Belief, _ zone: ZoneID) {
      for (epoch, place) in belief.authors.values.flatMap(\.places) {
        note(epoch, zone, { _ in place.tag }, place.counter)
      }
    }
    func note(_ log: OwnLog) {
      note(log.epoch, log.zone, { $0.headTag(zone: log.zone, origin: log.origin) }, log.counter)
    }
    note(state.belief, .roster)
    // What waits to be sent is nowhere yet.
    if state.outbox.isEmpty { note(state.log) }
    for path in try databases() {
      guard let replica = try? Replica(path: path, mode: .readOnly), replica.binding.household == membership.id else {
        continue
      }
      let zone = replica.binding.zone
      if let bytes = try replica.value(DatabasePerformer.Key.belief(zone)) { note(try Belief(decoding: bytes), zone) }
      if let bytes = try replica.value(DatabasePerformer.Key.log(zone)), try replica.outbox(zone: zone).isEmpty {
        note(try OwnLog(decoding: bytes))
      }
    }
    return newest
  }

  private func isSuperseded(_ name: ObjectName, _ newest: [String: UInt64]) -> Bool {
    guard let slash = name.text.firstIndex(of: "/"),
      let below = ObjectName(String(name.text[name.text.index(after: slash)...])), let head = HeadName(below)
    else { return false }
    return newest["\(name.text[..<slash])/\(head.tag)"].map { $0 > head.counter } ?? false
  }
}

extension StoreAccess {
  fileprivate func noting(_ code: String, _ message: String) -> StoreAccess {
    var access = self
    access.notes.append(Warning(code: code, message: message))
    return access
  }
}
