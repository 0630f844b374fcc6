import LatchkeyEncoding
import LatchkeyKeys
import Testing

/// A household of the tests, from a seed.
struct World {
  var random: SeededRandom
  let household: HouseholdID
  let keys: EpochKeys
  let zone: ZoneID
  let origin: Origin

  init(_ seed: String) {
    random = SeededRandom(seed)
    household = Hash32(random.bytes(32)) ?? .zero
    keys = EpochKeys(household: household, epoch: household, key: EpochKey(&random))
    zone = ZoneID(random.bytes(16)) ?? .zero
    origin = Origin(device: DeviceID(random.bytes(16)) ?? .zero, incarnation: Incarnation(7))
  }
}

@Suite("The envelope")
struct EnvelopeTests {
  var world = World("envelope")

  private mutating func sealed(_ content: [UInt8], _ kind: ObjectKind = .segment) throws -> (EnvelopePlace, [UInt8]) {
    let name =
      kind == .head
      ? world.keys.headName(zone: world.zone, origin: world.origin, counter: 1)
      : world.keys.segmentName(zone: world.zone, origin: world.origin, index: 1)
    let place = world.keys.place(kind, zone: world.zone, name: name)
    let object = try Envelope.seal(
      content, at: place, key: world.keys.zoneKey(world.zone), nonce: EnvelopeNonce(&world.random))
    return (place, object)
  }

  @Test("what was sealed opens at its place, at every length around a padding step")
  mutating func roundTrip() throws {
    for length in [0, 1, 100, 4014, 4015, 4016, 5000, 70_000, 1 << 20] {
      let content = world.random.bytes(length)
      let (place, object) = try sealed(content)
      #expect(try Envelope.open(object, at: place, key: world.keys.zoneKey(world.zone)) == content)
      #expect(object.count == Envelope.sealedSize(.segment, content: length))
      #expect(object.count == Padding.padme(object.count))
    }
  }

  @Test("an empty segment and a yes or no have one size; a head is a power of two")
  mutating func sizes() throws {
    #expect(try sealed([]).1.count == 4096)
    #expect(try sealed(Array("yes".utf8)).1.count == 4096)
    #expect(try sealed(world.random.bytes(4016)).1.count > 4096)
    #expect(try sealed(world.random.bytes(4096 - Envelope.overhead), .head).1.count == 4096)
    #expect(try sealed(world.random.bytes(4097 - Envelope.overhead), .head).1.count == 8192)
  }

  @Test("every flipped bit of an object is refused")
  mutating func flips() throws {
    let content = world.random.bytes(64)
    let (place, object) = try sealed(content)
    let key = world.keys.zoneKey(world.zone)
    var errors = Set<String>()
    for index in object.indices {
      for bit in 0..<8 {
        // The padding's ciphertext is covered by one tag: every byte, but one bit of each is proof enough.
        if index > 300 && bit != index % 8 { continue }
        var altered = object
        altered[index] ^= 1 << UInt8(bit)
        do {
          _ = try Envelope.open(altered, at: place, key: key)
          Issue.record("bit \(bit) of byte \(index) may be flipped")
        } catch {
          errors.insert("\(error)".split(separator: "(").first.map(String.init) ?? "")
        }
      }
    }
    #expect(errors == ["notLatchkey", "newer", "wrongKind", "commitment", "tag"])
  }

  @Test("a shorter or longer object is refused, at every length")
  mutating func truncation() throws {
    let (place, object) = try sealed([1, 2, 3])
    let key = world.keys.zoneKey(world.zone)
    for length in 0..<object.count where length < 200 || length % 61 == 0 || length == object.count - 1 {
      #expect(throws: EnvelopeError.self) { try Envelope.open(Array(object.prefix(length)), at: place, key: key) }
    }
    #expect(throws: EnvelopeError.tag) { try Envelope.open(object + [0], at: place, key: key) }
    #expect(throws: EnvelopeError.truncated) { try Envelope.open([], at: place, key: key) }
    #expect(throws: EnvelopeError.truncated) { try Envelope.open(Array(object.prefix(80)), at: place, key: key) }
  }

  @Test("an object opens at its own place only: kind, household, epoch, zone and name are bound")
  mutating func places() throws {
    let (place, object) = try sealed([9])
    let key = world.keys.zoneKey(world.zone)
    let other = Hash32(world.random.bytes(32)) ?? .zero
    let otherZone = ZoneID(world.random.bytes(16)) ?? .zero
    let otherName = world.keys.segmentName(zone: world.zone, origin: world.origin, index: 2)
    func moved(
      _ household: HouseholdID? = nil, _ epoch: EpochID? = nil, _ zone: ZoneID? = nil, _ name: ObjectName? = nil
    ) -> EnvelopePlace {
      EnvelopePlace(
        kind: .segment, household: household ?? place.household, epoch: epoch ?? place.epoch, zone: zone ?? place.zone,
        name: name ?? place.name)
    }
    for wrong in [moved(other), moved(nil, other), moved(nil, nil, otherZone), moved(nil, nil, nil, otherName)] {
      #expect(throws: EnvelopeError.commitment) { try Envelope.open(object, at: wrong, key: key) }
    }
    let asHead = EnvelopePlace(
      kind: .head, household: place.household, epoch: place.epoch, zone: place.zone, name: place.name)
    #expect(throws: EnvelopeError.wrongKind) { try Envelope.open(object, at: asHead, key: key) }
    #expect(throws: EnvelopeError.commitment) {
      try Envelope.open(object, at: place, key: world.keys.zoneKey(otherZone))
    }
    var relabelled = object
    relabelled[4] = ObjectKind.head.rawValue
    #expect(throws: EnvelopeError.commitment) { try Envelope.open(relabelled, at: asHead, key: key) }
  }

  @Test("an object of a newer version or suite is told from a damaged one")
  mutating func newer() throws {
    var (place, object) = try sealed([9])
    object[2] = 2
    #expect(throws: EnvelopeError.newer(version: 2, suite: 1)) {
      try Envelope.open(object, at: place, key: world.keys.zoneKey(world.zone))
    }
    object[2] = 1
    object[3] = 9
    #expect(throws: EnvelopeError.newer(version: 1, suite: 9)) {
      try Envelope.open(object, at: place, key: world.keys.zoneKey(world.zone))
    }
  }

  @Test("what is larger than its kind may be is not sealed")
  mutating func tooLarge() throws {
    let name = world.keys.claimName(invite: .zero, device: .zero)
    let place = world.keys.place(.claim, zone: .roster, name: name)
    #expect(throws: EnvelopeError.tooLarge) {
      try Envelope.seal(
        [UInt8](repeating: 0, count: 65_536), at: place, key: world.keys.zoneKey(.roster),
        nonce: EnvelopeNonce(&world.random))
    }
  }
}

@Suite("Names that only key holders compute")
struct EpochKeysTests {
  @Test("names follow the grammar, differ in every input, and a head's tells its counter")
  func names() throws {
    let world = World("names")
    let (keys, zone, origin) = (world.keys, world.zone, world.origin)
    let twin = Origin(device: origin.device, incarnation: Incarnation(8))
    let names = [
      keys.headName(zone: zone, origin: origin, counter: 1), keys.headName(zone: zone, origin: origin, counter: 2),
      keys.headName(zone: .roster, origin: origin, counter: 1), keys.headName(zone: zone, origin: twin, counter: 1),
      keys.segmentName(zone: zone, origin: origin, index: 1), keys.segmentName(zone: zone, origin: origin, index: 2),
      keys.segmentName(zone: zone, origin: twin, index: 1), keys.segmentName(zone: .roster, origin: origin, index: 1),
      keys.claimName(invite: .zero, device: origin.device), keys.nextName(origin: origin, sequence: 1),
    ]
    #expect(Set(names).count == names.count)
    #expect(keys.prefix(zone) != keys.prefix(.roster) && keys.prefix(zone).utf8.count == 32)
    let head = try #require(HeadName(names[1]))
    #expect(head.counter == 2 && head.tag == keys.headTag(zone: zone, origin: origin))
    #expect(HeadName(names[4]) == nil)
    let whole = keys.objectName(zone: zone, names[4])
    #expect(whole.text.hasPrefix(keys.prefix(zone) + "/l/"))
  }

  @Test("another epoch's key changes every name and key")
  func epochs() {
    var world = World("names")
    let other = EpochKeys(household: world.household, epoch: world.household, key: EpochKey(&world.random))
    #expect(other.prefix(world.zone) != world.keys.prefix(world.zone))
    #expect(other.zoneKey(world.zone) != world.keys.zoneKey(world.zone))
    #expect(other.digestKey(zone: world.zone) != world.keys.digestKey(zone: world.zone))
  }
}
