import Foundation
import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import Testing

/// Attacks 17 to 26: on who may read and write.
@Suite("Hostile store: keys and people")
struct KeyAttacks {
  /// Oto, an owner beside Ana; Ben, a member.
  private func owners() async throws -> (Village, ana: Resident, oto: Resident, ben: Resident) {
    let village = try Village()
    let ana = try await village.found()
    let oto = try await village.join("oto", as: .owner, invitedBy: ana)
    let ben = try await village.join("ben", as: .member, invitedBy: ana)
    try await village.settle(ana, oto, ben)
    return (village, ana, oto, ben)
  }

  @Test(
    "Attack 17: a removed member reads on – its keyring and everything in the store open nothing written after, nor where it lies"
  )
  func readsOn() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let thief = try Insider(ben)
    try await ana.home.removeMember("Ben")
    let puts = village.shelf.puts.count
    try ana.write("after")
    try await village.settle(ana)
    let later = village.shelf.puts.dropFirst(puts)
    let now = try Insider(ana)
    // Even shown the whole roster in the clear.
    let keys = try thief.everyKey(from: now.state.entries)
    #expect(keys[now.keys.epoch] == nil && keys.count >= 2)
    #expect(!later.isEmpty)
    for put in later { #expect(!thief.opens(put.name, put.bytes, with: keys), "\(put.name)") }
    let zones = [ZoneID.roster, thief.zone]
    let known = Set(
      keys.flatMap { epoch, key in
        zones.map { EpochKeys(household: thief.state.household, epoch: epoch, key: key).prefix($0) }
      })
    #expect(later.allSatisfy { !known.contains(String($0.name.text.prefix(32))) })
    #expect(later.contains { now.opens($0.name, $0.bytes, with: now.state.ring.keys) })
  }

  @Test(
    "Attack 18: rotation leak – from a former epoch's key and all that was ever written, the next key does not follow")
  func rotationLeak() async throws {
    let village = try Village()
    let (ana, ben) = try await village.couple()
    let former = try Insider(ben)
    for _ in 0..<3 { try await ana.home.rotateKey() }
    let now = try Insider(ana)
    var ring = EpochRing(household: now.state.household)
    for (epoch, key) in former.state.ring.keys { ring.hold(key, of: epoch) }
    ring.walk(now.state.roster.entries)
    #expect(Set(ring.keys.keys) == Set(former.state.ring.keys.keys))
    #expect(now.state.ring.keys.count == former.state.ring.keys.count + 3)
    // The other way round everything follows.
    var newest = EpochRing(household: now.state.household)
    newest.hold(now.keys.key, of: now.keys.epoch)
    newest.walk(now.state.roster.entries)
    #expect(newest.keys.count == now.state.ring.keys.count)
  }

  @Test(
    "Attack 19: hidden revocation – once a device knows of a removal, or of one it cannot judge yet, it sends nothing under the old key"
  )
  func hiddenRevocation() async throws {
    let (village, ana, oto, ben) = try await owners()
    let old = try Insider(oto).keys
    try oto.write("waits")
    try await ana.home.removeMember("Ben")
    // Of the new epoch's roster the store shows nothing, only the Next itself.
    let begun = try Insider(ana).keys
    let prefix = begun.prefix(.roster)
    village.shelf.show("oto") { $0.hides = { $0.text.hasPrefix(prefix) } }
    var puts = village.shelf.puts.count
    _ = try await oto.sync()
    let zones = [old.prefix(.roster), old.prefix(try Insider(oto).zone)]
    #expect(!village.shelf.puts.dropFirst(puts).contains { put in zones.contains { put.name.text.hasPrefix($0) } })
    village.shelf.beHonest()
    puts = village.shelf.puts.count
    try await village.settle(oto, ana)
    let sent = village.shelf.puts.dropFirst(puts)
    #expect(!sent.contains { put in zones.contains { put.name.text.hasPrefix($0) } })
    #expect(try ana.notes.contains("waits"))
    _ = ben
  }

  @Test(
    "Attack 20: split key – a Next that seals another key to one member is void for all, everybody is told, and rows go on"
  )
  func splitKey() async throws {
    let (village, ana, oto, ben) = try await owners()
    var malicious = try Insider(oto)
    let key = EpochKey(&malicious.random)
    let other = EpochKey(&malicious.random)
    let victim = try Insider(ben).device
    let honest = try malicious.state.roster.next(
      NextChange(), by: malicious.roster.origin, key: key, ring: malicious.state.ring, random: &malicious.random)
    let seal = try #require(other.seal(to: victim.box.publicKey))
    let begun = try malicious.publish(honest.sealing(to: victim.id, seal), key: key)
    try ana.write("by Ana")
    try ben.write("by Ben")
    try await village.settle(ana, ben, rounds: 3)
    for resident in [ana, ben] {
      let state = try Insider(resident).state
      #expect(state.epoch != begun.epoch)
      #expect(state.roster.state.flawed.map(\.epoch) == [begun.epoch])
      #expect(try resident.notes == ["by Ana", "by Ben", "first", "second"])
      #expect(try await resident.warned().contains("epoch-flawed"))
    }
    let prefix = begun.prefix(malicious.zone)
    #expect(!village.shelf.puts.contains { $0.name.text.hasPrefix(prefix) })
  }

  @Test(
    "Attack 21: backdated operations – what a removed owner signs as if before counts for nobody, in whatever order it is heard"
  )
  func backdated() async throws {
    let (village, ana, oto, ben) = try await owners()
    var removed = try Insider(oto)
    try await ana.home.removeMember("Oto")
    // With the roster as it stood: a link for a friend, the removal of Ana, an epoch of its own.
    let secret = InviteSecret(&removed.random)
    try removed.sign(
      .openInvite(
        OpenInvite(
          id: InviteID(raw: Bytes16(high: 1, low: 1)), claimKey: secret.keys.claimKey.publicKey,
          boxKey: secret.keys.boxKey.publicKey, role: .owner, expiry: .max)))
    let friend = DeviceKeys(&removed.random)
    let claim = Claim(
      household: removed.state.household, invite: InviteID(raw: Bytes16(high: 1, low: 1)),
      chain: CertificateChain(first: friend), personName: "Friend", deviceName: "x", epoch: removed.keys.epoch,
      claimKey: secret.keys.claimKey, device: friend)
    try removed.sign(.admit(claim: claim.bytes))
    let anaDevice = try Insider(ana).device.id
    let key = EpochKey(&removed.random)
    let change = NextChange(removing: [anaDevice: []])
    var next = try removed.state.roster.next(
      NextChange(), by: removed.roster.origin, key: key, ring: removed.state.ring, random: &removed.random)
    next = next.removing(change.removing, anaDevice)
    try removed.publish(next, key: key)
    // Ben hears of both at once; Ana heard of the removal first; Cy of all of it at the end.
    try await village.settle(ben, ana, rounds: 3)
    let cy = try await village.join("cy", as: .member, invitedBy: ana)
    try await village.settle(ana, ben, cy)
    for resident in [ana, ben, cy] { #expect(try await resident.people() == ["Ana", "Ben", "Cy"]) }
    #expect(try Insider(ana).state.roster.state == Insider(ben).state.roster.state)
    #expect(try Insider(ana).state.roster.state == Insider(cy).state.roster.state)
    try ben.write("goes on")
    try await village.settle(ben, ana)
    #expect(try ana.notes.contains("goes on"))
  }

  @Test(
    "Attack 22: mutual removal – the senior's counts on every device, however many hashes the junior grinds; an owner always stays"
  )
  func mutualRemoval() async throws {
    let (village, ana, oto, ben) = try await owners()
    var grinder = try Insider(oto)
    let honest = village.shelf.objects()
    // Each removes the other without having heard.
    village.shelf.replace("other", with: honest)
    village.shelf.show("oto") { $0.world = "other" }
    try await oto.home.removeMember("Ana")
    try await ana.home.removeMember("Oto")
    // Oto tries many more, all beside Ana's, and the store shows everything to everybody.
    for put in village.shelf.puts where put.by == "oto" { village.shelf.plant(put.name, put.bytes) }
    let anaDevice = try Insider(ana).device.id
    for _ in 0..<12 {
      var another = grinder
      another.random = AnyRandomSource(SeededRandom("\(grinder.random.bytes(8))"))
      let key = EpochKey(&another.random)
      let next = try another.state.roster.next(
        NextChange(removing: [anaDevice: []], confirming: [try Insider(ben).device.id, another.device.id]),
        by: another.roster.origin, key: key, ring: another.state.ring, random: &another.random)
      try another.sign(.next(next))
      try another.lay(
        try #require(another.roster.tail.last).encoded(), .next,
        another.keys.nextName(origin: another.roster.origin, sequence: another.roster.lastSequence), another.keys)
      let copy = RosterCopy(entries: [try #require(another.roster.tail.last)])
      try another.lay(copy.encoded(), .rosterCopy, another.keys.rosterCopyName(content: copy.encoded()), another.keys)
    }
    village.shelf.beHonest()
    try await village.settle(ben, ana, rounds: 3)
    for resident in [ana, ben] {
      #expect(try await resident.people() == ["Ana", "Ben"])
      #expect(try await resident.role(of: "Ana") == "owner")
    }
    #expect(try await ana.epoch() == ben.epoch())
    #expect(await refusal { () async throws(LatchkeyError) in _ = try await oto.sync() } == "removed")
  }

  @Test(
    "Attack 23: link reuse – two claims let nobody in and both are shown; a withdrawn link and all of the store read nothing newer"
  )
  func linkReuse() async throws {
    let village = try Village()
    let ana = try await village.found()
    let invite = try await ana.home.invite(household: "Smith")
    let eve = try await village.claim(invite.link, "eve")
    let fay = try await village.claim(invite.link, "fay")
    let report = try await ana.sync()
    let waiting = report.warnings.filter { $0.code == "claim-waits" }
    #expect(waiting.contains { $0.message.contains("Eve") } && waiting.contains { $0.message.contains("Fay") })
    #expect(try await ana.people() == ["Ana"])
    let former = try await ana.epoch()
    try await ana.home.revokeInvite(invite.id)
    try await village.settle(ana)
    #expect(try await ana.epoch() != former)
    try ana.write("after the link")
    try await village.settle(ana)
    let link = try InviteLink(parsing: invite.link)
    let now = try Insider(ana)
    var ring = EpochRing(household: now.state.household)
    ring.hold(link.secret.keys.boxKey, of: try #require(now.state.roster.state.invites.first).terms.id)
    for epoch in try [Insider(eve).keys, Insider(fay).keys] { ring.hold(epoch.key, of: epoch.epoch) }
    ring.walk(now.state.roster.entries)
    #expect(ring.keys[now.keys.epoch] == nil)
    #expect(try await ana.people() == ["Ana"])
  }

  @Test(
    "Attack 24: expiry bypass – a claim that an admitter first sees after the link's time is refused, whatever time it bears"
  )
  func expiry() async throws {
    let village = try Village()
    let ana = try await village.found()
    let invite = try await ana.home.invite(household: "Smith", expiresIn: 600_000)
    let eve = try await village.claim(invite.link, "eve")
    // It was made in time; the store showed it too late.
    village.wait(700_000)
    let report = try await ana.sync()
    #expect(report.warnings.contains { $0.code == "claim-refused" && $0.message.contains("Eve") })
    #expect(try await ana.people() == ["Ana"])
    try eve.write("of a stranger")
    _ = try? await eve.sync()
    _ = try await ana.sync()
    #expect(try !ana.notes.contains("of a stranger"))
    // Whoever uses the link late is told so before anything is asked of the store.
    let fay = village.home("fay")
    #expect(
      await refusal { () async throws(LatchkeyError) in
        _ = try await fay.join(link: invite.link, options: JoinOptions(name: "Fay", device: "x")) { _ in true }
      } == "link-expired")
  }

  @Test(
    "Attack 25: link secret to the server – no byte run of the link's secret is ever sent, asked for, or said in an error"
  )
  func linkSecret() async throws {
    let village = try Village()
    let ana = try await village.found()
    let invite = try await ana.home.invite(household: "Smith")
    let secret = try InviteLink(parsing: invite.link).secret.secret.bytes
    let eve = try await village.claim(invite.link, "eve")
    try await village.settle(ana, eve)
    var said: [String] = []
    for link in [invite.link, String(invite.link.dropLast(3)), invite.link + "x"] {
      do throws(LatchkeyError) {
        _ = try await village.home("fay").join(link: link, options: JoinOptions(name: "Fay", device: "x")) { _ in false
        }
      } catch { said.append("\(error)") }
    }
    #expect(said.count == 3)
    let text = String(invite.link.dropFirst(InviteLink.scheme.count))
    let needles =
      stride(from: 0, through: secret.count - 8, by: 4).flatMap { at -> [[UInt8]] in
        let run = Array(secret[at..<at + 8])
        return [run, Array(hex(run).utf8)]
      }
      + stride(from: 0, to: text.count - 16, by: 8).map { Array(text.dropFirst($0).prefix(16).utf8) }
    func isIn(_ bytes: [UInt8]) -> Bool {
      let data = Data(bytes)
      return needles.contains { data.range(of: Data($0)) != nil }
    }
    for put in village.shelf.puts { #expect(!isIn(put.bytes) && !isIn(Array(put.name.text.utf8))) }
    for name in village.shelf.asked { #expect(!isIn(Array(name.text.utf8))) }
    for sentence in said { #expect(!isIn(Array(sentence.utf8))) }
    #expect(isIn(secret) && isIn(Array(invite.link.utf8)))
  }

  @Test(
    "Attack 26: retargeted invite – an altered role or household is refused, in the link alone and in the blob, too"
  )
  func retargeted() async throws {
    let village = try Village()
    let ana = try await village.found()
    let invite = try await ana.home.invite(household: "Smith", role: .reader)
    let link = try InviteLink(parsing: invite.link)
    func altered(role: InviteRole, household: HouseholdID? = nil) -> String {
      InviteLink(
        secret: link.secret, household: household ?? link.household, checkpoint: link.checkpoint,
        locator: link.locator, expiry: link.expiry, role: role
      ).text
    }
    let options = JoinOptions(name: "Eve", device: "x")
    for text in [
      altered(role: .owner), altered(role: .member),
      altered(role: .reader, household: Hash32([UInt8](repeating: 9, count: 32))),
    ] {
      #expect(
        await refusal { () async throws(LatchkeyError) in
          _ = try await village.home("eve").join(link: text, options: options) { _ in true }
        } == "forged-invite")
    }
    #expect(!FileManager.default.fileExists(atPath: village.path("eve/keyring")))

    // Whoever holds the link can seal another blob, too: then both say owner, and the roster says reader.
    let keys = link.secret.keys
    let blob = try InviteBlob(
      decoding: try Envelope.open(try #require(village.shelf[keys.objectName]), at: keys.place, key: keys.blobKey))
    let resealed = InviteBlob(
      household: blob.household, epoch: blob.epoch, invite: blob.invite, seal: blob.seal,
      rosterHeads: blob.rosterHeads, householdName: blob.householdName, inviterName: blob.inviterName, role: .owner,
      expiry: .max, zones: blob.zones)
    var random = AnyRandomSource(World.system.random())
    village.shelf.plant(
      keys.objectName,
      try Envelope.seal(resealed.encoded, at: keys.place, key: keys.blobKey, nonce: EnvelopeNonce(&random)))
    #expect(
      await refusal { () async throws(LatchkeyError) in
        _ = try await village.home("eve").join(link: altered(role: .owner), options: options) { _ in true }
      } == "forged-invite")
    #expect(!FileManager.default.fileExists(atPath: village.path("eve/keyring")))
    #expect(try await ana.people() == ["Ana"])
  }
}

extension Next {
  /// The same with another seal for a device.
  func sealing(to device: DeviceID, _ seal: KeySeal) -> Next {
    Next(
      parents: parents, form: form, commitment: commitment,
      recipients: recipients.map {
        $0.id == device.bytes ? Recipient(kind: $0.kind, id: $0.id, seal: seal) : $0
      }, formers: formers, removals: removals, roles: roles, confirmed: confirmed, store: store)
  }

  /// The same without a device, which is removed.
  func removing(_ limits: [DeviceID: [Limit]], _ device: DeviceID) -> Next {
    Next(
      parents: parents, form: form, commitment: commitment, recipients: recipients.filter { $0.id != device.bytes },
      formers: formers, removals: [Removal(device: device, limits: limits[device] ?? [])], roles: roles,
      confirmed: confirmed, store: store)
  }

  /// The same, kept in another store from now on.
  func moving(to store: String) -> Next {
    Next(
      parents: parents, form: form, commitment: commitment, recipients: recipients, formers: formers,
      removals: removals, roles: roles, confirmed: confirmed, store: store)
  }
}
