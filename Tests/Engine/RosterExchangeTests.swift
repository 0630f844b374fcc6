import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import Testing

@Suite("Rosters, exchanged")
struct RosterExchangeTests {
  @Test("a claim is admitted by the next round of a device that may, and everybody learns of it")
  func admission() throws {
    var home = try Household("admission")
    var ben = try home.join("Ben")
    let cy = try home.join("Cy")
    _ = try ben.round(&home.shelf)
    for participant in [home.ana, ben, cy] {
      #expect(participant.state.roster.state.devices.count == 3)
      #expect(participant.state.roster.state.people.map(\.name).sorted() == ["Ana", "Ben", "Cy"])
      #expect(participant.state.outbox.isEmpty)
    }
  }

  @Test("a link that is good for one device admits one; the other claim is refused and not looked at again")
  func used() throws {
    var home = try Household("used")
    let invite = try home.invite(.member)
    var ben = try home.newcomer("Ben", invite)
    _ = try ben.round(&home.shelf)
    let first = try home.ana.sync(&home.shelf)
    #expect(first.admitted.map(\.who) == ["Ben (Ben's phone)"])
    var eve = try home.newcomer("Eve", invite)
    _ = try eve.round(&home.shelf)
    let second = try home.ana.sync(&home.shelf)
    #expect(second.refusedClaims.count == 1)
    let third = try home.ana.sync(&home.shelf)
    #expect(third.refusedClaims == [])
    #expect(home.ana.state.roster.state.device(eve.keys.id) == nil)
  }

  @Test("two claims on a link for one wait for a person")
  func rivals() throws {
    var home = try Household("rivals")
    let invite = try home.invite(.member)
    for name in ["Ben", "Eve"] {
      var newcomer = try home.newcomer(name, invite)
      _ = try newcomer.round(&home.shelf)
    }
    let report = try home.ana.sync(&home.shelf)
    #expect(report.requests.count == 2 && report.admitted.isEmpty)
    #expect(home.ana.state.roster.state.devices.count == 1)
  }

  @Test("a claim on an expired link is refused, by the clock of the device that would admit")
  func expired() throws {
    var home = try Household("expired")
    let invite = try home.invite(.member, expiry: 5_000)
    var ben = try home.newcomer("Ben", invite)
    _ = try ben.round(&home.shelf)
    let report = try home.ana.sync(&home.shelf, now: 5_001)
    #expect(report.admitted.isEmpty && report.refusedClaims.count == 1)
  }

  @Test("a reader's device admits nobody")
  func reader() throws {
    var home = try Household("roles")
    var cy = try home.join("Cy", as: .reader)
    let invite = try home.invite(.member)
    _ = try home.ana.round(&home.shelf)
    var ben = try home.newcomer("Ben", invite)
    _ = try ben.round(&home.shelf)
    let report = try cy.sync(&home.shelf)
    #expect(report.admitted.isEmpty && report.requests.map(\.who) == ["Ben (Ben's phone)"])
    let later = try home.ana.sync(&home.shelf)
    #expect(later.admitted.count == 1)
  }

  @Test("authors who become known in a round are read in the same round, whatever order their logs come in")
  func chainOfAuthors() throws {
    for seed in 0..<8 {
      var home = try Household("chain \(seed)")
      // Ana lets Ben in, Ben Cy, Cy Dan: each admission lies in the log of somebody the reader does not know yet.
      var last = try home.join("Ben", as: .owner)
      var all: [Participant] = []
      for name in ["Cy", "Dan"] {
        let invite = try home.invite(.owner, by: &last)
        _ = try last.round(&home.shelf)
        var newcomer = try home.newcomer(name, invite, by: last)
        _ = try newcomer.round(&home.shelf)
        _ = try last.round(&home.shelf)
        _ = try newcomer.round(&home.shelf)
        all.append(last)
        last = newcomer
      }
      let invite = try home.invite(.member, by: &last)
      _ = try last.round(&home.shelf)
      var fresh = try home.newcomer("Eve", invite, by: last)
      let report = try fresh.sync(&home.shelf)
      #expect(report.findings == [], "seed \(seed)")
      #expect(fresh.state.roster.state.devices.count == 4, "seed \(seed)")
    }
  }

  @Test("entries whose ancestors the store does not show wait, and are judged when they come")
  func ancestors() throws {
    var home = try Household("ancestors")
    var ben = try home.join("Ben", as: .owner)
    var cy = try home.join("Cy")
    // Ben cites what Ana wrote; Cy is shown Ben's log and not Ana's.
    try home.ana.state.write(.profile(personName: "Anna", deviceName: "laptop"), now: 700)
    _ = try home.ana.round(&home.shelf)
    _ = try ben.round(&home.shelf)
    try ben.state.write(.profile(personName: "Benjamin", deviceName: "phone"), now: 800)
    _ = try ben.round(&home.shelf)

    let full = home.shelf
    let tag = try home.current.headTag(zone: .roster, origin: home.ana.state.log.origin)
    let newest = try #require(full.list(try home.current.prefix(.roster) + "/h/" + tag).last)
    home.shelf.objects[newest] = nil
    let report = try cy.sync(&home.shelf)
    #expect(report.findings.contains(.rosterBehind(origin: ben.state.log.origin)))
    #expect(!cy.state.roster.state.people.contains { $0.name == "Benjamin" })

    home.shelf = full
    let later = try cy.sync(&home.shelf)
    #expect(later.findings == [])
    #expect(cy.state.roster.state.people.map(\.name).sorted() == ["Anna", "Benjamin", "Cy"])
  }

  @Test(
    "who was let in by an owner that was narrowed meanwhile is not in, cannot judge that, and is told that nobody is heard"
  )
  func leftBehind() throws {
    var home = try Household("left behind")
    var ben = try home.join("Ben", as: .owner)
    _ = try ben.round(&home.shelf)
    let invite = try home.invite(.member, by: &ben)
    _ = try ben.round(&home.shelf)
    var cy = try home.newcomer("Cy", invite, by: ben)
    _ = try cy.round(&home.shelf)
    // Ana begins an epoch, and in it one in which Ben is a reader, and Ben lets Cy in: neither knows of the other.
    try home.ana.state.writeNext(NextChange(), now: 2_000, random: &home.random)
    let former = home.ana.state
    let person = try #require(former.roster.state.device(ben.keys.id)?.person)
    var change = NextChange(roles: [person: .reader])
    change.narrowing = [ben.keys.id: []]
    try home.ana.state.writeNext(change, now: 2_000, random: &home.random)
    let admitted = try ben.sync(&home.shelf, now: 2_000)
    try #require(admitted.admitted.count == 1)
    let before = try cy.sync(&home.shelf, now: 3_000)
    #expect(!before.isProvisional && !before.isLeftBehind)

    for pass in 1...6 {
      _ = try home.ana.round(&home.shelf, now: Int64(pass) * 90_000_000)
      _ = try ben.round(&home.shelf, now: Int64(pass) * 90_000_000)
      let report = try cy.sync(&home.shelf, now: Int64(pass) * 90_000_000 + 1)
      #expect(report.isLeftBehind)
      #expect(report.isProvisional == false)
    }
    #expect(home.ana.state.roster.state.device(cy.keys.id) == nil)
    let others = try ben.sync(&home.shelf, now: 600_000_000)
    #expect(!others.isLeftBehind)
  }

  @Test("whose admission does not count because of who let it in is let in by another invite")
  func again() throws {
    var home = try Household("again")
    var ben = try home.join("Ben", as: .owner)
    _ = try ben.round(&home.shelf)
    let first = try home.invite(.member, by: &ben)
    _ = try ben.round(&home.shelf)
    var cy = try home.newcomer("Cy", first, by: ben)
    _ = try cy.round(&home.shelf)
    let person = try #require(home.ana.state.roster.state.device(ben.keys.id)?.person)
    try home.ana.state.writeNext(
      NextChange(roles: [person: .reader], narrowing: [ben.keys.id: []]), now: 2_000, random: &home.random)
    try #require(try ben.sync(&home.shelf, now: 2_000).admitted.count == 1)
    _ = try home.ana.round(&home.shelf, now: 3_000)
    _ = try home.ana.round(&home.shelf, now: 4_000)
    try #require(home.ana.state.roster.state.device(cy.keys.id) == nil)
    try #require(home.ana.state.roster.keys(of: cy.keys.id) != nil)

    let second = try home.invite(.member)
    _ = try home.ana.round(&home.shelf, now: 5_000)
    let current = try home.current
    let claim = Claim(
      household: home.keys.household, invite: second.terms.id, chain: cy.chain, personName: "Cy", deviceName: "phone",
      epoch: current.epoch, claimKey: second.link.claimKey, device: cy.keys)
    let name = current.claimName(invite: second.terms.id, device: cy.keys.id)
    let sealed = try Envelope.seal(
      claim.bytes, at: current.place(.claim, zone: .roster, name: name),
      key: current.zoneKey(.roster), nonce: EnvelopeNonce(&home.random))
    home.shelf.objects[current.objectName(zone: .roster, name)] = sealed
    let report = try home.ana.sync(&home.shelf, now: 6_000)
    #expect(report.admitted.count == 1)
    #expect(home.ana.state.roster.role(of: cy.keys.id) == .member)
  }

  @Test(
    "a Next that nobody can judge holds the outbox for a day, and a member's word that somebody is removed is not taken for it"
  )
  func unjudgedNext() throws {
    for (role, isBelieved) in [(InviteRole.member, false), (.owner, true)] {
      var home = try Household("unjudged \(role)")
      let ben = try home.join("Ben", as: role)
      _ = try home.syncAna()
      // Ben cites an entry that nobody is shown, and removes Ana.
      let keys = try home.current
      let next = Next(
        parents: [keys.epoch], form: .moved, commitment: .zero, recipients: [], formers: [],
        removals: [Next.Removal(device: home.ana.keys.id, limits: [])], roles: [], confirmed: [], store: nil)
      var log = ben.state.log
      _ = log.append(
        parts: [(RosterOperation.next(next).payload, true)], hlc: log.lastHLC + (1 << 32),
        rosterHeads: [EntryBody.payloadHash([1])], signing: ben.keys.signing)
      let entry = try #require(log.tail.last)
      let below = keys.nextName(origin: log.origin, sequence: log.lastSequence)
      home.shelf.put(
        keys.objectName(zone: .roster, below),
        try Envelope.seal(
          entry.encoded(), at: keys.place(.next, zone: .roster, name: below), key: keys.zoneKey(.roster),
          nonce: EnvelopeNonce(&home.random)))

      home.ana.written = [[1]]
      let held = try home.syncAna()
      #expect(held.unjudged.count == 1 && held.sent == 0)
      #expect(held.isRemoved == isBelieved)
      // After a day it is not waited for any more, unless it is an owner who says that this device is out.
      let later = try #require(try home.ana.round(&home.shelf, now: 1_000 + 86_400_000))
      #expect(later.unjudged.isEmpty && later.sent == (isBelieved ? 0 : 1))
    }
  }

  @Test("an operation that would not count is not written")
  func refused() throws {
    var home = try Household("refused")
    var ben = try home.join("Ben")
    let before = ben.state.encoded()
    #expect(throws: EngineError.refused(.role)) {
      try ben.state.write(.closeZone(CloseZone(zone: home.zone, reason: .unshared)), now: 900)
    }
    #expect(ben.state.encoded() == before)
  }

  @Test("kept state is read back as it was; cut or longer, it is damaged")
  func kept() throws {
    var home = try Household("kept")
    let ben = try home.join("Ben")
    let bytes = ben.state.encoded()
    #expect(try HouseholdState(decoding: bytes, secrets: ben.secrets).encoded() == bytes)
    for length in stride(from: 0, to: bytes.count, by: 37) {
      #expect(throws: EngineError.self) {
        try HouseholdState(decoding: Array(bytes.prefix(length)), secrets: ben.secrets)
      }
    }
    #expect(throws: EngineError.self) { try HouseholdState(decoding: bytes + [0], secrets: ben.secrets) }
  }

  @Test("Genesis is found by its hash, in a head or in a segment, and nothing else is taken for it")
  func genesis() throws {
    var home = try Household("genesis")
    _ = try home.ana.round(&home.shelf)
    // Long enough that Ana's first entries move into a segment.
    for index in 0..<40 {
      try home.ana.state.write(
        .profile(personName: "Ana \(index)", deviceName: String(repeating: "x", count: 200)),
        now: 700 + Int64(index))
    }
    let early = home.shelf
    _ = try home.ana.round(&home.shelf)
    #expect(found(in: early, home) == .head)
    #expect(found(in: home.shelf, home) == .segment)

    var other = try Household("another")
    _ = try other.ana.round(&other.shelf)
    #expect(found(in: other.shelf, home) == nil)
  }

  private enum Place { case head, segment }

  private func found(in shelf: Shelf, _ home: Household) -> Place? {
    let prefix = home.keys.prefix(.roster) + "/"
    let heads = shelf.list(prefix + "h/")
    guard let name = heads.last, let below = ObjectName(String(name.text.dropFirst(prefix.utf8.count))) else {
      return nil
    }
    switch GenesisSearch.search(head: below, bytes: shelf.objects[name] ?? [], keys: home.keys) {
    case .found(let entry): return EntryBody.hash(of: entry.body) == home.keys.household ? .head : nil
    case .notHere: return nil
    case .look(let segment):
      let bytes = shelf.objects[home.keys.objectName(zone: .roster, segment)] ?? []
      return GenesisSearch.search(segment: segment, bytes: bytes, keys: home.keys) == nil ? nil : .segment
    }
  }
}
