public import LatchkeyEncoding
public import LatchkeyKeys
public import LatchkeyLog

/// What a device takes from the store: the marker, others' roster logs, and entries that come by themselves.
extension HouseholdState {
  /// Takes the store's marker: the first one seen is kept, another one later is another store.
  public mutating func check(marker bytes: [UInt8]) throws(EngineError) {
    var r = CBORReader(bytes)
    do {
      try r.array(exactly: 3)
      guard try r.text() == "latchkey-store" else { throw EngineError.badMarker("not a store's marker") }
      guard try r.uint() == 1 else { throw EngineError.badMarker("of a newer version") }
      _ = try r.byteString(max: 16)
      try r.finish()
    } catch let error as EngineError {
      throw error
    } catch { throw .badMarker("not a store's marker") }
    guard let marker else {
      self.marker = bytes
      return
    }
    if marker != bytes { throw .otherStore }
  }

  /// Whether a listing of the roster shows what was believed before: then this is the store, and its marker need not be read.
  func isFamiliar(_ listed: [ObjectName], keys: EpochKeys) -> Bool {
    guard marker != nil else { return false }
    var newest: [String: UInt64] = [:]
    for head in listed.compactMap(HeadName.init) { newest[head.tag] = max(newest[head.tag] ?? 0, head.counter) }
    let known = belief.authors.values.compactMap { $0.places[keys.epoch] }.filter { $0.counter > 0 }
    if !known.isEmpty { return known.allSatisfy { newest[$0.tag] ?? 0 >= $0.counter } }
    // Nobody has written a head in this epoch yet: it is known by the copy that it began with.
    let copies = readCopies.filter { $0.text.hasPrefix(keys.prefix(.roster) + "/") }
    if !copies.isEmpty {
      let shown = Set(listed.map { keys.objectName(zone: .roster, $0) })
      return outbox.isEmpty && copies.allSatisfy(shown.contains)
    }
    return log.counter > 0 && outbox.isEmpty && newest[keys.headTag(zone: .roster, origin: log.origin)] == log.counter
  }

  /// Puts this device's claim into the outbox, for the epoch that it writes into now. Keep the state before it is sent.
  ///
  /// - Parameters:
  ///   - claim: made with ``currentKeys()``.
  ///   - random: a nonce.
  public mutating func enqueue(_ claim: Claim, random: inout some RandomSource) throws(EngineError) {
    let keys = try currentKeys()
    let below = claim.name(keys)
    let name = keys.objectName(zone: .roster, below)
    claimedIn = epoch
    guard !outbox.contains(where: { $0.name == name }) else { return }
    outbox.append(RosterObject(name: name, bytes: try seal(claim.bytes, .claim, below, keys, &random)))
  }

  /// Puts an object that lies apart from all epochs behind the others.
  mutating func enqueueApart(_ object: RosterObject) {
    if !outbox.contains(where: { $0.name == object.name }) { outbox.append(object) }
  }

  /// Takes a store's marker on a person's word: the household was moved there.
  public mutating func adopt(marker bytes: [UInt8]) { marker = bytes }

  /// A reader of the others' roster logs in an epoch, as the roster stands now.
  public func rosterReader(keys: EpochKeys) -> LogReader {
    let roster = roster
    return LogReader(
      household: household, zone: .roster, keys: keys,
      author: { roster.keys(of: $0)?.signing }, knowsRoster: { _ in true })
  }

  /// A reader of a row zone's logs in an epoch.
  public func rowReader(zone: ZoneID, keys: EpochKeys) -> LogReader {
    let roster = roster
    let limit = rowLimits(zone)
    return LogReader(
      household: household, zone: zone, keys: keys,
      author: { roster.keys(of: $0)?.signing }, knowsRoster: { roster.contains($0) }, limit: limit)
  }

  /// How far the logs of removed and narrowed devices count in a zone (format §8, *Limits*).
  func rowLimits(_ zone: ZoneID) -> @Sendable (Origin) -> UInt64? {
    let state = roster.state
    var limits: [DeviceID: [Incarnation: UInt64]] = [:]
    for one in state.limited {
      var logs: [Incarnation: UInt64] = [:]
      for limit in one.limits where limit.zone == zone {
        logs[limit.incarnation] = max(logs[limit.incarnation] ?? 0, limit.sequence)
      }
      limits[one.device] = logs
    }
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.ignoreLimit) { return { _ in nil } }
    #endif
    let known = limits
    return { origin in known[origin.device].map { $0[origin.incarnation] ?? 0 } }
  }

  /// How far groups of a roster log were taken.
  enum Acceptance {
    case all
    /// An ancestor is not here yet: the rest waits, and is read again next time.
    case waiting
    /// A group that no honest author writes; the log stops before it.
    case stopped(Finding)
  }

  /// Accepts groups of one author's roster log, as far as their ancestors are known.
  mutating func accept(_ groups: [LogGroup]) throws(EngineError) -> Acceptance {
    for group in groups {
      guard group.entries.count == 1, let entry = group.entries.first else {
        return .stopped(
          .unreadable(
            origin: group.origin, sequence: group.firstSequence, reason: "a roster operation in several parts",
            isNewer: false))
      }
      if case .waiting = try add(entry) { return .waiting }
      advance(group.origin, to: Mark(sequence: group.lastSequence, hash: group.lastHash), hlc: group.hlc)
    }
    return .all
  }

  private mutating func advance(_ origin: Origin, to mark: Mark, hlc: UInt64) {
    var known = belief.authors[origin] ?? Belief.Author()
    known.mark = mark
    known.hlc = hlc
    belief.authors[origin] = known
  }

  /// What became of an entry that came by itself, not in its author's log.
  enum Taken {
    case known
    case added
    /// Its author or an ancestor is not here yet.
    case waiting
    /// This device's own, and it did not write it.
    case notMine(Origin)
    case refused(String)
  }

  /// Takes an entry from a copy of the roster, or a `Next` from beside an epoch: signed by its author, wherever it lay.
  mutating func take(_ entry: StoredEntry) throws(EngineError) -> Taken {
    let body: EntryBody
    do {
      body = try EntryBody(decoding: entry.body)
      _ = try entry.payload(body)
    } catch { return .refused("\(error)") }
    let hash = EntryBody.hash(of: entry.body)
    if roster.contains(hash) {
      advance(body, hash)
      return .known
    }
    guard body.zone == .roster, body.household == household || hash == household, body.group.parts == 1 else {
      return .refused("not an entry of this roster")
    }
    guard let key = roster.keys(of: body.origin.device) else { return .waiting }
    guard entry.isSigned(by: key.signing) else { return .refused("signature") }
    if body.origin == log.origin { return .notMine(body.origin) }
    if case .waiting = try add(entry) { return .waiting }
    advance(body, hash)
    return .added
  }

  /// An entry of the roster, wherever it lay, is accepted as the next one of its author's log if it is.
  private mutating func advance(_ body: EntryBody, _ hash: EntryHash) {
    let known = belief.authors[body.origin]
    guard body.origin != log.origin, known?.mark?.hash == body.previous,
      known?.mark?.sequence ?? 0 == body.sequence - 1
    else { return }
    advance(body.origin, to: Mark(sequence: body.sequence, hash: hash), hlc: body.group.hlc)
  }

  /// Opens what entries give, whether or not they can be judged yet.
  mutating func walk(_ entries: [StoredEntry]) {
    ring.walk(entries.compactMap { try? HouseholdState.rosterEntry($0) })
    roster.learn(from: ring)
  }

  /// Keeps since when `Next`s have been shown without their ancestors.
  ///
  /// - Returns: those to wait for: after a day, what they say is not acted on (format §3).
  mutating func note(unjudged now: [EntryHash], now time: Int64) -> [EntryHash] {
    unjudged = Dictionary(uniqueKeysWithValues: Set(now).map { ($0, unjudged[$0] ?? time) })
    return unjudged.filter { time - $0.value < Belief.day }.keys.sorted()
  }

  mutating func finishCopy(_ name: ObjectName) { readCopies.insert(name) }

  mutating func probed(_ epoch: EpochID, now: Int64) { belief.probed(epoch, now: now) }

  mutating func believe(_ author: Belief.Author, of origin: Origin) { belief.authors[origin] = author }

  mutating func ignore(claim name: ObjectName) { ignoredClaims.insert(name) }

  static func rosterEntry(_ entry: StoredEntry) throws(LogError) -> RosterEntry {
    let body = try EntryBody(decoding: entry.body)
    return RosterEntry(
      hash: EntryBody.hash(of: entry.body), origin: body.origin, sequence: body.sequence, previous: body.previous,
      heads: body.rosterHeads, hlc: body.group.hlc, payload: try entry.payload(body))
  }

  mutating func add(_ entry: StoredEntry) throws(EngineError) -> RosterVerdict {
    let rosterEntry: RosterEntry
    do { rosterEntry = try HouseholdState.rosterEntry(entry) } catch { throw .damagedState("roster entry: \(error)") }
    if let verdict = roster.verdict(of: rosterEntry.hash), roster.contains(rosterEntry.hash) { return verdict }
    // What waits is not held: it is read again from the store once its ancestors are known.
    let missing = (rosterEntry.heads + (rosterEntry.previous.map { [$0] } ?? [])).filter { !roster.contains($0) }
    if !missing.isEmpty { return .waiting(missing) }
    if ring.walk([rosterEntry]) { roster.learn(from: ring) }
    let verdict = roster.add(rosterEntry)
    entries.append(entry)
    return verdict
  }

  /// Adds entries whose ancestors come before them.
  mutating func addAll(_ list: [StoredEntry]) throws(EngineError) {
    walk(list)
    for entry in list { _ = try add(entry) }
  }
}
