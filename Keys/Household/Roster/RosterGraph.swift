internal import LatchkeyEncoding

/// The entries of a roster and who is whose ancestor: no rights, no meaning.
struct RosterGraph: Sendable {
  struct Node: Sendable {
    let entry: RosterEntry
    /// Where it stands: its author's branch, and how far into it (1 and up).
    let branch: Int
    let ordinal: UInt32
    /// All ancestors and itself.
    let past: Past
    /// 0 without ancestors, else 1 + the greatest among them.
    let depth: UInt64
    /// Whether sequence and previous entry continue the author's log.
    let continues: Bool
  }

  /// A run of one author's entries.
  private struct Branch: Sendable {
    let origin: Origin
    /// The entry that the first one follows, where that lies in another branch: the author's log forked after it.
    let parent: (branch: Int, ordinal: UInt32)?
    var tip: Int
  }

  private(set) var nodes: [Node] = []
  /// All nodes by (depth, hash): ancestors before descendants, and the same order whatever arrived first.
  private(set) var byDepth: [Int] = []
  private var index: [EntryHash: Int] = [:]
  private var branches: [Branch] = []
  private var branchesOf: [Origin: [Int]] = [:]
  private(set) var ends: Set<EntryHash> = []

  subscript(hash: EntryHash) -> Int? { index[hash] }

  /// The ancestors that `entry` names and that are not here, ascending.
  func missing(_ entry: RosterEntry) -> [EntryHash] {
    ancestors(entry).filter { index[$0] == nil }
  }

  func ancestors(_ entry: RosterEntry) -> [EntryHash] {
    var all = Set(entry.heads)
    if let previous = entry.previous { all.insert(previous) }
    return all.sorted()
  }

  /// Adds an entry whose ancestors are all here.
  mutating func insert(_ entry: RosterEntry) -> Int {
    var past = Past()
    var depth: UInt64 = 0
    for hash in ancestors(entry) {
      guard let at = index[hash] else { continue }
      past.formUnion(nodes[at].past)
      depth = max(depth, nodes[at].depth + 1)
      ends.remove(hash)
    }
    let previous = entry.previous.flatMap { index[$0] }
    let continues = continues(origin: entry.origin, sequence: entry.sequence, previous: previous, entry.previous == nil)
    let at = nodes.count
    let (branch, ordinal) = place(entry.origin, at: at, after: continues ? previous : nil)
    past.insert(branch: branch, ordinal: ordinal)
    nodes.append(
      Node(entry: entry, branch: branch, ordinal: ordinal, past: past, depth: depth, continues: continues))
    index[entry.hash] = at
    ends.insert(entry.hash)
    byDepth.insert(at, at: placeByDepth(at))
    return at
  }

  private func placeByDepth(_ at: Int) -> Int {
    func key(_ node: Int) -> (UInt64, EntryHash) { (nodes[node].depth, nodes[node].entry.hash) }
    var (low, high) = (0, byDepth.count)
    while low < high {
      let middle = (low + high) / 2
      if key(byDepth[middle]) < key(at) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Whether `past` holds the node.
  func isIn(_ past: Past, _ at: Int) -> Bool { past.includes(branch: nodes[at].branch, ordinal: nodes[at].ordinal) }

  /// Whether `a` is an ancestor of `b`.
  func isBefore(_ a: Int, _ b: Int) -> Bool { a != b && isIn(nodes[b].past, a) }

  /// The ancestors of a node, without itself.
  func strictPast(of at: Int) -> Past {
    var past = Past()
    for hash in ancestors(nodes[at].entry) {
      if let ancestor = index[hash] { past.formUnion(nodes[ancestor].past) }
    }
    return past
  }

  private func continues(origin: Origin, sequence: UInt64, previous: Int?, _ isFirst: Bool) -> Bool {
    guard let previous else { return isFirst && sequence == 1 }
    let before = nodes[previous].entry
    return before.origin == origin && sequence > 1 && before.sequence == sequence - 1 && nodes[previous].continues
  }

  private mutating func place(_ origin: Origin, at: Int, after previous: Int?) -> (branch: Int, ordinal: UInt32) {
    if let previous {
      let before = nodes[previous]
      if branches[before.branch].tip == previous {
        branches[before.branch].tip = at
        return (before.branch, before.ordinal + 1)
      }
    }
    let parent = previous.map { (branch: nodes[$0].branch, ordinal: nodes[$0].ordinal) }
    branches.append(Branch(origin: origin, parent: parent, tip: at))
    branchesOf[origin, default: []].append(branches.count - 1)
    return (branches.count - 1, 1)
  }

  /// Whether `past` holds entries of `origin` that are not on the way to `previous`: the author has seen its own fork.
  func isForked(_ origin: Origin, in past: Past, previous: Int?) -> Bool {
    guard let all = branchesOf[origin] else { return false }
    var own: [Int: UInt32] = [:]
    var at = previous.map { (branch: nodes[$0].branch, ordinal: nodes[$0].ordinal) }
    while let (branch, ordinal) = at {
      own[branch] = ordinal
      at = branches[branch].parent
    }
    return all.contains { past.reach($0) > own[$0] ?? 0 }
  }

  /// Where the author's log ends, in each of its branches. More than one: it forked.
  func tips(of origin: Origin) -> [Int] { (branchesOf[origin] ?? []).map { branches[$0].tip } }

  /// Entries of one origin at one position, in the order of (origin, sequence).
  func forks() -> [(Origin, UInt64, [EntryHash])] {
    var out: [(Origin, UInt64, [EntryHash])] = []
    for origin in branchesOf.filter({ $0.value.count > 1 }).keys.sorted() {
      var at: [UInt64: [EntryHash]] = [:]
      for node in nodes where node.entry.origin == origin && node.continues {
        at[node.entry.sequence, default: []].append(node.entry.hash)
      }
      for sequence in at.keys.sorted() {
        if let hashes = at[sequence], hashes.count > 1 { out.append((origin, sequence, hashes.sorted())) }
      }
    }
    return out
  }

  /// All that is here.
  func everything() -> Past {
    var past = Past()
    for hash in ends { if let at = index[hash] { past.formUnion(nodes[at].past) } }
    return past
  }
}
