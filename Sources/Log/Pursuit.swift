public import LatchkeyEncoding
public import LatchkeyKeys

/// A push group that was read and verified: whole, in order, signed by its author.
public struct LogGroup: Equatable, Sendable {
  public let zone: ZoneID
  public let origin: Origin
  public let hlc: UInt64
  public let tie: UInt64
  public let firstSequence: UInt64
  public let lastSequence: UInt64
  /// Hash of the group's last entry.
  public let lastHash: EntryHash
  /// Hash of the entry before the group's first; nil at the start of a log.
  public let previous: EntryHash?
  public let rosterHeads: [EntryHash]
  /// Plain payloads of all parts.
  public let payloads: [[UInt8]]
  /// The entries as they were signed, for whoever hands them on.
  public let entries: [StoredEntry]
}

/// Where a reader stands: the zone, its keys, and who may sign.
public struct LogReader: Sendable {
  public let household: HouseholdID
  public let epoch: EpochID
  public let zone: ZoneID
  public let keys: EpochKeys
  /// Verifying keys of the devices that may sign here; nil for one that is not known.
  public let author: @Sendable (DeviceID) -> SigningPublicKey?
  /// Whether a roster entry is known; entries that cite an unknown one wait.
  public let knowsRoster: @Sendable (EntryHash) -> Bool
  /// The last entry of a log that counts, for logs of devices that were removed: reading ends there. Nil for no limit.
  public let limit: @Sendable (Origin) -> UInt64?

  public init(
    household: HouseholdID, zone: ZoneID, keys: EpochKeys,
    author: @escaping @Sendable (DeviceID) -> SigningPublicKey?, knowsRoster: @escaping @Sendable (EntryHash) -> Bool,
    limit: @escaping @Sendable (Origin) -> UInt64? = { _ in nil }
  ) {
    self.household = household
    epoch = keys.epoch
    self.limit = limit
    self.zone = zone
    self.keys = keys
    self.author = author
    self.knowsRoster = knowsRoster
  }

  /// Heads of a listing that are worth reading: per tag the newest one, unless it is accepted already.
  ///
  /// - Parameters:
  ///   - names: names below the zone's prefix.
  ///   - own: this device's own log, whose heads are skipped unless one is newer than it wrote.
  public func newHeads(among names: [ObjectName], belief: Belief, own: OwnLog?) -> [ObjectName] {
    var newest: [String: (counter: UInt64, name: ObjectName)] = [:]
    for name in names {
      guard let head = HeadName(name) else { continue }
      if let known = newest[head.tag], known.counter >= head.counter { continue }
      newest[head.tag] = (head.counter, name)
    }
    let ownTag = own.map { keys.headTag(zone: zone, origin: $0.origin) }
    return newest.filter { tag, head in
      if tag == ownTag, let own { return head.counter > own.counter(in: epoch) }
      return !belief.covers(tag: tag, counter: head.counter, in: epoch, limit: limit)
    }.values.map(\.name).sorted()
  }

  /// The head of the same log to try where one does not hold: the next lower of a listing, unless it is accepted already. Whoever has the zone's key
  /// can put objects under others' names; that must not hide what the others wrote.
  public func head(below failed: ObjectName, among names: [ObjectName], belief: Belief) -> ObjectName? {
    guard let failed = HeadName(failed) else { return nil }
    var best: (counter: UInt64, name: ObjectName)?
    for name in names {
      guard let head = HeadName(name), head.tag == failed.tag, head.counter < failed.counter,
        head.counter > best?.counter ?? 0
      else { continue }
      best = (head.counter, name)
    }
    guard let best, !belief.covers(tag: failed.tag, counter: best.counter, in: epoch, limit: limit) else { return nil }
    return best.name
  }

  /// Tags whose newest listed head is older than what was accepted: the store was rolled back.
  public func rollbacks(among names: [ObjectName], belief: Belief) -> [Finding] {
    var newest: [String: UInt64] = [:]
    for name in names {
      guard let head = HeadName(name) else { continue }
      newest[head.tag] = max(newest[head.tag] ?? 0, head.counter)
    }
    return belief.authors.sorted { $0.key < $1.key }.compactMap { origin, author in
      guard let place = author.places[epoch], place.counter > 0, (newest[place.tag] ?? 0) < place.counter else {
        return nil
      }
      return .rollback(origin: origin, accepted: place.counter, shown: newest[place.tag] ?? 0)
    }
  }

  /// Opens and checks a head, up to and including its signature and name.
  public func open(head name: ObjectName, bytes: [UInt8]) throws(Finding) -> (body: HeadBody, tail: [StoredEntry]) {
    let content = try open(.head, name, bytes)
    do {
      let head = try HeadContent(decoding: content)
      let body = try HeadBody(decoding: head.body)
      guard body.household == household, body.epoch == epoch, body.zone == zone,
        keys.headName(zone: zone, origin: body.origin, counter: body.counter) == name
      else { throw LogError.misplaced("the signed head belongs elsewhere") }
      guard let key = author(body.origin.device) else {
        throw Finding.unknownAuthor(device: body.origin.device, object: name)
      }
      guard isSigned(head.body, .head, head.signature, by: key) else { throw LogError.badSignature }
      // Reserved (format §7): what such a log leaves out lies where this version does not look.
      guard body.base == nil else { throw LogError.newer("a base") }
      return (body, head.tail)
    } catch { throw finding(error, name) }
  }

  /// What a head offers.
  public enum Offer: Sendable {
    /// Nothing that is not accepted already.
    case nothing
    case more(Pursuit)
    /// Entries before this head's, which lie in an epoch that was left.
    case former(FormerPart, origin: Origin)
  }

  /// Begins to read what a head offers beyond what is believed.
  public func pursue(head name: ObjectName, bytes: [UInt8], belief: Belief, own: OwnLog?) throws(Finding) -> Offer {
    let (body, tail) = try open(head: name, bytes: bytes)
    if let own, body.origin == own.origin {
      if body.lastSequence > own.lastSequence || body.counter > own.counter(in: epoch) {
        throw .notMine(origin: body.origin)
      }
      return .nothing
    }
    var known = belief.authors[body.origin] ?? Belief.Author()
    if known.isStopped { return .nothing }
    var place = known.places[epoch] ?? Belief.Place(tag: keys.headTag(zone: zone, origin: body.origin))
    let accepted = known.mark?.sequence ?? 0
    if body.lastSequence < accepted {
      // An epoch that the author has left shows less than the one that it went on in; and roster entries come in copies, too.
      guard zone == .roster || known.places.contains(where: { $0.key != epoch && $0.value.counter > 0 }) else {
        throw .rollback(origin: body.origin, accepted: accepted, shown: body.lastSequence)
      }
    }
    if body.lastSequence == accepted, let mark = known.mark, mark.hash != body.lastHash {
      throw .fork(origin: body.origin, sequence: accepted)
    }
    if let former = body.former {
      if former.mark.sequence > accepted { return .former(former, origin: body.origin) }
      if former.mark.sequence == accepted, former.mark.hash != known.mark?.hash {
        throw .fork(origin: body.origin, sequence: accepted)
      }
    }
    if accepted >= body.segmentsEnd { place.segment = max(place.segment, body.lastSegment) }
    known.places[epoch] = place
    return .more(Pursuit(reader: self, name: name, body: body, tail: tail, author: known, place: place))
  }

  fileprivate func open(_ kind: ObjectKind, _ name: ObjectName, _ bytes: [UInt8]) throws(Finding) -> [UInt8] {
    do {
      return try Envelope.open(bytes, at: keys.place(kind, zone: zone, name: name), key: keys.zoneKey(zone))
    } catch {
      if case .newer(let version, let suite) = error {
        throw .newer(object: name, reason: "envelope version \(version), suite \(suite)")
      }
      throw .damaged(object: name, reason: "\(error)")
    }
  }

  fileprivate func finding(_ error: any Error, _ name: ObjectName) -> Finding {
    switch error {
    case let finding as Finding: finding
    case LogError.newer(let what): .newer(object: name, reason: what)
    default: .damaged(object: name, reason: "\(error)")
    }
  }
}

/// Reading one log from where it was accepted to where a head says it ends.
///
/// Feed it the segments it wants in order, then its tail; after each step ``drain()`` yields the groups that are whole, and the
/// state to store with them. What is not whole is not accepted, so a crash or a damaged object loses nothing: the next
/// round begins after the last whole group.
public struct Pursuit: Sendable {
  public let reader: LogReader
  public let name: ObjectName
  public let body: HeadBody
  private let tail: [StoredEntry]
  /// As of the last drained group.
  private var author: Belief.Author
  private var place: Belief.Place
  private var nextSegment: UInt64
  /// The chain so far, beyond `author.mark` by what waits in `open`.
  private var mark: Mark?
  private var hlc: UInt64
  private var waiting: [(body: EntryBody, hash: EntryHash, payload: [UInt8], stored: StoredEntry)] = []
  private var ready: [LogGroup] = []

  /// Nothing behind it counts, and nothing is read.
  private let limit: UInt64?
  /// Something behind the limit was left out: should the limit move, it is read again.
  private var isCut = false

  init(
    reader: LogReader, name: ObjectName, body: HeadBody, tail: [StoredEntry], author: Belief.Author, place: Belief.Place
  ) {
    self.place = place
    limit = reader.limit(body.origin)
    self.reader = reader
    self.name = name
    self.body = body
    self.tail = tail
    self.author = author
    nextSegment = max(place.segment + 1, body.firstSegment)
    mark = author.mark
    hlc = author.hlc
  }

  public var origin: Origin { body.origin }

  /// Names of the next segments to fetch, at most `limit`; empty when the tail is next.
  public func wantedSegments(limit: Int) -> [ObjectName] {
    guard nextSegment <= body.lastSegment else { return [] }
    let last = min(body.lastSegment, nextSegment + UInt64(limit) - 1)
    return (nextSegment...last).map { reader.keys.segmentName(zone: reader.zone, origin: origin, index: $0) }
  }

  /// Takes the next wanted segment.
  public mutating func take(segment name: ObjectName, bytes: [UInt8]) throws(Finding) {
    let content = try reader.open(.segment, name, bytes)
    do {
      let segment = try SegmentContent(decoding: content)
      guard segment.origin == origin, segment.zone == reader.zone, segment.index == nextSegment,
        reader.keys.segmentName(zone: reader.zone, origin: origin, index: nextSegment) == name
      else { throw LogError.misplaced("the segment belongs elsewhere") }
      for (offset, entry) in segment.entries.enumerated() {
        try take(entry, expected: segment.firstSequence + UInt64(offset))
      }
      nextSegment += 1
      if waiting.isEmpty, !isCut { place.segment = segment.index }
    } catch { throw reader.finding(error, name) }
  }

  /// Takes the tail, once no segment is wanted, and checks that the log ends where the head says.
  public mutating func takeTail() throws(Finding) {
    do {
      for (offset, entry) in tail.enumerated() { try take(entry, expected: body.segmentsEnd + 1 + UInt64(offset)) }
      let accepted = mark?.sequence ?? 0
      if let limit, body.lastSequence > limit {
        // What is behind the limit is as if it were not there, and a group that reaches over it.
        waiting = []
        author.limit = limit
      } else if body.lastSequence >= accepted {
        guard accepted == body.lastSequence, mark?.hash == body.lastHash else {
          throw LogError.brokenChain("the log does not end where its head says")
        }
        guard waiting.isEmpty else { throw LogError.brokenChain("the last group is not whole") }
        author.limit = nil
      }
      place.counter = max(place.counter, body.counter)
      if !isCut { place.segment = max(place.segment, body.lastSegment) }
    } catch { throw reader.finding(error, name) }
  }

  /// The groups that became whole since the last call, and the state that accepting them means.
  public mutating func drain() -> (groups: [LogGroup], author: Belief.Author) {
    defer { ready = [] }
    author.places[reader.epoch] = place
    return (ready, author)
  }

  private mutating func take(_ entry: StoredEntry, expected sequence: UInt64) throws {
    let body = try EntryBody(decoding: entry.body)
    guard body.sequence == sequence, body.origin == origin, body.zone == reader.zone else {
      throw LogError.misplaced("entry \(body.sequence) does not belong here")
    }
    // Genesis has no household yet: its own hash is the household's id.
    let hash = EntryBody.hash(of: entry.body)
    let isGenesis = reader.zone == .roster && body.household == .zero && hash == reader.household
    guard body.household == reader.household || isGenesis else { throw LogError.misplaced("another household's entry") }
    let next = (mark?.sequence ?? 0) + 1
    if let limit, body.sequence > limit {
      isCut = true
      return
    }
    if body.sequence < next {
      if let accepted = author.mark, body.sequence == accepted.sequence, accepted.hash != hash {
        throw Finding.fork(origin: origin, sequence: body.sequence)
      }
      return
    }
    guard body.sequence == next else { throw LogError.brokenChain("entry \(next) is not there") }
    guard let key = reader.author(origin.device) else {
      throw Finding.unknownAuthor(device: origin.device, object: name)
    }
    guard isSigned(entry.body, .entry, entry.signature, by: key) else { throw LogError.badSignature }
    guard body.previous == mark?.hash else {
      // Signed by the author, at the position that follows what was accepted, but after another entry: two branches.
      throw Finding.fork(origin: origin, sequence: body.sequence - 1)
    }
    if reader.zone != .roster, !body.rosterHeads.allSatisfy(reader.knowsRoster) {
      throw Finding.rosterBehind(origin: origin)
    }
    let place = body.group
    if let first = waiting.first?.body.group {
      guard place.hlc == first.hlc, place.tie == first.tie, place.parts == first.parts, place.part == waiting.count
      else {
        throw LogError.brokenChain("parts of a group do not follow each other")
      }
    } else {
      guard place.part == 0, place.hlc > hlc else { throw LogError.brokenChain("a group's clock does not rise") }
    }
    waiting.append((body, hash, try entry.payload(body), entry))
    mark = Mark(sequence: body.sequence, hash: hash)
    guard waiting.count == place.parts else { return }
    let tie = EntryBody.tie(
      zone: reader.zone, origin: origin, hlc: place.hlc, payloadHashes: waiting.map(\.body.payloadHash))
    guard tie == place.tie else { throw LogError.brokenChain("a group's tie is not made from its content") }
    let first = waiting[0].body
    ready.append(
      LogGroup(
        zone: reader.zone, origin: origin, hlc: place.hlc, tie: tie, firstSequence: first.sequence,
        lastSequence: body.sequence, lastHash: hash, previous: first.previous, rosterHeads: body.rosterHeads,
        payloads: waiting.map(\.payload), entries: waiting.map(\.stored)))
    waiting = []
    hlc = place.hlc
    author.mark = mark
    author.hlc = hlc
  }
}

private func isSigned(_ body: [UInt8], _ purpose: SigningPurpose, _ signature: [UInt8], by key: SigningPublicKey)
  -> Bool
{
  guard let signature = Signature(signature) else { return false }
  return key.verifies(signature, purpose, body)
}
