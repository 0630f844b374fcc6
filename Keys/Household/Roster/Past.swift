/// A set of entries that is closed under "ancestor of": how far into each branch it reaches.
///
/// A branch is a run of one author's entries, each the previous of the next. An honest author has one branch; each fork
/// opens one more.
struct Past: Hashable, Sendable {
  /// Never ends with a zero, so that equal sets are equal values.
  private var reach: [UInt32] = []

  var isEmpty: Bool { reach.allSatisfy { $0 == 0 } }

  /// Whether the entry at `ordinal` (1 and up) of `branch` is in the set.
  func includes(branch: Int, ordinal: UInt32) -> Bool {
    branch < reach.count && reach[branch] >= ordinal
  }

  /// How many entries of `branch` are in the set.
  func reach(_ branch: Int) -> UInt32 { branch < reach.count ? reach[branch] : 0 }

  mutating func insert(branch: Int, ordinal: UInt32) {
    while reach.count <= branch { reach.append(0) }
    reach[branch] = max(reach[branch], ordinal)
  }

  mutating func formUnion(_ other: Past) {
    while reach.count < other.reach.count { reach.append(0) }
    for branch in other.reach.indices where other.reach[branch] > reach[branch] { reach[branch] = other.reach[branch] }
  }
}
