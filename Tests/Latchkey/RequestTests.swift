import Foundation
import Latchkey
import LatchkeyKeys
import Testing

@Suite("Letting people in by compared words")
struct RequestTests {
  private func code(_ body: () async throws(LatchkeyError) -> Void) async -> String? {
    do throws(LatchkeyError) { try await body() } catch { return error.code }
    return nil
  }

  private func options(_ place: Place, _ name: String, words: String? = nil) -> JoinOptions {
    JoinOptions(database: place.path("\(name).db"), name: name, device: "phone", words: words)
  }

  @Test("an invite that asks for words opens nothing until an owner has compared them; then it is as any other")
  func words() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    let invite = try await ana.invite(household: "Smith", confirm: true)
    let cy = place.home("cy")
    let first = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }
    let waiting = try #require(first.waitingFor)
    #expect(waiting.inviter == "Ana" && waiting.words.count == 10 && first.database == nil)
    #expect(!FileManager.default.fileExists(atPath: place.path("cy.db")))
    // Again before anybody has decided: the same words, nothing else.
    let again = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }
    #expect(again.waitingFor == waiting)
    #expect(try await cy.identity().households.isEmpty)

    // Only an owner's sync hears of it.
    #expect(try await ben.sync().warnings.isEmpty)
    #expect(try await ana.sync().warnings.map(\.code) == ["claim-waits"])
    let request = try #require(try await ana.requests().first)
    #expect(request.words == waiting.words && request.name == "cy" && request.reason == "words")

    let right = waiting.words.joined(separator: " ")
    let id = String(request.id.prefix(8))
    var wrong = waiting.words
    wrong[3] = WordListSample.other(than: wrong[3])
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ana.approve(id, words: wrong.joined(separator: " "))
      } == "words-mistyped")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.approve(id, words: right + "x") }
        == "word-unknown")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.approve(id, words: "one two") }
        == "words-incomplete")
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ben.approve(id, words: right) } == "no-such-request")
    #expect(try await ana.members().members.count == 2)
    _ = try await ana.approve(id, words: right)
    #expect(try await ana.members().members.map(\.name).sorted() == ["Ana", "Ben", "cy"])

    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await cy.join(link: invite.link, options: options(place, "cy", words: wrong.joined(separator: " "))) {
          _ in true
        }
      } == "words-mistyped")
    let joined = try await cy.join(link: invite.link, options: options(place, "cy", words: right)) { _ in true }
    #expect(joined.waitingFor == nil && !joined.isProvisional && joined.rows == 5)
    try place.run("cy.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'from Cy')")
    _ = try await cy.sync()
    for home in [ana, ben, ana, ben] { _ = try await home.sync() }
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents = 7") == ["from Cy"])
    #expect(try await cy.sync().warnings.isEmpty)
  }

  @Test("several wait with one link: who is meant is let in, who is not gets nothing, not even with the link")
  func stranger() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.invite(household: "Smith", confirm: true)
    let eve = place.home("eve")
    let cy = place.home("cy")
    _ = try await eve.join(link: invite.link, options: options(place, "eve")) { _ in true }
    let words = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }.waitingFor?.words
    let requests = try await ana.requests()
    #expect(requests.count == 2)
    let right = try #require(requests.first { $0.words == words })
    let other = try #require(requests.first { $0.words != words })
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await ana.approve(other.id, words: right.words.joined(separator: " "))
      } == "words-differ")
    _ = try await ana.approve(right.id, words: right.words.joined(separator: " "))
    _ = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }
    #expect(try place.rows("cy.db", budgetDump) == place.rows("a.db", budgetDump))
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await eve.join(link: invite.link, options: options(place, "eve")) { _ in true }
      } == "link-refused")
    #expect(try await eve.identity().households.isEmpty)
    #expect(try await ana.requests().isEmpty)
  }

  @Test("denying withdraws the invite; a link of a household that is let in by itself asks nobody")
  func denying() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.invite(household: "Smith", confirm: true)
    let eve = place.home("eve")
    _ = try await eve.join(link: invite.link, options: options(place, "eve")) { _ in true }
    let request = try #require(try await ana.requests().first)
    _ = try await ana.deny(String(request.id.prefix(6)))
    let refused: () async throws(LatchkeyError) -> Void = { () async throws(LatchkeyError) in
      _ = try await eve.join(link: invite.link, options: self.options(place, "eve")) { _ in true }
    }
    #expect(await code(refused) == "link-refused")
    // Another invite is another matter; one that is withdrawn says so to who waits.
    let again = try await ana.invite(household: "Smith", confirm: true)
    #expect(try await eve.join(link: again.link, options: options(place, "eve")) { _ in true }.waitingFor != nil)
    try await ana.revokeInvite(again.id)
    #expect(
      await code { () async throws(LatchkeyError) in
        _ = try await eve.join(link: again.link, options: options(place, "eve")) { _ in true }
      } == "link-refused")
    #expect(try await ana.requests().isEmpty)
    #expect(try await ana.invites().contains { $0.id == invite.id && $0.status == "revoked" })
    #expect(
      await code { () async throws(LatchkeyError) in _ = try await ana.approve(request.id, words: "x") }
        == "no-such-request")
  }

  @Test("two devices with one link wait for a person, who may pick one by its words")
  func rivals() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.invite(household: "Smith")
    let eve = place.home("eve")
    let cy = place.home("cy")
    _ = try await eve.join(link: invite.link, options: options(place, "eve")) { _ in true }
    _ = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }
    #expect(try await ana.sync().warnings.map(\.code) == ["claim-waits", "claim-waits"])
    let request = try #require(try await ana.requests().first { $0.name == "cy" })
    #expect(request.reason == "rivals")
    _ = try await ana.approve(request.id, words: request.words.joined(separator: " "))
    for home in [ana, cy, ana] { _ = try await home.sync() }
    #expect(try await cy.sync().warnings.isEmpty)
    #expect(try await ana.members().members.map(\.name).sorted() == ["Ana", "Ben", "cy"])
    // Who was not picked had the link, and so what there was; nothing of what comes.
    try place.run("a.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'after')")
    _ = try await ana.sync()
    _ = try? await eve.sync()
    #expect(try place.rows("eve.db", "SELECT note FROM entries WHERE cents = 7").isEmpty)
  }

  @Test("both screens show the same words when a device joins its own person")
  func pairing() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    let invite = try await ana.addDevice()
    let tablet = place.home("tablet")
    let joined = try await tablet.join(link: invite.link, options: JoinOptions(device: "tablet")) { _ in true }
    let words = try #require(joined.words)
    let shown = try #require(try await ana.sync().warnings.first { $0.code == "admitted" })
    #expect(shown.message.contains(words.joined(separator: " ")))
  }

  @Test(
    "whoever removed somebody is reminded of the store's credential until it is said to be changed; newcomers are not")
  func credential() async throws {
    let place = try Place()
    let (ana, _) = try await household(place)
    #expect(try await ana.decisions().isEmpty)
    try await ana.removeMember("Ben")
    let decision = try #require(try await ana.decisions().first)
    #expect(decision.kind == "credential" && decision.household == "Smith" && decision.choices == ["done"])
    let invite = try await ana.invite(household: "Smith", role: .owner)
    let cy = place.home("cy")
    _ = try await cy.join(link: invite.link, options: options(place, "cy")) { _ in true }
    for home in [ana, cy] { _ = try await home.sync() }
    #expect(try await cy.decisions().isEmpty)
    #expect(
      await code { () async throws(LatchkeyError) in try await ana.decide(decision.id, "no") } == "no-such-choice")
    #expect(await code { () async throws(LatchkeyError) in try await ana.decide("x", "done") } == "no-such-decision")
    try await ana.decide(decision.id, "done")
    #expect(try await ana.decisions().isEmpty)
    // The next one is asked about again, on every owner's device.
    let other = try await ana.invite(household: "Smith")
    let dan = place.home("dan")
    _ = try await dan.join(link: other.link, options: options(place, "dan")) { _ in true }
    for home in [ana, cy, ana] { _ = try await home.sync() }
    try await ana.removeMember("dan")
    _ = try await cy.sync()
    #expect(try await ana.decisions().count == 1)
    #expect(try await cy.decisions().count == 1)
  }

  @Test("forgetting wipes the keys and leaves the files as they were before they were attached")
  func forgetting() async throws {
    let place = try Place()
    let (ana, ben) = try await household(place)
    try place.run("b.db", "INSERT INTO entries(account, cents, note) VALUES (1, 7, 'not sent')")
    #expect(try await ben.unsent().map(\.rows) == [1])
    let report = try await ben.forget()
    #expect(report.detached == [place.path("b.db")] && report.left.isEmpty)
    #expect(try place.rows("b.db", "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'lk%'") == ["0"])
    #expect(try place.rows("b.db", "SELECT note FROM entries WHERE cents = 7") == ["not sent"])
    #expect(await code { () async throws(LatchkeyError) in _ = try await ben.identity() } == "no-identity")
    let left = try FileManager.default.contentsOfDirectory(atPath: place.path("ben"))
    #expect(left.allSatisfy { $0 == "lock" })
    #expect(try await ben.forget().detached.isEmpty)
    _ = try await ana.sync()
    try await ben.initialize(name: "Ben", device: "phone", store: place.store)
  }
}

/// Words that stand in docs/words.txt.
enum WordListSample {
  static func other(than word: String) -> String { word == WordList.words[0] ? WordList.words[1] : WordList.words[0] }
}
