public import LatchkeyTables

/// Who this device is, and where it takes part.
public struct Identity: Equatable, Sendable {
  public struct Household: Equatable, Sendable {
    public let name: String
    public let id: String
    /// Only this person's devices are in it.
    public let isPrivate: Bool
    /// The store's URL, without secrets.
    public let store: String
  }
  public let name: String
  public let person: String
  public let device: String
  public let deviceID: String
  public let households: [Household]
}

/// A warning: something to know that did not stop the work.
public struct Warning: Equatable, Sendable {
  /// Lower case with hyphens; stable.
  public let code: String
  public let message: String
}

/// Requests to the store, by verb.
public struct Requests: Equatable, Sendable {
  public internal(set) var put = 0
  public internal(set) var get = 0
  public internal(set) var list = 0
  public internal(set) var head = 0
  public internal(set) var delete = 0
}

/// What a sync did.
public struct SyncReport: Equatable, Sendable {
  /// Rows that the store has confirmed.
  public internal(set) var sent = 0
  /// Rows received and applied.
  public internal(set) var received = 0
  /// Rows that wait to be sent or confirmed.
  public internal(set) var waiting = 0
  /// Rows received that the tables do not show yet.
  public internal(set) var parked = 0
  public internal(set) var requests = Requests()
  public internal(set) var bytesUp = 0
  public internal(set) var bytesDown = 0
  public internal(set) var warnings: [Warning] = []
  /// Values that lost a true conflict in this sync: they are in the journal (``Home/conflicts(_:)``).
  public internal(set) var conflicts = 0
  /// Rows whose deletion by others waits for a person.
  public internal(set) var heldDeletions = 0
  /// Questions about the rows of the files that were synchronised.
  public internal(set) var decisions: [Decision] = []
  /// Something was damaged, forked or otherwise set aside; the rest went on.
  public internal(set) var hasSetAside = false
  /// Rounds run.
  public internal(set) var rounds = 0
}

/// An invite that was made.
public struct Invite: Equatable, Sendable {
  public let id: String
  /// The link: a secret until it is used. Never log it.
  public let link: String
  public let household: String
  public let role: String
  /// Milliseconds since 1970.
  public let expires: Int64
}

/// What joining led to.
public struct JoinReport: Equatable, Sendable {
  public let household: String
  /// The zone that fills the database; nil if no database was asked for.
  public let zone: String?
  public let database: String?
  public let rows: Int
  /// Nobody has admitted this device yet: it reads, and what it writes counts once somebody has.
  public let isProvisional: Bool
  /// An owner has to compare words with this person before anything opens: join again with the same invite afterwards.
  public let waitingFor: Waiting?
  /// For a device that joins its own person: ten words that the other device shows, too, once it lets this one in.
  public let words: [String]?
  public internal(set) var warnings: [Warning]

  /// Whom a newcomer waits for.
  public struct Waiting: Equatable, Sendable {
    /// As the invite says.
    public let inviter: String
    /// Ten words that this device and the inviter's both show.
    public let words: [String]
  }

  init(
    household: String, zone: String?, database: String?, rows: Int, isProvisional: Bool, waitingFor: Waiting? = nil,
    words: [String]? = nil, warnings: [Warning]
  ) {
    self.words = words
    self.household = household
    self.zone = zone
    self.database = database
    self.rows = rows
    self.isProvisional = isProvisional
    self.waitingFor = waitingFor
    self.warnings = warnings
  }
}

/// What sharing did.
public struct ShareReport: Equatable, Sendable {
  public let household: String
  public let zone: String
  public let rows: Int
  /// Read back from the store and found equal.
  public let isVerified: Bool
  public let warnings: [Warning]
}

/// Members of a household.
public struct MembersReport: Equatable, Sendable {
  public struct Device: Equatable, Sendable {
    public let name: String
    public let id: String
    public let isThis: Bool
  }
  public struct Member: Equatable, Sendable {
    public let name: String
    public let id: String
    public let role: String
    /// `active`.
    public let status: String
    public let you: Bool
    public let devices: [Device]
  }
  public let household: String
  public let members: [Member]
}

/// What `key show` says: public facts only.
public struct KeyReport: Equatable, Sendable {
  public struct Household: Equatable, Sendable {
    public let name: String
    public let id: String
    public let epoch: String
    /// Groups of digits over the roster: equal on two devices iff they know the same roster.
    public let fingerprint: [String]
  }
  public let person: String
  public let device: String
  public let households: [Household]
}

/// How an attached database stands.
public struct DatabaseStatus: Equatable, Sendable {
  public struct Zone: Equatable, Sendable {
    public let name: String
    public let household: String
    /// `personal`, `owner` or `participant`.
    public let mode: String
    public let epoch: String
    /// When the store last confirmed something of this file, milliseconds since 1970; nil if never.
    public let lastAcknowledged: Int64?
    /// Newest clock seen of each other device, milliseconds since 1970.
    public let lastHeard: [(device: String, time: Int64)]
    public let waiting: Int
    public let parked: Int
    /// The first ``listedParkedRows`` of them, with the reasons.
    public let parkedRows: [ParkedRow]
    public let warnings: [Warning]
    /// The store's URL, without secrets.
    public let store: String
    /// Of the store on which this device keeps the household, too; nil for none.
    public let mirror: String?

    /// How many parked rows a status lists.
    public static let listedParkedRows = 100

    public static func == (a: Self, b: Self) -> Bool {
      a.name == b.name && a.household == b.household && a.mode == b.mode && a.epoch == b.epoch
        && a.lastAcknowledged == b.lastAcknowledged && a.waiting == b.waiting && a.parked == b.parked
        && a.parkedRows == b.parkedRows && a.warnings == b.warnings
        && a.store == b.store && a.mirror == b.mirror
        && a.lastHeard.map(\.device) == b.lastHeard.map(\.device)
        && a.lastHeard.map(\.time) == b.lastHeard.map(\.time)
    }
  }
  public let path: String
  /// Nil if the file cannot be opened now; the error says why.
  public let zone: Zone?
  public let error: LatchkeyError?
}

/// Counts of an attached database, comparable between devices.
public struct CountsReport: Equatable, Sendable {
  public let zone: String
  public let household: String
  public let mode: String
  /// Equal on two devices iff they hold the same records (format §9).
  public let digest: String
  public let tables: [TableCounts]
}
