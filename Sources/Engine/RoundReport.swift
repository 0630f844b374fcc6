public import LatchkeyEncoding
public import LatchkeyKeys
public import LatchkeyLog

/// Somebody whom this device let in.
public struct Admission: Hashable, Sendable {
  /// `Ben (phone)`.
  public let who: String
  /// A device of this person's own.
  public let isOwnDevice: Bool
  /// What the newcomer's screen shows, too.
  public let words: ComparisonWords
}

/// What a round did and met.
public struct RoundReport: Equatable, Sendable {
  /// Rows received and applied.
  public internal(set) var received = 0
  /// Rows stamped and sealed.
  public internal(set) var stamped = 0
  /// Rows that the store has confirmed.
  public internal(set) var sent = 0
  public internal(set) var findings: [Finding] = []
  /// People and devices that this device let in.
  public internal(set) var admitted: [Admission] = []
  /// Claims that need a person, or somebody with more rights.
  public internal(set) var requests: [ClaimRequest] = []
  /// Claims that will not be admitted, and why.
  public internal(set) var refusedClaims: [String] = []
  /// The zone was closed: its rows are elsewhere, or sharing has ended.
  public internal(set) var closed: CloseZone?
  /// This device is not (yet) admitted: it reads, its writes are provisional.
  public internal(set) var isProvisional = false
  /// This device was removed from the household, or somebody who may do so says so.
  public internal(set) var isRemoved = false
  /// The household went on in an epoch that this device was not given the key of, and nobody else was heard in the one that it is in: what
  /// it writes may reach nobody.
  public internal(set) var isLeftBehind = false
  /// Why what was written here is not uploaded.
  public internal(set) var holds: [UploadHold] = []
  /// `Next`s of members that cannot be judged, because their ancestors are not shown: nothing is uploaded beside them.
  public internal(set) var unjudged: [EntryHash] = []
  /// What people should be told of the roster.
  public internal(set) var alarms: [RosterState.Alarm] = []
  /// `Next`s that count for nothing because they would have split the household.
  public internal(set) var flawed: [RosterState.Flawed] = []
  /// Somebody wrote `Leave`: a `Next` has to drop them, with what their logs amount to.
  public internal(set) var hasLeavers = false

  public init() {}

  /// Whether something was met that was not accepted.
  public var hasSetAside: Bool {
    findings.contains {
      switch $0 {
      case .damaged, .newer, .fork, .missing, .notMine, .rollback, .unreadable, .divergence: true
      case .unknownAuthor, .rosterBehind, .notAuthorised, .withheld: false
      }
    }
  }

  mutating func add(_ other: RoundReport) {
    received += other.received
    stamped += other.stamped
    sent += other.sent
    findings += other.findings
  }
}
