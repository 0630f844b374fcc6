public import LatchkeyEncoding
public import LatchkeyKeys
public import LatchkeyLog

/// Why the engine cannot go on.
public enum EngineError: Error, Equatable, Sendable {
  /// The place has no marker object: not mounted, emptied, or never a store.
  case storeMissing
  /// The marker is another store's than the one this household was kept in.
  case otherStore
  /// The marker is not one, or of a newer version.
  case badMarker(String)
  /// An operation would not count: the author may not do this.
  case refused(RosterRefusal)
  /// The roster holds an operation that this version does not evaluate; nothing is uploaded.
  case newerRoster
  /// Kept state does not decode.
  case damagedState(String)
  /// A sealed object would exceed its limit.
  case tooLarge
  /// The performer answered with another event than the effect asks for: a defect of the performer.
  case outOfOrder(String)
}

/// What a device knows of a household, beside the keys: its roster and this device's own log in it.
///
/// Kept in one atomic replace beside the keyring. Rows and what is believed of them are kept in the database instead.
public struct HouseholdState: Sendable {
  public let household: HouseholdID
  /// The current epoch.
  public let epoch: EpochID
  /// All roster operations known, judged.
  public private(set) var roster: Roster
  /// The same as signed, in an order in which ancestors come first.
  public private(set) var entries: [StoredEntry] = []
  /// What is believed of the others' roster logs.
  public private(set) var belief = Belief()
  /// This device's own roster log.
  public private(set) var log: OwnLog
  /// Sealed roster objects that the store has not confirmed, in order.
  public private(set) var outbox: [SealedObject] = []
  /// The store's marker, once seen.
  public private(set) var marker: [UInt8]?
  /// Claims that were looked at and will never be admitted.
  public private(set) var ignoredClaims: Set<ObjectName> = []

  /// A household as a newcomer knows it: only its Genesis.
  ///
  /// - Throws: ``EngineError/damagedState(_:)`` unless `genesis` is the entry whose hash is the household's id.
  public init(household: HouseholdID, epoch: EpochID, genesis: StoredEntry, origin: Origin) throws(EngineError) {
    self.household = household
    self.epoch = epoch
    roster = Roster(household: household)
    log = OwnLog(household: household, epoch: epoch, zone: .roster, origin: origin)
    guard EntryBody.hash(of: genesis.body) == household else { throw .damagedState("not this household's Genesis") }
    guard case .counts = try add(genesis) else { throw .damagedState("a Genesis that does not count") }
  }

  private init(household: HouseholdID, log: OwnLog, genesis: StoredEntry) throws(EngineError) {
    self.household = household
    epoch = household
    roster = Roster(household: household)
    self.log = log
    guard case .counts = try add(genesis) else { throw .damagedState("a Genesis that does not count") }
  }

  /// Founds a household.
  ///
  /// - Parameters:
  ///   - key: the first epoch's key, from the caller's randomness.
  ///   - incarnation: of this device's roster log; random.
  ///   - now: milliseconds since 1970.
  public static func found(
    name: String, isPrivate: Bool, chain: CertificateChain, personName: String, deviceName: String, key: EpochKey,
    incarnation: Incarnation, device: DeviceKeys, now: Int64, random: inout some RandomSource
  ) throws(EngineError) -> HouseholdState {
    guard
      let genesis = Genesis(
        householdName: name, isPrivate: isPrivate, chain: chain, personName: personName, deviceName: deviceName,
        key: key, random: &random)
    else { throw .damagedState("a device key that nothing can be sealed to") }
    let origin = Origin(device: device.id, incarnation: incarnation)
    var log = OwnLog(household: .zero, epoch: .zero, zone: .roster, origin: origin)
    let (_, hashes) = log.append(
      parts: [(RosterOperation.genesis(genesis).payload, true)], hlc: UInt64(max(now, 0)) << 16, rosterHeads: [],
      signing: device.signing, isGenesis: true)
    guard let id = hashes.first, let entry = log.tail.first else { throw .damagedState("no Genesis") }
    return try HouseholdState(household: id, log: log.renamed(household: id, epoch: id), genesis: entry)
  }

  /// The Genesis entry, as it is handed to newcomers.
  public var genesis: StoredEntry? { entries.first }

  // MARK: Writing

  /// Writes an operation: judged first, because one that does not count would break this device's chain (model, rule 19).
  @discardableResult
  public mutating func write(
    _ operation: RosterOperation, device: DeviceKeys, now: Int64
  ) throws(EngineError) -> EntryHash {
    if roster.state.isNewer { throw .newerRoster }
    if let refusal = roster.refusal(of: operation, by: log.origin) { throw .refused(refusal) }
    let newest = belief.authors.values.map(\.hlc).max() ?? 0
    let hlc = max(UInt64(max(now, 0)) << 16, log.lastHLC + 1, newest + 1)
    let (_, hashes) = log.append(
      parts: [(operation.payload, true)], hlc: hlc, rosterHeads: roster.heads, signing: device.signing)
    guard let hash = hashes.first, let entry = log.tail.last else { throw .damagedState("nothing was written") }
    _ = try add(entry)
    return hash
  }

  /// Seals what was written, into the outbox. Keep the state afterwards, before anything is sent.
  public mutating func seal(keys: EpochKeys, device: DeviceKeys, now: Int64, random: inout some RandomSource)
    throws(EngineError)
  {
    let facts = HeadFacts(vector: belief.vector, rosterHeads: roster.heads, hlc: log.lastHLC, digest: .zero)
    do {
      outbox += try log.seal(facts, keys: keys, signing: device.signing, now: now, random: &random)
    } catch { throw .tooLarge }
  }

  /// Gives up this device's roster log, which somebody else has gone on with (a restored or copied directory), and goes on in a
  /// new one. What the store has confirmed of the old one stays believed; what it has not is written again.
  mutating func renew(
    _ incarnation: Incarnation, keys: EpochKeys, device: DeviceKeys, now: Int64
  ) throws(EngineError) {
    let given = log
    let last = given.confirmed?.mark.sequence ?? 0
    var again: [RosterOperation] = []
    var rest: [StoredEntry] = []
    for entry in entries {
      guard let body = try? EntryBody(decoding: entry.body), body.origin == given.origin, body.sequence > last else {
        rest.append(entry)
        continue
      }
      if let payload = try? entry.payload(body) { again.append(RosterOperation(payload: payload)) }
    }
    belief.authors[given.origin] = given.asBelieved(keys: keys)
    log = OwnLog(
      household: household, epoch: epoch, zone: .roster,
      origin: Origin(device: given.origin.device, incarnation: incarnation))
    outbox = outbox.filter { $0.name.text.hasPrefix("c/") }
    roster = Roster(household: household)
    entries = []
    for entry in rest { _ = try add(entry) }
    for operation in again where roster.refusal(of: operation, by: log.origin) == nil {
      try write(operation, device: device, now: now)
    }
  }

  /// The store has confirmed an object.
  public mutating func acknowledge(_ name: ObjectName) {
    if HeadName(name) != nil, let object = outbox.first(where: { $0.name == name }) {
      log.confirm(head: object.sequence)
    }
    outbox.removeAll { $0.name == name }
  }

  public mutating func forget(heads: [UInt64]) { log.forget(heads: heads) }

  // MARK: Believing

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
    let known = belief.authors.values.filter { $0.counter > 0 }
    return !known.isEmpty && known.allSatisfy { newest[$0.tag] ?? 0 >= $0.counter }
      || log.counter > 0 && outbox.isEmpty && newest[keys.headTag(zone: .roster, origin: log.origin)] == log.counter
  }

  /// Puts an object of this device under the roster's prefix into the outbox: a claim. Keep the state before it is sent.
  public mutating func enqueue(_ object: SealedObject) {
    if !outbox.contains(where: { $0.name == object.name }) { outbox.append(object) }
  }

  /// Takes a store's marker on a person's word: the household was moved there.
  public mutating func adopt(marker bytes: [UInt8]) { marker = bytes }

  /// A reader of the others' roster logs, as the roster stands now.
  public func rosterReader(keys: EpochKeys) -> LogReader {
    let roster = roster
    return LogReader(
      household: household, epoch: epoch, zone: .roster, keys: keys,
      author: { roster.keys(of: $0)?.signing }, knowsRoster: { _ in true })
  }

  /// A reader of a row zone's logs.
  public func rowReader(zone: ZoneID, keys: EpochKeys) -> LogReader {
    let roster = roster
    return LogReader(
      household: household, epoch: epoch, zone: zone, keys: keys,
      author: { roster.keys(of: $0)?.signing }, knowsRoster: { roster.contains($0) })
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
  mutating func accept(_ groups: [LogGroup], author: Belief.Author) throws(EngineError) -> Acceptance {
    for group in groups {
      guard group.entries.count == 1, let entry = group.entries.first else {
        return .stopped(
          .unreadable(
            origin: group.origin, sequence: group.firstSequence, reason: "a roster operation in several parts",
            isNewer: false))
      }
      if case .waiting = try add(entry) { return .waiting }
      var known = belief.authors[group.origin] ?? Belief.Author(tag: author.tag)
      known.mark = Mark(sequence: group.lastSequence, hash: group.lastHash)
      known.hlc = group.hlc
      belief.authors[group.origin] = known
    }
    return .all
  }

  mutating func believe(_ author: Belief.Author, of origin: Origin) { belief.authors[origin] = author }

  mutating func ignore(claim name: ObjectName) { ignoredClaims.insert(name) }

  private mutating func add(_ entry: StoredEntry) throws(EngineError) -> RosterVerdict {
    let body: EntryBody
    let payload: [UInt8]
    do {
      body = try EntryBody(decoding: entry.body)
      payload = try entry.payload(body)
    } catch { throw .damagedState("roster entry: \(error)") }
    let rosterEntry = RosterEntry(
      hash: EntryBody.hash(of: entry.body), origin: body.origin, sequence: body.sequence, previous: body.previous,
      heads: body.rosterHeads, hlc: body.group.hlc, payload: payload)
    // What waits is not held: it is read again from the store once its ancestors are known.
    if body.rosterHeads.contains(where: { !roster.contains($0) }) || body.previous.map({ !roster.contains($0) }) == true
    {
      return .waiting(body.rosterHeads.filter { !roster.contains($0) })
    }
    let verdict = roster.add(rosterEntry)
    entries.append(entry)
    return verdict
  }

  // MARK: Kept form

  /// For the file beside the keyring; not a wire format.
  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 4096)
    w.array(9)
    w.uint(1)
    w.id(household)
    w.id(epoch)
    w.array(entries.count)
    for entry in entries { w.byteString(entry.encoded()) }
    w.byteString(belief.encoded())
    w.byteString(log.encoded())
    w.array(outbox.count * 3)
    for object in outbox {
      w.text(object.name.text)
      w.byteString(object.bytes)
      w.uint(object.sequence)
    }
    if let marker { w.byteString(marker) } else { w.null() }
    w.array(ignoredClaims.count)
    for name in ignoredClaims.sorted() { w.text(name.text) }
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(EngineError) {
    var r = CBORReader(bytes)
    do {
      try r.array(exactly: 9)
      guard try r.uint() == 1 else { throw EngineError.damagedState("of another version") }
      household = try r.id()
      epoch = try r.id()
      roster = Roster(household: household)
      var kept: [StoredEntry] = []
      for _ in 0..<(try r.array()) { kept.append(try StoredEntry(decoding: try r.byteString())) }
      belief = try Belief(decoding: try r.byteString())
      log = try OwnLog(decoding: try r.byteString())
      for _ in 0..<(try r.array() / 3) {
        guard let name = ObjectName(try r.text()) else { throw EngineError.damagedState("outbox") }
        let bytes = try r.byteString()
        outbox.append(SealedObject(name: name, bytes: bytes, sequence: try r.uint()))
      }
      marker = try r.null() ? nil : try r.byteString()
      for _ in 0..<(try r.array()) {
        guard let name = ObjectName(try r.text()) else { throw EngineError.damagedState("claims") }
        ignoredClaims.insert(name)
      }
      try r.finish()
      for entry in kept { _ = try add(entry) }
    } catch let error as EngineError {
      throw error
    } catch { throw .damagedState("\(error)") }
  }
}
