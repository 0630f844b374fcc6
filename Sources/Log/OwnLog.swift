public import LatchkeyEncoding
public import LatchkeyKeys

/// One sealed object, ready to be sent: its name below the zone's prefix, and its bytes.
public struct SealedObject: Equatable, Sendable {
  public let name: ObjectName
  public let bytes: [UInt8]
  /// The last sequence of the author's log that is safe once this object and those before it are.
  public let sequence: UInt64

  public init(name: ObjectName, bytes: [UInt8], sequence: UInt64) {
    (self.name, self.bytes, self.sequence) = (name, bytes, sequence)
  }
}

/// What a head says besides its author's own log (format §7).
public struct HeadFacts: Sendable {
  public var vector: [Origin: Mark]
  public var rosterHeads: [EntryHash]
  public var hlc: UInt64
  public var digest: Hash32
  public var unapplied: [(origin: Origin, sequence: UInt64)]

  public init(
    vector: [Origin: Mark], rosterHeads: [EntryHash], hlc: UInt64, digest: Hash32,
    unapplied: [(origin: Origin, sequence: UInt64)] = []
  ) {
    self.vector = vector
    self.rosterHeads = rosterHeads.sorted()
    self.hlc = hlc
    self.digest = digest
    self.unapplied = unapplied
  }
}

/// What this device has written into one zone.
///
/// Usage, inside one transaction of whoever stores it: ``append(parts:hlc:rosterHeads:household:signing:)`` for every push
/// group, then ``seal(_:place:signing:now:random:)`` once, then store this value and the sealed objects. From then on those bytes,
/// and no others, are sent, however often: sequence numbers are given out once.
public struct OwnLog: Equatable, Sendable {
  public let household: HouseholdID
  /// The epoch that it is written into now.
  public private(set) var epoch: EpochID
  public let zone: ZoneID
  public let origin: Origin
  /// Counter of the newest head; 0 before the first.
  public private(set) var counter: UInt64 = 0
  public private(set) var lastSegment: UInt64 = 0
  public private(set) var segmentsEnd: UInt64 = 0
  public private(set) var lastSequence: UInt64 = 0
  public private(set) var lastHash: EntryHash?
  /// The newest group's clock: the next one's is greater.
  public private(set) var lastHLC: UInt64 = 0
  /// Entries after `segmentsEnd`.
  public private(set) var tail: [StoredEntry] = []
  /// Heads that may lie in the store, oldest first, with the time of writing in milliseconds.
  public private(set) var liveHeads: [LiveHead] = []
  /// How far the store has confirmed this log.
  public private(set) var confirmed: Position?
  /// Where sealed heads end that the store has not confirmed, oldest first.
  private var unconfirmed: [Position] = []
  private var isSealed = true
  /// What lies in epochs before this one, newest last.
  public private(set) var formerParts: [Part] = []
  /// Where this epoch's part begins.
  public private(set) var beginning: Mark?

  /// What this log has in the store in an epoch that was left.
  public struct Part: Equatable, Sendable {
    public let epoch: EpochID
    /// Of the last head that was sealed.
    public let counter: UInt64
    /// Of the last head that is there; 0 for none.
    public let sent: UInt64
    /// 1 and up; 0 for none.
    public let lastSegment: UInt64
    /// Heads that may lie there, oldest first.
    public let heads: [UInt64]
  }

  /// A place in this log.
  public struct Position: Equatable, Sendable {
    public let mark: Mark
    /// The clock of the group that ends here.
    public let hlc: UInt64
    public init(mark: Mark, hlc: UInt64) { (self.mark, self.hlc) = (mark, hlc) }
  }

  public struct LiveHead: Equatable, Sendable {
    public let counter: UInt64
    public let writtenAt: Int64
  }

  public init(household: HouseholdID, epoch: EpochID, zone: ZoneID, origin: Origin) {
    (self.household, self.epoch, self.zone, self.origin) = (household, epoch, zone, origin)
  }

  /// Adds one push group and signs its entries.
  ///
  /// - Parameters:
  ///   - parts: plain payloads in order, each with whether it may be compressed.
  ///   - hlc: greater than every earlier group's.
  ///   - rosterHeads: the ends of the roster as this device knows it.
  ///   - isGenesis: the household's first entry, whose household field is zero.
  /// - Returns: the group's tie, and the new entries' hashes.
  public mutating func append(
    parts: [(payload: [UInt8], compress: Bool)], hlc: UInt64, rosterHeads: [EntryHash], signing: SigningKey,
    isGenesis: Bool = false
  ) -> (tie: UInt64, hashes: [EntryHash]) {
    precondition(hlc > lastHLC && !parts.isEmpty && parts.count <= LogLimits.partsPerGroup, "a group's clock rises")
    let hashes = parts.map { EntryBody.payloadHash($0.payload) }
    let tie = EntryBody.tie(zone: zone, origin: origin, hlc: hlc, payloadHashes: hashes)
    let heads = rosterHeads.sorted()
    var written: [EntryHash] = []
    for (index, part) in parts.enumerated() {
      let body = EntryBody(
        household: isGenesis ? .zero : household, zone: zone, origin: origin, sequence: lastSequence + 1,
        previous: lastHash,
        rosterHeads: heads, group: GroupPlace(hlc: hlc, tie: tie, part: index, parts: parts.count),
        payloadHash: hashes[index], payloadLength: part.payload.count
      ).encoded()
      let frame = part.compress ? Compression.compress(part.payload) : nil
      tail.append(
        StoredEntry(
          body: body, signature: signing.sign(.entry, body).bytes, isCompressed: frame != nil,
          stored: frame ?? part.payload))
      lastSequence += 1
      let hash = EntryBody.hash(of: body)
      lastHash = hash
      written.append(hash)
    }
    lastHLC = hlc
    isSealed = false
    return (tie, written)
  }

  /// The household's id is known only once Genesis is signed: the same log under its real name.
  public func renamed(household: HouseholdID, epoch: EpochID) -> OwnLog {
    var log = OwnLog(household: household, epoch: epoch, zone: zone, origin: origin)
    log.lastSequence = lastSequence
    log.lastHash = lastHash
    log.lastHLC = lastHLC
    log.tail = tail
    log.isSealed = isSealed
    return log
  }

  /// Goes on in another epoch: counters and segments start anew there, the entries run on.
  ///
  /// - Parameters:
  ///   - end: the last entry that is safe without being repeated in the new epoch; nil for none.
  ///   - tail: the signed entries after it, verbatim.
  ///   - announces: whether a head is due there even if there is nothing to repeat, so that others learn where the former part ended.
  public mutating func enter(
    _ epoch: EpochID, after end: Position?, isConfirmed: Bool, tail: [StoredEntry], announces: Bool
  ) {
    if counter > 0 {
      // Heads that were sealed and not confirmed are dropped with the outbox: nobody would find them.
      let sent = isConfirmed ? counter - min(counter, UInt64(unconfirmed.count)) : counter
      formerParts.append(
        Part(
          epoch: self.epoch, counter: counter, sent: sent, lastSegment: lastSegment, heads: liveHeads.map(\.counter)))
    }
    self.epoch = epoch
    (counter, lastSegment, liveHeads) = (0, 0, [])
    beginning = end?.mark
    segmentsEnd = end?.mark.sequence ?? 0
    self.tail = tail
    if isConfirmed { unconfirmed = [] }
    if let end, end.mark.sequence > confirmed?.mark.sequence ?? 0 {
      if isConfirmed { confirmed = end } else { unconfirmed.append(end) }
    }
    isSealed = lastHash == nil || tail.isEmpty && !announces
  }

  /// What this log has in the store, by epoch, oldest first.
  public var parts: [Part] {
    formerParts + [
      Part(epoch: epoch, counter: counter, sent: counter, lastSegment: lastSegment, heads: liveHeads.map(\.counter))
    ]
  }

  /// The newest head's counter in an epoch; 0 if there is none.
  public func counter(in epoch: EpochID) -> UInt64 {
    epoch == self.epoch ? counter : formerParts.last { $0.epoch == epoch }?.counter ?? 0
  }

  /// Whether the store has confirmed everything that was sealed.
  public var isConfirmed: Bool { counter > 0 && isSealed && unconfirmed.isEmpty }

  /// Makes a head due though nothing was written: the store has lost the newest one.
  public mutating func announce() { isSealed = lastHash == nil }

  /// Whether the newest head is not among listed names though the store has confirmed it.
  public func isHeadMissing(among names: [ObjectName], keys: EpochKeys) -> Bool {
    guard epoch == keys.epoch, isConfirmed else { return false }
    let tag = keys.headTag(zone: zone, origin: origin)
    return !names.contains { HeadName($0).map { $0.tag == tag && $0.counter >= counter } ?? false }
  }

  /// Whether entries wait to be sealed.
  public var hasUnsealed: Bool { !isSealed }

  /// Seals everything appended since the last call: segments first, then one head. Nothing if there is nothing.
  ///
  /// - Parameters:
  ///   - facts: what the head says of others.
  ///   - keys: the epoch's keys.
  ///   - now: milliseconds since 1970, for the heads' grace period.
  ///   - random: nonces.
  public mutating func seal(
    _ facts: HeadFacts, keys: EpochKeys, signing: SigningKey, now: Int64, random: inout some RandomSource
  ) throws(EnvelopeError) -> [SealedObject] {
    guard !isSealed, let lastHash else { return [] }
    var out: [SealedObject] = []
    let bodyWeight = 512 + facts.vector.count * 72 + facts.rosterHeads.count * 34 + facts.unapplied.count * 40
    if bodyWeight + tail.reduce(0, { $0 + $1.weight }) > LogLimits.sealedTailBytes - Envelope.overhead {
      for run in StoredEntry.runs(of: tail) {
        lastSegment += 1
        let content = SegmentContent(
          origin: origin, zone: zone, index: lastSegment, firstSequence: segmentsEnd + 1, entries: Array(run))
        segmentsEnd += UInt64(run.count)
        let name = keys.segmentName(zone: zone, origin: origin, index: lastSegment)
        let bytes = try Envelope.seal(
          content.encoded(), at: keys.place(.segment, zone: zone, name: name), key: keys.zoneKey(zone),
          nonce: EnvelopeNonce(&random))
        out.append(SealedObject(name: name, bytes: bytes, sequence: segmentsEnd))
      }
      tail = []
    }
    counter += 1
    let body = HeadBody(
      household: household, epoch: epoch, zone: zone, origin: origin, counter: counter,
      firstSegment: lastSegment == 0 ? 0 : 1, lastSegment: lastSegment, segmentsEnd: segmentsEnd,
      lastSequence: lastSequence, lastHash: lastHash, vector: facts.vector, rosterHeads: facts.rosterHeads,
      hlc: facts.hlc, digest: facts.digest, unapplied: facts.unapplied,
      former: beginning.map { beginning in
        // Entries that never lay in a head of their own are in copies of the roster.
        let part = formerParts.last { $0.sent > 0 }
        return FormerPart(epoch: part?.epoch ?? epoch, counter: part?.sent ?? 0, mark: beginning)
      }
    ).encoded()
    let content = HeadContent(body: body, signature: signing.sign(.head, body).bytes, tail: tail)
    let name = keys.headName(zone: zone, origin: origin, counter: counter)
    let bytes = try Envelope.seal(
      content.encoded(), at: keys.place(.head, zone: zone, name: name), key: keys.zoneKey(zone),
      nonce: EnvelopeNonce(&random))
    out.append(SealedObject(name: name, bytes: bytes, sequence: lastSequence))
    liveHeads.append(LiveHead(counter: counter, writtenAt: now))
    unconfirmed.append(Position(mark: Mark(sequence: lastSequence, hash: lastHash), hlc: lastHLC))
    isSealed = true
    return out
  }

  /// Heads that may be deleted: not among the newest four, and older than ten minutes (format §7).
  public func superseded(now: Int64) -> [UInt64] {
    liveHeads.dropLast(4).filter { now - $0.writtenAt > 600_000 }.map(\.counter)
  }

  /// Forgets heads that were deleted.
  public mutating func forget(heads: [UInt64]) {
    liveHeads.removeAll { heads.contains($0.counter) }
  }

  /// The store has confirmed a head that ends at `sequence`. Anything else changes nothing.
  public mutating func confirm(head sequence: UInt64) {
    guard let at = unconfirmed.firstIndex(where: { $0.mark.sequence == sequence }) else { return }
    confirmed = unconfirmed[at]
    unconfirmed.removeFirst(at + 1)
  }

  /// This log as one believes somebody else's: for a device that gives it up and goes on under a new incarnation. Only what the
  /// store has confirmed counts: behind that, somebody else may have gone on.
  public var asBelieved: Belief.Author {
    var author = Belief.Author()
    author.mark = confirmed?.mark
    author.hlc = confirmed?.hlc ?? 0
    return author
  }

  // MARK: Kept form

  /// For the store of the caller; not a wire format.
  public func encoded() -> [UInt8] {
    var w = CBORWriter()
    w.array(18)
    w.uint(1)
    w.id(household)
    w.id(epoch)
    w.id(zone)
    w.id(origin.device)
    w.id(origin.incarnation)
    w.uint(counter)
    w.uint(lastSegment)
    w.uint(segmentsEnd)
    w.uint(lastSequence)
    if let lastHash { w.id(lastHash) } else { w.null() }
    w.uint(lastHLC)
    w.array(tail.count)
    for entry in tail { entry.write(to: &w) }
    w.array(liveHeads.count * 2)
    for head in liveHeads {
      w.uint(head.counter)
      w.int(head.writtenAt)
    }
    write(confirmed.map { [$0] } ?? [], to: &w)
    write(unconfirmed, to: &w)
    w.array(formerParts.count * 5)
    for part in formerParts {
      w.id(part.epoch)
      w.uint(part.counter)
      w.uint(part.sent)
      w.uint(part.lastSegment)
      w.array(part.heads.count)
      for head in part.heads { w.uint(head) }
    }
    if let beginning {
      w.array(2)
      w.uint(beginning.sequence)
      w.id(beginning.hash)
    } else {
      w.null()
    }
    return w.bytes
  }

  private func write(_ positions: [Position], to w: inout CBORWriter) {
    w.array(positions.count * 3)
    for position in positions {
      w.uint(position.mark.sequence)
      w.id(position.mark.hash)
      w.uint(position.hlc)
    }
  }

  private static func positions(_ r: inout CBORReader) throws(CBORError) -> [Position] {
    var out: [Position] = []
    for _ in 0..<(try r.array() / 3) {
      let sequence = try r.uint()
      let hash: EntryHash = try r.id()
      out.append(Position(mark: Mark(sequence: sequence, hash: hash), hlc: try r.uint()))
    }
    return out
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      try r.array(exactly: 18)
      guard try r.uint() == 1 else { throw LogError.newer("kept log") }
      household = try r.id()
      epoch = try r.id()
      zone = try r.id()
      origin = Origin(device: try r.id(), incarnation: try r.id())
      counter = try r.uint()
      lastSegment = try r.uint()
      segmentsEnd = try r.uint()
      lastSequence = try r.uint()
      lastHash = try r.null() ? nil : try r.id()
      lastHLC = try r.uint()
      for _ in 0..<(try r.array()) { tail.append(try StoredEntry(from: &r)) }
      for _ in 0..<(try r.array() / 2) { liveHeads.append(LiveHead(counter: try r.uint(), writtenAt: try r.int())) }
      confirmed = try Self.positions(&r).first
      unconfirmed = try Self.positions(&r)
      for _ in 0..<(try r.array() / 5) {
        let epoch: EpochID = try r.id()
        let counter = try r.uint()
        let sent = try r.uint()
        let segment = try r.uint()
        var heads: [UInt64] = []
        for _ in 0..<(try r.array()) { heads.append(try r.uint()) }
        formerParts.append(Part(epoch: epoch, counter: counter, sent: sent, lastSegment: segment, heads: heads))
      }
      if try !r.null() {
        try r.array(exactly: 2)
        let sequence = try r.uint()
        beginning = Mark(sequence: sequence, hash: try r.id())
      }
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("kept log: \(error)") }
  }
}
