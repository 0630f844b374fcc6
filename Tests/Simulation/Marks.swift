/// Situations that the simulation means to reach. A mark that stays at zero over many seeds says that the simulation no
/// longer tests what it claims to.
enum Mark: Int, CaseIterable {
  case appTransactions
  case refusedTransactions
  case rounds
  case appWritesInRounds
  case pushes
  case segments
  case supersededHeads
  case joins
  case ownDevices
  case rowsBeforeJoining
  case madeFromDescription
  case conflicts
  case equalClocks
  case deletesAgainstEdits
  case reinserts
  case replaces
  case keyMoves
  case keyCollisions
  case sameKeyInserts
  case deferredReferences
  case parkedRows
  case heldGroups
  case crashes
  case crashesInTransactions
  case crashesAfterPut
  case resends
  case droppedRequests
  case lostReplies
  case latePuts
  case staleListings
  case absentObjects
  case clockJumps
  case partialPasses
  case migrations
  case versionsApart
  case filledIn
  case emptyRounds
  case republished
  case removals
  case narrowings
  case widenings
  case rotations
  case leaves
  case withdrawals
  case epochsSideBySide
  case removedWrite
  case heldOutboxes
  case carries
  case invitedAgain
  case restores
  case renewals
  case latecomers
  case leftBehind
}

/// How often each situation was reached.
struct Marks {
  private var counts = [Int](repeating: 0, count: Mark.allCases.count)

  subscript(_ mark: Mark) -> Int {
    get { counts[mark.rawValue] }
    set { counts[mark.rawValue] = newValue }
  }

  mutating func add(_ other: Marks) {
    for index in counts.indices { counts[index] += other.counts[index] }
  }

  var missing: [Mark] { Mark.allCases.filter { self[$0] == 0 } }
}
