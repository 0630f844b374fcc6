import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeyStorage
import Testing

/// A household in whose store there is an object of every kind, and a device that has read none of what came last.
private struct Scene {
  struct Sample {
    let name: ObjectName
    let place: EnvelopePlace
    let key: ZoneKey
    let bytes: [UInt8]

    func open(_ bytes: [UInt8]) throws -> [UInt8] { try Envelope.open(bytes, at: place, key: key) }
  }

  let village: Village
  /// Ben, before anything of what follows.
  let reader: Bystander
  /// Ana, before she saw Dan's claim.
  let admitter: Bystander
  let store: [ObjectName: [UInt8]]
  let samples: [Sample]
  let now: Int64

  init() async throws {
    village = try Village()
    let (ana, ben) = try await village.couple()
    reader = try Bystander(ben)
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try village.run(ana.file, "INSERT INTO accounts(name) VALUES (hex(randomblob(6000))), (hex(randomblob(6000)))")
    for resident in [ana, cy] {
      for number in 0..<2 {
        try resident.write("\(resident.name) \(number)")
        _ = try await resident.sync()
      }
    }
    let invite = try await ana.home.invite(household: "Smith")
    _ = try await village.claim(invite.link, "dan")
    // So much in one epoch that the roster's log has a segment, and a tail after it.
    var insider = try Insider(ana)
    for round in 0..<2 {
      for number in 0..<(round == 0 ? 40 : 2) {
        try insider.state.write(.profile(personName: "Ana", deviceName: "laptop \(round) \(number)"), now: village.now)
      }
      try insider.state.seal(now: village.now, random: &insider.random)
    }
    for object in insider.state.outbox { village.shelf.plant(object.name, object.bytes) }
    var admitter = try Bystander(ana)
    admitter.state = insider.state
    self.admitter = admitter
    now = village.now
    let objects = village.shelf.objects().all
    store = Dictionary(uniqueKeysWithValues: objects.map { ($0.name, $0.bytes) })
    let link = try InviteLink(parsing: invite.link).secret.keys
    let (zone, epochs) = (insider.zone, insider.state.epochs)
    samples = objects.compactMap { name, bytes in
      if name == link.objectName { return Sample(name: name, place: link.place, key: link.blobKey, bytes: bytes) }
      for keys in epochs {
        for zone in [ZoneID.roster, zone] where name.text.hasPrefix(keys.prefix(zone) + "/") {
          guard let below = ObjectName(String(name.text.dropFirst(33))),
            let kind = ObjectKind.allCases.first(where: { below.text.hasPrefix($0.letter + "/") })
          else { return nil }
          return Sample(
            name: name, place: keys.place(kind, zone: zone, name: below), key: keys.zoneKey(zone), bytes: bytes)
        }
      }
      return nil
    }
  }

  /// Kinds, with those of the roster's zone apart.
  func name(of sample: Sample) -> String {
    (sample.place.zone == .roster && sample.place.kind != .invite ? "roster " : "") + "\(sample.place.kind)"
  }
}

/// Every kind of object that lies in a store, every byte: a typed refusal that names the object, nothing false believed, the rest goes on.
@Suite("Corruption matrix", .serialized)
struct CorruptionMatrix {
  @Test(
    "every flip, cut and addition of every byte of every kind of object is refused; no decoder traps on what was altered inside"
  )
  func decoders() async throws {
    let scene = try await Scene()
    var counts: [String: Int] = [:]
    var seen: Set<String> = []
    for sample in scene.samples where seen.insert(scene.name(of: sample)).inserted {
      counts[scene.name(of: sample)] = try sealed(sample) + inside(try sample.open(sample.bytes), sample.place.kind)
    }
    counts["marker"] = try marker(scene)
    #expect(
      Set(counts.keys) == [
        "head", "segment", "roster head", "roster segment", "roster claim", "roster next", "roster rosterCopy",
        "invite",
        "marker",
      ])
    let total = counts.values.reduce(0, +)
    print(
      "matrix: \(total) cases at the decoders: \(counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))"
    )
    #expect(total > 100_000)
  }

  /// The sealed object: two bits of every byte, every length below its own, a hundred above.
  private func sealed(_ sample: Scene.Sample) throws -> Int {
    var cases = 0
    func refuses(_ bytes: [UInt8]) {
      cases += 1
      do {
        _ = try sample.open(bytes)
        Issue.record("\(sample.name) was opened though it was altered")
      } catch is EnvelopeError {} catch { Issue.record("\(error)") }
    }
    _ = try sample.open(sample.bytes)
    var altered = sample.bytes
    for index in sample.bytes.indices {
      for bit in [UInt8(index % 8), UInt8((index + 3) % 8)] {
        altered[index] ^= 1 << bit
        refuses(altered)
        altered[index] ^= 1 << bit
      }
      refuses(Array(sample.bytes.prefix(index)))
    }
    for count in 1...100 { refuses(sample.bytes + [UInt8](repeating: UInt8(count % 3), count: count)) }
    return cases
  }

  /// What a member who holds the keys may have altered before sealing: the decoders throw, or read what encodes to the same bytes.
  private func inside(_ content: [UInt8], _ kind: ObjectKind) throws -> Int {
    var cases = 0
    func decode(_ bytes: [UInt8]) {
      cases += 1
      do {
        switch kind {
        case .head:
          let head = try HeadContent(decoding: bytes)
          #expect(head.encoded() == bytes)
          #expect(try HeadBody(decoding: head.body).encoded() == head.body)
          for entry in head.tail { try look(entry) }
        case .segment:
          let segment = try SegmentContent(decoding: bytes)
          #expect(segment.encoded() == bytes)
          for entry in segment.entries.prefix(4) { try look(entry) }
        case .rosterCopy:
          let copy = try RosterCopy(decoding: bytes)
          #expect(copy.encoded() == bytes)
          for entry in copy.entries.prefix(4) { try look(entry) }
        case .next:
          let entry = try StoredEntry(decoding: bytes)
          #expect(entry.encoded() == bytes)
          try look(entry)
        case .claim:
          let claim = try Claim(decoding: bytes)
          _ = try claim.verify(household: claim.household, claimKey: claim.device.signing, role: .member)
        case .invite: #expect(try InviteBlob(decoding: bytes).encoded == bytes)
        case .kit: #expect(try KitBlob(decoding: bytes).encoded == bytes)
        case .base, .asset, .inbox, .card: break
        }
      } catch is LogError {} catch is FormatError {} catch is ClaimError {} catch { Issue.record("\(error)") }
    }
    // Of large objects the first bytes, where the structure is, and every few of the rest.
    let step = max(1, (content.count - 1500) / 1500)
    let places = Array(0..<min(content.count, 1500)) + stride(from: 1500, to: content.count, by: step)
    var altered = content
    for index in places {
      for bit in [UInt8(index % 8), UInt8((index + 5) % 8)] {
        altered[index] ^= 1 << bit
        decode(altered)
        altered[index] ^= 1 << bit
      }
      if index % 4 == 0 { decode(Array(content.prefix(index))) }
    }
    return cases
  }

  private func look(_ entry: StoredEntry) throws {
    let body = try EntryBody(decoding: entry.body)
    #expect(body.encoded() == entry.body)
    let operation = RosterOperation(payload: try entry.payload(body))
    if body.zone == .roster { #expect(RosterOperation(payload: operation.payload) == operation) }
  }

  private func marker(_ scene: Scene) throws -> Int {
    let marker = try #require(scene.store[.marker])
    var cases = 0
    func refuses(_ bytes: [UInt8]) {
      cases += 1
      var state = scene.reader.state
      #expect(throws: EngineError.self) { try state.check(marker: bytes) }
      #expect(state.marker == marker)
      if case .store(let found) = StoreMarker.judge(bytes) { #expect(found.encoded == bytes) }
    }
    for index in marker.indices {
      for bit in 0..<8 {
        var altered = marker
        altered[index] ^= 1 << UInt8(bit)
        refuses(altered)
      }
      refuses(Array(marker.prefix(index)))
    }
    for count in 1...20 { refuses(marker + [UInt8](repeating: 0, count: count)) }
    return cases
  }

  // MARK: Rounds

  @Test(
    "a round over a store with one altered, cut, exchanged, renamed or older object names it, believes nothing false, and recovers"
  )
  func rounds() async throws {
    let scene = try await Scene()
    // Without claims the reader has nothing to write, and what it believes depends on nothing else.
    let honest = scene.store.filter { !$0.key.text.dropFirst(33).hasPrefix("c/") }
    var baseline = scene.reader
    #expect(try baseline.round(honest, now: scene.now).findings == [])
    let wanted = baseline.fetched
    #expect(try baseline.round(honest, now: scene.now).findings == [])
    let objects = scene.samples.filter { wanted.contains($0.name) }
    #expect(
      Set(objects.map(scene.name)).isSuperset(of: [
        "head", "segment", "roster head", "roster next", "roster rosterCopy",
      ]))
    var cases: [String: Int] = [:]

    func run(_ kind: String, _ altered: [Scene.Sample], named: [ObjectName], _ store: [ObjectName: [UInt8]]) throws {
      cases[kind, default: 0] += 1
      var device = scene.reader
      let report = try device.round(store, now: scene.now)
      let what = "\(kind) \(altered.map(\.name.text))"
      let names = Set(report.findings.flatMap(\.objects).map(\.text))
      #expect(
        named.isEmpty || named.contains { names.contains($0.text) || names.contains(String($0.text.dropFirst(33))) },
        "\(what): \(report.findings)")
      #expect(Set(device.state.roster.entries.map(\.hash)).isSubset(of: baseline.state.roster.entries.map(\.hash)))
      for (origin, groups) in device.applied {
        #expect(Set(groups).isSubset(of: baseline.applied[origin] ?? []), "\(what)")
      }
      // Others' logs advance, whatever became of this one.
      let concerned = Set(altered.compactMap { author(of: $0) })
      if altered.allSatisfy({ $0.place.zone != .roster }) {
        for (origin, groups) in baseline.applied where !concerned.contains(origin) {
          #expect(device.applied[origin] == groups, "\(what)")
        }
      }
      var last = try device.round(honest, now: scene.now)
      if !last.findings.isEmpty { last = try device.round(honest, now: scene.now) }
      #expect(last.findings == [], "\(what), recovered")
      #expect(device.applied == baseline.applied, "\(what), recovered")
      #expect(device.state.roster.state == baseline.state.roster.state, "\(what), recovered")
    }

    for sample in objects {
      let kind = scene.name(of: sample)
      func alter(_ bytes: [UInt8]) throws {
        var store = honest
        store[sample.name] = bytes
        try run(kind, [sample], named: [sample.name], store)
      }
      for index in Array(0..<5) + stride(from: 5, to: sample.bytes.count, by: sample.bytes.count / 12) {
        var altered = sample.bytes
        altered[index] ^= 1 << UInt8(index % 8)
        try alter(altered)
      }
      for length in [0, 1, 4, 5, 60, 80, sample.bytes.count / 2, sample.bytes.count - 1] {
        try alter(Array(sample.bytes.prefix(length)))
      }
      for count in [1, 16, 4096] { try alter(sample.bytes + [UInt8](repeating: 0, count: count)) }
      try rename(sample, kind, honest, run)
    }
    for (index, one) in objects.enumerated() {
      for other in objects.dropFirst(index + 1) {
        var store = honest
        (store[one.name], store[other.name]) = (other.bytes, one.bytes)
        try run("swap", [one, other], named: [one.name, other.name], store)
      }
      // An older or other version of the same kind under its name.
      for other in scene.samples where other.name != one.name && other.place.kind == one.place.kind {
        var store = honest
        store[one.name] = other.bytes
        try run("replay", [one], named: [one.name], store)
      }
    }
    cases["roster claim"] = try claims(scene)
    let total = cases.values.reduce(0, +)
    print(
      "matrix: \(total) cases in rounds: \(cases.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))"
    )
    #expect(total > 300)
  }

  private func author(of sample: Scene.Sample) -> Origin? {
    guard let content = try? sample.open(sample.bytes) else { return nil }
    switch sample.place.kind {
    case .head:
      return (try? HeadContent(decoding: content)).flatMap { try? HeadBody(decoding: $0.body) }?.origin
    case .segment: return (try? SegmentContent(decoding: content))?.origin
    default: return nil
    }
  }

  private func rename(
    _ sample: Scene.Sample, _ kind: String, _ honest: [ObjectName: [UInt8]],
    _ run: (String, [Scene.Sample], [ObjectName], [ObjectName: [UInt8]]) throws -> Void
  ) throws {
    let text = sample.name.text
    let renamed =
      sample.place.kind == .head
      ? String(text.dropLast(13)) + Base32.encode(counter: 1 << 20)
      : String(text.dropLast(4)) + (text.hasSuffix("0000") ? "1111" : "0000")
    let name = try #require(ObjectName(renamed))
    var store = honest
    store[sample.name] = nil
    store[name] = sample.bytes
    try run(kind, [sample], [sample.name, name], store)
  }

  /// A claim that was altered lets nobody in, is named, and the whole one is answered afterwards.
  private func claims(_ scene: Scene) throws -> Int {
    let sample = try #require(scene.samples.last { $0.place.kind == .claim && scene.isOpen($0) })
    var honest = scene.admitter
    #expect(try honest.round(scene.store, now: scene.now).admitted.map(\.who) == ["Dan (phone)"])
    var cases = 0
    for index in Array(0..<5) + stride(from: 5, to: sample.bytes.count, by: 97) {
      var store = scene.store
      store[sample.name]?[index] ^= 1 << UInt8(index % 8)
      var device = scene.admitter
      let report = try device.round(store, now: scene.now)
      #expect(
        report.admitted.isEmpty && report.findings.flatMap(\.objects).contains { sample.name.text.hasSuffix($0.text) })
      #expect(try device.round(scene.store, now: scene.now).admitted.map(\.who) == ["Dan (phone)"])
      cases += 1
    }
    return cases
  }
}

extension Scene {
  /// Whether nobody was let in by this claim yet.
  fileprivate func isOpen(_ sample: Sample) -> Bool {
    guard let claim = try? Claim(decoding: sample.open(sample.bytes)) else { return false }
    return claim.personName == "Dan"
  }
}

extension Finding {
  /// The objects that it names.
  var objects: [ObjectName] {
    switch self {
    case .damaged(let object, _), .newer(let object, _), .unknownAuthor(_, let object), .missing(let object, _):
      [object]
    case .rollback, .fork, .rosterBehind, .withheld, .notMine, .notAuthorised, .unreadable, .divergence: []
    }
  }
}
