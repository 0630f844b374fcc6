import Glibc
import LatchkeyEncoding
import LatchkeyKeys
import LatchkeyLog

/// Everything that was ever sealed or put, with the keys to read it: what an adversary who keeps all bytes would have, and
/// what only the devices can read of it.
struct Ledger {
  /// Of every epoch that some device knows, by the prefix of each zone.
  private var keys: [String: EpochKeys] = [:]
  private var known: Set<EpochID> = []
  private let zones: [ZoneID]
  private var contents: [ObjectName: [UInt8]] = [:]
  private var hashes: [Position: EntryHash] = [:]

  private struct Position: Hashable {
    let zone: ZoneID
    let origin: Origin
    let sequence: UInt64
  }

  init(keys: EpochKeys, zone: ZoneID) {
    zones = [.roster, zone]
    learn([keys])
  }

  mutating func learn(_ epochs: [EpochKeys]) {
    for epoch in epochs where known.insert(epoch.epoch).inserted {
      for zone in zones { keys[epoch.prefix(zone)] = epoch }
    }
  }

  /// An object leaves a device, whether or not it arrives.
  mutating func put(_ name: ObjectName, _ bytes: [UInt8]) throws {
    try checkPlaintext(name.text, bytes)
    try remember(name, bytes)
  }

  /// A device has sealed an object of a row zone and will send it.
  ///
  /// - Returns: its entries that are new, in order.
  mutating func sealed(_ name: ObjectName, zone: ZoneID, _ bytes: [UInt8]) throws -> [StoredEntry] {
    if contents[name] != nil {
      try remember(name, bytes)
      return []
    }
    try remember(name, bytes)
    return try entries(name, zone: zone, bytes)
  }

  /// The entries in an object of a log that have not been seen, in order.
  ///
  /// - Throws: ``Violation`` if a position holds another entry than before.
  mutating func entries(_ name: ObjectName, zone: ZoneID, _ bytes: [UInt8]) throws -> [StoredEntry] {
    guard let keys = keys[String(name.text.prefix(32))], let below = ObjectName(String(name.text.dropFirst(33))) else {
      return []
    }
    let found: [StoredEntry]
    if HeadName(below) != nil {
      let place = keys.place(.head, zone: zone, name: below)
      found = try HeadContent(decoding: Envelope.open(bytes, at: place, key: keys.zoneKey(zone))).tail
    } else if below.text.hasPrefix("l/") {
      let place = keys.place(.segment, zone: zone, name: below)
      found = try SegmentContent(decoding: Envelope.open(bytes, at: place, key: keys.zoneKey(zone))).entries
    } else if below.text.hasPrefix("r/") {
      let place = keys.place(.rosterCopy, zone: zone, name: below)
      found = try RosterCopy(decoding: Envelope.open(bytes, at: place, key: keys.zoneKey(zone))).entries
    } else if below.text.hasPrefix("n/") {
      let place = keys.place(.next, zone: zone, name: below)
      found = [try StoredEntry(decoding: Envelope.open(bytes, at: place, key: keys.zoneKey(zone)))]
    } else {
      return []
    }
    var new: [StoredEntry] = []
    for entry in found {
      let body = try EntryBody(decoding: entry.body)
      let hash = EntryBody.hash(of: entry.body)
      let position = Position(zone: body.zone, origin: body.origin, sequence: body.sequence)
      if let known = hashes[position] {
        guard known == hash else { throw Violation(.fork, "two entries at \(body.origin) \(body.sequence)") }
      } else {
        hashes[position] = hash
        new.append(entry)
      }
    }
    return new
  }

  private mutating func remember(_ name: ObjectName, _ bytes: [UInt8]) throws {
    if let known = contents[name] {
      guard try known == bytes || isSame(name, known, bytes) else {
        throw Violation(.overwrite, "\(name) has two contents")
      }
    } else {
      contents[name] = bytes
    }
  }

  /// Whether two objects of the roster that anybody may put where they belong say the same.
  private func isSame(_ name: ObjectName, _ a: [UInt8], _ b: [UInt8]) throws -> Bool {
    guard let keys = keys[String(name.text.prefix(32))], let below = ObjectName(String(name.text.dropFirst(33))) else {
      return false
    }
    let kind: ObjectKind
    switch below.text.prefix(2) {
    case "r/": kind = .rosterCopy
    case "n/": kind = .next
    case "c/": kind = .claim
    default: return false
    }
    let place = keys.place(kind, zone: .roster, name: below)
    let key = keys.zoneKey(.roster)
    return try Envelope.open(a, at: place, key: key) == Envelope.open(b, at: place, key: key)
  }

  private func checkPlaintext(_ name: String, _ bytes: [UInt8]) throws {
    let canary = Array(AppSchema.canary.utf8)
    let found = bytes.withUnsafeBytes { all in
      guard var at = all.baseAddress, all.count >= canary.count else { return false }
      let end = at + all.count - canary.count
      while at <= end, let next = memchr(at, Int32(canary[0]), end - at + 1) {
        if memcmp(next, canary, canary.count) == 0 { return true }
        at = UnsafeRawPointer(next) + 1
      }
      return false
    }
    if found || name.contains(AppSchema.canary) { throw Violation(.plaintext, "\(name) can be read") }
  }
}
