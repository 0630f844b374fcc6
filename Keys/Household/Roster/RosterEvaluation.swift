internal import LatchkeyEncoding

/// What an entry that was right when it was made does, and what right it used.
struct JudgedEntry: Sendable {
  let change: RosterFacts.Change
  /// Whose right it was, as the ancestors had it.
  let person: PersonID
  /// The least role that suffices: an entry concurrent with a narrowing below this falls.
  let need: Role
}

/// What a set of entries amounts to (format §8, *Succession*). A function of the set: nothing here knows in which order
/// entries came.
struct RosterEvaluation {
  let graph: RosterGraph
  /// By node; nil for what was refused or is newer.
  let judged: [JudgedEntry?]

  /// The facts of all entries in `past`.
  func facts(of past: Past) -> RosterFacts {
    let valid = graph.byDepth.filter { graph.isIn(past, $0) && judged[$0] != nil }
    var taken: [RosterFacts.Accepted] = []
    var void: [RosterFacts.Accepted] = []
    var counting = counting(valid, taken)
    for (node, succession) in inOrder(valid) {
      let source = RosterFacts.Source(node, graph.nodes[node])
      guard counting.contains(node) else {
        void.append(
          RosterFacts.Accepted(
            source: source, succession: succession, removes: succession.removes, roles: succession.roles))
        continue
      }
      let one = sparingTheLastOwners(
        RosterFacts.Accepted(
          source: source, succession: succession, removes: succession.removes, roles: succession.roles),
        valid, taken)
      taken.append(one)
      if one.cuts { counting = self.counting(valid, taken) }
    }
    return fold(valid, taken, void)
  }

  /// Best rank first, each preceded by its own ancestors in that same order. So what was decided among the ancestors of a
  /// `Next` stays decided, whoever signs it.
  private func inOrder(_ valid: [Int]) -> [(Int, RosterFacts.Succession)] {
    var nexts: [(node: Int, succession: RosterFacts.Succession)] = []
    for node in valid {
      if case .next(let succession)? = judged[node]?.change { nexts.append((node, succession)) }
    }
    nexts.sort { $0.succession.rank < $1.succession.rank }
    var out: [(Int, RosterFacts.Succession)] = []
    var done: Set<Int> = []
    // Depth first without recursion: a chain of successions may be long.
    for start in nexts where !done.contains(start.node) {
      var stack = [start]
      while let top = stack.last {
        if done.contains(top.node) {
          stack.removeLast()
        } else if let before = nexts.first(where: { !done.contains($0.node) && graph.isBefore($0.node, top.node) }) {
          stack.append(before)
        } else {
          done.insert(top.node)
          out.append((top.node, top.succession))
          stack.removeLast()
        }
      }
    }
    return out
  }

  /// Removals and narrowings of owners lapse where they would leave no owner.
  private func sparingTheLastOwners(
    _ one: RosterFacts.Accepted, _ valid: [Int], _ taken: [RosterFacts.Accepted]
  ) -> RosterFacts.Accepted {
    guard one.cuts, fold(valid, taken + [one], []).owners.isEmpty else { return one }
    let before = fold(valid, taken, [])
    let owners = before.owners
    return RosterFacts.Accepted(
      source: one.source, succession: one.succession,
      removes: one.removes.filter { before.person(of: $0).map { !owners.contains($0) } ?? true },
      roles: one.roles.filter { !owners.contains($0.key) })
  }

  /// The entries that count under the removals and narrowings of `taken`: not cut, and made by a device that an entry
  /// which counts brought in. The least such set: two fallen devices cannot hold each other up.
  private func counting(_ valid: [Int], _ taken: [RosterFacts.Accepted]) -> Set<Int> {
    let cuts = taken.filter(\.cuts)
    if cuts.isEmpty { return Set(valid) }
    var out: Set<Int> = []
    var devices: Set<DeviceID> = []
    var opened: Set<EntryHash> = []
    var open = valid.filter { !isCut($0, by: cuts) }
    var grown = true
    while grown {
      grown = false
      open = open.filter { node in
        guard let change = judged[node]?.change else { return false }
        let entry = graph.nodes[node].entry
        switch change {
        case .genesis: break
        case .admit(_, _, let invite, _, _, _):
          // Its inviter let it in as much as its admitter.
          guard devices.contains(entry.origin.device), opened.contains(invite) else { return true }
        default:
          guard devices.contains(entry.origin.device) else { return true }
        }
        out.insert(node)
        devices.formUnion(change.enrols)
        if case .open = change { opened.insert(entry.hash) }
        grown = true
        return false
      }
    }
    return out
  }

  /// An entry of a removed device counts iff it is an ancestor of a `Next` that removed it; one that needed more than a
  /// role that its person was left with, iff it is an ancestor of the narrowing. Whoever knew the `Next` was judged by it.
  private func isCut(_ node: Int, by cuts: [RosterFacts.Accepted]) -> Bool {
    guard let judgement = judged[node] else { return true }
    let device = graph.nodes[node].entry.origin.device
    var removed = false
    var saved = false
    for cut in cuts where cut.source.node != node && !graph.isBefore(cut.source.node, node) {
      let isKnown = graph.isBefore(node, cut.source.node)
      if cut.removes.contains(device) {
        if isKnown { saved = true } else { removed = true }
      }
      if let role = cut.roles[judgement.person], !isKnown, role < judgement.need { return true }
    }
    return removed && !saved
  }

  private func fold(
    _ valid: [Int], _ taken: [RosterFacts.Accepted], _ void: [RosterFacts.Accepted]
  ) -> RosterFacts {
    var facts = RosterFacts()
    let counting = counting(valid, taken)
    for node in valid {
      guard let judgement = judged[node] else { continue }
      let source = RosterFacts.Source(node, graph.nodes[node])
      facts.note(judgement.change, at: source)
      if counting.contains(node) {
        facts.apply(judgement.change, at: source, graph)
      } else {
        facts.fallen.append(source)
      }
    }
    for one in taken { facts.take(one, graph) }
    facts.void = void
    return facts
  }

  /// The facts after one more entry, without judging anew what is judged. Nil if that entry may change what others
  /// amount to.
  ///
  /// - Parameters:
  ///   - facts: of a set that holds all ancestors of `node`.
  ///   - isWhole: whether that set is exactly the ancestors.
  func facts(_ facts: RosterFacts, adding node: Int, isWhole: Bool) -> RosterFacts? {
    guard let judgement = judged[node] else { return facts }
    let source = RosterFacts.Source(node, graph.nodes[node])
    var out = facts
    if case .next(let succession) = judgement.change {
      // Its ancestors are all there is: nothing falls by it, and it was judged not to remove the last owner.
      guard isWhole else { return nil }
      out.note(judgement.change, at: source)
      out.take(
        RosterFacts.Accepted(
          source: source, succession: succession, removes: succession.removes, roles: succession.roles), graph)
      return out
    }
    if !isWhole {
      // A removal or narrowing that it did not know may cut it; and a second enrolment may hold up what had fallen.
      if facts.accepted.contains(where: { $0.cuts && !graph.isBefore($0.source.node, node) }) { return nil }
    }
    if !facts.fallen.isEmpty && !judgement.change.enrols.isEmpty { return nil }
    out.note(judgement.change, at: source)
    out.apply(judgement.change, at: source, graph)
    return out
  }
}
