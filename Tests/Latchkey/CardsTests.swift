import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyKeyring
import LatchkeyKeys
import LatchkeyStorage
import Testing

/// One store; Ana shares Budget with nobody yet; Ben has an identity and a store of his own, and can reach Ana's.
private final class Neighbours {
  let place: Place
  let ana: Home
  let ben: Home

  init() async throws {
    place = try Place()
    ana = place.home("ana")
    ben = place.home("ben")
    try place.run("a.db", budgetSchema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Budget")
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    try FileManager.default.createDirectory(atPath: place.path("bens"), withIntermediateDirectories: true)
    try await ben.initialize(name: "Ben", device: "phone", store: "folder:\(place.path("bens"))")
  }

  /// Ben's card is in Ana's store, and Ana has compared words with him.
  func meet() async throws {
    let card = try await ben.publishCard(store: place.store)
    try await ana.pinCard(card.id, petname: "Benny", words: card.words.joined(separator: " "))
  }

  /// A stranger with a home of its own, whose card is in Ana's store.
  func stranger(_ name: String, publicName: String? = nil) async throws -> (home: Home, card: PublishedCard) {
    let home = place.home(name)
    try FileManager.default.createDirectory(atPath: place.path(name + "s"), withIntermediateDirectories: true)
    try await home.initialize(name: name, device: "phone", store: "folder:\(place.path(name + "s"))")
    return (home, try await home.publishCard(publicName: publicName, store: place.store))
  }

  func keys(_ home: String) throws -> KeyringContents { try FileKeyring(home: place.path(home)).load() }

  /// The objects of a kind in Ana's store.
  func objects(_ kind: ObjectKind) -> [String] {
    place.objects().filter { $0.split(separator: "/").dropFirst().first == Substring(kind.letter) }.sorted()
  }

  func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(place.root)/store/\(name)")))
  }

  /// Puts an object where a store, or anybody who can write it, can put one.
  func put(_ bytes: [UInt8], _ name: String) throws {
    let file = URL(fileURLWithPath: "\(place.root)/store/\(name)")
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
  }

  func remove(_ names: [String]) throws {
    for name in names { try FileManager.default.removeItem(atPath: "\(place.root)/store/\(name)") }
  }
}

private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
  do throws(LatchkeyError) { try await body() } catch { return "\(error.kind.rawValue) \(error.code)" }
  return nil
}

@Suite("Silent invites (M14)")
struct CardsTests {
  @Test("a person whose words were compared is invited without a link, comes in while the inviter is away, and counts")
  func wholeWay() async throws {
    let two = try await Neighbours()
    let (place, ana, ben) = (two.place, two.ana, two.ben)
    let published = try await ben.publishCard(store: place.store)
    #expect(published.words.count == 10 && published.publicName == nil && published.isNew)
    // No name is on it, and the store shows nothing else of it.
    let card = try #require(try await ana.cards().cards.first)
    #expect(card.id == published.id && card.displayName == nil && card.petname == nil && card.standing == .unverified)
    let pinned = try await ana.pinCard(
      String(card.id.prefix(6)), petname: "Benny", words: published.words.joined(separator: " "))
    #expect(pinned.standing == .verified && pinned.petname == "Benny")

    let sent = try await ana.invite(to: "Benny", role: .member)
    #expect(sent.recipient == "Benny" && sent.household == "Smith" && sent.recipientID == published.id)
    #expect(try await ana.invites().map(\.status) == ["open"])

    // Ana's device is off from here on.
    let inbox = try await ben.inbox()
    let invite = try #require(inbox.invites.first)
    #expect(inbox.invites.count == 1 && inbox.unreadable == 0 && inbox.warnings.isEmpty)
    #expect(invite.status == .pending && invite.household == "Smith" && invite.role == "member")
    #expect(invite.inviter == nil && invite.inviterCallsItself == "Ana")
    // He uses the store already: nothing is asked.
    let joined = try await ben.acceptInvite(
      String(invite.id.prefix(8)), options: JoinOptions(database: place.path("b.db"))
    ) { _ in
      Issue.record("nothing was to be asked")
      return false
    }
    #expect(joined.household == "Smith" && joined.zone == "Budget" && joined.rows == 5 && joined.isProvisional)
    #expect(joined.warnings.map(\.code).contains("inviter-unverified"))
    #expect(try place.rows("b.db", budgetDump) == place.rows("a.db", budgetDump))
    #expect(two.objects(.inbox).isEmpty)
    #expect(try await ben.inbox().invites.map(\.status) == [.accepted])

    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'from Ben')")
    _ = try await ben.sync(place.path("b.db"))
    #expect(try await ana.sync(place.path("a.db")).warnings.map(\.code) == ["admitted"])
    for _ in 0..<2 {
      _ = try await ana.sync(place.path("a.db"))
      _ = try await ben.sync(place.path("b.db"))
    }
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE cents = 7") == ["from Ben"])
    #expect(try await ana.members().members.map(\.name).sorted() == ["Ana", "Ben"])
    #expect(!(try await ben.sync().warnings.contains { $0.code == "provisional" }))
    #expect(try await ana.invites().map(\.status) == ["used"])
    #expect(try await ana.sync(place.path("a.db")).requests.put == 0)

    // Whoever is in is not invited again, and is verified by being in.
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.invite(to: "Benny") } == "usage already-member")

    try await ana.removeMember("Ben")
    _ = try? await ben.sync()
    #expect(try await ben.inbox().invites.map(\.status) == [.removed])
  }

  @Test("a household that is shared already is as good as words")
  func sharedHousehold() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let card = try await ben.publishCard(publicName: "B.")
    #expect(card.store == place.store)
    let seen = try #require(try await ana.cards().cards.first { $0.id == card.id })
    #expect(seen.standing == .verified && seen.petname == "Ben" && seen.displayName == "B.")
    try place.run("c.db", budgetSchema)
    try await ana.attach(place.path("c.db"), zone: "Cash")
    _ = try await ana.share(place.path("c.db"), household: "Shop")
    // By what the household calls him; what the card says does not count.
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.invite(to: "B.", household: "Shop") }
        == "usage no-such-card")
    _ = try await ana.invite(to: "Ben", household: "Shop", role: .reader)
    let invite = try #require(try await ben.inbox().invites.first)
    #expect(invite.inviter == "Ana" && invite.role == "reader" && invite.household == "Shop")
    let joined = try await ben.acceptInvite(invite.id, options: JoinOptions(database: place.path("d.db"))) { _ in false
    }
    #expect(joined.rows == 5 && !joined.warnings.contains { $0.code == "inviter-unverified" })
    _ = try await ana.sync()
    _ = try await ben.sync()
    #expect(try await ana.members(household: "Shop").members.map(\.role).sorted() == ["owner", "reader"])
  }

  @Test("nothing is sealed to a card that nobody has verified, and wrong words verify nothing")
  func unverified() async throws {
    let two = try await Neighbours()
    let ana = two.ana
    let card = try await two.ben.publishCard(publicName: "Ben", store: two.place.store)
    let eve = try await two.stranger("eve", publicName: "Ben")
    func invite(_ to: String) async -> String? {
      await code { () async throws(LatchkeyError) in _ = try await ana.invite(to: to) }
    }
    func pin(_ words: String) async -> String? {
      await code { () async throws(LatchkeyError) in try await ana.pinCard(card.id, petname: "Ben", words: words) }
    }
    // The name on a card is anybody's.
    #expect(await invite("Ben") == "usage no-such-card")
    #expect(await invite(card.id) == "decision card-unverified")
    #expect(await invite(String(card.id.prefix(5))) == "usage no-such-card")
    let words = card.words
    #expect(await pin(eve.card.words.joined(separator: " ")) == "key words-differ")
    #expect(await pin(words.dropLast().joined(separator: " ")) == "key words-incomplete")
    #expect(await pin((["qqqqq"] + words.dropFirst()).joined(separator: " ")) == "key word-unknown")
    let bens = ComparisonWords(card: try two.keys("ben").chain)
    let slip = eve.card.words.map { ([$0] + words.dropFirst()).joined(separator: " ") }
      .first { bens.compare($0) == .slip(positions: [1]) }
    #expect(await pin(try #require(slip)) == "key words-mistyped")
    #expect(try await ana.cards().cards.allSatisfy { $0.petname == nil })

    // A pin without words is a name, not trust.
    #expect(try await ana.pinCard(card.id, petname: "Ben").standing == .pinned)
    #expect(await invite("Ben") == "decision card-unverified")
    #expect(two.objects(.inbox).isEmpty)
    #expect(try await ana.invites().isEmpty)
    // Words make it so; pinned again without, it stays so.
    #expect(try await ana.pinCard(card.id, petname: "Ben", words: words.joined(separator: " ")).standing == .verified)
    #expect(try await ana.pinCard(card.id, petname: "Benny").standing == .verified)
    #expect(await invite("Benny") == nil)
    #expect(two.objects(.inbox).count == 1)

    for (id, petname, expected) in [
      ("ffffffff", "X", "usage no-such-card"), (card.id, "", "usage bad-name"), (card.id, "a\u{7}", "usage bad-name"),
    ] {
      #expect(
        await code { () async throws(LatchkeyError) in try await ana.pinCard(id, petname: petname) } == expected)
    }
    let own = try await ana.publishCard()
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.pinCard(own.id, petname: "Me") } == "usage yourself")
    #expect(await invite(own.id) == "usage yourself")
  }

  @Test("attack 3: a store that shows other keys for somebody who is pinned gets nothing sealed to them")
  func substituted() async throws {
    let two = try await Neighbours()
    let (place, ana) = (two.place, two.ana)
    try await two.meet()
    let bens = two.objects(.card)
    let eve = try await two.stranger("eve", publicName: "Benny")
    // The store hides Ben's card: what is left calls itself Benny, and is not.
    try two.remove(bens)
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.pinCard(eve.card.id, petname: "Benny") }
        == "key card-changed")
    _ = try await ana.invite(to: "Benny")
    #expect(try await eve.home.inbox().invites.isEmpty)
    #expect(try await two.ben.inbox().invites.map(\.status) == [.pending])

    // Ben's own new device is other keys, too, until words were compared.
    let link = try await two.ben.addDevice()
    let tablet = place.home("tablet")
    _ = try await tablet.join(link: link.link, options: JoinOptions(device: "tablet")) { _ in true }
    for home in [two.ben, tablet, two.ben, tablet] { _ = try await home.sync() }
    let card = try await tablet.publishCard(store: place.store)
    let seen = try #require(try await ana.cards().cards.first { $0.id == card.id })
    #expect(seen.standing == .changed && seen.petname == "Benny")
    #expect(try await ana.cards().warnings.map(\.code) == ["card-changed"])
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.invite(to: "Benny") } == "key card-changed")
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.pinCard(card.id, petname: "Benny") }
        == "key card-changed")
    try await ana.pinCard(card.id, petname: "Benny", words: card.words.joined(separator: " "))
    _ = try await ana.invite(to: "Benny")
    #expect(try await tablet.inbox().invites.map(\.status) == [.pending])
    // What is for the tablet is closed to the phone, and the reverse.
    #expect(try await two.ben.inbox().unreadable == 1)
  }

  @Test("attack 26: an invite that was re-sealed to another, or whose role somebody else changed, lets nobody in")
  func retargeted() async throws {
    let two = try await Neighbours()
    let (place, ana, ben) = (two.place, two.ana, two.ben)
    try await two.meet()
    _ = try await ana.invite(to: "Benny", role: .reader)
    let object = try #require(two.objects(.inbox).first)
    let keys = try two.keys("ben")
    let message = try InboxMessage.open(try two.bytes(object), by: keys.device, of: keys.person)

    var random = SeededRandom("retargeted")
    let eve = try await two.stranger("eve")
    let eves = try two.keys("eve")
    // Whoever opened it seals it to Eve: it is not for her.
    let resealed = try #require(message.sealed(to: eves.device.box.publicKey, random: &random))
    let below = object.dropFirst(33)
    try two.put(resealed, "\(InboxMessage.prefix(of: eves.person))/\(below)")
    let hers = try await eve.home.inbox()
    #expect(hers.invites.isEmpty && hers.unreadable == 1)

    // Eve is in the household, holds its key, and offers Ben more than Ana did, with Ana's invite.
    let link = try await ana.invite(household: "Smith", role: .reader)
    _ = try await eve.home.join(link: link.link, options: JoinOptions()) { _ in true }
    for home in [ana, eve.home, ana, eve.home] { _ = try await home.sync() }
    let blob = message.blob
    let wished = InviteBlob(
      household: blob.household, epoch: blob.epoch, invite: blob.invite, seal: blob.seal, rosterHeads: blob.rosterHeads,
      householdName: blob.householdName, inviterName: "Ana", role: .owner, expiry: blob.expiry, zones: blob.zones)
    let forged = InboxMessage(
      blob: wished, recipient: keys.chain, locator: message.locator, inviter: eves.chain, keys: eves.device)
    let name = forged.objectName(&random)
    try two.put(try #require(forged.sealed(to: keys.device.box.publicKey, random: &random)), name.text)
    let invites = try await ben.inbox().invites
    #expect(invites.map(\.role).sorted() == ["owner", "reader"])
    let owner = try #require(invites.first { $0.role == "owner" })
    let before = place.objects()
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ben.acceptInvite(owner.id, options: JoinOptions(database: place.path("b.db"))) { _ in true }
      } == "damage forged-invite")
    #expect(place.objects() == before && !FileManager.default.fileExists(atPath: place.path("b.db")))
    #expect(try await ben.identity().households.map(\.name) == ["Ben's own"])
    // Ana's own lets him in, as what she offered.
    let reader = try #require(invites.first { $0.role == "reader" })
    _ = try await ben.acceptInvite(reader.id, options: JoinOptions(database: place.path("b.db"))) { _ in true }
    _ = try await ana.sync()
    #expect(try await ana.members().members.first { $0.name == "Ben" }?.role == "reader")
  }

  @Test("whatever else lies in an inbox or among the cards stops nothing")
  func garbage() async throws {
    let two = try await Neighbours()
    try await two.meet()
    _ = try await two.ana.invite(to: "Benny")
    let inbox = String(try #require(two.objects(.inbox).first).prefix(33))
    let cards = String(try #require(two.objects(.card).first).prefix(33))
    var random = SeededRandom("garbage")
    for (number, size) in [0, 4, 60, 4096, 200_000].enumerated() {
      let digits = String(repeating: "\(number)", count: 30)
      try two.put(random.bytes(size), "\(inbox)x/00/\(digits)")
      try two.put(random.bytes(size), "\(cards)d/00/\(digits)")
    }
    // And the same message once more, as a store can show it.
    try two.put(
      try two.bytes(try #require(two.objects(.inbox).last)), "\(inbox)x/00/\(String(repeating: "a", count: 30))")
    let report = try await two.ben.inbox()
    #expect(report.invites.map(\.status) == [.pending] && report.unreadable == 5)
    let seen = try await two.ana.cards()
    #expect(seen.cards.map(\.standing) == [.verified] && seen.warnings.map(\.code) == ["damaged-card"])
    _ = try await two.ben.acceptInvite(report.invites[0].id, options: JoinOptions()) { _ in true }
    // Both copies are gone, and what is not ours is left alone.
    #expect(two.objects(.inbox).count == 5)
    #expect(try await two.ben.publishCard(store: two.place.store).isNew == false)
    #expect(two.objects(.card).count == 6)
  }

  @Test("declined is remembered even if the store shows the message again; expired and withdrawn invites are told")
  func answers() async throws {
    let two = try await Neighbours()
    let (place, ana, ben) = (two.place, two.ana, two.ben)
    try await two.meet()
    _ = try await ana.invite(to: "Benny")
    let object = try #require(two.objects(.inbox).first)
    let bytes = try two.bytes(object)
    let id = try #require(try await ben.inbox().invites.first).id
    #expect(try await ben.declineInvite(id).status == .declined)
    #expect(two.objects(.inbox).isEmpty)
    #expect(try await ben.declineInvite(id).status == .declined)
    try two.put(bytes, object)
    #expect(try await ben.inbox().invites.map(\.status) == [.declined])
    #expect(
      await code { () async throws(LatchkeyError) in try await ben.declineInvite("ffffff") } == "usage no-such-invite")
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ben.acceptInvite("ffffff", options: JoinOptions()) { _ in true }
      } == "usage no-such-invite")

    // A withdrawn one is found out when it is used.
    let sent = try await ana.invite(to: "Benny", expiresIn: 3_600_000)
    try await ana.revokeInvite(sent.id)
    let withdrawn = try #require(try await ben.inbox().invites.first { $0.status == .pending })
    func accept(_ id: String) async -> String? {
      await code { () async throws(LatchkeyError) in
        _ = try await ben.acceptInvite(id, options: JoinOptions(database: place.path("b.db"))) { _ in true }
      }
    }
    #expect(await accept(withdrawn.id) == "key link-revoked")
    place.clock.advance(3_600_001)
    #expect(try await ben.inbox().invites.map(\.status).contains(.expired))
    #expect(await accept(withdrawn.id) == "key link-expired")
    #expect(!FileManager.default.fileExists(atPath: place.path("b.db")))

    _ = try await ana.invite(to: "Benny")
    let good = try #require(try await ben.inbox().invites.first { $0.status == .pending })
    #expect(await accept(good.id) == nil)
    #expect(
      await code { () async throws(LatchkeyError) in try await ben.declineInvite(good.id) } == "usage accepted-already")
  }

  @Test("a household in a store that this device does not use is joined only if a person agrees")
  func otherStore() async throws {
    let two = try await Neighbours()
    let (place, ana, ben) = (two.place, two.ana, two.ben)
    try await two.meet()
    // The household is kept elsewhere than where the card and the invite lie.
    try FileManager.default.createDirectory(atPath: place.path("far"), withIntermediateDirectories: true)
    try place.run("c.db", budgetSchema)
    try await ana.attach(place.path("c.db"), zone: "Cash")
    _ = try await ana.share(place.path("c.db"), household: "Far", store: "folder:\(place.path("far"))")
    _ = try await ana.invite(to: "Benny", household: "Far")
    let id = try #require(try await ben.inbox().invites.first).id
    let options = JoinOptions(database: place.path("b.db"))
    let far = "folder:\(place.path("far"))"
    let refusal = await code { () async throws(LatchkeyError) in
      _ = try await ben.acceptInvite(id, options: options) { question in
        if question != .useStore(url: far) { Issue.record("asked for another store") }
        return false
      }
    }
    #expect(refusal == "decision store-not-agreed")
    #expect(try await ben.inbox().invites.map(\.status) == [.pending])
    #expect(try await ben.acceptInvite(id, options: options) { _ in true }.rows == 5)
  }

  @Test(
    "a store shows one card a person: publishing again replaces it, writes nothing if nothing changed, and needs a store"
  )
  func publishing() async throws {
    let two = try await Neighbours()
    let (place, ben) = (two.place, two.ben)
    let first = try await ben.publishCard(store: place.store)
    #expect(try await ben.publishCard(store: place.store).isNew == false)
    let named = try await ben.publishCard(publicName: "Ben", store: place.store)
    #expect(named.isNew && named.words == first.words)
    #expect(two.objects(.card).count == 1)
    #expect(try await two.ana.cards().cards.map(\.displayName) == ["Ben"])
    // Even if the clock went back.
    place.clock.advance(-86_400_000)
    _ = try await ben.publishCard(store: place.store)
    #expect(try await two.ana.cards().cards.map(\.displayName) == [nil])
    #expect(two.objects(.card).count == 1)

    #expect(
      await code { () async throws(LatchkeyError) in _ = try await place.home("nobody").publishCard() }
        == "notAttached no-identity")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ben.publishCard(store: "folder:\(place.path("no"))")
      }
        == "store store-missing")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ben.publishCard(publicName: "") }
        == "usage bad-name")
    // One store that is away is warned of; the other is read.
    try FileManager.default.moveItem(atPath: place.path("bens"), toPath: place.path("away"))
    #expect(try await ben.cards().warnings.map(\.code) == ["store-missing"])
    #expect(try await ben.inbox().warnings.map(\.code) == ["store-missing"])
    try FileManager.default.moveItem(atPath: place.path("store"), toPath: place.path("away too"))
    #expect(await code { () async throws(LatchkeyError) in _ = try await ben.inbox() } == "store store-missing")
  }

  @Test("whoever came in by a stranger's invite does not take the stranger's word for who is who")
  func vouching() async throws {
    let two = try await Neighbours()
    let (place, ana, ben) = (two.place, two.ana, two.ben)
    try await two.meet()
    _ = try await ana.invite(to: "Benny")
    let id = try #require(try await ben.inbox().invites.first).id
    _ = try await ben.acceptInvite(id, options: JoinOptions()) { _ in true }
    _ = try await ana.sync()
    _ = try await ben.sync()
    let card = try await ana.publishCard()
    func standing() async throws -> CardReport.Standing? {
      try await ben.cards().cards.first { $0.id == card.id }?.standing
    }
    #expect(try await standing() == .unverified)
    try await ben.pinCard(card.id, petname: "Ana", words: card.words.joined(separator: " "))
    #expect(try await standing() == .verified)
    #expect(try await ben.inbox().invites.map(\.inviter) == ["Ana"])
    withExtendedLifetime(place) {}
  }
}
