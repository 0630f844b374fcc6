import Foundation
import LatchkeyEncoding
import LatchkeyKeys
import Testing

@Suite("Words, recovery phrases and kits")
struct WordTests {
  @Test("the list is docs/words.txt: 2048 words in order, each named by its first four letters")
  func list() throws {
    let file = vectorFile("x").deletingLastPathComponent().appendingPathComponent("../../docs/words.txt")
    let text = try String(contentsOf: file, encoding: .utf8)
    #expect(text.split(separator: "\n").map(String.init) == WordList.words)
    #expect(WordList.words.count == 2048 && WordList.words == WordList.words.sorted())
    #expect(Set(WordList.words.map { $0.prefix(4) }).count == 2048)
    #expect(WordList.words.allSatisfy { (4...8).contains($0.count) && $0.allSatisfy { ("a"..."z").contains($0) } })
    #expect(WordList.number(of: WordList.words[777]) == 777 && WordList.number(of: WordList.words[5].uppercased()) == 5)
  }

  @Test("no slip of one letter turns a word into another, and every slip is told with the word that was meant")
  func slips() {
    var random = SeededRandom("slips")
    let letters = Array("abcdefghijklmnopqrstuvwxyz")
    for _ in 0..<300 {
      let word = WordList.words[random.number(below: 2048)]
      var typed = Array(word)
      let at = random.number(below: typed.count)
      switch random.number(below: 4) {
      case 0: typed[at] = letters[random.number(below: 26)]
      case 1: typed.remove(at: at)
      case 2: typed.insert(letters[random.number(below: 26)], at: at)
      default: typed.swapAt(at, (at + 1) % typed.count)
      }
      let slip = String(typed)
      if slip == word || at == typed.count - 1 && typed.count == word.count { continue }
      #expect(WordList.number(of: slip) == nil, "\(word) became \(slip)")
      #expect(WordList.suggestions(for: slip).contains(word), "\(word) became \(slip)")
    }
  }

  @Test("a phrase is 24 words and comes back from them, however they are typed")
  func phrase() throws {
    var random = SeededRandom("phrase")
    for _ in 0..<50 {
      let phrase = RecoveryPhrase(&random)
      let words = phrase.words
      #expect(words.count == 24)
      #expect(try RecoveryPhrase(parsing: words.joined(separator: " ")) == phrase)
      let numbered = words.enumerated().map { "\($0.offset + 1). \($0.element.capitalized)" }.joined(separator: "\r\n")
      #expect(try RecoveryPhrase(parsing: numbered) == phrase)
    }
    #expect("\(RecoveryPhrase(&random))" == "(recovery phrase)")
  }

  @Test("a typo names the word; a missing word is counted; two good words in the wrong order do not pass")
  func typos() throws {
    var random = SeededRandom("typos")
    let phrase = RecoveryPhrase(&random)
    var words = phrase.words
    let right = words[10]
    words[10] = String(right.dropLast())
    do {
      _ = try RecoveryPhrase(parsing: words.joined(separator: " "))
      Issue.record("passes")
    } catch {
      guard case .unknownWord(let position, _, let suggestions) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(position == 11 && suggestions.contains(right))
    }
    #expect(throws: RecoveryPhraseError.count(23)) {
      try RecoveryPhrase(parsing: phrase.words.dropLast().joined(separator: " "))
    }
    // One byte of checksum: another good word passes once in 256.
    var passed = 0
    for number in 0..<200 {
      var other = phrase.words
      other[number % 24] = WordList.words[random.number(below: 2048)]
      if other == phrase.words { continue }
      if (try? RecoveryPhrase(parsing: other.joined(separator: " "))) != nil { passed += 1 }
    }
    #expect(passed < 8)
  }

  @Test("comparison words are ten, the same for the same roster, and tell a slip from a difference")
  func comparison() throws {
    var world = try EpochWorld("comparison")
    let ben = try world.join("Ben", as: .member)
    func words(_ actor: Actor) -> ComparisonWords {
      ComparisonWords(household: world.household, roster: world[actor].roster.heads)
    }
    #expect(words(ben) == words(world.ana) && words(ben).words.count == 10)
    #expect(words(ben).compare(words(world.ana).description.uppercased()) == .same)
    let before = words(ben)
    try world.write(.profile(personName: "Anna", deviceName: ""), by: world.ana)
    #expect(words(world.ana).words != before.words && before.compare(words(world.ana).description) == .different)
    var typed = before.words
    typed[3] = typed[3] == "acorn" ? "zebra" : "acorn"
    #expect(before.compare(typed.joined(separator: " ")) == .slip(positions: [4]))
    typed[3] = "xyzzy"
    #expect(before.compare(typed.joined(separator: " ")) == .unknownWord(position: 4, word: "xyzzy", suggestions: []))
    #expect(before.compare("acorn") == .count(1))
  }

  @Test("words over a claim differ for every claimant")
  func claims() throws {
    var world = try RosterWorld("claim words")
    let (terms, link) = world.invite(.member)
    let one = world.claim(Actor("Ben", &world.random), terms, link)
    let two = world.claim(Actor("Ben", &world.random), terms, link)
    #expect(ComparisonWords(claim: one) != ComparisonWords(claim: two))
    #expect(ComparisonWords(claim: one) == ComparisonWords(claim: try Claim(decoding: one.bytes)))
  }

  @Test("from 24 words and what lies in the store a clean machine reads everything and goes on as owner")
  func recovery() throws {
    var world = try EpochWorld("recovery")
    let phrase = RecoveryPhrase(&world.random)
    let keys = KitKeys(phrase)
    // Ana makes a kit: its certificate goes into the roster, its blob into the store.
    let request = Certificate(request: keys.device, person: world.ana.chain.person, signer: world.ana.keys.id)
    let certificate = try #require(request.completed(by: world.ana.keys))
    let entry = try world.write(.addDevice(certificate, name: "on paper", isKit: true), by: world.ana)
    let epoch = try #require(world[world.ana].state.currentEpoch)
    let key = try #require(world[world.ana].currentKey)
    let blob = KitBlob(
      household: world.household, epoch: epoch, seal: try #require(key.seal(to: keys.device.box.publicKey)),
      rosterHeads: world[world.ana].roster.heads, householdName: "Smith", isPrivate: false)
    let name = blob.name(keys.place)
    let object = try Envelope.seal(
      blob.encoded, at: keys.place.place(name), key: keys.place.key, nonce: EnvelopeNonce(&world.random))
    _ = try world.join("Ben", as: .member)
    for _ in 0..<5 { try world.next(by: world.ana) }

    // Months later, Ana's laptop is gone.
    let again = KitKeys(try RecoveryPhrase(parsing: phrase.words.joined(separator: "  ")))
    let found = try KitBlob(
      decoding: Envelope.open(object, at: again.place.place(name), key: again.place.key))
    let opened = try #require(found.open(with: again.device))
    var ring = EpochRing(household: found.household)
    ring.hold(again.device.box, of: again.device.id)
    ring.hold(opened.key, of: opened.epoch)
    ring.walk(world.written)
    var roster = Roster(household: found.household, evaluating: .everyEpoch)
    for one in world.written { roster.add(one) }
    roster.learn(from: ring)
    #expect(found.rosterHeads.allSatisfy { roster.contains($0) } && roster.contains(entry.hash))
    #expect(roster.state.device(again.device.id)?.isKit == true && roster.role(of: again.device.id) == .owner)
    #expect(ring.keys == world[world.ana].ring.keys)
    // The kit removes the laptop and goes on.
    let origin = Origin(device: again.device.id, incarnation: Incarnation(5))
    let confirming = Set(roster.state.devices.map(\.id))
    let next = try roster.next(
      NextChange(removing: [world.ana.keys.id: []], confirming: confirming), by: origin, key: EpochKey(&world.random),
      ring: ring, random: &world.random)
    #expect(!next.recipients.contains { $0.id == world.ana.keys.id.bytes })
  }
}
