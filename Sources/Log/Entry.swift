public import LatchkeyEncoding
public import LatchkeyKeys

/// Where an entry stands in its push group (format §6): all parts of one group are applied together or wait together.
public struct GroupPlace: Equatable, Sendable {
  /// The group's hybrid logical clock.
  public let hlc: UInt64
  /// Made from the content of all parts; decides between branches of a fork.
  public let tie: UInt64
  public let part: Int
  public let parts: Int

  public init(hlc: UInt64, tie: UInt64, part: Int, parts: Int) {
    (self.hlc, self.tie, self.part, self.parts) = (hlc, tie, part, parts)
  }
}

/// The signed part of an entry (format §6). It holds the payload's hash, not the payload, so that it can be shown as
/// evidence without showing rows.
public struct EntryBody: Equatable, Sendable {
  /// Zero in Genesis only: the household's id is that entry's hash.
  public let household: HouseholdID
  public let zone: ZoneID
  public let origin: Origin
  /// 1, 2, 3 … per origin and zone.
  public let sequence: UInt64
  public let previous: EntryHash?
  /// The ends of the roster that the author knew, ascending.
  public let rosterHeads: [EntryHash]
  public let group: GroupPlace
  public let payloadHash: Hash32
  public let payloadLength: Int

  public init(
    household: HouseholdID, zone: ZoneID, origin: Origin, sequence: UInt64, previous: EntryHash?,
    rosterHeads: [EntryHash], group: GroupPlace, payloadHash: Hash32, payloadLength: Int
  ) {
    self.household = household
    self.zone = zone
    self.origin = origin
    self.sequence = sequence
    self.previous = previous
    self.rosterHeads = rosterHeads
    self.group = group
    self.payloadHash = payloadHash
    self.payloadLength = payloadLength
  }

  /// The bytes that are signed and hashed.
  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 320)
    w.array(11)
    w.uint(1)
    w.id(household)
    w.id(zone)
    w.id(origin.device)
    w.id(origin.incarnation)
    w.uint(sequence)
    if let previous { w.id(previous) } else { w.null() }
    w.array(rosterHeads.count)
    for head in rosterHeads { w.id(head) }
    w.array(4)
    w.uint(group.hlc)
    w.id(Incarnation(group.tie))
    w.uint(group.part)
    w.uint(group.parts)
    w.id(payloadHash)
    w.uint(payloadLength)
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      let count = try r.array()
      let version = try r.uint()
      guard version == 1 else { throw LogError.newer("entry version \(version)") }
      guard count == 11 else { throw LogError.malformed("entry body") }
      household = try r.id()
      zone = try r.id()
      origin = Origin(device: try r.id(), incarnation: try r.id())
      sequence = try r.uint()
      previous = try r.null() ? nil : try r.id()
      var heads: [EntryHash] = []
      for _ in 0..<(try r.array(max: LogLimits.rosterHeads)) { heads.append(try r.id()) }
      rosterHeads = heads
      try r.array(exactly: 4)
      let hlc = try r.uint()
      let tie: Incarnation = try r.id()
      let part = try r.uint(max: LogLimits.partsPerGroup)
      let parts = try r.uint(max: LogLimits.partsPerGroup)
      group = GroupPlace(hlc: hlc, tie: tie.value, part: part, parts: parts)
      payloadHash = try r.id()
      payloadLength = try r.uint(max: LogLimits.payloadBytes)
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch {
      throw .malformed("entry body: \(error)")
    }
    guard sequence >= 1, (sequence == 1) == (previous == nil), group.part < group.parts,
      zip(rosterHeads, rosterHeads.dropFirst()).allSatisfy({ $0 < $1 })
    else { throw .malformed("entry body") }
  }

  /// The hash that names this entry (format §6).
  public static func hash(of encoded: [UInt8]) -> EntryHash {
    hash32("entry", parts: 1) { $0.byteString(encoded) }
  }

  /// `H_32(; "payload", payload)`.
  public static func payloadHash(_ payload: [UInt8]) -> Hash32 {
    hash32("payload", parts: 1) { $0.byteString(payload) }
  }

  /// The tie of a push group (format §6): from the content of all its parts, never from stamps, so nothing is circular.
  public static func tie(zone: ZoneID, origin: Origin, hlc: UInt64, payloadHashes: [Hash32]) -> UInt64 {
    let hash = hash32("group", parts: 5) {
      $0.id(zone)
      $0.id(origin.device)
      $0.id(origin.incarnation)
      $0.uint(hlc)
      $0.array(payloadHashes.count)
      for hash in payloadHashes { $0.id(hash) }
    }
    return hash.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// An entry as it lies in a segment or tail: what was signed, the signature, and the payload in its stored form.
public struct StoredEntry: Equatable, Sendable {
  /// Signed bytes: an ``EntryBody``.
  public let body: [UInt8]
  /// Ed25519, 64 bytes.
  public let signature: [UInt8]
  /// Whether `stored` is a zstd frame.
  public let isCompressed: Bool
  /// The payload, plain or compressed.
  public let stored: [UInt8]

  public init(body: [UInt8], signature: [UInt8], isCompressed: Bool, stored: [UInt8]) {
    (self.body, self.signature, self.isCompressed, self.stored) = (body, signature, isCompressed, stored)
  }

  /// Upper bound of what this entry takes inside an object, in bytes.
  var weight: Int { body.count + signature.count + stored.count + 24 }

  func write(to w: inout CBORWriter) {
    w.array(4)
    w.byteString(body)
    w.byteString(signature)
    w.uint(isCompressed ? 1 : 0)
    w.byteString(stored)
  }

  init(from r: inout CBORReader) throws {
    try r.array(exactly: 4)
    body = try r.byteString(max: 65_536)
    signature = try r.byteString(max: 64)
    isCompressed = try r.uint(max: 1) == 1
    stored = try r.byteString(max: LogLimits.payloadBytes)
    guard signature.count == 64 else { throw LogError.malformed("signature length") }
  }

  /// Entries one after the other, as objects hold them.
  static func write(_ entries: [StoredEntry], to w: inout CBORWriter) {
    w.array(entries.count)
    for entry in entries { entry.write(to: &w) }
  }

  static func list(from r: inout CBORReader) throws -> [StoredEntry] {
    var entries: [StoredEntry] = []
    for _ in 0..<(try r.array(max: LogLimits.entriesPerObject)) { entries.append(try StoredEntry(from: &r)) }
    return entries
  }

  /// Cuts entries into runs that make one object each.
  static func runs(of entries: [StoredEntry]) -> [ArraySlice<StoredEntry>] {
    var runs: [ArraySlice<StoredEntry>] = []
    var start = 0
    var weight = 0
    for (index, entry) in entries.enumerated() {
      let isFull =
        weight + entry.weight > LogLimits.segmentTarget - 65_536 || index - start == LogLimits.entriesPerObject
      if index > start && isFull {
        runs.append(entries[start..<index])
        start = index
        weight = 0
      }
      weight += entry.weight
    }
    if start < entries.count { runs.append(entries[start...]) }
    return runs
  }

  /// One entry alone, as it is kept beside the keyring.
  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: weight)
    write(to: &w)
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      self = try StoredEntry(from: &r)
      try r.finish()
    } catch let error as LogError {
      throw error
    } catch { throw .malformed("entry: \(error)") }
  }

  /// Whether the signature is `key`'s on the body.
  public func isSigned(by key: SigningPublicKey) -> Bool {
    Signature(signature).map { key.verifies($0, .entry, body) } ?? false
  }

  /// The plain payload, checked against what was signed.
  public func payload(_ body: EntryBody) throws(LogError) -> [UInt8] {
    let plain: [UInt8]
    if isCompressed {
      guard let out = Compression.decompress(stored, length: body.payloadLength) else {
        throw .badPayload("not a frame of \(body.payloadLength) bytes")
      }
      plain = out
    } else {
      plain = stored
    }
    guard plain.count == body.payloadLength, EntryBody.payloadHash(plain) == body.payloadHash else {
      throw .badPayload("its hash is not the one that was signed")
    }
    return plain
  }
}
