public import LatchkeyEncoding
public import LatchkeyKeys
public import LatchkeyLog

/// What a device knows of a household, beside the keys: its roster and this device's own log in it.
///
/// Kept in one atomic replace beside the keyring. Rows and what is believed of them are kept in the database instead. The keys of
/// epochs are not part of what is kept: they follow from the device's own keys and the roster's entries each time.
public struct HouseholdState: Sendable {
  public let household: HouseholdID
  /// The epoch that this device writes the roster into.
  public internal(set) var epoch: EpochID
  /// All roster operations known, judged.
  public internal(set) var roster: Roster
  /// All epoch keys that this device can come by.
  public internal(set) var ring: EpochRing
  /// The same as signed, in an order in which ancestors come first.
  public internal(set) var entries: [StoredEntry] = []
  /// What is believed of the others' roster logs.
  public internal(set) var belief = Belief()
  /// This device's own roster log.
  public internal(set) var log: OwnLog
  /// Sealed roster objects that the store has not confirmed, in order.
  public internal(set) var outbox: [RosterObject] = []
  /// The store's marker, once seen.
  public internal(set) var marker: [UInt8]?
  /// Claims that were looked at and will never be admitted, below the roster's prefix.
  public internal(set) var ignoredClaims: Set<ObjectName> = []
  /// Copies of the roster all of whose entries are known, by their names in the store.
  var readCopies: Set<ObjectName> = []
  /// A `Next` is due, not before this time, in milliseconds since 1970: others may write it first.
  public internal(set) var nextDue: Int64?
  /// The epoch in which this device's claim was last written.
  public internal(set) var claimedIn: EpochID?
  /// `Next`s whose ancestors are not shown, and since when, in milliseconds since 1970.
  var unjudged: [EntryHash: Int64] = [:]
  /// Epochs in which somebody claimed whom this device has let in since: the next `Next` must be found there, too.
  var claimEpochs: Set<EpochID> = []
  let secrets: HouseholdSecrets

  /// A sealed roster object on its way to the store.
  public struct RosterObject: Equatable, Sendable {
    /// In the store.
    public let name: ObjectName
    public let bytes: [UInt8]
    /// The last entry of this device's log that is safe once it is stored, after those before it; 0 for none.
    public let confirms: UInt64

    public init(name: ObjectName, bytes: [UInt8], confirms: UInt64 = 0) {
      (self.name, self.bytes, self.confirms) = (name, bytes, confirms)
    }

    /// Whether it lies apart from all epochs: what kits and invites open.
    var isApart: Bool { kind == .kit || kind == .invite }

    /// Whether any bytes under its name do: named by what it says, with a nonce of its own.
    var isSatisfiedByOthers: Bool { kind == .rosterCopy || isApart }

    var kind: ObjectKind? {
      let letter = name.text.dropFirst(33).prefix(1)
      return ObjectKind.allCases.first { $0.letter == letter }
    }
  }

  /// A household as a newcomer knows it: only its Genesis, and the key of the epoch in which it begins to read.
  ///
  /// - Throws: ``EngineError/damagedState(_:)`` unless `genesis` is the entry whose hash is the household's id.
  public init(
    household: HouseholdID, epoch: EpochID, genesis: StoredEntry, origin: Origin, secrets: HouseholdSecrets
  ) throws(EngineError) {
    self.household = household
    self.epoch = epoch
    self.secrets = secrets
    ring = secrets.ring(of: household)
    roster = Roster(household: household, evaluating: .everyEpoch)
    log = OwnLog(household: household, epoch: epoch, zone: .roster, origin: origin)
    guard EntryBody.hash(of: genesis.body) == household else { throw .damagedState("not this household's Genesis") }
    guard case .counts = try add(genesis) else { throw .damagedState("a Genesis that does not count") }
  }

  private init(
    household: HouseholdID, log: OwnLog, genesis: StoredEntry, secrets: HouseholdSecrets
  ) throws(EngineError) {
    self.household = household
    self.secrets = secrets
    epoch = household
    ring = secrets.ring(of: household)
    roster = Roster(household: household, evaluating: .everyEpoch)
    self.log = log
    guard case .counts = try add(genesis) else { throw .damagedState("a Genesis that does not count") }
  }

  /// Founds a household.
  ///
  /// - Parameters:
  ///   - key: the first epoch's key, from the caller's randomness.
  ///   - kit: the founder's device on paper, signed by a device of the chain.
  ///   - incarnation: of this device's roster log; random.
  ///   - now: milliseconds since 1970.
  public static func found(
    name: String, isPrivate: Bool, chain: CertificateChain, personName: String, deviceName: String, key: EpochKey,
    kit: Certificate? = nil, incarnation: Incarnation, device: DeviceKeys, now: Int64, random: inout some RandomSource
  ) throws(EngineError) -> HouseholdState {
    guard
      let genesis = Genesis(
        householdName: name, isPrivate: isPrivate, chain: chain, personName: personName, deviceName: deviceName,
        key: key, kit: kit, random: &random)
    else { throw .damagedState("a device key that nothing can be sealed to") }
    let origin = Origin(device: device.id, incarnation: incarnation)
    var log = OwnLog(household: .zero, epoch: .zero, zone: .roster, origin: origin)
    let (_, hashes) = log.append(
      parts: [(RosterOperation.genesis(genesis).payload, true)], hlc: UInt64(max(now, 0)) << 16, rosterHeads: [],
      signing: device.signing, isGenesis: true)
    guard let id = hashes.first, let entry = log.tail.first else { throw .damagedState("no Genesis") }
    return try HouseholdState(
      household: id, log: log.renamed(household: id, epoch: id), genesis: entry,
      secrets: HouseholdSecrets(device: device))
  }

  /// The Genesis entry, as it is handed to newcomers.
  public var genesis: StoredEntry? { entries.first }

  // MARK: Epochs

  /// What an epoch's key makes; nil if it is not at hand.
  public func keys(of epoch: EpochID) -> EpochKeys? {
    ring.keys(of: epoch)
      ?? secrets.held[epoch].map { EpochKeys(household: household, epoch: epoch, key: $0) }
  }

  /// Epochs whose keys came from outside.
  var heldEpochs: Set<EpochID> { Set(secrets.held.keys) }

  /// Of the epoch that this device writes into.
  public func currentKeys() throws(EngineError) -> EpochKeys {
    guard let keys = keys(of: epoch) else { throw .noKey(epoch) }
    return keys
  }

  /// Keys of all epochs at hand that began among the entries known, in the order of the roster's entries: each after those that it follows.
  public var epochs: [EpochKeys] {
    roster.entries.compactMap { entry in
      if entry.hash != household, !entry.operation.beginsEpoch { return nil }
      return ring.keys(of: entry.hash)
    }
  }

  /// Whether rows may be uploaded now, and why not.
  public var holds: [UploadHold] {
    switch roster.upload(by: log.origin.device, ring: ring) {
    case .into(let current): current == epoch ? [] : [.noKey(current)]
    case .held(let holds): holds
    }
  }

  /// Whether this device is not in (yet).
  public var isProvisional: Bool { roster.role(of: log.origin.device) == nil && !isRemoved }

  /// Whether this device's claim has to be written: it was not let in yet, and nobody may look for its claim any more where it lies.
  public var needsClaim: Bool { isProvisional && claimedIn != epoch }

  /// Whether this device was removed.
  public var isRemoved: Bool { roster.state.limited.contains { $0.device == log.origin.device && $0.isRemoved } }

  /// Whether rows may be uploaded into ``epoch``: a newcomer may before it is let in, provisionally.
  public var mayUpload: Bool {
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.ignoreHold), !isRemoved, roster.state.currentEpoch == epoch, ring.keys[epoch] != nil {
        return true
      }
    #endif
    return holds.isEmpty || holds == [.notEnrolled] && isProvisional
  }

  /// Whether others went on in an epoch whose key this device was not given, and none of them was heard in its own. So ends who was let in by
  /// somebody who had no right to by then, as the others see it: from here that cannot be judged.
  var isLeftBehind: Bool {
    guard roster.role(of: log.origin.device) != nil, roster.state.devices.count > 1 else { return false }
    let ends = roster.state.epochEnds
    let isShutOut = roster.entries.contains { entry in
      guard case .next(let next) = entry.operation, next.form == .moved, ring.keys[entry.hash] == nil else {
        return false
      }
      // Only what counts: anybody who once had a key can lay down another.
      return entry.origin.device != log.origin.device
        && (ends.contains(entry.hash) || roster.isBefore(entry.hash, epoch))
    }
    return isShutOut
      && !belief.authors.contains { $0.key != log.origin && $0.value.places[epoch]?.counter ?? 0 > 0 }
  }

  /// Goes on in the epoch that is current by now, if its key is at hand: repeats there what its beginning does not hold.
  mutating func follow(now: Int64, random: inout some RandomSource) throws(EngineError) {
    guard let current = roster.state.currentEpoch, current != epoch, let keys = ring.keys(of: current) else { return }
    let own = log.origin
    var end: OwnLog.Position?
    var tail: [StoredEntry] = []
    var missing: [StoredEntry] = []
    for entry in entries {
      guard let body = try? EntryBody(decoding: entry.body) else { continue }
      let hash = EntryBody.hash(of: entry.body)
      if hash == current || roster.isBefore(hash, current) {
        if body.origin == own {
          end = OwnLog.Position(mark: Mark(sequence: body.sequence, hash: hash), hlc: body.group.hlc)
        }
      } else if body.origin == own {
        tail.append(entry)
      } else if !roster.isBefore(current, hash) {
        missing.append(entry)
      }
    }
    // Bytes of the epoch that was left; claims are written anew by whoever made them.
    outbox = outbox.filter(\.isApart)
    if roster.role(of: own.device) != nil {
      for copy in RosterCopy.copies(of: missing) { try enqueue(copy, keys, &random) }
    }
    left(epoch, for: current, now: now)
    log.enter(current, after: end, isConfirmed: true, tail: tail, announces: false)
    epoch = current
  }

  /// The epoch that was written to is left for another one. It is looked through for a while, and so is what lies between the two: whoever
  /// does not count the present one, because its author had no right to begin it by then, goes on from there.
  private mutating func left(_ former: EpochID, for current: EpochID, now: Int64) {
    belief.probed(former, now: now)
    for entry in roster.entries {
      guard case .next(let next) = entry.operation, entry.hash == current || roster.isBefore(entry.hash, current)
      else { continue }
      let isBetween = entry.hash == current || roster.isBefore(former, entry.hash)
      for parent in next.parents where isBetween && belief.probes[parent] == nil { belief.probed(parent, now: now) }
    }
  }

  /// The store has lost part of the roster: all of it goes there again as copies, and this device's log is announced anew.
  ///
  /// - Parameters:
  ///   - shown: names below the roster's prefix: what is there need not be written.
  ///   - random: nonces.
  public mutating func restore(shown: [ObjectName], random: inout some RandomSource) throws(EngineError) {
    guard roster.role(of: log.origin.device) != nil else { return }
    let keys = try currentKeys()
    for copy in RosterCopy.copies(of: entries) {
      let below = keys.rosterCopyName(content: copy.encoded())
      guard !shown.contains(below) else { continue }
      readCopies.remove(keys.objectName(zone: .roster, below))
      try enqueue(copy, keys, &random)
    }
    if log.isHeadMissing(among: shown, keys: keys) { log.announce() }
  }

  /// Entries that came in this round and were written into an epoch that was left go into the present one, too: what is written there
  /// cites them, and a newcomer does not look where they lie.
  ///
  /// - Parameters:
  ///   - known: how many entries there were before.
  ///   - copied: entries that lie there already.
  mutating func copyLate(
    after known: Int, except copied: Set<EntryHash>, random: inout some RandomSource
  ) throws(EngineError) {
    guard entries.count > known, epoch != household, roster.role(of: log.origin.device) != nil else { return }
    let late = entries.dropFirst(known).filter { entry in
      let hash = EntryBody.hash(of: entry.body)
      return hash != epoch && !copied.contains(hash) && !roster.isBefore(hash, epoch) && !roster.isBefore(epoch, hash)
    }
    let keys = try currentKeys()
    for copy in RosterCopy.copies(of: Array(late)) { try enqueue(copy, keys, &random) }
  }

  private mutating func enqueue(
    _ copy: RosterCopy, _ keys: EpochKeys, _ random: inout some RandomSource
  ) throws(EngineError) {
    let content = copy.encoded()
    let below = keys.rosterCopyName(content: content)
    let name = keys.objectName(zone: .roster, below)
    guard !readCopies.contains(name) else { return }
    outbox.append(
      RosterObject(name: name, bytes: try seal(content, .rosterCopy, below, keys, &random)))
  }

  func seal(
    _ content: [UInt8], _ kind: ObjectKind, _ below: ObjectName, _ keys: EpochKeys,
    _ random: inout some RandomSource
  ) throws(EngineError) -> [UInt8] {
    do {
      return try Envelope.seal(
        content, at: keys.place(kind, zone: .roster, name: below), key: keys.zoneKey(.roster),
        nonce: EnvelopeNonce(&random))
    } catch { throw .tooLarge }
  }

  /// Begins the next epoch, or ends the household: writes a `Next`, with all that its readers need, and goes on there.
  ///
  /// In the order of the outbox: the whole roster under the new epoch, then the `Next` under each epoch that it follows, so that whoever
  /// finds the new epoch finds its roster.
  ///
  /// - Parameters:
  ///   - limits: how far the logs of devices count that go along with others.
  ///   - isGraceOver: see `Roster/next`.
  /// - Returns: the new epoch.
  @discardableResult
  public mutating func writeNext(
    _ change: NextChange, limits: (DeviceID) -> [Next.Limit] = { _ in [] }, isGraceOver: Bool = false, now: Int64,
    random: inout some RandomSource
  ) throws(EngineError) -> EpochID {
    if roster.isNewer { throw .newerRoster }
    // What led to it stays behind where those look who are not taken along: an admission, the end of an invite.
    if keys(of: epoch) != nil { try seal(now: now, random: &random) }
    let key = change.closes ? nil : EpochKey(&random)
    let next: Next
    do throws(RosterRefusal) {
      next = try roster.next(
        change, by: log.origin, key: key, ring: ring, limits: limits, isGraceOver: isGraceOver, random: &random)
    } catch { throw .refused(error) }
    let hash = try append(.next(next), now: now, key: key)
    nextDue = nil
    guard let key, let entry = entries.last else { return hash }
    let keys = EpochKeys(household: household, epoch: hash, key: key)
    for copy in RosterCopy.copies(of: entries) { try enqueue(copy, keys, &random) }
    var places = next.parents.filter { ring.keys[$0] != nil }
    if places.isEmpty { places = [epoch] }
    places += claimEpochs.subtracting(places).sorted()
    claimEpochs = []
    for parent in places {
      guard let keys = self.keys(of: parent) else { continue }
      let below = keys.nextName(origin: log.origin, sequence: log.lastSequence)
      outbox.append(
        RosterObject(
          name: keys.objectName(zone: .roster, below), bytes: try seal(entry.encoded(), .next, below, keys, &random),
          confirms: log.lastSequence))
    }
    left(epoch, for: hash, now: now)
    let end = OwnLog.Position(mark: Mark(sequence: log.lastSequence, hash: hash), hlc: log.lastHLC)
    log.enter(hash, after: end, isConfirmed: false, tail: [], announces: false)
    epoch = hash
    return hash
  }

  /// Whether this device did what makes a `Next` due: then it writes it at once.
  var hasCausedNext: Bool {
    guard let current = roster.state.currentEpoch else { return false }
    return roster.entries.contains { entry in
      guard entry.origin.device == log.origin.device, entry.hash != current, !roster.isBefore(entry.hash, current)
      else {
        return false
      }
      switch entry.operation {
      case .admit, .addDevice, .revokeInvite, .next: return true
      default: return false
      }
    }
  }

  /// Somebody was let in whose claim lay in this epoch: there it looks for the next one.
  mutating func admitted(in epoch: EpochID) { claimEpochs.insert(epoch) }

  mutating func setNextDue(_ time: Int64?) { nextDue = time }

  // MARK: Writing

  /// Writes an operation: judged first, because one that does not count would break this device's chain (model, rule 19).
  @discardableResult
  public mutating func write(_ operation: RosterOperation, now: Int64) throws(EngineError) -> EntryHash {
    if roster.isNewer { throw .newerRoster }
    if let refusal = roster.refusal(of: operation, by: log.origin) { throw .refused(refusal) }
    return try append(operation, now: now, key: nil)
  }

  private mutating func append(
    _ operation: RosterOperation, now: Int64, key: EpochKey?
  ) throws(EngineError) -> EntryHash {
    let newest = belief.authors.values.map(\.hlc).max() ?? 0
    let hlc = max(UInt64(max(now, 0)) << 16, log.lastHLC + 1, newest + 1)
    let (_, hashes) = log.append(
      parts: [(operation.payload, true)], hlc: hlc, rosterHeads: roster.heads, signing: secrets.device.signing)
    guard let hash = hashes.first, let entry = log.tail.last else { throw .damagedState("nothing was written") }
    if let key {
      ring.hold(key, of: hash)
      roster.learn(key, of: hash)
    }
    _ = try add(entry)
    return hash
  }

  /// Seals what was written, into the outbox. Keep the state afterwards, before anything is sent.
  public mutating func seal(now: Int64, random: inout some RandomSource) throws(EngineError) {
    guard log.hasUnsealed else { return }
    let keys = try currentKeys()
    let facts = HeadFacts(vector: belief.vector, rosterHeads: roster.heads, hlc: log.lastHLC, digest: .zero)
    do {
      outbox += try log.seal(facts, keys: keys, signing: secrets.device.signing, now: now, random: &random).map {
        RosterObject(
          name: keys.objectName(zone: .roster, $0.name), bytes: $0.bytes,
          confirms: HeadName($0.name) == nil ? 0 : $0.sequence)
      }
    } catch { throw .tooLarge }
  }

  /// Gives up this device's roster log, which somebody else has gone on with (a restored or copied directory), and goes on in a
  /// new one. What the store has confirmed of the old one stays believed; what it has not is written again.
  mutating func renew(_ incarnation: Incarnation, now: Int64) throws(EngineError) {
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
    belief.authors[given.origin] = given.asBelieved
    outbox = outbox.filter { $0.isApart || $0.kind == .claim }
    let proven = roster.state.proven
    ring = secrets.ring(of: household)
    roster = Roster(household: household, evaluating: .everyEpoch, proven: proven)
    entries = []
    try addAll(rest)
    if !roster.contains(epoch) { epoch = roster.state.currentEpoch ?? household }
    log = OwnLog(
      household: household, epoch: epoch, zone: .roster,
      origin: Origin(device: given.origin.device, incarnation: incarnation))
    // Epochs that were begun and not seen by anybody are begun anew, if they still have to be.
    for operation in again where !operation.beginsEpoch && roster.refusal(of: operation, by: log.origin) == nil {
      try write(operation, now: now)
    }
  }

  /// The store has confirmed an object.
  public mutating func acknowledge(_ name: ObjectName) {
    if let object = outbox.first(where: { $0.name == name }) {
      if object.confirms > 0 { log.confirm(head: object.confirms) }
      if object.kind == .rosterCopy { readCopies.insert(name) }
    }
    outbox.removeAll { $0.name == name }
  }

  public mutating func forget(heads: [UInt64]) { log.forget(heads: heads) }
}

extension RosterOperation {
  var beginsEpoch: Bool {
    if case .next = self { return true }
    return false
  }
}
