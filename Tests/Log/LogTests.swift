import LatchkeyEncoding
import LatchkeyKeys
import LatchkeyLog
import Testing

/// One author and one reader of a zone, over a store that is a dictionary.
struct World {
  var random: SeededRandom
  let author: DeviceKeys
  let keys: EpochKeys
  let zone: ZoneID
  let origin: Origin
  var log: OwnLog
  var store: [ObjectName: [UInt8]] = [:]
  var clock: UInt64 = 1 << 16

  init(seed: String = "log", zone: UInt64 = 7) {
    random = SeededRandom(seed)
    author = DeviceKeys(&random)
    let household = hash32("test", parts: 1) { $0.text("household") }
    keys = EpochKeys(household: household, epoch: household, key: EpochKey(&random))
    self.zone = ZoneID(raw: Bytes16(high: 0, low: zone))
    origin = Origin(device: author.id, incarnation: Incarnation(5))
    log = OwnLog(household: household, epoch: household, zone: self.zone, origin: origin)
  }

  var reader: LogReader {
    let id = author.id
    let key = author.publicKeys.signing
    return LogReader(
      household: keys.household, zone: zone, keys: keys, author: { $0 == id ? key : nil },
      knowsRoster: { _ in true })
  }

  mutating func write(_ payloads: [[UInt8]], compress: Bool = true) throws -> [SealedObject] {
    clock += 1 << 16
    _ = log.append(
      parts: payloads.map { ($0, compress) }, hlc: clock, rosterHeads: [], signing: author.signing)
    let objects = try log.seal(
      HeadFacts(vector: [:], rosterHeads: [], hlc: clock, digest: .zero), keys: keys, signing: author.signing,
      now: Int64(clock >> 16), random: &random)
    for object in objects { store[object.name] = object.bytes }
    return objects
  }

  /// Reads everything that the store shows beyond `belief`, as a round does.
  func read(_ belief: inout Belief) throws -> [LogGroup] {
    var out: [LogGroup] = []
    for name in reader.newHeads(among: store.keys.sorted(), belief: belief, own: nil) {
      guard let bytes = store[name],
        case .more(var pursuit) = try reader.pursue(head: name, bytes: bytes, belief: belief, own: nil)
      else { continue }
      while case let wanted = pursuit.wantedSegments(limit: 2), !wanted.isEmpty {
        for segment in wanted {
          guard let bytes = store[segment] else {
            throw Finding.missing(object: segment, origin: pursuit.origin)
          }
          try pursuit.take(segment: segment, bytes: bytes)
        }
        let (groups, author) = pursuit.drain()
        out += groups
        belief.authors[pursuit.origin] = author
      }
      try pursuit.takeTail()
      let (groups, author) = pursuit.drain()
      out += groups
      belief.authors[pursuit.origin] = author
    }
    return out
  }
}

func noise(_ count: Int, _ random: inout SeededRandom) -> [UInt8] { random.bytes(count) }

@Suite("Own log and its readers")
struct LogTests {
  @Test("a small change is one object, of 4 KiB, and a reader finds it in the head")
  func smallChange() throws {
    var world = World()
    let objects = try world.write([Array("hello".utf8)])
    #expect(objects.count == 1 && objects[0].bytes.count == 4096)
    var belief = Belief()
    #expect(try world.read(&belief).map(\.payloads) == [[Array("hello".utf8)]])
    #expect(try world.read(&belief).isEmpty)
  }

  @Test("entries move from the tail into a segment once the head would exceed 8 KiB, and are read once")
  func tailToSegment() throws {
    var world = World()
    var belief = Belief()
    var seen: [[UInt8]] = []
    var sizes = Set<Int>()
    var random = SeededRandom("payloads")
    for index in 0..<40 {
      for object in try world.write([noise(700, &random)]) where HeadName(object.name) != nil {
        sizes.insert(object.bytes.count)
      }
      if index % 3 == 0 { seen += try world.read(&belief).flatMap(\.payloads) }
    }
    seen += try world.read(&belief).flatMap(\.payloads)
    #expect(seen.count == 40 && Set(seen).count == 40)
    #expect(world.log.lastSegment > 2)
    #expect(sizes.isSubset(of: [4096, 8192]))
  }

  @Test("a newcomer who reads everything at the end sees the same groups in the same order")
  func newcomer() throws {
    var world = World()
    var random = SeededRandom("payloads")
    var written: [[[UInt8]]] = []
    for _ in 0..<25 {
      let group = (0..<(1 + Int(random.bytes(1)[0]) % 3)).map { _ in noise(900, &random) }
      _ = try world.write(group)
      written.append(group)
    }
    var belief = Belief()
    #expect(try world.read(&belief).map(\.payloads) == written)
  }

  @Test("a large group is cut into segments of at most 4 MiB, and compressible payloads shrink")
  func largeGroup() throws {
    var world = World()
    var random = SeededRandom("large")
    let parts = (0..<9).map { _ in noise(1 << 20, &random) }
    let objects = try world.write(parts)
    #expect(objects.count == 4)
    #expect(objects.allSatisfy { $0.bytes.count <= 4 << 20 })
    var belief = Belief()
    #expect(try world.read(&belief).map(\.payloads) == [parts])
    let plain = try world.write([[UInt8](repeating: 7, count: 1 << 20)])
    #expect(plain.map(\.bytes.count) == [4096])
    #expect(try world.read(&belief).count == 1)
  }

  @Test("what was sealed is not sealed again: the kept form comes back equal and continues the chain")
  func kept() throws {
    var world = World()
    _ = try world.write([[1]])
    let again = try OwnLog(decoding: world.log.encoded())
    #expect(again == world.log)
    world.log = again
    let more = try world.log.seal(
      HeadFacts(vector: [:], rosterHeads: [], hlc: 9, digest: .zero), keys: world.keys, signing: world.author.signing,
      now: 0, random: &world.random)
    #expect(more.isEmpty)
    _ = try world.write([[2]])
    var belief = Belief()
    #expect(try world.read(&belief).map(\.payloads) == [[[1]], [[2]]])
    #expect(try Belief(decoding: belief.encoded()) == belief)
  }

  @Test(
    "a log that goes on in another epoch says which head comes before that the store has: not one that was dropped unsent"
  )
  func formerHead() throws {
    var world = World(seed: "former")
    _ = try world.write([[1]])
    world.log.confirm(head: 1)
    _ = try world.write([[2]])
    let unsent = world.log.tail.filter { (try? EntryBody(decoding: $0.body))?.sequence == 2 }
    let next = EpochKeys(
      household: world.keys.household, epoch: hash32("next", parts: 0) { _ in }, key: EpochKey(&world.random))
    world.log.enter(next.epoch, after: world.log.confirmed, isConfirmed: true, tail: unsent, announces: true)
    // A head of the epoch before that arrived all the same is this device's own.
    #expect(world.log.counter(in: world.keys.epoch) == 2)
    let sealed = try world.log.seal(
      HeadFacts(vector: [:], rosterHeads: [], hlc: 9 << 16, digest: .zero), keys: next, signing: world.author.signing,
      now: 9, random: &world.random)
    #expect(try OwnLog(decoding: world.log.encoded()) == world.log)
    let head = try #require(sealed.last)
    let id = world.author.id
    let key = world.author.publicKeys.signing
    let reader = LogReader(
      household: next.household, zone: world.zone, keys: next, author: { $0 == id ? key : nil },
      knowsRoster: { _ in true })
    let former = try reader.open(head: head.name, bytes: head.bytes).body.former
    #expect(former?.epoch == world.keys.epoch && former?.counter == 1 && former?.mark.sequence == 1)
  }

  @Test("every bit flip of a head is refused, and says which object")
  func flips() throws {
    var world = World()
    let object = try world.write([Array("x".utf8)])[0]
    for index in stride(from: 0, to: object.bytes.count, by: 13) {
      var bytes = object.bytes
      bytes[index] ^= 1 << UInt8(index % 8)
      #expect {
        _ = try world.reader.pursue(head: object.name, bytes: bytes, belief: Belief(), own: nil)
      } throws: { error in
        switch error as? Finding {
        case .damaged(let name, _), .newer(let name, _): name == object.name
        default: false
        }
      }
    }
  }

  @Test("a head under another name, zone or epoch key does not open")
  func swapped() throws {
    var world = World()
    let first = try world.write([[1]])[0]
    let second = try world.write([[2]])[0]
    #expect(throws: Finding.self) {
      _ = try world.reader.pursue(head: second.name, bytes: first.bytes, belief: Belief(), own: nil)
    }
    var other = World(seed: "log", zone: 8)
    other.store = world.store
    #expect(throws: Finding.self) {
      _ = try other.reader.pursue(head: first.name, bytes: first.bytes, belief: Belief(), own: nil)
    }
  }

  @Test("an author who is not in the roster waits, and nothing of it is accepted")
  func unknownAuthor() throws {
    var world = World()
    let head = try world.write([[1]])[0]
    let reader = LogReader(
      household: world.keys.household, zone: world.zone, keys: world.keys,
      author: { _ in nil },
      knowsRoster: { _ in true })
    #expect(throws: Finding.unknownAuthor(device: world.author.id, object: head.name)) {
      _ = try reader.pursue(head: head.name, bytes: head.bytes, belief: Belief(), own: nil)
    }
  }

  @Test("two branches of one log at one position are a fork, and the reader keeps what it accepted")
  func fork() throws {
    var world = World()
    _ = try world.write([[1]])
    var twin = world
    twin.random = SeededRandom("twin")
    _ = try world.write([[2]])
    var belief = Belief()
    #expect(try world.read(&belief).count == 2)
    let before = belief
    _ = try twin.write([[3]])
    _ = try twin.write([[4]])
    world.store.merge(twin.store) { _, new in new }
    #expect(throws: Finding.fork(origin: world.origin, sequence: 2)) { _ = try world.read(&belief) }
    #expect(belief == before)
  }

  @Test("a store that shows an older head than was accepted is reported, and nothing is forgotten")
  func rollback() throws {
    var world = World()
    _ = try world.write([[1]])
    let old = world.store
    _ = try world.write([[2]])
    var belief = Belief()
    _ = try world.read(&belief)
    world.store = old
    #expect(
      world.reader.rollbacks(among: world.store.keys.sorted(), belief: belief) == [
        .rollback(origin: world.origin, accepted: 2, shown: 1)
      ])
    #expect(try world.read(&belief).isEmpty)
  }

  @Test("a missing or damaged segment stops before the group it belongs to; the next round goes on from there")
  func missingSegment() throws {
    var world = World()
    var random = SeededRandom("gap")
    for _ in 0..<3 { _ = try world.write([noise(3 << 20, &random), noise(3 << 20, &random)]) }
    let complete = world.store
    let lost = world.keys.segmentName(zone: world.zone, origin: world.origin, index: 4)
    world.store[lost] = nil
    var belief = Belief()
    #expect(throws: Finding.missing(object: lost, origin: world.origin)) { _ = try world.read(&belief) }
    #expect(belief.authors[world.origin]?.mark?.sequence == 2)
    #expect(belief.authors[world.origin]?.places[world.keys.epoch]?.counter == 0)
    world.store = complete
    #expect(try world.read(&belief).count == 2)
    #expect(belief.authors[world.origin]?.mark?.sequence == 6)
  }

  @Test("a log under my own name that goes beyond what I wrote is an alarm, not news")
  func notMine() throws {
    var world = World()
    _ = try world.write([[1]])
    let mine = world.log
    let head = try world.write([[2]])[0]
    #expect(throws: Finding.notMine(origin: world.origin)) {
      _ = try world.reader.pursue(head: head.name, bytes: head.bytes, belief: Belief(), own: mine)
    }
    #expect(world.reader.newHeads(among: [head.name], belief: Belief(), own: world.log).isEmpty)
  }

  @Test("decoders never trap on altered bytes, and never accept another encoding of the same value")
  func altered() throws {
    var world = World()
    _ = try world.write([noise(300, &world.random)])
    let head = HeadContent(body: world.log.tail[0].body, signature: world.log.tail[0].signature, tail: world.log.tail)
    let bytes = head.encoded()
    #expect(try HeadContent(decoding: bytes).encoded() == bytes)
    var random = SeededRandom("alter")
    for _ in 0..<4000 {
      var altered = bytes
      for _ in 0..<(1 + Int(random.bytes(1)[0]) % 4) {
        let at = Int(random.bytes(2).reduce(0) { $0 << 8 | UInt64($1) }) % altered.count
        altered[at] = random.bytes(1)[0]
      }
      if let decoded = try? HeadContent(decoding: altered) { #expect(decoded.encoded() == altered) }
      _ = try? EntryBody(decoding: altered)
      _ = try? HeadBody(decoding: altered)
      _ = try? SegmentContent(decoding: altered)
    }
  }

  @Test("heads are deleted only beyond the newest four and ten minutes")
  func grace() throws {
    var world = World()
    for index in 0..<8 { _ = try world.write([[UInt8(index)]]) }
    let written = Int64(world.clock >> 16)
    #expect(world.log.superseded(now: written).isEmpty)
    #expect(world.log.superseded(now: written + 600_001) == [1, 2, 3, 4])
    world.log.forget(heads: [1, 2])
    #expect(world.log.superseded(now: written + 600_001) == [3, 4])
  }
}
