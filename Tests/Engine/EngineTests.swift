import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import Testing

/// A store that is a dictionary, and devices that run rounds over it.
private struct World {
  var store: [ObjectName: [UInt8]] = [:]
  var now: Int64 = 1_800_000_000_000
  var random = SeededRandom("engine")
  /// Requests of the last round.
  var requests: [String] = []

  static let marker: [UInt8] = marked(7)
  static func marked(_ id: UInt64) -> [UInt8] {
    var w = CBORWriter()
    w.array(3)
    w.text("latchkey-store")
    w.uint(1)
    w.id(ZoneID(raw: Bytes16(high: 0, low: id)))
    return w.bytes
  }

  init() { store[.marker] = Self.marker }

  /// Runs a round of the roster alone; what it keeps is the device's new state.
  mutating func round(_ device: inout Device) throws -> RoundReport {
    var engine = SyncRound(
      state: device.state, zone: nil, device: device.keys, now: now,
      random: SeededRandom("\(now)\(device.name)"))
    requests = []
    var event = Event.start
    while true {
      switch try engine.step(event) {
      case .get(let names):
        requests.append("get \(names.count)")
        event = .got(store.filter { names.contains($0.key) })
      case .list(let prefix):
        requests.append("list")
        event = .listed(store.keys.filter { $0.text.hasPrefix(prefix) }.sorted())
      case .put(let name, let bytes):
        requests.append("put")
        if let present = store[name], present != bytes {
          event = .collided
        } else {
          store[name] = bytes
          event = .put
        }
      case .delete(let names):
        requests.append("delete")
        for name in names { store[name] = nil }
        event = .deleted
      case .keep(let state):
        device.state = try HouseholdState(decoding: state.encoded(), secrets: device.secrets)
        event = .kept
      case .finish(let report): return report
      case .send, .database: throw EngineError.outOfOrder("no database here")
      }
    }
  }
}

private struct Device {
  let name: String
  let keys: DeviceKeys
  var secrets: HouseholdSecrets
  var state: HouseholdState
  var chain: CertificateChain { CertificateChain(first: keys) }

  static func founder(_ world: inout World) throws -> Device {
    let keys = DeviceKeys(&world.random)
    let key = EpochKey(&world.random)
    var state = try HouseholdState.found(
      name: "Home", isPrivate: false, chain: CertificateChain(first: keys), personName: "Ana", deviceName: "laptop",
      key: key,
      incarnation: Incarnation(1), device: keys, now: world.now, random: &world.random)
    try state.seal(now: world.now, random: &world.random)
    return Device(name: "laptop", keys: keys, secrets: HouseholdSecrets(device: keys), state: state)
  }

  mutating func write(_ operation: RosterOperation, _ world: inout World) throws {
    try state.write(operation, now: world.now)
    try state.seal(now: world.now, random: &world.random)
  }

  /// Opens an invite; returns its link's secret.
  mutating func invite(_ world: inout World, role: InviteRole = .member, id: UInt64 = 1) throws -> InviteSecret {
    let secret = InviteSecret(&world.random)
    try write(
      .openInvite(
        OpenInvite(
          id: InviteID(raw: Bytes16(high: 0, low: id)), claimKey: secret.keys.claimKey.publicKey,
          boxKey: secret.keys.boxKey.publicKey, role: role, expiry: UInt64(world.now + 1000))), &world)
    return secret
  }

  /// A stranger with the epoch's key who claims an invite.
  static func newcomer(_ name: String, _ secret: InviteSecret, of founder: Device, _ world: inout World, id: UInt64 = 1)
    throws -> Device
  {
    let keys = DeviceKeys(&world.random)
    guard let genesis = founder.state.genesis else { throw EngineError.damagedState("test") }
    let epoch = try founder.state.currentKeys()
    let invite = InviteID(raw: Bytes16(high: 0, low: id))
    let secrets = HouseholdSecrets(
      device: keys, held: [epoch.epoch: epoch.key],
      link: HouseholdSecrets.Link(invite: invite, box: secret.keys.boxKey))
    var state = try HouseholdState(
      household: founder.state.household, epoch: epoch.epoch, genesis: genesis,
      origin: Origin(device: keys.id, incarnation: Incarnation(id)), secrets: secrets)
    let claim = Claim(
      household: state.household, invite: InviteID(raw: Bytes16(high: 0, low: id)),
      chain: CertificateChain(first: keys),
      personName: name, deviceName: "phone", epoch: state.epoch, claimKey: secret.keys.claimKey, device: keys)
    try state.enqueue(claim, random: &world.random)
    return Device(name: name, keys: keys, secrets: secrets, state: state)
  }
}

@Suite("The engine's rounds")
struct EngineTests {
  @Test(
    "a newcomer claims while the founder is away, is admitted at the founder's next round, and both know the same people"
  )
  func admission() throws {
    var world = World()
    var ana = try Device.founder(&world)
    let secret = try ana.invite(&world)
    _ = try world.round(&ana)
    var ben = try Device.newcomer("Ben", secret, of: ana, &world)
    #expect(try world.round(&ben).isProvisional)
    #expect(try world.round(&ana).admitted.map(\.who) == ["Ben (phone)"])
    #expect(try !world.round(&ben).isProvisional)
    #expect(ana.state.roster.state.people.map(\.name).sorted() == ["Ana", "Ben"])
    #expect(ana.state.roster.state == ben.state.roster.state)
    #expect(try world.round(&ana).admitted.isEmpty)
  }

  @Test("a quiet round is one listing: no marker, no object, nothing kept")
  func quiet() throws {
    var world = World()
    var ana = try Device.founder(&world)
    _ = try world.round(&ana)
    _ = try world.round(&ana)
    #expect(world.requests == ["list"])
  }

  @Test("two claims on one link admit nobody: a person decides")
  func rivals() throws {
    var world = World()
    var ana = try Device.founder(&world)
    let secret = try ana.invite(&world)
    _ = try world.round(&ana)
    for name in ["Ben", "Mallory"] {
      var newcomer = try Device.newcomer(name, secret, of: ana, &world)
      _ = try world.round(&newcomer)
    }
    let report = try world.round(&ana)
    #expect(report.admitted.isEmpty && report.requests.count == 2)
    #expect(ana.state.roster.state.people.count == 1)
  }

  @Test("a claim that comes after the link's time, or after it was revoked, is refused for good")
  func late() throws {
    var world = World()
    var ana = try Device.founder(&world)
    let first = try ana.invite(&world)
    let second = try ana.invite(&world, id: 2)
    _ = try world.round(&ana)
    var late = try Device.newcomer("Late", first, of: ana, &world)
    var shut = try Device.newcomer("Shut", second, of: ana, &world, id: 2)
    try ana.write(.revokeInvite(InviteID(raw: Bytes16(high: 0, low: 2))), &world)
    _ = try world.round(&shut)
    world.now += 2000
    _ = try world.round(&late)
    let report = try world.round(&ana)
    #expect(report.admitted.isEmpty && report.refusedClaims.count == 2)
    #expect(ana.state.ignoredClaims.count == 2)
    #expect(try world.round(&ana).refusedClaims.isEmpty)
  }

  @Test("without the marker, or with another store's, the round stops before anything is believed or written")
  func marker() throws {
    var world = World()
    var ana = try Device.founder(&world)
    _ = try world.round(&ana)
    let before = ana.state.encoded()
    let full = world.store
    world.store = [:]
    #expect(throws: EngineError.storeMissing) { _ = try world.round(&ana) }
    world.store = [.marker: World.marked(8)]
    #expect(throws: EngineError.otherStore) { _ = try world.round(&ana) }
    world.store = [.marker: Array("rubbish".utf8)]
    #expect(throws: EngineError.self) { _ = try world.round(&ana) }
    #expect(ana.state.encoded() == before)
    world.store = full
    _ = try world.round(&ana)
  }

  @Test("a copied or restored directory goes on in a new log: no entry gets a number twice, and both sides say so")
  func copiedDirectory() throws {
    var world = World()
    var ana = try Device.founder(&world)
    _ = try world.round(&ana)
    var twin = ana
    try ana.write(.zone(ZoneID(raw: Bytes16(high: 0, low: 1)), name: "one"), &world)
    _ = try world.round(&ana)
    try twin.write(.zone(ZoneID(raw: Bytes16(high: 0, low: 2)), name: "two"), &world)
    let report = try world.round(&twin)
    #expect(report.findings.contains(.notMine(origin: ana.state.log.origin)))
    #expect(
      twin.state.log.origin != ana.state.log.origin && twin.state.log.origin.device == ana.state.log.origin.device)
    // What only the copy had written was written again under the new log; what the other wrote is read next time.
    _ = try world.round(&twin)
    #expect(twin.state.roster.state.zones.map(\.name).sorted() == ["one", "two"])
    _ = try world.round(&ana)
    #expect(ana.state.roster.state.zones.map(\.name).sorted() == ["one", "two"])
    #expect(try world.round(&twin).findings.isEmpty && world.round(&ana).findings.isEmpty)
  }

  @Test("damaged roster objects are named and set aside; the rest of the round goes on")
  func damaged() throws {
    var world = World()
    var ana = try Device.founder(&world)
    let secret = try ana.invite(&world)
    _ = try world.round(&ana)
    var ben = try Device.newcomer("Ben", secret, of: ana, &world)
    for name in world.store.keys.sorted() where name != .marker { world.store[name]?[100] ^= 1 }
    let report = try world.round(&ben)
    #expect(report.hasSetAside && !report.findings.isEmpty)
    for finding in report.findings {
      guard case .damaged(let object, _) = finding else { throw finding }
      #expect(world.store.keys.contains { $0.text.hasSuffix(object.text) })
    }
    #expect(ben.state.roster.state.people.map(\.name) == ["Ana"])
  }

  @Test("an event that answers another effect is a defect that is named, not a wrong step")
  func outOfOrder() throws {
    var world = World()
    let ana = try Device.founder(&world)
    var engine = SyncRound(
      state: ana.state, zone: nil, device: ana.keys, now: 0, random: SeededRandom("x"))
    _ = try engine.step(.start)
    #expect(throws: EngineError.self) { _ = try engine.step(.put) }
  }
}
