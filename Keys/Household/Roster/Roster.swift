public import LatchkeyEncoding

/// A household's roster: holds signed entries and judges them (format §8).
///
/// Every operation is judged in the state made by its ancestors: the heads it cites and its author's previous entry. So
/// what a set of entries amounts to does not depend on the order, or the number of times, in which they arrive.
///
/// Operations that this version does not evaluate (`next`, `leave`, `seal`, unknown kinds) and all that builds on them
/// are ``RosterVerdict/newer``: never guessed. While ``isNewer``, nothing may be uploaded.
public struct Roster: Sendable {
  public let household: HouseholdID
  var graph = RosterGraph()
  var facts = RosterFacts()
  private var verdicts: [RosterVerdict] = []
  private var waiting: [EntryHash: RosterEntry] = [:]
  /// Missing ancestor → entries that wait for it.
  private var waiters: [EntryHash: Set<EntryHash>] = [:]
  /// Whether some entry needs a newer version.
  public private(set) var isNewer = false

  public init(household: HouseholdID) { self.household = household }

  /// Adds an entry, and whatever waited for it. Adding one twice changes nothing.
  ///
  /// - Returns: what became of this entry; for others that were released see ``verdict(of:)``.
  @discardableResult
  public mutating func add(_ entry: RosterEntry) -> RosterVerdict {
    if graph[entry.hash] == nil {
      let missing = graph.missing(entry)
      guard missing.isEmpty else {
        waiting[entry.hash] = entry
        for hash in missing { waiters[hash, default: []].insert(entry.hash) }
        return .waiting(missing)
      }
      var ready = [entry]
      while let next = ready.popLast() {
        waiting[next.hash] = nil
        insert(next)
        for hash in (waiters.removeValue(forKey: next.hash) ?? []).sorted() {
          if let held = waiting[hash], graph.missing(held).isEmpty { ready.append(held) }
        }
      }
    }
    return verdict(of: entry.hash) ?? .waiting([])
  }

  private mutating func insert(_ entry: RosterEntry) {
    guard graph[entry.hash] == nil else { return }
    let at = graph.insert(entry)
    let node = graph.nodes[at]
    let verdict: RosterVerdict
    if graph.ancestors(entry).contains(where: { graph[$0].map { verdicts[$0] == .newer } ?? false }) {
      verdict = .newer
    } else if !node.continues {
      verdict = .refused(.chain)
    } else {
      let author = RosterAuthor(
        origin: entry.origin, previous: entry.previous.flatMap { graph[$0] }, past: ancestors(of: at), hash: entry.hash)
      switch judge(entry.operation, by: author) {
      case .counts(let change):
        facts.apply(change, at: RosterFacts.Source(at, node))
        verdict = .counts
      case .refused(let reason): verdict = .refused(reason)
      case .newer: verdict = .newer
      }
    }
    if verdict == .newer { isNewer = true }
    verdicts.append(verdict)
  }

  /// The ancestors of an entry, without itself.
  private func ancestors(of at: Int) -> Past {
    var past = Past()
    for hash in graph.ancestors(graph.nodes[at].entry) {
      if let ancestor = graph[hash] { past.formUnion(graph.nodes[ancestor].past) }
    }
    return past
  }

  /// What became of an entry; nil for one that was never added.
  public func verdict(of hash: EntryHash) -> RosterVerdict? {
    if let at = graph[hash] { return verdicts[at] }
    return waiting[hash].map { .waiting(graph.missing($0)) }
  }

  /// Whether an entry is here with all its ancestors: what a checkpoint's heads are looked up with.
  public func contains(_ hash: EntryHash) -> Bool { graph[hash] != nil }

  /// Entries that were added, ancestors before descendants, without those that wait.
  public var entries: [RosterEntry] { graph.nodes.map(\.entry) }

  /// Ancestors that waiting entries lack and that do not wait themselves, ascending.
  public var missing: [EntryHash] { waiters.keys.filter { waiting[$0] == nil && graph[$0] == nil }.sorted() }

  /// What the next entry or head of this device cites: the entries that nothing here builds on, ascending, at most 256.
  ///
  /// Refused entries are cited too: what was seen is cited. Should there be more than 256 (somebody floods the roster),
  /// those that count and are deepest go first.
  public var heads: [EntryHash] {
    guard graph.ends.count > Limits.rosterHeads else { return graph.ends.sorted() }
    let ranked = graph.ends.compactMap { hash in
      graph[hash].map { (refused: verdicts[$0] != .counts, depth: graph.nodes[$0].depth, hash: hash) }
    }
    .sorted { a, b in
      if a.refused != b.refused { return b.refused }
      return a.depth == b.depth ? a.hash < b.hash : a.depth > b.depth
    }
    return ranked.prefix(Limits.rosterHeads).map(\.hash).sorted()
  }

  /// Where the next roster entry of `origin` stands: its sequence, and the entry before it.
  public func position(of origin: Origin) -> (sequence: UInt64, previous: EntryHash?) {
    let tips = graph.tips(of: origin).map { graph.nodes[$0].entry }
    guard let last = tips.max(by: { ($0.sequence, $0.hash) < ($1.sequence, $1.hash) }) else { return (1, nil) }
    return (last.sequence + 1, last.hash)
  }

  /// Whether `operation` would count if `origin` appended it now, citing all ``heads``. A device asks this before it
  /// signs: an entry that others refuse stays in its chain for ever.
  ///
  /// - Returns: nil if it would count.
  public func refusal(of operation: RosterOperation, by origin: Origin) -> RosterRefusal? {
    // Only what others will read counts: an over-long name would be malformed to them.
    guard RosterOperation(payload: operation.payload) == operation else { return .malformed }
    let tips = graph.tips(of: origin)
    guard tips.count < 2 else { return .forked }
    let author = RosterAuthor(origin: origin, previous: tips.first, past: graph.everything(), hash: nil)
    switch judge(operation, by: author) {
    case .counts, .newer: return nil
    case .refused(let reason): return reason
    }
  }

  /// A device's public keys, from whatever certificate mentions it: the id is their hash, so any source is as good. Nil
  /// for a device that no counting entry has brought in.
  public func keys(of device: DeviceID) -> DevicePublicKeys? { facts.enrolments[device]?.first?.chain.keys }

  /// What a device may do now; nil for one that is not in the household.
  public func role(of device: DeviceID) -> Role? {
    facts.enrolment(of: device, in: nil).flatMap { facts.role(of: $0.chain.person, in: nil) }
  }

  /// `H_32(; "checkpoint", heads)` (format §8).
  ///
  /// - Parameter heads: ascending.
  public static func checkpoint(_ heads: [EntryHash]) -> Hash32 {
    hash32("checkpoint", parts: 1) { $0.hashes(heads) }
  }
}
