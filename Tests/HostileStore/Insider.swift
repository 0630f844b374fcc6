import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeyring
import LatchkeyKeys
import LatchkeyLog
import LatchkeyRecords
import LatchkeyTables
import Testing

@testable import Latchkey

/// Somebody who holds a device's keys and signs and seals whatever it likes with them, at the moment it was made: a member who
/// misbehaves, a thief, or somebody who was removed since.
struct Insider {
  let village: Village
  let device: DeviceKeys
  /// What the device knew.
  var state: HouseholdState
  /// Its roster log, which goes on without the device.
  var roster: OwnLog
  /// Its log of rows, likewise.
  var rows: OwnLog
  let zone: ZoneID
  /// Of the epoch that the device wrote into.
  let keys: EpochKeys
  var random: AnyRandomSource
  private var signing: SigningKey

  init(_ resident: Resident) throws {
    village = resident.village
    let keyring = FileKeyring(home: resident.directory)
    let contents = try keyring.load()
    let household = try #require(contents.households.first { !$0.isPrivate })
    device = contents.device
    signing = device.signing
    state = try HouseholdState(
      decoding: try #require(try keyring.state(of: household.id)),
      secrets: HouseholdSecrets(
        device: device,
        held: Dictionary(household.epochs.map { ($0.id, $0.key) }, uniquingKeysWith: { first, _ in first })))
    keys = try state.currentKeys()
    roster = state.log
    let replica = try Replica(path: resident.file)
    zone = replica.binding.zone
    rows =
      try replica.value(DatabasePerformer.Key.log(zone)).map { try OwnLog(decoding: $0) }
      ?? OwnLog(household: household.id, epoch: keys.epoch, zone: zone, origin: replica.binding.origin)
    random = AnyRandomSource(World.system.random())
  }

  /// Somebody else with logs of their own, who knows what this one knows.
  func stranger(_ keys: DeviceKeys) -> Insider {
    var stranger = self
    stranger.signing = keys.signing
    let origin = Origin(device: keys.id, incarnation: Incarnation(7))
    stranger.roster = OwnLog(household: state.household, epoch: self.keys.epoch, zone: .roster, origin: origin)
    stranger.rows = OwnLog(household: state.household, epoch: self.keys.epoch, zone: zone, origin: origin)
    return stranger
  }

  // MARK: The roster

  /// Signs an operation, right or wrong, as the next entry of the roster log.
  @discardableResult
  mutating func sign(_ operation: RosterOperation, citing heads: [EntryHash]? = nil) throws -> EntryHash {
    let (_, hashes) = roster.append(
      parts: [(operation.payload, true)], hlc: max(UInt64(village.now) << 16, roster.lastHLC + 1),
      rosterHeads: heads ?? state.roster.heads, signing: signing)
    return try #require(hashes.first)
  }

  /// Puts what was signed into the store, under a head of the epoch.
  mutating func publishRoster(in keys: EpochKeys? = nil, world: String = Shelf.truth) throws {
    let keys = keys ?? self.keys
    if roster.epoch != keys.epoch {
      roster.enter(keys.epoch, after: nil, isConfirmed: true, tail: roster.tail, announces: true)
    }
    let facts = HeadFacts(
      vector: state.belief.vector, rosterHeads: state.roster.heads, hlc: roster.lastHLC, digest: .zero)
    for object in try roster.seal(facts, keys: keys, signing: signing, now: village.now, random: &random) {
      village.shelf.plant(keys.objectName(zone: .roster, object.name), object.bytes, world: world)
    }
  }

  /// Signs a `Next` and lays it where the others look, with the roster under the epoch that it begins.
  @discardableResult
  mutating func publish(
    _ next: Next, key: EpochKey, citing heads: [EntryHash]? = nil, world: String = Shelf.truth
  ) throws -> EpochKeys {
    let hash = try sign(.next(next), citing: heads)
    let entry = try #require(roster.tail.last)
    let begun = EpochKeys(household: state.household, epoch: hash, key: key)
    for copy in RosterCopy.copies(of: state.entries + [entry]) {
      try lay(copy.encoded(), .rosterCopy, begun.rosterCopyName(content: copy.encoded()), begun, world)
    }
    for parent in next.parents {
      guard let keys = state.keys(of: parent) else { continue }
      try lay(
        entry.encoded(), .next, keys.nextName(origin: roster.origin, sequence: roster.lastSequence), keys, world)
    }
    try publishRoster(world: world)
    return begun
  }

  /// Seals any content for a place in the roster.
  mutating func lay(
    _ content: [UInt8], _ kind: ObjectKind, _ below: ObjectName, _ keys: EpochKeys, _ world: String = Shelf.truth
  ) throws {
    let bytes = try Envelope.seal(
      content, at: keys.place(kind, zone: .roster, name: below), key: keys.zoneKey(.roster),
      nonce: EnvelopeNonce(&random))
    village.shelf.plant(keys.objectName(zone: .roster, below), bytes, world: world)
  }

  // MARK: Rows

  /// A group that inserts an account.
  static func account(_ name: String, origin: Origin, hlc: UInt64, record: UInt64) -> [[UInt8]] {
    var builder = PayloadBuilder(origin: origin, hlc: HLC(rawValue: hlc))
    builder.add(
      table: "accounts", record: RecordName(raw: Bytes16(high: 0xbad, low: record)),
      [
        (.born, .life(nil), .own), (.cell("id"), .cell(.integer(Int64(1000 + record))), .own),
        (.cell("name"), .cell(.text(Array(name.utf8))), .own),
      ])
    return builder.finish().map(\.bytes)
  }

  /// Signs the insert of an account as the next group of the log of rows.
  mutating func insert(
    account name: String, citing heads: [EntryHash]? = nil, at milliseconds: Int64? = nil,
    signedBy key: SigningKey? = nil
  ) {
    let hlc = max(UInt64(milliseconds ?? village.now) << 16, rows.lastHLC + 1)
    let payloads = Insider.account(name, origin: rows.origin, hlc: hlc, record: UInt64(rows.lastSequence + 1))
    sign(payloads, hlc: hlc, citing: heads, signedBy: key)
  }

  mutating func sign(
    _ payloads: [[UInt8]], hlc: UInt64, citing heads: [EntryHash]? = nil, signedBy key: SigningKey? = nil
  ) {
    _ = rows.append(
      parts: payloads.map { ($0, true) }, hlc: hlc, rosterHeads: heads ?? state.roster.heads, signing: key ?? signing)
  }

  /// Puts the log of rows into the store.
  ///
  /// - Parameter vector: what its head says it has accepted of others.
  /// - Returns: the names of the objects.
  @discardableResult
  mutating func publishRows(
    vector: [Origin: Mark] = [:], in keys: EpochKeys? = nil, signedBy key: SigningKey? = nil,
    world: String = Shelf.truth
  ) throws -> [ObjectName] {
    let keys = keys ?? self.keys
    let facts = HeadFacts(vector: vector, rosterHeads: state.roster.heads, hlc: rows.lastHLC, digest: .zero)
    return try rows.seal(facts, keys: keys, signing: key ?? signing, now: village.now, random: &random).map { object in
      let name = keys.objectName(zone: zone, object.name)
      village.shelf.plant(name, object.bytes, world: world)
      return name
    }
  }

  // MARK: What it can read

  /// All keys that follow from what it holds and from any entries that it is shown.
  func everyKey(from entries: [StoredEntry]) throws -> [EpochID: EpochKey] {
    var ring = state.ring
    ring.walk(
      try entries.map { entry in
        let body = try EntryBody(decoding: entry.body)
        return RosterEntry(
          hash: EntryBody.hash(of: entry.body), origin: body.origin, sequence: body.sequence, previous: body.previous,
          heads: body.rosterHeads, hlc: body.group.hlc, payload: try entry.payload(body))
      })
    return ring.keys
  }

  /// Whether an object opens with any of the keys, in any zone of the household, as any kind.
  func opens(_ name: ObjectName, _ bytes: [UInt8], with keys: [EpochID: EpochKey]) -> Bool {
    let parts = name.text.split(separator: "/", maxSplits: 1)
    guard parts.count == 2, let below = ObjectName(String(parts[1])) else { return false }
    let zones = [ZoneID.roster] + state.roster.state.zones.map(\.id)
    return keys.contains { epoch, key in
      let keys = EpochKeys(household: state.household, epoch: epoch, key: key)
      return zones.contains { zone in
        ObjectKind.allCases.contains { kind in
          (try? Envelope.open(bytes, at: keys.place(kind, zone: zone, name: below), key: keys.zoneKey(zone))) != nil
        }
      }
    }
  }
}
