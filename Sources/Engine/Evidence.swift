public import LatchkeyEncoding
public import LatchkeyKeys
internal import LatchkeyLog

/// What a device has signed at a place where it may sign one thing only: the signed bytes themselves, which hold hashes of rows and no
/// rows (format §13).
public struct Contradiction: Hashable, Sendable {
  /// One signed statement.
  public struct Statement: Hashable, Sendable, Comparable {
    /// Whether it is a head's; else an entry's.
    public let isHead: Bool
    /// The signed bytes: an ``EntryBody`` or a ``HeadBody``.
    public let body: [UInt8]
    public let signature: [UInt8]

    public init(isHead: Bool, body: [UInt8], signature: [UInt8]) {
      (self.isHead, self.body, self.signature) = (isHead, body, signature)
    }

    public static func < (a: Self, b: Self) -> Bool {
      a.isHead == b.isHead ? a.body.lexicographicallyPrecedes(b.body) : !a.isHead
    }
  }

  public let author: DevicePublicKeys
  public let zone: ZoneID
  public let origin: Origin
  /// The position that the statements disagree about.
  public let sequence: UInt64
  /// Two, ascending.
  public let statements: [Statement]
}

/// Signed contradictions, for whoever is to be shown that a device's keys were copied or that somebody writes two histories: needs no
/// key to verify, and shows no row (format §13).
public enum Evidence {
  /// A JSON text, the same for equal contradictions.
  public static func text(_ contradictions: [Contradiction]) -> String {
    let items = contradictions.map { item in
      let statements = item.statements.map { statement in
        """
            {"purpose": "\(statement.isHead ? "head" : "entry")",
             "body": "\(hex(statement.body))",
             "signature": "\(hex(statement.signature))"}
        """
      }
      return """
          {"sign": "\(item.author.signing)", "box": "\(item.author.box)", "statements": [
        \(statements.joined(separator: ",\n"))]}
        """
    }
    return "{\"latchkey-evidence\": 1, \"contradictions\": [\n\(items.joined(separator: ",\n"))]}\n"
  }
}

/// Collects what devices have signed, and finds what contradicts itself.
struct Testimony {
  private struct Place: Hashable, Comparable {
    let zone: ZoneID
    let origin: Origin
    let sequence: UInt64
    static func < (a: Self, b: Self) -> Bool {
      (a.zone, a.origin, a.sequence) < (b.zone, b.origin, b.sequence)
    }
  }

  private struct Said {
    let hash: EntryHash
    let statement: Contradiction.Statement
  }

  private var said: [Place: [Said]] = [:]

  /// Notes an entry whose signature was verified.
  mutating func note(entry: StoredEntry, _ body: EntryBody) {
    let statement = Contradiction.Statement(isHead: false, body: entry.body, signature: entry.signature)
    note(body.zone, body.origin, body.sequence, EntryBody.hash(of: entry.body), statement)
    // An entry says, too, which entry came before it.
    if let previous = body.previous { note(body.zone, body.origin, body.sequence - 1, previous, statement) }
  }

  /// Notes a head whose signature was verified: it says how the log ends.
  mutating func note(head: HeadContent, _ body: HeadBody) {
    note(
      body.zone, body.origin, body.lastSequence, body.lastHash,
      Contradiction.Statement(isHead: true, body: head.body, signature: head.signature))
  }

  private mutating func note(
    _ zone: ZoneID, _ origin: Origin, _ sequence: UInt64, _ hash: EntryHash, _ statement: Contradiction.Statement
  ) {
    let place = Place(zone: zone, origin: origin, sequence: sequence)
    // One statement for every hash is all that is needed.
    guard said[place]?.contains(where: { $0.hash == hash }) != true else { return }
    said[place, default: []].append(Said(hash: hash, statement: statement))
  }

  /// Whether an entry was met.
  func has(_ zone: ZoneID, _ origin: Origin, _ sequence: UInt64) -> Bool {
    said[Place(zone: zone, origin: origin, sequence: sequence)] != nil
  }

  /// The first position at which each log contradicts itself.
  func contradictions(author: (DeviceID) -> DevicePublicKeys?) -> [Contradiction] {
    var found: [Contradiction] = []
    for (place, statements) in said.sorted(by: { $0.key < $1.key }) where statements.count > 1 {
      if let last = found.last, last.zone == place.zone, last.origin == place.origin { continue }
      guard let author = author(place.origin.device) else { continue }
      let two = statements.sorted { $0.hash < $1.hash }.prefix(2).map(\.statement).sorted()
      found.append(
        Contradiction(
          author: author, zone: place.zone, origin: place.origin, sequence: place.sequence, statements: two))
    }
    return found
  }
}
