public import LatchkeyEncoding

/// How far a log has been accepted.
public struct Mark: Hashable, Sendable {
  public var sequence: UInt64
  public var hash: EntryHash
  public init(sequence: UInt64, hash: EntryHash) { (self.sequence, self.hash) = (sequence, hash) }
}

/// What came before an epoch's part of a log: the head in which the part of the epoch before it ends (format §7).
public struct FormerPart: Hashable, Sendable {
  public let epoch: EpochID
  /// Of the author's last head there; 0 where it has none and its entries lie in copies of the roster.
  public let counter: UInt64
  /// The last entry that is not repeated here.
  public let mark: Mark

  public init(epoch: EpochID, counter: UInt64, mark: Mark) {
    (self.epoch, self.counter, self.mark) = (epoch, counter, mark)
  }
}

/// The signed part of a head: the newest state of one device's log in one zone (format §7).
public struct HeadBody: Equatable, Sendable {
  public var household: HouseholdID
  public var epoch: EpochID
  public var zone: ZoneID
  public var origin: Origin
  /// 1, 2, 3 … per origin, zone and epoch.
  public var counter: UInt64
  /// Segments that are there: `firstSegment...lastSegment`; 0 as last means none.
  public var firstSegment: UInt64
  public var lastSegment: UInt64
  /// Last sequence that lies in a segment; what follows is in the tail.
  public var segmentsEnd: UInt64
  public var lastSequence: UInt64
  public var lastHash: EntryHash
  /// Raw CBOR of the pointer to a base, or nil; reserved.
  public var base: [UInt8]?
  /// What the author had accepted of every origin, itself excluded.
  public var vector: [Origin: Mark]
  public var rosterHeads: [EntryHash]
  public var hlc: UInt64
  /// State digest at that vector (format §9).
  public var digest: Hash32
  /// Accepted, but not applied yet.
  public var unapplied: [(origin: Origin, sequence: UInt64)]
  /// Where this epoch's part of the log begins, if not at its first entry.
  public var former: FormerPart?

  public init(
    household: HouseholdID, epoch: EpochID, zone: ZoneID, origin: Origin, counter: UInt64, firstSegment: UInt64,
    lastSegment: UInt64, segmentsEnd: UInt64, lastSequence: UInt64, lastHash: EntryHash, vector: [Origin: Mark],
    rosterHeads: [EntryHash], hlc: UInt64, digest: Hash32, unapplied: [(origin: Origin, sequence: UInt64)],
    former: FormerPart? = nil
  ) {
    self.former = former
    self.household = household
    self.epoch = epoch
    self.zone = zone
    self.origin = origin
    self.counter = counter
    self.firstSegment = firstSegment
    self.lastSegment = lastSegment
    self.segmentsEnd = segmentsEnd
    self.lastSequence = lastSequence
    self.lastHash = lastHash
    self.vector = vector
    self.rosterHeads = rosterHeads
    self.hlc = hlc
    self.digest = digest
    self.unapplied = unapplied
  }

  public static func == (a: HeadBody, b: HeadBody) -> Bool { a.encoded() == b.encoded() }

  /// The bytes that are signed.
  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 512)
    w.array(19)
    w.uint(1)
    w.id(household)
    w.id(epoch)
    w.id(zone)
    w.id(origin.device)
    w.id(origin.incarnation)
    w.uint(counter)
    w.uint(firstSegment)
    w.uint(lastSegment)
    w.uint(segmentsEnd)
    w.uint(lastSequence)
    w.id(lastHash)
    if let base { w.raw(base) } else { w.null() }
    w.array(vector.count)
    for (origin, mark) in vector.sorted(by: { $0.key < $1.key }) {
      w.array(4)
      w.id(origin.device)
      w.id(origin.incarnation)
      w.uint(mark.sequence)
      w.id(mark.hash)
    }
    w.array(rosterHeads.count)
    for head in rosterHeads { w.id(head) }
    w.uint(hlc)
    w.id(digest)
    w.array(unapplied.count)
    for item in unapplied {
      w.array(3)
      w.id(item.origin.device)
      w.id(item.origin.incarnation)
      w.uint(item.sequence)
    }
    if let former {
      w.array(4)
      w.id(former.epoch)
      w.uint(former.counter)
      w.uint(former.mark.sequence)
      w.id(former.mark.hash)
    } else {
      w.null()
    }
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      let count = try r.array()
      let version = try r.uint()
      guard version == 1 else { throw LogError.newer("head version \(version)") }
      guard count == 19 else { throw LogError.malformed("head body") }
      household = try r.id()
      epoch = try r.id()
      zone = try r.id()
      origin = Origin(device: try r.id(), incarnation: try r.id())
      counter = try r.uint()
      firstSegment = try r.uint()
      lastSegment = try r.uint()
      segmentsEnd = try r.uint()
      lastSequence = try r.uint()
      lastHash = try r.id()
      base = try r.null() ? nil : try r.raw()
      var marks: [Origin: Mark] = [:]
      var latest: Origin?
      for _ in 0..<(try r.array(max: LogLimits.vector)) {
        try r.array(exactly: 4)
        let origin = Origin(device: try r.id(), incarnation: try r.id())
        if let latest, !(latest < origin) { throw LogError.malformed("vector order") }
        latest = origin
        marks[origin] = Mark(sequence: try r.uint(), hash: try r.id())
      }
      vector = marks
      var heads: [EntryHash] = []
      for _ in 0..<(try r.array(max: LogLimits.rosterHeads)) { heads.append(try r.id()) }
      rosterHeads = heads
      hlc = try r.uint()
      digest = try r.id()
      var waiting: [(Origin, UInt64)] = []
      for _ in 0..<(try r.array(max: LogLimits.vector)) {
        try r.array(exactly: 3)
        waiting.append((Origin(device: try r.id(), incarnation: try r.id()), try r.uint()))
      }
      unapplied = waiting.map { (origin: $0.0, sequence: $0.1) }
      if try !r.null() {
        try r.array(exactly: 4)
        let epoch: EpochID = try r.id()
        let counter = try r.uint()
        let sequence = try r.uint()
        former = FormerPart(epoch: epoch, counter: counter, mark: Mark(sequence: sequence, hash: try r.id()))
      }
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("head body: \(error)") }
    guard counter >= 1, lastSequence >= 1, segmentsEnd <= lastSequence,
      lastSegment == 0 ? segmentsEnd == former?.mark.sequence ?? 0 : segmentsEnd > former?.mark.sequence ?? 0,
      former?.mark.sequence != 0,
      lastSegment == 0 || (firstSegment >= 1 && firstSegment <= lastSegment)
    else { throw .malformed("head body") }
  }
}

/// A head's content before sealing: signed body, signature, tail.
public struct HeadContent: Sendable {
  public let body: [UInt8]
  public let signature: [UInt8]
  public let tail: [StoredEntry]

  public init(body: [UInt8], signature: [UInt8], tail: [StoredEntry]) {
    (self.body, self.signature, self.tail) = (body, signature, tail)
  }

  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: body.count + 128 + tail.reduce(0) { $0 + $1.weight })
    w.array(3)
    w.byteString(body)
    w.byteString(signature)
    StoredEntry.write(tail, to: &w)
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      try r.array(exactly: 3)
      body = try r.byteString(max: LogLimits.headBytes)
      signature = try r.byteString(max: 64)
      tail = try StoredEntry.list(from: &r)
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("head: \(error)") }
    guard signature.count == 64 else { throw .malformed("signature length") }
  }
}

/// A segment's content before sealing: a run of entries (format §7).
public struct SegmentContent: Sendable {
  public let origin: Origin
  public let zone: ZoneID
  /// 1, 2, 3 … per origin, zone and epoch.
  public let index: UInt64
  public let firstSequence: UInt64
  public let entries: [StoredEntry]

  public init(origin: Origin, zone: ZoneID, index: UInt64, firstSequence: UInt64, entries: [StoredEntry]) {
    (self.origin, self.zone, self.index, self.firstSequence, self.entries) = (
      origin, zone, index, firstSequence, entries
    )
  }

  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 128 + entries.reduce(0) { $0 + $1.weight })
    w.array(7)
    w.uint(1)
    w.id(origin.device)
    w.id(origin.incarnation)
    w.id(zone)
    w.uint(index)
    w.uint(firstSequence)
    StoredEntry.write(entries, to: &w)
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      let count = try r.array()
      let version = try r.uint()
      guard version == 1 else { throw LogError.newer("segment version \(version)") }
      guard count == 7 else { throw LogError.malformed("segment") }
      origin = Origin(device: try r.id(), incarnation: try r.id())
      zone = try r.id()
      index = try r.uint()
      firstSequence = try r.uint()
      entries = try StoredEntry.list(from: &r)
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("segment: \(error)") }
    guard index >= 1, firstSequence >= 1, !entries.isEmpty else { throw .malformed("segment") }
  }
}

/// Roster entries of any authors, verbatim, ancestors first: the beginning of a roster in a new epoch (format §7).
public struct RosterCopy: Sendable {
  public let entries: [StoredEntry]

  public init(entries: [StoredEntry]) { self.entries = entries }

  /// Cuts entries into copies that make one object each.
  public static func copies(of entries: [StoredEntry]) -> [RosterCopy] {
    StoredEntry.runs(of: entries).map { RosterCopy(entries: Array($0)) }
  }

  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 64 + entries.reduce(0) { $0 + $1.weight })
    w.array(2)
    w.uint(1)
    StoredEntry.write(entries, to: &w)
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      let count = try r.array()
      let version = try r.uint()
      guard version == 1 else { throw LogError.newer("roster copy version \(version)") }
      guard count == 2 else { throw LogError.malformed("roster copy") }
      entries = try StoredEntry.list(from: &r)
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("roster copy: \(error)") }
  }
}
