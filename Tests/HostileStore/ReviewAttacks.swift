import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import Testing

/// Attacks that reading the design found, beyond the published ones.
@Suite("Hostile store: found in review")
struct ReviewAttacks {
  @Test(
    "Review 1: a cut that un-counts – a removal that lets nothing of a member count takes nothing from anybody: it is carried"
  )
  func cut() async throws {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try ben.write("by Ben")
    try await village.settle(ben, ana, oto)
    // Oto removes Ben and states that not one of his entries counts.
    var remover = try Insider(oto)
    let gone = try Insider(ben).device.id
    let key = EpochKey(&remover.random)
    let next = try remover.state.roster.next(
      NextChange(removing: [gone: []]), by: remover.roster.origin, key: key, ring: remover.state.ring,
      random: &remover.random)
    let begun = try remover.publish(next, key: key)
    try await village.settle(ana, rounds: 3)
    #expect(try Insider(ana).keys.epoch == begun.epoch)
    #expect(try ana.notes.contains("by Ben"))
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    #expect(try cy.notes.contains("by Ben") && cy.notes == ana.notes)
    #expect(try await ana.people() == ["Ana", "Cy", "Oto"])
  }

  @Test(
    "Review 2: re-sealed through a link – a removed member who knew somebody's open link gets no later key through it")
  func knownLink() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let invite = try await ana.home.invite(household: "Smith")
    _ = try await ben.sync()
    let removed = try Insider(ben)
    try await ana.home.removeMember("Ben")
    try await ana.home.rotateKey()
    try ana.write("after")
    try await village.settle(ana)
    let link = try InviteLink(parsing: invite.link)
    let now = try Insider(ana)
    var ring = removed.state.ring
    for known in now.state.roster.state.invites { ring.hold(link.secret.keys.boxKey, of: known.terms.id) }
    ring.walk(now.state.roster.entries)
    #expect(ring.keys[now.keys.epoch] == nil)
    #expect(
      await refusal { () async throws(LatchkeyError) in
        _ = try await village.home("friend").join(
          link: invite.link, options: JoinOptions(name: "Friend", device: "x")
        ) { _ in true }
      } == "link-revoked")
    #expect(try await ana.people() == ["Ana"])
  }

  @Test(
    "Review 3: stolen device – what it enrols beside its removal falls with it, and it cannot outrank its own removal")
  func stolenDevice() async throws {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try await village.settle(ana, oto, ben)
    var thief = try Insider(oto)
    let mine = try #require(thief.state.roster.state.device(thief.device.id))
    let ghost = DeviceKeys(&thief.random)
    let paper = DeviceKeys(&thief.random)
    try await ana.home.removeMember("Oto")
    for (keys, isKit) in [(ghost, false), (paper, true)] {
      let certificate = try #require(
        Certificate(request: keys, person: mine.person, signer: thief.device.id).completed(by: thief.device))
      try thief.sign(.addDevice(certificate, name: "thief's", isKit: isKit))
    }
    let anaDevice = try Insider(ana).device.id
    let key = EpochKey(&thief.random)
    let next = try thief.state.roster.next(
      NextChange(removing: [anaDevice: []], confirming: [try Insider(ben).device.id, thief.device.id]),
      by: thief.roster.origin,
      key: key, ring: thief.state.ring, random: &thief.random)
    let begun = try thief.publish(next, key: key)
    try await village.settle(ben, ana, rounds: 3)
    for resident in [ana, ben] {
      #expect(try await resident.people() == ["Ana", "Ben"])
      let devices = try Insider(resident).state.roster.state.devices.map(\.id)
      #expect(!devices.contains(ghost.id) && !devices.contains(paper.id) && devices.contains(anaDevice))
      #expect(try Insider(resident).keys.epoch != begun.epoch)
    }
    try ben.write("after the theft")
    try await village.settle(ben, ana)
    #expect(try ana.notes.contains("after the theft"))
  }

  @Test(
    "Review 4: a demoted member citing old roster heads – neither rows nor invites count that are signed as if before")
  func demoted() async throws {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try ben.write("counted")
    try await village.settle(ben, ana, oto)
    try await village.settle(ben, ana, oto)
    var formerMember = try Insider(ben)
    var formerOwner = try Insider(oto)
    try await ana.home.setRole(.reader, of: "Ben")
    try await ana.home.setRole(.reader, of: "Oto")
    formerMember.insert(account: "as if a member")
    try formerMember.publishRows()
    let secret = InviteSecret(&formerOwner.random)
    let id = InviteID(raw: Bytes16(high: 3, low: 3))
    try formerOwner.sign(
      .openInvite(
        OpenInvite(
          id: id, claimKey: secret.keys.claimKey.publicKey, boxKey: secret.keys.boxKey.publicKey, role: .owner,
          expiry: .max)))
    try formerOwner.publishRoster()
    try await village.settle(ana, rounds: 3)
    #expect(try !ana.accounts.contains("as if a member") && ana.notes.contains("counted"))
    let state = try Insider(ana).state.roster.state
    #expect(!state.invites.contains { $0.terms.id == id && $0.status(now: 0) == .open })
    #expect(try await ana.role(of: "Ben") == "reader")
    #expect(try await ana.role(of: "Oto") == "reader")
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    #expect(try !cy.accounts.contains("as if a member") && cy.notes.contains("counted"))
  }

  @Test(
    "Review 5: a newcomer and the first heads – it reads logs that began epochs ago, and waits by name for what the store withholds"
  )
  func firstHeads() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    var firsts: [String] = []
    for number in 0..<3 {
      try ana.write("Ana in epoch \(number)")
      try ben.write("Ben in epoch \(number)")
      try await village.settle(ana, ben)
      firsts.append(try Insider(ana).keys.prefix(try Insider(ana).zone))
      try await ana.home.rotateKey()
      try await village.settle(ben, ana)
    }
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    #expect(try cy.notes == ana.notes && cy.notes.count == 8)
    // Somebody to whom the oldest of these epochs is not shown.
    let hidden = firsts[0]
    village.shelf.show("dan") { $0.hides = { $0.text.hasPrefix(hidden) } }
    let invite = try await ana.home.invite(household: "Smith")
    let dan = try await village.claim(invite.link, "dan")
    #expect(try await dan.warned().contains("missing"))
    #expect(try Set(dan.notes).isSubset(of: ana.notes))
    village.shelf.beHonest()
    try await village.settle(ana, dan)
    #expect(try dan.notes == ana.notes)
    #expect(try await dan.people() == ["Ana", "Ben", "Cy", "Dan"])
  }

  @Test(
    "Review 6: an honest self-fork after a crash – whatever request it dies at, what was sealed is sent again unchanged: no fork, no alarm"
  )
  func crash() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    var written = 0
    for isAfterwards in [false, true] {
      for requests in 0..<7 {
        written += 1
        try ben.write("edit \(written)")
        village.shelf.kill("ben", after: requests, isAfterwards: isAfterwards)
        _ = try? await ben.sync()
        village.shelf.kill("ben", after: nil)
        written += 1
        try ben.write("edit \(written)")
        let own = try await ben.warned()
        let others = try await ana.warned()
        #expect(own == [] && others == [], "request \(requests)")
      }
    }
    #expect(try ana.notes == ben.notes && ana.notes.count == written + 2)
    // In the roster, too: a rotation that dies on its way.
    for requests in 0..<10 {
      village.shelf.kill("ben", after: requests, isAfterwards: requests % 2 == 0)
      _ = try? await ben.home.rotateKey()
      village.shelf.kill("ben", after: nil)
      try await village.settle(ben, ana)
      let warnings = try await ben.warned().union(ana.warned())
      #expect(warnings == [], "rotation, request \(requests)")
    }
    #expect(try await ana.epoch() == ben.epoch())
  }

  @Test(
    "Review 7: a device back after a year – it walks through every epoch meanwhile, and what it wrote offline counts")
  func yearLater() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    try ben.write("offline for a year")
    for month in 1...6 {
      village.wait(61 * Village.day)
      try ana.write("month \(month)")
      try await ana.home.rotateKey()
      try await village.settle(ana, cy)
    }
    try await ana.home.removeMember("Cy")
    try ana.write("after Cy")
    try await village.settle(ana)
    try await village.settle(ben, ana, rounds: 3)
    #expect(try ben.notes == ana.notes && ana.notes.contains("offline for a year"))
    #expect(try ben.notes.contains("after Cy"))
    #expect(try await ben.people() == ["Ana", "Ben"])
    #expect(try await ben.epoch() == ana.epoch())
    #expect(try await ben.warned() == [])
  }

  @Test(
    "Review 8: the owner away for months – members admit readers, drop who leaves and begin epochs; the owner finds it all in order"
  )
  func ownerAway() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    let before = try await ana.epoch()
    village.wait(30 * Village.day)
    let rita = try await village.join("rita", as: .reader, invitedBy: ben)
    try await cy.home.leave(household: "Smith")
    village.wait(60 * Village.day)
    try await village.settle(ben, rita, rounds: 3)
    #expect(try await ben.people() == ["Ana", "Ben", "Rita"])
    try ben.write("without Ana")
    try await village.settle(ben, rita)
    village.wait(30 * Village.day)
    try ana.write("Ana is back")
    try await village.settle(ana, ben, rita, rounds: 3)
    for resident in [ana, ben, rita] {
      #expect(try resident.notes == ["Ana is back", "first", "second", "without Ana"])
      #expect(try await resident.people() == ["Ana", "Ben", "Rita"])
    }
    #expect(try await ana.epoch() == ben.epoch())
    #expect(try await ana.epoch() != before)
    #expect(try await ana.role(of: "Ana") == "owner")
  }

  @Test(
    "Review 9: a garbage seal to one member – the Next is void for those who could open theirs, too; nobody is cut off")
  func garbageSeal() async throws {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try await village.settle(ana, oto, ben)
    var malicious = try Insider(oto)
    let key = EpochKey(&malicious.random)
    let honest = try malicious.state.roster.next(
      NextChange(), by: malicious.roster.origin, key: key, ring: malicious.state.ring, random: &malicious.random)
    let garbage = try #require(KeySeal(malicious.random.bytes(KeySeal.byteCount)))
    let begun = try malicious.publish(honest.sealing(to: try Insider(ben).device.id, garbage), key: key)
    try ben.write("by Ben")
    try ana.write("by Ana")
    // Ben hears first, whose seal it is; then Ana; then each of what the other made of it.
    try await village.settle(ben, ana, rounds: 3)
    for resident in [ana, ben] {
      #expect(try resident.notes == ["by Ana", "by Ben", "first", "second"])
      #expect(try Insider(resident).keys.epoch != begun.epoch)
      #expect(try await resident.warned().contains("epoch-flawed"))
    }
  }

  @Test(
    "Review 10: a Next that names an attacker's store – refused from a member; from an owner, nobody goes there unasked"
  )
  func otherStore() async throws {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try await village.settle(ana, oto, ben)
    for (index, author) in [ben, oto].enumerated() {
      var insider = try Insider(author)
      let key = EpochKey(&insider.random)
      let next = try insider.state.roster.next(
        NextChange(), by: insider.roster.origin, key: key, ring: insider.state.ring, random: &insider.random)
      let begun = try insider.publish(next.moving(to: "shelf:attacker"), key: key)
      try ana.write("row \(index)")
      var stopped: String?
      do { try await village.settle(ana, rounds: 3) } catch let error as LatchkeyError { stopped = error.code }
      #expect(stopped == (author.name == "oto" ? "store-moved" : nil))
      let state = try Insider(ana).state
      #expect((state.epoch == begun.epoch) == (author.name == "oto"))
      #expect(state.roster.state.store == (author.name == "oto" ? "shelf:attacker" : nil))
      #expect(village.shelf.strangePlaces.isEmpty)
      let stores = try await ana.home.identity().households.map(\.store)
      #expect(stores.allSatisfy { $0 == Village.store })
      if author.name == "ben" { _ = try await oto.sync() }
    }
    #expect(try await ana.home.decisions().map(\.kind) == ["store"])
    #expect(try ana.notes.contains("row 1"))
    #expect(village.shelf.strangePlaces.isEmpty)
  }

  @Test("Review 11: claim squatting – claims without the link, and an invite that copies another's id, keep nobody out")
  func squatting() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let invite = try await ana.home.invite(household: "Smith")
    try await village.settle(ben)
    var insider = try Insider(ben)
    let id = try #require(insider.state.roster.state.invites.first { $0.terms.id.description == invite.id }).terms.id
    for number in 0..<5 {
      let squatter = DeviceKeys(&insider.random)
      let claim = Claim(
        household: insider.state.household, invite: id, chain: CertificateChain(first: squatter),
        personName: "Squatter \(number)", deviceName: "x", epoch: insider.keys.epoch, claimKey: squatter.signing,
        device: squatter)
      try insider.lay(claim.bytes, .claim, claim.name(insider.keys), insider.keys)
    }
    let own = InviteSecret(&insider.random)
    try insider.sign(
      .openInvite(
        OpenInvite(
          id: id, claimKey: own.keys.claimKey.publicKey, boxKey: own.keys.boxKey.publicKey, role: .reader, expiry: .max)
      ))
    try insider.publishRoster()
    let cy = try await village.claim(invite.link, "cy")
    let warnings = try await ana.warned()
    #expect(warnings.contains("admitted") && !warnings.contains("claim-waits"))
    try await village.settle(cy, ana)
    #expect(try await ana.people() == ["Ana", "Ben", "Cy"])
    #expect(try await ana.role(of: "Cy") == "member")
    try cy.write("by Cy")
    try await village.settle(cy, ana)
    #expect(try ana.notes.contains("by Cy"))
  }

  @Test(
    "Review 12: false citations – a member's are unproven, says who; a reader's accuse nobody; no row and no log suffers"
  )
  func falseCitations() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    let rita = try await village.join("rita", as: .reader, invitedBy: ana)
    try await village.settle(ana, ben, cy, rita)
    let honest = try Insider(ana)
    for (liar, account) in [(rita, "by a reader"), (ben, "by a member")] {
      var insider = try Insider(liar)
      insider.insert(account: account)
      try insider.publishRows(vector: [honest.rows.origin: Mark(sequence: 999, hash: .zero)])
    }
    try ana.write("by Ana")
    try await village.settle(ana, cy)
    #expect(try await !cy.warned().contains("withheld"))
    village.wait(Village.day + Village.minute)
    let said = try await cy.sync().warnings.filter { $0.code == "withheld" }
    #expect(said.count == 1)
    let (member, reader) = (try Insider(ben).device.id.short, try Insider(rita).device.id.short)
    #expect(said.allSatisfy { $0.message.contains("says \(member)") && !$0.message.contains(reader) })
    // Ana's log is believed as before, and she is not told that her own is withheld.
    try ana.write("and on")
    try await village.settle(ana, cy)
    #expect(try cy.notes.contains("and on") && cy.accounts.contains("by a member"))
    #expect(try !cy.accounts.contains("by a reader"))
    #expect(try await !ana.warned().contains("withheld"))
  }
}
