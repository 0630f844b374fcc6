public import LatchkeyEncoding

/// What has been accepted of every log in one zone (format §10). Stored in the transaction that applied what it covers.
public struct Belief: Equatable, Sendable {
  /// How far an author's heads and segments were read in one epoch: counters and indexes start anew in each.
  public struct Place: Equatable, Sendable {
    /// The tag under which this author's heads lie in the epoch.
    public let tag: String
    /// Newest head fully accepted; 0 if none was.
    public var counter: UInt64 = 0
    /// Last segment read completely.
    public var segment: UInt64 = 0

    public init(tag: String, counter: UInt64 = 0, segment: UInt64 = 0) {
      (self.tag, self.counter, self.segment) = (tag, counter, segment)
    }
  }

  /// One author's log, as far as it is accepted. Its entries run on through all epochs.
  public struct Author: Equatable, Sendable {
    public var places: [EpochID: Place] = [:]
    /// Last entry accepted.
    public var mark: Mark?
    /// Clock of the newest group accepted.
    public var hlc: UInt64 = 0
    /// A fork was seen: nothing more of this log counts here.
    public var isStopped = false
    /// Reading ended here because the author was removed: nothing behind this entry counted then. Nil for a log that is read on.
    public var limit: UInt64?
    /// What was accepted beyond the author's limit was published again by this device.
    public var isCarried = false
    /// What this author says that it has accepted of others' logs and was not shown here when its head was read.
    public var cited: [Origin: UInt64] = [:]
    /// Since when some of it has not been shown, in milliseconds since 1970.
    public var citedSince: Int64 = 0

    public init() {}
  }

  /// When an epoch that is not written to any more was looked through for late writers.
  public struct Probe: Equatable, Sendable {
    /// Milliseconds since 1970.
    public let first: Int64
    public var last: Int64
    public init(first: Int64, last: Int64) { (self.first, self.last) = (first, last) }
  }

  public var authors: [Origin: Author] = [:]
  /// Epochs that were left and looked through since.
  public var probes: [EpochID: Probe] = [:]

  public init() {}

  /// The positions accepted, for heads.
  public var vector: [Origin: Mark] { authors.compactMapValues(\.mark) }

  /// Whether a head's tag and counter, as listed in an epoch, are fully accepted already.
  ///
  /// - Parameter limit: behind which entry nothing of a log counts; nil for no limit.
  public func covers(
    tag: String, counter: UInt64, in epoch: EpochID, limit: (Origin) -> UInt64? = { _ in nil }
  ) -> Bool {
    authors.contains { origin, author in
      guard let place = author.places[epoch], place.tag == tag else { return false }
      if author.isStopped { return true }
      if let former = author.limit, limit(origin).map({ $0 > former }) ?? true { return false }
      return place.counter >= counter
    }
  }

  /// Keeps what an author's newest head cites beyond what is accepted here.
  ///
  /// - Parameter now: milliseconds since 1970.
  public func noting(
    citations vector: [Origin: Mark], of author: Author, now: Int64, except: (Origin) -> Bool
  ) -> Author {
    var author = author
    let wasOpen = author.cited.contains { isBehind($0.key, $0.value) }
    author.cited = vector.filter { !except($0.key) && isBehind($0.key, $0.value.sequence) }.mapValues(\.sequence)
    author.citedSince = author.cited.isEmpty ? 0 : wasOpen ? author.citedSince : now
    return author
  }

  /// Citations that nothing has proven for longer than a day.
  ///
  /// - Parameter counts: whose word is taken for it; readers' is not.
  public func withheld(now: Int64, counts: (DeviceID) -> Bool, except: (Origin) -> Bool) -> [Finding] {
    authors.sorted { $0.key < $1.key }.flatMap { by, author -> [Finding] in
      guard !author.cited.isEmpty, now - author.citedSince > Self.day, counts(by.device) else { return [] }
      return author.cited.sorted { $0.key < $1.key }.filter { isBehind($0.key, $0.value) && !except($0.key) }.map {
        .withheld(
          origin: $0.key, accepted: authors[$0.key]?.mark?.sequence ?? 0, cited: $0.value, by: by.device)
      }
    }
  }

  private func isBehind(_ origin: Origin, _ sequence: UInt64) -> Bool {
    authors[origin]?.mark?.sequence ?? 0 < sequence
  }

  /// In milliseconds.
  public static let day: Int64 = 86_400_000

  /// How long an epoch that was left is looked through each time: somebody may have written there meanwhile, or begun another one after it.
  static let hour: Int64 = 3_600_000

  /// Whether an epoch that was left should be looked through now: for an hour each time, then daily for thirty days (format §7).
  public func isDue(_ epoch: EpochID, now: Int64) -> Bool {
    guard let probe = probes[epoch] else { return true }
    // A clock that was set back must not keep this device from looking.
    return now - probe.first <= Self.hour || now - probe.last >= Self.day && now - probe.first <= 30 * Self.day
  }

  /// Whether ``probed(_:now:)`` would change what is kept.
  public func needsProbe(_ epoch: EpochID, now: Int64) -> Bool {
    probes[epoch].map { now - $0.last > Self.hour } ?? true
  }

  public mutating func probed(_ epoch: EpochID, now: Int64) {
    guard needsProbe(epoch, now: now) else { return }
    probes[epoch] = Probe(first: probes[epoch]?.first ?? now, last: now)
  }

  // MARK: Kept form

  /// For the store of the caller; not a wire format.
  public func encoded() -> [UInt8] {
    var w = CBORWriter()
    w.array(2)
    w.array(authors.count)
    for (origin, author) in authors.sorted(by: { $0.key < $1.key }) {
      w.array(11)
      w.id(origin.device)
      w.id(origin.incarnation)
      w.array(author.places.count * 4)
      for (epoch, place) in author.places.sorted(by: { $0.key < $1.key }) {
        w.id(epoch)
        w.text(place.tag)
        w.uint(place.counter)
        w.uint(place.segment)
      }
      w.uint(author.mark?.sequence ?? 0)
      if let mark = author.mark { w.id(mark.hash) } else { w.null() }
      w.uint(author.hlc)
      w.bool(author.isStopped)
      if let limit = author.limit { w.uint(limit) } else { w.null() }
      w.bool(author.isCarried)
      w.array(author.cited.count * 3)
      for (origin, sequence) in author.cited.sorted(by: { $0.key < $1.key }) {
        w.id(origin.device)
        w.id(origin.incarnation)
        w.uint(sequence)
      }
      w.int(author.citedSince)
    }
    w.array(probes.count * 3)
    for (epoch, probe) in probes.sorted(by: { $0.key < $1.key }) {
      w.id(epoch)
      w.int(probe.first)
      w.int(probe.last)
    }
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      try r.array(exactly: 2)
      for _ in 0..<(try r.array()) {
        // Nine: kept before citations were.
        let elements = try r.array()
        guard elements == 11 || elements == 9 else { throw LogError.malformed("kept belief") }
        let origin = Origin(device: try r.id(), incarnation: try r.id())
        var author = Author()
        for _ in 0..<(try r.array() / 4) {
          let epoch: EpochID = try r.id()
          let tag = try r.text()
          author.places[epoch] = Place(tag: tag, counter: try r.uint(), segment: try r.uint())
        }
        let sequence = try r.uint()
        if !(try r.null()) { author.mark = Mark(sequence: sequence, hash: try r.id()) }
        author.hlc = try r.uint()
        author.isStopped = try r.bool()
        author.limit = try r.null() ? nil : try r.uint()
        author.isCarried = try r.bool()
        if elements == 11 {
          for _ in 0..<(try r.array() / 3) {
            let cited = Origin(device: try r.id(), incarnation: try r.id())
            author.cited[cited] = try r.uint()
          }
          author.citedSince = try r.int()
        }
        authors[origin] = author
      }
      for _ in 0..<(try r.array() / 3) {
        let epoch: EpochID = try r.id()
        probes[epoch] = Probe(first: try r.int(), last: try r.int())
      }
      try r.finish()
    } catch { throw .malformed("kept belief: \(error)") }
  }
}
