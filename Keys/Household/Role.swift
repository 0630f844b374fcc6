/// What a person may do in a household.
public enum Role: Int, Hashable, Comparable, Sendable, CaseIterable {
  /// Reads all zones; writes heads, claims and receipts, no rows.
  case reader = 1
  /// Writes rows, opens zones, admits.
  case member = 2
  /// Decides: invites of every role, removals, closing zones.
  case owner = 3

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// What an invite offers.
public enum InviteRole: Int, Hashable, Sendable, CaseIterable {
  /// Another device of the inviter's own person.
  case mine = 0
  case reader = 1
  case member = 2
  case owner = 3

  /// The role of the person who is admitted; nil for a device of one's own.
  public var role: Role? { Role(rawValue: rawValue) }

  public init(_ role: Role) {
    switch role {
    case .reader: self = .reader
    case .member: self = .member
    case .owner: self = .owner
    }
  }
}
