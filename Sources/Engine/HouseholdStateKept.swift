internal import LatchkeyEncoding
internal import LatchkeyKeys
internal import LatchkeyLog

/// What lies in the file beside the keyring; not a wire format.
extension HouseholdState {
  /// For the file beside the keyring; not a wire format.
  public func encoded() -> [UInt8] {
    var w = CBORWriter(reserving: 4096)
    w.array(15)
    w.uint(2)
    w.id(household)
    w.id(epoch)
    w.array(entries.count)
    for entry in entries { w.byteString(entry.encoded()) }
    w.byteString(belief.encoded())
    w.byteString(log.encoded())
    w.array(outbox.count * 3)
    for object in outbox {
      w.text(object.name.text)
      w.byteString(object.bytes)
      w.uint(object.confirms)
    }
    if let marker { w.byteString(marker) } else { w.null() }
    w.array(ignoredClaims.count)
    for name in ignoredClaims.sorted() { w.text(name.text) }
    w.array(readCopies.count)
    for name in readCopies.sorted() { w.text(name.text) }
    if let nextDue { w.int(nextDue) } else { w.null() }
    let proven = roster.state.proven.sorted()
    w.array(proven.count)
    for epoch in proven { w.id(epoch) }
    if let claimedIn { w.id(claimedIn) } else { w.null() }
    w.array(claimEpochs.count)
    for epoch in claimEpochs.sorted() { w.id(epoch) }
    w.array(unjudged.count * 2)
    for (hash, since) in unjudged.sorted(by: { $0.key < $1.key }) {
      w.id(hash)
      w.int(since)
    }
    return w.bytes
  }

  public init(decoding bytes: [UInt8], secrets: HouseholdSecrets) throws(EngineError) {
    var r = CBORReader(bytes)
    func names() throws -> [ObjectName] {
      var names: [ObjectName] = []
      for _ in 0..<(try r.array()) {
        guard let name = ObjectName(try r.text()) else { throw EngineError.damagedState("a name") }
        names.append(name)
      }
      return names
    }
    do {
      try r.array(exactly: 15)
      guard try r.uint() == 2 else { throw EngineError.damagedState("of another version") }
      household = try r.id()
      epoch = try r.id()
      self.secrets = secrets
      ring = secrets.ring(of: household)
      roster = Roster(household: household, evaluating: .everyEpoch)
      var kept: [StoredEntry] = []
      for _ in 0..<(try r.array()) { kept.append(try StoredEntry(decoding: try r.byteString())) }
      belief = try Belief(decoding: try r.byteString())
      log = try OwnLog(decoding: try r.byteString())
      for _ in 0..<(try r.array() / 3) {
        guard let name = ObjectName(try r.text()) else { throw EngineError.damagedState("outbox") }
        let bytes = try r.byteString()
        outbox.append(RosterObject(name: name, bytes: bytes, confirms: try r.uint()))
      }
      marker = try r.null() ? nil : try r.byteString()
      ignoredClaims = Set(try names())
      readCopies = Set(try names())
      nextDue = try r.null() ? nil : try r.int()
      var proven: Set<EpochID> = []
      for _ in 0..<(try r.array()) { proven.insert(try r.id()) }
      claimedIn = try r.null() ? nil : try r.id()
      for _ in 0..<(try r.array()) { claimEpochs.insert(try r.id()) }
      for _ in 0..<(try r.array() / 2) {
        let hash: EntryHash = try r.id()
        unjudged[hash] = try r.int()
      }
      try r.finish()
      roster = Roster(household: household, evaluating: .everyEpoch, proven: proven)
      try addAll(kept)
    } catch let error as EngineError {
      throw error
    } catch { throw .damagedState("\(error)") }
  }
}
