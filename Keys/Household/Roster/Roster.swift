public import LatchkeyEncoding

/// A household's roster: holds signed entries and judges them (format §8).
///
/// Every operation is judged in the state made by its ancestors: the heads it cites and its author's previous entry. So
/// what a set of entries amounts to does not depend on the order, or the number of times, in which they arrive.
///
/// Unknown kinds of operation and all that builds on them are ``RosterVerdict/newer``: never guessed. While ``isNewer``,
/// nothing may be uploaded.
///
/// Whether a `Next` is well-formed can be told only by whoever holds the key that it hands out: give keys with
/// ``learn(_:of:)`` or ``learn(from:)``. Until then it is taken as well-formed and listed in ``RosterState/unproven``.
public struct Roster: Sendable {
  /// How much of the roster a caller is ready to act on.
  public enum Evaluation: Hashable, Sendable {
    /// `Next`, `Leave`, `Seal` and their like are *newer*: for a caller that knows one epoch only.
    case firstEpochOnly
    case everyEpoch
  }

  public let household: HouseholdID
  public let evaluating: Evaluation
  var graph = RosterGraph()
  /// By node: what those do that were right when they were made.
  private(set) var judged: [JudgedEntry?] = []
  /// What all entries amount to.
  private(set) var whole = RosterFacts()
  /// What the ancestors of each end, and it, amount to.
  private var after: [EntryHash: RosterFacts] = [:]
  /// All entries.
  private var all = Past()
  private var verdicts: [RosterVerdict] = []
  private var waiting: [EntryHash: RosterEntry] = [:]
  /// Missing ancestor → entries that wait for it.
  private var waiters: [EntryHash: Set<EntryHash>] = [:]
  /// What is known of the keys that `Next`s hand out, and what follows for each that its author was entitled to.
  private(set) var knowledge: EpochKnowledge
  private(set) var forms: [EpochID: NextForm] = [:]
  private var doubtful: Set<EpochID> = []
  /// Whether some entry needs a newer version.
  public private(set) var isNewer = false

  /// - Parameter proven: epochs whose `Next` an earlier value of this type, kept by this device itself, has found
  ///   well-formed (``RosterState/proven``): they are not recomputed.
  public init(household: HouseholdID, evaluating: Evaluation = .firstEpochOnly, proven: Set<EpochID> = []) {
    self.household = household
    self.evaluating = evaluating
    knowledge = EpochKnowledge(trusted: proven)
  }

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
      if !doubtful.isEmpty { reconsider(doubtful) }
    }
    return verdict(of: entry.hash) ?? .waiting([])
  }

  private mutating func insert(_ entry: RosterEntry) {
    guard graph[entry.hash] == nil else { return }
    let ancestors = graph.ancestors(entry)
    let at = graph.insert(entry)
    let node = graph.nodes[at]
    let past = graph.strictPast(of: at)
    let wasWhole = past == all
    let before = wasWhole ? whole : facts(of: past, endingIn: ancestors)
    let verdict: RosterVerdict
    var judgement: JudgedEntry?
    if ancestors.contains(where: { graph[$0].map { verdicts[$0] == .newer } ?? false }) {
      verdict = .newer
    } else if !node.continues {
      verdict = .refused(.chain)
    } else {
      let author = RosterAuthor(
        origin: entry.origin, previous: entry.previous.flatMap { graph[$0] }, past: past, hash: entry.hash)
      switch judge(entry.operation, by: author, in: before) {
      case .counts(let found):
        if case .next(let next) = entry.operation {
          let form = form(of: next, entry.hash, in: before)
          forms[entry.hash] = form
          if case .flawed(let why) = form {
            verdict = .refused(.next(why))
            break
          }
        }
        judgement = found
        verdict = .counts
      case .refused(let reason): verdict = .refused(reason)
      case .newer: verdict = .newer
      }
    }
    if verdict == .newer { isNewer = true }
    verdicts.append(verdict)
    judged.append(judgement)
    hearTestimony(entry)
    all.formUnion(node.past)
    let evaluation = RosterEvaluation(graph: graph, judged: judged)
    let here = evaluation.facts(before, adding: at, isWhole: true) ?? evaluation.facts(of: node.past)
    whole = wasWhole ? here : evaluation.facts(whole, adding: at, isWhole: false) ?? evaluation.facts(of: all)
    for hash in ancestors { after[hash] = nil }
    after[entry.hash] = here
  }

  /// What an entry says about the seals in earlier `Next`s. Whether it counts itself is another matter: its author signed it.
  private mutating func hearTestimony(_ entry: RosterEntry) {
    let device = entry.origin.device
    switch entry.operation {
    case .deny(let epoch):
      if isWitness(device, of: epoch), knowledge.deny(epoch) { doubtful.insert(epoch) }
    case .next(let next):
      for parent in next.parents where isWitness(device, of: parent) && knowledge.affirm(parent) {
        doubtful.insert(parent)
      }
    case .seal(_, let epoch, _):
      // Nobody hands on a key that it takes for garbage.
      if isWitness(device, of: epoch), knowledge.affirm(epoch) { doubtful.insert(epoch) }
    default:
      return
    }
  }

  /// What a set of entries amounts to, from what is at hand if one of its ends holds all others.
  private func facts(of past: Past, endingIn ends: [EntryHash]) -> RosterFacts {
    if past.isEmpty { return RosterFacts() }
    for hash in ends {
      if let at = graph[hash], graph.nodes[at].past == past, let here = after[hash] { return here }
    }
    return RosterEvaluation(graph: graph, judged: judged).facts(of: past)
  }

  /// Judges everything anew: something became known of a `Next` that others build on.
  private mutating func rebuild() {
    let entries = graph.nodes.map(\.entry)
    graph = RosterGraph()
    judged = []
    verdicts = []
    whole = RosterFacts()
    after = [:]
    all = Past()
    isNewer = false
    forms = [:]
    for entry in entries { insert(entry) }
  }

  /// Brings verdicts in line with what has become known of the keys of these epochs.
  private mutating func reconsider(_ epochs: Set<EpochID>) {
    // Ends, because what is known only grows: each round past the first needs a testimony that is new.
    var open = epochs
    while !open.isEmpty {
      var isChanged = false
      for epoch in open.sorted() {
        guard let former = forms[epoch], let at = graph[epoch], case .next(let next) = graph.nodes[at].entry.operation
        else { continue }
        let before = facts(of: graph.strictPast(of: at), endingIn: graph.ancestors(graph.nodes[at].entry))
        let form = form(of: next, epoch, in: before)
        forms[epoch] = form
        if form.isFlawed != former.isFlawed { isChanged = true }
      }
      doubtful = []
      if isChanged { rebuild() }
      open = doubtful
    }
  }

  /// An epoch's key, wherever it came from; best before the entries. What it proves about the `Next` that began the epoch is
  /// drawn from it; a key that does not belong there proves nothing, unless that `Next` seals it.
  public mutating func learn(_ key: EpochKey, of epoch: EpochID) {
    let isNew =
      graph[epoch] == nil || isKey(key, of: epoch)
      ? knowledge.learn(key, of: epoch) : knowledge.learn(stray: key, of: epoch)
    if isNew { reconsider([epoch]) }
  }

  /// What walking the epochs has brought: keys, and seals for this device that do not open. Best before the entries: then
  /// each `Next` is judged once.
  public mutating func learn(from ring: EpochRing) {
    var new: Set<EpochID> = []
    for epoch in ring.keys.keys.sorted() {
      if let key = ring.keys[epoch], knowledge.learn(key, of: epoch) { new.insert(epoch) }
    }
    for (epoch, key) in ring.strayKeys where knowledge.learn(stray: key, of: epoch) { new.insert(epoch) }
    for epoch in ring.unopenable where knowledge.refuse(epoch) { new.insert(epoch) }
    if !new.isEmpty { reconsider(new) }
  }

  /// What became of an entry; nil for one that was never added.
  public func verdict(of hash: EntryHash) -> RosterVerdict? {
    if let at = graph[hash] { return verdicts[at] }
    return waiting[hash].map { .waiting(graph.missing($0)) }
  }

  /// Whether an entry is here with all its ancestors: what a checkpoint's heads are looked up with.
  public func contains(_ hash: EntryHash) -> Bool { graph[hash] != nil }

  /// Whether `a` is an ancestor of `b`; false if one of them is not here.
  public func isBefore(_ a: EntryHash, _ b: EntryHash) -> Bool {
    guard let a = graph[a], let b = graph[b] else { return false }
    return graph.isBefore(a, b)
  }

  /// Entries that were added, ancestors before descendants, without those that wait.
  public var entries: [RosterEntry] { graph.nodes.map(\.entry) }

  /// Entries that wait for an ancestor, in the order of their hashes.
  public var waitingEntries: [RosterEntry] { waiting.keys.sorted().compactMap { waiting[$0] } }

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
  /// - Parameter key: of a `Next`, the key that it hands out: then its seals are recomputed, as everybody will.
  /// - Returns: nil if it would count.
  public func refusal(
    of operation: RosterOperation, by origin: Origin, key: EpochKey? = nil
  ) -> RosterRefusal? {
    // Only what others will read counts: an over-long name would be malformed to them.
    guard RosterOperation(payload: operation.payload) == operation else { return .malformed }
    let tips = graph.tips(of: origin)
    guard tips.count < 2 else { return .forked }
    let author = RosterAuthor(origin: origin, previous: tips.first, past: all, hash: nil)
    switch judge(operation, by: author, in: whole) {
    case .counts, .newer: break
    case .refused(let reason): return reason
    }
    guard evaluating == .everyEpoch else { return nil }
    switch operation {
    case .next(let next):
      return key.flatMap { flaw(of: next, key: $0, in: whole) }.map { .next($0) }
    case .seal(let device, let epoch, let seal):
      guard let key = self.key(of: epoch), let box = whole.enrolment(of: device)?.chain.keys.box else { return nil }
      return key.sealOrNone(to: box) == seal ? nil : .seal
    default:
      return nil
    }
  }

  /// A device's public keys, from whatever certificate mentions it: the id is their hash, so any source is as good. Nil
  /// for a device that no entry has brought in. Removed devices keep theirs: what they wrote before is still verified.
  public func keys(of device: DeviceID) -> DevicePublicKeys? {
    if let known = whole.enrolments[device]?.first { return known.chain.keys }
    for judgement in judged {
      switch judgement?.change {
      case .enrol(let chain, _, _, _)? where chain.keys.id == device: return chain.keys
      case .admit(let claim, let chain, _, _, _, _)?:
        if chain.keys.id == device { return chain.keys }
        if let kit = claim.kit, kit.keys.id == device { return kit.keys }
      default: continue
      }
    }
    return nil
  }

  /// What a device might do in the state that `heads` and their ancestors make; nil where it was not in, or some are missing.
  public func role(of device: DeviceID, at heads: [EntryHash]) -> Role? {
    if heads == self.heads { return whole.role(of: device) }
    var past = Past()
    for hash in heads {
      guard let at = graph[hash] else { return nil }
      past.formUnion(graph.nodes[at].past)
    }
    return facts(of: past, endingIn: heads).role(of: device)
  }

  /// What a device might do by what let it in, whatever became of it since; nil for one that nothing let in.
  public func roleAtEnrolment(of device: DeviceID) -> Role? {
    let nodes = graph.nodes.indices.filter { at in
      switch judged[at]?.change {
      case .enrol(let chain, _, _, _)?: chain.keys.id == device
      case .admit(let claim, let chain, _, _, _, _)?: chain.keys.id == device || claim.kit?.keys.id == device
      default: false
      }
    }
    let first = nodes.min { a, b in
      (graph.nodes[a].depth, graph.nodes[a].entry.hash) < (graph.nodes[b].depth, graph.nodes[b].entry.hash)
    }
    return first.flatMap { role(of: device, at: [graph.nodes[$0].entry.hash]) }
  }

  /// What a device may do now; nil for one that is not in the household.
  public func role(of device: DeviceID) -> Role? { whole.role(of: device) }

  /// Whether a device's person is a reader, or was one since the device came in.
  public func wasReader(_ device: DeviceID) -> Bool {
    if whole.role(of: device) ?? .reader == .reader || roleAtEnrolment(of: device) == .reader { return true }
    guard let person = person(ofAny: device) else { return true }
    return entries.contains { entry in
      guard case .next(let next) = entry.operation else { return false }
      return next.roles.contains { $0.person == person && $0.role == .reader }
    }
  }

  /// The person of a device that is in, or was before it was removed.
  public func person(ofAny device: DeviceID) -> PersonID? { whole.enrolments[device]?.first?.chain.person }

  /// What a device and its person are called, or were when they were in.
  public func names(ofAny device: DeviceID) -> (device: String, person: String)? {
    guard let enrolment = whole.enrolments[device]?.first else { return nil }
    let person = enrolment.chain.person
    let named = (whole.devicesOf[person] ?? []).flatMap { whole.enrolments[$0] ?? [] }.filter { $0.personName != nil }
      .min { RosterFacts.Source.precedes($0.source, $1.source) }
    return (
      whole.deviceProfiles[device]?.deviceName ?? enrolment.deviceName,
      whole.personProfiles[person]?.personName ?? named?.personName ?? ""
    )
  }

  /// `H_32(; "checkpoint", heads)` (format §8).
  ///
  /// - Parameter heads: ascending.
  public static func checkpoint(_ heads: [EntryHash]) -> Hash32 {
    hash32("checkpoint", parts: 1) { $0.hashes(heads) }
  }
}
