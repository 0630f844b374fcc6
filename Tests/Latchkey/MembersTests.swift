import Foundation
import Latchkey
import LatchkeyKeyring
import LatchkeyKeys
import Testing

@Suite("Who may read and write")
struct MembersTests {
  /// Ana (owner) and Ben (member) with Budget between them, everything settled.
  private func household() async throws -> (Place, Home, Home) {
    let place = try Place()
    let ana = place.home("ana")
    try place.run("a.db", budgetSchema)
    try await ana.initialize(name: "Ana", device: "laptop", store: place.store)
    try await ana.attach(place.path("a.db"), zone: "Budget")
    _ = try await ana.share(place.path("a.db"), household: "Smith")
    return (place, ana, try await join("ben", "Ben", "b.db", invitedBy: ana, .member, place))
  }

  private func join(
    _ directory: String, _ name: String, _ file: String, invitedBy inviter: Home, _ role: InviteRole, _ place: Place
  ) async throws -> Home {
    let invite = try await inviter.invite(household: "Smith", role: role)
    let home = place.home(directory)
    _ = try await home.join(
      link: invite.link, options: JoinOptions(database: place.path(file), name: name, device: "phone")
    ) { _ in true }
    _ = try await inviter.sync()
    _ = try await home.sync()
    return home
  }

  private func names(_ home: Home) async throws -> [String] { try await home.members().members.map(\.name).sorted() }

  private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
    do throws(LatchkeyError) { try await body() } catch { return error.code }
    return nil
  }

  @Test("a removed member reads nothing written after, finds nothing of it, and what it writes counts for nobody")
  func removal() async throws {
    let (place, ana, ben) = try await household()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 5, 'counted')")
    _ = try await ben.sync()
    let before = place.objects()
    #expect(try await ana.removeMember("Ben") == ["Ben"])
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 6, 'after')")
    _ = try await ana.sync()
    _ = try await ana.sync()

    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'late')")
    let written = place.objects()
    #expect(await code { () async throws(LatchkeyError) in _ = try await ben.sync(place.path("b.db")) } == "removed")
    #expect(place.objects() == written)
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE note = 'after'").isEmpty)
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note = 'late'").isEmpty)
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note = 'counted'") == ["counted"])
    #expect(try await ben.status().first?.zone?.warnings.map(\.code).contains("removed") == true)
    // The new epoch's rows lie under prefixes that had never been there.
    let prefixes = Set(before.map { $0.prefix(32) })
    #expect(written.subtracting(before).contains { !prefixes.contains($0.prefix(32)) })

    // Whoever joins later sees what everybody else sees.
    let cy = try await join("cy", "Cy", "c.db", invitedBy: ana, .member, place)
    #expect(try place.rows("c.db", budgetDump) == place.rows("a.db", budgetDump))
    #expect(try await names(cy) == ["Ana", "Cy"])
  }

  @Test("what others had accepted of a removed member beyond what its remover saw is carried, and counts for all")
  func carry() async throws {
    let (place, ana, ben) = try await household()
    let cy = try await join("cy", "Cy", "c.db", invitedBy: ana, .member, place)
    _ = try await ben.sync()
    // Cy reads what Ben writes; the store then shows Ana an older world.
    let old = place.objects()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'only Cy saw it')")
    _ = try await ben.sync()
    _ = try await cy.sync()
    try place.withhold(place.objects().subtracting(old))
    try await ana.removeMember("Ben")
    for _ in 0..<3 {
      _ = try await cy.sync()
      _ = try await ana.sync()
    }
    #expect(try place.rows("a.db", budgetDump) == place.rows("c.db", budgetDump))
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE cents = 7") == ["only Cy saw it"])
  }

  @Test("rows of somebody whose admission the remover learns of in removing count for all")
  func removedAtFirstSight() async throws {
    let (place, ana, ben) = try await household()
    let invite = try await ana.invite(household: "Smith")
    let xi = place.home("xi")
    _ = try await xi.join(
      link: invite.link, options: JoinOptions(database: place.path("x.db"), name: "Xi", device: "phone")
    ) { _ in true }
    try place.run("x.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'before admission')")
    _ = try await xi.sync()
    _ = try await ben.sync()
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents = 7") == ["before admission"])
    try await ana.removeMember("Xi")
    for _ in 0..<3 {
      _ = try await ana.sync()
      _ = try await ben.sync()
    }
    #expect(try place.rows("a.db", budgetDump) == place.rows("b.db", budgetDump))
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE cents = 7") == ["before admission"])
  }

  @Test("a device of one's own that is added after several epochs follows to the newest", arguments: 0..<4)
  func ownDeviceLater(round: Int) async throws {
    let (place, ana, _) = try await household()
    for _ in 0...round { try await ana.rotateKey() }
    let invite = try await ana.addDevice()
    let second = place.home("second")
    _ = try await second.join(link: invite.link, options: JoinOptions(device: "second")) { _ in true }
    for _ in 0..<3 {
      _ = try await ana.sync()
      _ = try await second.sync()
    }
    try await second.attach(place.path("s.db"), zone: "Budget")
    try place.run("s.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'from the second')")
    for _ in 0..<2 {
      #expect(!(try await second.sync().warnings.contains { $0.code == "provisional" }))
      _ = try await ana.sync()
    }
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE cents = 7") == ["from the second"])
  }

  @Test("people whom a removed member invited go along unless they are kept; open invites end")
  func introduced() async throws {
    let (place, ana, ben) = try await household()
    let cy = try await join("cy", "Cy", "c.db", invitedBy: ben, .reader, place)
    let dan = try await join("dan", "Dan", "d.db", invitedBy: ben, .reader, place)
    _ = try await ana.sync()
    let open = try await ana.invite(household: "Smith")
    #expect(try await ana.invites().map(\.status).sorted() == ["open", "used", "used", "used"])
    #expect(
      Set(try await ana.removeMember("Ben", keeping: ["Dan"], isRehearsal: true)) == ["Ben", "Cy"])
    #expect(try await names(ana) == ["Ana", "Ben", "Cy", "Dan"])
    try await ana.removeMember("Ben", keeping: ["Dan"])
    #expect(try await names(ana) == ["Ana", "Dan"])
    #expect(try await ana.invites().map(\.status).sorted() == ["revoked", "used", "used", "used"])
    _ = try await dan.sync()
    #expect(try await names(dan) == ["Ana", "Dan"])
    #expect(await code { () async throws(LatchkeyError) in _ = try await cy.sync(place.path("c.db")) } == "removed")
    let eve = place.home("eve")
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await eve.join(link: open.link, options: JoinOptions(name: "Eve", device: "x")) { _ in true }
      } == "link-revoked")
  }

  @Test(
    "a member made a reader keeps what counted; what it writes then stays where it is, and counts again after it may write"
  )
  func roles() async throws {
    let (place, ana, ben) = try await household()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 1, 'as member')")
    _ = try await ben.sync()
    try await ana.setRole(.reader, of: "Ben")
    _ = try await ben.sync()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 2, 'as reader')")
    _ = try await ben.sync()
    _ = try await ana.sync()
    #expect(
      try place.rows("a.db", "SELECT note FROM entries WHERE cents IN (1, 2) ORDER BY note").contains("as member"))
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note = 'as reader'").isEmpty)
    try await ana.setRole(.member, of: "Ben")
    _ = try await ben.sync()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 3, 'again')")
    _ = try await ben.sync()
    _ = try await ana.sync()
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note = 'again'") == ["again"])
    // What stays with him is said for as long as it does, and is nobody's damage.
    #expect(try await ben.status().first?.zone?.warnings.map(\.code) == ["reader-kept-here"])
    for home in [ana, ben] { #expect(try await home.sync().warnings.isEmpty) }
  }

  @Test("whoever leaves is let go by the next that syncs, and the last owner cannot leave")
  func leaving() async throws {
    let (place, ana, ben) = try await household()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 1, 'before')")
    // What waits goes out with it; the rows go from his file, and from nobody else's.
    let report = try await ben.leave(database: place.path("b.db"))
    #expect(report.files.map(\.removed) == [6] && report.files.first?.failure == nil)
    #expect(try place.rows("b.db", "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM accounts)") == ["0"])
    #expect(try place.rows("b.db", "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'lk_*'") == ["0"])
    for _ in 0..<2 { _ = try await ana.sync() }
    #expect(try await names(ana) == ["Ana"])
    #expect(try place.rows("a.db", "SELECT note FROM entries WHERE note = 'before'") == ["before"])
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries") == ["4"])
    #expect(try await ben.identity().households.isEmpty)
    _ = try await ben.sync()
    #expect(await code { () async throws(LatchkeyError) in try await ana.leave() } == "not-allowed")
    // For good: with these keys nobody comes in again.
    let again = try await ana.invite(household: "Smith")
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ben.join(link: again.link, options: JoinOptions(database: place.path("again.db"))) { _ in true }
      } == "removed")
  }

  @Test("whoever leaves and keeps the rows has them as its own, under new names, and goes on with them alone")
  func keeping() async throws {
    let (place, ana, ben) = try await household()
    try await ben.initialize(name: "Ben", device: "phone", store: place.store)
    let report = try await ben.leave(database: place.path("b.db"), keeping: true)
    #expect(report.files.map(\.zone) == ["Budget"] && report.files.first?.removed == nil)
    for _ in 0..<2 { _ = try await ana.sync() }
    try place.run("b.db", "UPDATE entries SET note = 'mine'")
    for _ in 0..<2 { for home in [ben, ana] { _ = try await home.sync() } }
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries WHERE note = 'mine'") == ["0"])
    #expect(try await ben.status().first?.zone?.household == "Ben's own")
    #expect(try await ben.status().first?.zone?.waiting == 0)
  }

  @Test("whoever was removed is asked what becomes of the rows, and answers once", arguments: ["keep", "drop"])
  func frozen(choice: String) async throws {
    let (place, ana, ben) = try await household()
    try await ana.removeMember("Ben")
    #expect(await code { () async throws(LatchkeyError) in _ = try await ben.sync() } == "removed")
    let decision = try #require(try await ben.decisions().first)
    #expect(decision.kind == "frozen" && decision.message.contains(place.path("b.db")))
    try await ben.decide(decision.id, choice)
    #expect(try await ben.decisions().isEmpty)
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries") == [choice == "keep" ? "3" : "0"])
    #expect(try place.rows("b.db", "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'lk_*'") == ["0"])
    _ = try await ben.sync()
    _ = try await ana.sync()
    #expect(try place.rows("a.db", "SELECT count(*) FROM entries") == ["3"])
  }

  @Test("rows that nobody else has are not dropped")
  func unsent() async throws {
    let (place, ana, ben) = try await household()
    try await ana.removeMember("Ben")
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 9, 'only here')")
    #expect(await code { () async throws(LatchkeyError) in _ = try await ben.sync() } == "removed")
    let decision = try #require(try await ben.decisions().first)
    #expect(await code { () async throws(LatchkeyError) in try await ben.decide(decision.id, "drop") } == "rows-unsent")
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries WHERE note = 'only here'") == ["1"])
    try await ben.decide(decision.id, "keep")
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries WHERE note = 'only here'") == ["1"])
  }

  @Test("owners who all leave at the same time stay, and are told")
  func everybodyLeaves() async throws {
    let (place, ana, ben) = try await household()
    try await ana.setRole(.owner, of: "Ben")
    for home in [ben, ana] { _ = try await home.sync() }
    // Neither sees the other's leave before its own.
    let before = place.objects()
    try await ana.leave(keeping: true)
    let written = place.objects().subtracting(before)
    try place.withhold(written)
    try await ben.leave()
    try place.showAgain(written)
    for home in [ana, ben] { _ = try await home.sync() }
    for home in [ana, ben] { #expect(try await home.sync().warnings.map(\.code).contains("leave-lapsed")) }
    #expect(try await names(ana) == ["Ana", "Ben"])
    #expect(try await ana.status().first?.zone?.warnings.map(\.code) == ["leave-lapsed"])
    try await ana.removeMember("Ben")
    _ = try await ana.sync()
    #expect(try await names(ana) == ["Ana"])
    // Ben wanted to go, and is gone: his file is settled as he said.
    _ = try await ben.sync()
    #expect(try await ben.identity().households.isEmpty)
    #expect(try place.rows("b.db", "SELECT count(*) FROM entries") == ["0"])
  }

  @Test("a withdrawn invite lets nobody in, and a link made before still does after others came and went")
  func invites() async throws {
    let (place, ana, _) = try await household()
    let kept = try await ana.invite(household: "Smith")
    let gone = try await ana.invite(household: "Smith")
    try await ana.revokeInvite(String(gone.id.prefix(8)))
    #expect(try await ana.invites().map(\.status).sorted() == ["open", "revoked", "used"])
    let eve = place.home("eve")
    let options = JoinOptions(database: place.path("e.db"), name: "Eve", device: "x")
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await eve.join(link: gone.link, options: options) { _ in true }
      } == "link-revoked")
    // Three epochs later the other link still opens the newest one.
    try await ana.rotateKey()
    try await ana.rotateKey()
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 6, 'newest')")
    _ = try await ana.sync()
    _ = try await eve.join(link: kept.link, options: options) { _ in true }
    #expect(try place.rows("e.db", "SELECT note FROM entries WHERE note = 'newest'") == ["newest"])
    _ = try await ana.sync()
    _ = try await eve.sync()
    #expect(try await names(eve) == ["Ana", "Ben", "Eve"])
    // The link is gone, and what it opened stays: rows may wait in an epoch that nothing else opens.
    let known = try #require(try FileKeyring(home: place.path("eve")).load().households.first { $0.name == "Smith" })
    #expect(known.joining == nil)
    #expect(known.epochs.count > 3)
  }

  @Test("an invite that is withdrawn lets nobody in who has claimed and was not seen yet; one that was used says so")
  func revokeBeforeAdmission() async throws {
    let (place, ana, _) = try await household()
    let invite = try await ana.invite(household: "Smith")
    let eve = place.home("eve")
    _ = try await eve.join(link: invite.link, options: JoinOptions(name: "Eve", device: "x")) { _ in true }
    try await ana.revokeInvite(invite.id)
    _ = try await ana.sync()
    #expect(try await names(ana) == ["Ana", "Ben"])
    let used = try #require(try await ana.invites().first { $0.status == "used" })
    #expect(await code { () async throws(LatchkeyError) in try await ana.revokeInvite(used.id) } == "link-used")

    // With another invite the same device comes in.
    let again = try await ana.invite(household: "Smith")
    let options = JoinOptions(database: place.path("e.db"))
    _ = try await eve.join(link: again.link, options: options) { _ in true }
    _ = try await ana.sync()
    _ = try await eve.sync()
    #expect(try await names(ana) == ["Ana", "Ben", "Eve"])
    #expect(!(try await eve.sync().warnings.contains { $0.code == "provisional" }))
  }

  @Test("only owners decide about others, nobody about themselves, and a name that fits nobody or several is refused")
  func refusals() async throws {
    let (place, ana, ben) = try await household()
    defer { withExtendedLifetime(place) {} }
    #expect(await code { () async throws(LatchkeyError) in try await ben.removeMember("Ana") } == "not-an-owner")
    #expect(await code { () async throws(LatchkeyError) in try await ana.removeMember("Ana") } == "yourself")
    #expect(await code { () async throws(LatchkeyError) in try await ana.removeMember("Nobody") } == "no-such-member")
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.removeMember("Ben", keeping: ["Nobody"]) }
        == "no-such-member")
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.setRole(.reader, of: "x") } == "no-such-member")
    #expect(await code { () async throws(LatchkeyError) in try await ana.revokeInvite("ffffff") } == "no-such-invite")
  }

  @Test("a store that was lost wholly is published anew on a person's word, and everybody goes on with it")
  func lostStore() async throws {
    let (place, ana, ben) = try await household()
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'by Ben')")
    for home in [ben, ana, ben] { _ = try await home.sync() }
    let lost = place.objects()
    try FileManager.default.removeItem(atPath: place.root + "/store")
    try FileManager.default.createDirectory(atPath: place.root + "/store", withIntermediateDirectories: true)
    var said: LatchkeyError?
    do throws(LatchkeyError) { _ = try await ana.sync(place.path("a.db")) } catch { said = error }
    #expect(said?.code == "store-missing")
    let id = try #require(said?.next.last?.split(separator: " ").dropFirst(2).first.map(String.init))
    #expect(id.hasPrefix("lost-"))
    try await ana.decide(id, "republish")
    #expect(place.objects().contains("latchkey-store") && place.objects() != lost)

    // Whoever comes now gets everything, what Ben wrote included, though Ben has not synced yet.
    let invite = try await ana.invite(household: "Smith")
    let cy = place.home("cy")
    _ = try await cy.join(
      link: invite.link, options: JoinOptions(database: place.path("c.db"), name: "Cy", device: "x")
    ) { _ in true }
    #expect(try place.rows("c.db", budgetDump) == place.rows("a.db", budgetDump))
    #expect(try place.rows("c.db", "SELECT note FROM entries WHERE cents = 7") == ["by Ben"])
    // Ben's own log began in an epoch that is lost: he says the same on his device.
    try await ben.decide(id, "republish")
    try place.run("b.db", "UPDATE entries SET note = 'by Ben again' WHERE cents = 7")
    for _ in 0..<3 {
      _ = try await ana.sync(place.path("a.db"))
      for home in [ben, cy] { _ = try await home.sync() }
    }
    for file in ["a.db", "b.db", "c.db"] {
      #expect(try place.rows(file, "SELECT note FROM entries WHERE cents = 7") == ["by Ben again"])
    }
    // Not over what lies there.
    try FileManager.default.removeItem(atPath: place.root + "/store/latchkey-store")
    #expect(await code { () async throws(LatchkeyError) in try await ana.decide(id, "republish") } == "store-not-empty")
  }
}
