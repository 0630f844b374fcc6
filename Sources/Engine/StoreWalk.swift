public import LatchkeyEncoding
internal import LatchkeyKeys
public import LatchkeyLog

/// What reading everything in a store found.
public struct StoreCheck: Equatable, Sendable {
  public struct Finding: Hashable, Sendable {
    /// `damaged`, `newer`, `unknown-object`, `unknown-author`, `missing`, `broken-chain`, `fork`, `rollback` or `claim-unanswered`.
    public let code: String
    /// In the store; nil for what concerns a whole log.
    public let object: ObjectName?
    public let message: String

    /// Whether it is damage: all else is for people to know.
    public var isDamage: Bool { code != "newer" && code != "unknown-author" }
  }

  /// Objects of this household that were read.
  public internal(set) var objects = 0
  /// Their bytes.
  public internal(set) var bytes = 0
  /// Objects that belong to somebody else, or to nothing that this device has keys of.
  public internal(set) var foreign = 0
  /// By object name.
  public internal(set) var findings: [Finding] = []
  public internal(set) var contradictions: [Contradiction] = []
}

/// Reads and verifies everything of a household in a store that this device can open: every epoch, the roster and all zones, open or closed; every
/// object's envelope, place, signatures and chain (format §4, §6, §7). Changes nothing.
///
/// Pure: perform ``Effect/list(_:)`` and ``Effect/get(_:)``, the only ones, until ``step(_:)`` gives none; then ask ``check``.
public struct StoreWalk {
  private struct Lying {
    let keys: EpochKeys
    let zone: ZoneID
    let below: ObjectName
    let kind: ObjectKind
    let name: ObjectName
  }

  private struct Log: Hashable, Comparable {
    let zone: ZoneID
    let origin: Origin
    static func < (a: Self, b: Self) -> Bool { (a.zone, a.origin) < (b.zone, b.origin) }
  }

  /// How a log ends by its newest head in an epoch.
  private struct End {
    let keys: EpochKeys
    let body: HeadBody
    let name: ObjectName
  }

  /// Objects fetched at a time.
  public static let objectsAtOnce = 16

  private let state: HouseholdState
  private let zones: [ZoneID]
  /// What a database has accepted of the zone that is checked, beside the roster's own belief.
  private let accepted: [(zone: ZoneID, belief: Belief)]
  private var waiting: [Lying] = []
  private var underWay: [Lying] = []
  private var listed: Set<ObjectName> = []
  private var ends: [Log: [End]] = [:]
  private var testimony = Testimony()
  private var result = StoreCheck()

  /// - Parameters:
  ///   - state: the household as this device knows it, after a round.
  ///   - zones: which zones of rows; the roster always is.
  ///   - accepted: what was read of zones before: less than that in the store is a rollback.
  public init(state: HouseholdState, zones: [ZoneID], accepted: [(zone: ZoneID, belief: Belief)]) {
    self.state = state
    self.zones = [.roster] + zones.filter { $0 != .roster }.sorted()
    self.accepted = accepted + [(zone: .roster, belief: state.belief)]
  }

  /// What was found, once there is nothing left to do.
  public var check: StoreCheck { result }

  /// The next effect; nil at the end.
  public mutating func step(_ event: Event) throws(EngineError) -> Effect? {
    switch event {
    case .start: return .list("")
    case .listed(let names):
      sort(names)
      return next()
    case .got(let objects):
      for lying in underWay {
        guard let bytes = objects[lying.name] else {
          add("missing", lying.name, "It was listed, and is not there.")
          continue
        }
        result.objects += 1
        result.bytes += bytes.count
        look(lying, bytes)
      }
      return next()
    case .put, .collided, .deleted, .kept, .database: throw .outOfOrder("\(event)")
    }
  }

  private mutating func next() -> Effect? {
    guard !waiting.isEmpty else {
      finish()
      return nil
    }
    underWay = Array(waiting.prefix(Self.objectsAtOnce))
    waiting.removeFirst(underWay.count)
    return .get(underWay.map(\.name))
  }

  private mutating func add(_ code: String, _ object: ObjectName?, _ message: String) {
    result.findings.append(StoreCheck.Finding(code: code, object: object, message: message))
  }

  /// Tells this household's objects from others' by their prefixes.
  private mutating func sort(_ names: [ObjectName]) {
    listed = Set(names)
    var prefixes: [String: (EpochKeys, ZoneID)] = [:]
    for keys in state.epochs {
      for zone in zones { prefixes[keys.prefix(zone)] = (keys, zone) }
    }
    for name in names.sorted() where name != .marker {
      guard let (keys, zone) = prefixes[String(name.text.prefix(32))], let below = name.below(keys.prefix(zone)) else {
        result.foreign += 1
        continue
      }
      let kinds: [ObjectKind] = zone == .roster ? [.head, .segment, .claim, .next, .rosterCopy] : [.head, .segment]
      guard let kind = kinds.first(where: { below.text.hasPrefix($0.letter + "/") }) else {
        add(
          "unknown-object", name,
          "No object of this version has such a name here: it is left alone, and nothing reads it.")
        continue
      }
      waiting.append(Lying(keys: keys, zone: zone, below: below, kind: kind, name: name))
    }
  }

  // MARK: Objects

  private mutating func look(_ lying: Lying, _ bytes: [UInt8]) {
    do {
      let content = try Envelope.open(
        bytes, at: lying.keys.place(lying.kind, zone: lying.zone, name: lying.below),
        key: lying.keys.zoneKey(lying.zone))
      switch lying.kind {
      case .head: try look(head: content, lying)
      case .segment: try look(segment: content, lying)
      case .next:
        let entry = try StoredEntry(decoding: content)
        let body = try look(entry, lying)
        guard lying.keys.nextName(origin: body.origin, sequence: body.sequence) == lying.below else {
          throw LogError.misplaced("the entry belongs under another name")
        }
      case .rosterCopy:
        guard lying.keys.rosterCopyName(content: content) == lying.below else {
          throw LogError.misplaced("the copy belongs under another name")
        }
        for entry in try RosterCopy(decoding: content).entries { try look(entry, lying) }
      case .claim:
        let claim = try Claim(decoding: content)
        guard claim.name(lying.keys) == lying.below else { throw LogError.misplaced("the claim belongs elsewhere") }
        let terms = state.roster.state.invites.map(\.terms).filter { $0.id == claim.invite }
        guard terms.contains(where: { claim.isFromLink($0.claimKey) }) else {
          add("damaged", lying.name, "A claim by nobody who holds a link of this household: it lets nobody in.")
          return
        }
      case .invite, .base, .asset, .inbox, .card, .kit: return
      }
    } catch let error as Unknown {
      add(
        "unknown-author", lying.name,
        "Device \(error.device.short) has signed this, and nobody whom this device knows has let it in: it does not count."
      )
    } catch {
      switch error {
      case EnvelopeError.newer, LogError.newer, FormatError.newer:
        add("newer", lying.name, "Written by a newer version: it waits for an update of latchkey.")
      default: add("damaged", lying.name, "\(meaning(of: lying.kind)) (\(error))")
      }
    }
  }

  /// The author is not in the roster.
  private struct Unknown: Error { let device: DeviceID }

  private func meaning(of kind: ObjectKind) -> String {
    switch kind {
    case .head:
      "Altered, exchanged or cut off: what its author's log holds since the head before it may not be read from here."
    case .segment:
      "Altered, exchanged or cut off: the entries in it, and all after them in that log, cannot be read from here."
    case .claim: "Altered, exchanged or cut off: whoever wrote it has to claim again."
    case .next: "Altered, exchanged or cut off: a device that was away may not find the epoch after this one."
    case .rosterCopy: "Altered, exchanged or cut off: a newcomer may not find what it copied."
    case .invite, .base, .asset, .inbox, .card, .kit: "Altered, exchanged or cut off."
    }
  }

  private mutating func look(head content: [UInt8], _ lying: Lying) throws {
    let head = try HeadContent(decoding: content)
    let body = try HeadBody(decoding: head.body)
    guard body.household == state.household, body.epoch == lying.keys.epoch, body.zone == lying.zone,
      lying.keys.headName(zone: lying.zone, origin: body.origin, counter: body.counter) == lying.below
    else { throw LogError.misplaced("the signed head belongs elsewhere") }
    guard let author = state.roster.keys(of: body.origin.device) else { throw Unknown(device: body.origin.device) }
    guard let signature = Signature(head.signature), author.signing.verifies(signature, .head, head.body) else {
      throw LogError.badSignature
    }
    guard body.base == nil else { throw LogError.newer("a base") }
    testimony.note(head: head, body)
    try look(head.tail, body.origin, from: body.segmentsEnd + 1, lying)
    ends[Log(zone: lying.zone, origin: body.origin), default: []].append(
      End(keys: lying.keys, body: body, name: lying.name))
  }

  private mutating func look(segment content: [UInt8], _ lying: Lying) throws {
    let segment = try SegmentContent(decoding: content)
    guard segment.zone == lying.zone,
      lying.keys.segmentName(zone: lying.zone, origin: segment.origin, index: segment.index) == lying.below
    else { throw LogError.misplaced("the segment belongs under another name") }
    try look(segment.entries, segment.origin, from: segment.firstSequence, lying)
  }

  /// A run of one log's entries.
  private mutating func look(_ entries: [StoredEntry], _ origin: Origin, from first: UInt64, _ lying: Lying) throws {
    var previous: EntryHash?
    for (offset, entry) in entries.enumerated() {
      let body = try look(entry, lying)
      guard body.origin == origin, body.sequence == first + UInt64(offset) else {
        throw LogError.misplaced("entry \(body.sequence) does not belong here")
      }
      if let previous, body.previous != previous { throw LogError.brokenChain("entry \(body.sequence)") }
      previous = EntryBody.hash(of: entry.body)
    }
  }

  @discardableResult
  private mutating func look(_ entry: StoredEntry, _ lying: Lying) throws -> EntryBody {
    let body = try EntryBody(decoding: entry.body)
    guard body.zone == lying.zone,
      body.household == state.household || EntryBody.hash(of: entry.body) == state.household
    else { throw LogError.misplaced("another zone's or household's entry") }
    guard let author = state.roster.keys(of: body.origin.device) else { throw Unknown(device: body.origin.device) }
    guard entry.isSigned(by: author.signing) else { throw LogError.badSignature }
    _ = try entry.payload(body)
    testimony.note(entry: entry, body)
    return body
  }

  // MARK: Logs

  private mutating func finish() {
    for entry in state.entries {
      if let body = try? EntryBody(decoding: entry.body) { testimony.note(entry: entry, body) }
    }
    for (log, ends) in ends.sorted(by: { $0.key < $1.key }) { finish(log, ends) }
    for (zone, belief) in accepted where zones.contains(zone) {
      for (origin, author) in belief.authors.sorted(by: { $0.key < $1.key }) {
        let reach = ends[Log(zone: zone, origin: origin)]?.map(\.body.lastSequence).max() ?? 0
        // Of the roster, entries lie in copies, too.
        guard zone != .roster, let mark = author.mark, mark.sequence > reach else { continue }
        add(
          "rollback", nil,
          "The store shows \(reach) entries of device \(origin.device.short)'s log, and \(mark.sequence) were read before: it was rolled back, or withholds them."
        )
      }
    }
    let roster = state.roster
    result.contradictions = testimony.contradictions { roster.keys(of: $0) }
    for found in result.contradictions {
      add(
        "fork", nil,
        "Device \(found.origin.device.short) has signed two histories that part at entry \(found.sequence): keys were copied, or an old copy of a file was used. --evidence FILE writes both statements."
      )
    }
    result.findings.sort {
      ($0.object?.text ?? "~", $0.code, $0.message) < ($1.object?.text ?? "~", $1.code, $1.message)
    }
  }

  /// Whether what a log's newest heads say is there.
  private mutating func finish(_ log: Log, _ ends: [End]) {
    var newest: [EpochID: End] = [:]
    for end in ends where end.body.counter > newest[end.keys.epoch]?.body.counter ?? 0 { newest[end.keys.epoch] = end }
    for (_, end) in newest.sorted(by: { $0.key < $1.key }) {
      if end.body.lastSegment > 0 {
        for index in end.body.firstSegment...end.body.lastSegment {
          let below = end.keys.segmentName(zone: log.zone, origin: log.origin, index: index)
          let name = end.keys.objectName(zone: log.zone, below)
          guard !listed.contains(name) else { continue }
          add(
            "missing", name,
            "Head \(end.name) needs this segment of device \(log.origin.device.short)'s log, and it is not there.")
        }
      }
      if let former = end.body.former, former.counter > 0, let keys = state.keys(of: former.epoch) {
        let name = keys.objectName(
          zone: log.zone, keys.headName(zone: log.zone, origin: log.origin, counter: former.counter))
        if !listed.contains(name) {
          add("missing", name, "Head \(end.name) continues this one of the epoch before, and it is not there.")
        }
      }
    }
  }
}
