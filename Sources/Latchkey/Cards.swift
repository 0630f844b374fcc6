internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyStorage

/// Public cards: how people who use one store find each other's keys without sending anything.
///
/// A card shows keys, not people. It becomes somebody's once this device's person has compared ten words with them, or because the
/// two are in a household together; the name that counts is the one given here (a *petname*), never the one on the card.
extension Home {
  // MARK: Publishing

  /// Puts this person's card into a store, in place of an older one of this device. Whoever can read the store can read it.
  ///
  /// - Parameters:
  ///   - publicName: what everybody who sees the store may read; nil puts no name on the card.
  ///   - store: where; nil for the private household's store, or the only one.
  /// - Returns: the ten words to read to whoever pins the card.
  /// - Throws: ``LatchkeyError`` of kind `notAttached` (no identity), `usage` (bad name, several stores), `store`.
  public func publishCard(
    publicName: String? = nil, store: String? = nil
  ) async throws(LatchkeyError) -> PublishedCard {
    try await reporting {
      if let publicName { try checkName(publicName, "public name") }
      let contents = try contents()
      let access = try await openStore(try cardStore(store))
      let place = CardPlace(store: try await requireStore(access).id)
      var own: [(name: ObjectName, card: Card)] = []
      for object in try await access.strangers(.card, below: place.prefix).objects {
        guard let card = try? place.open(object.bytes, at: object.below), card.person == contents.person else {
          continue
        }
        own.append((object.below, card))
      }
      let newest = own.map(\.card).max(by: Self.isOlder)
      let isNew = newest.map { $0.chain != contents.chain || $0.displayName != publicName } ?? true
      if isNew {
        let published = max(UInt64(max(world.now(), 0)), (newest?.published ?? 0) + 1)
        let card = Card(
          chain: contents.chain, displayName: publicName, published: published, device: contents.device)
        var random = world.random()
        try await access.store.put(
          place.objectName(card.name), try place.seal(card, nonce: EnvelopeNonce(&random)))
      }
      for old in own where (isNew || old.card != newest) && old.card.chain.keys.id == contents.device.id {
        try await access.store.delete(place.objectName(old.name))
      }
      try keyring.update { $0.contacts.note(cardStore: access.locator.text) }
      return PublishedCard(
        id: contents.person.description, publicName: publicName, store: access.locator.text,
        words: ComparisonWords(card: contents.chain).words, isNew: isNew)
    }
  }

  private func cardStore(_ given: String?) throws -> Locator {
    if let given { return try stores.locator(given, relativeTo: base) }
    let memberships = try memberships()
    let own = memberships.first(where: \.isPrivate)?.locator
    let all = Set(memberships.map(\.locator)).sorted()
    guard let store = own ?? (all.count == 1 ? all.first : nil) else {
      throw LatchkeyError(
        .usage, all.isEmpty ? "no-store" : "which-store",
        all.isEmpty ? "There is no store at hand to put a card into." : "There are several stores: say which.",
        next: all.isEmpty ? ["latchkey card publish --store URL"] : all.map { "latchkey card publish --store \($0)" })
    }
    return try stores.locator(store, relativeTo: base)
  }

  // MARK: Looking

  /// The newest valid card of each person in a store, or in all stores at hand.
  ///
  /// - Parameter store: only this one.
  /// - Throws: ``LatchkeyError`` of kind `store` if none can be read; of several those that cannot are warned of.
  public func cards(store: String? = nil) async throws(LatchkeyError) -> CardsReport {
    try await reporting {
      let found = try await findCards(in: try store.map { [$0] } ?? knownStores())
      let known = try acquaintances()
      let reports = try found.cards.keys.sorted().compactMap { found.cards[$0] }.map { try report($0, known) }
      let changed = reports.filter { $0.standing == .changed }.map { card in
        Warning(
          code: "card-changed",
          message: "The card of \(card.petname ?? card.id) has other keys than those that were pinned: do not trust it "
            + "before you have compared words anew.")
      }
      return CardsReport(cards: reports, warnings: found.warnings + changed)
    }
  }

  /// Gives the keys on a card a name on this device, and, if words were compared with the person, trust.
  ///
  /// - Parameters:
  ///   - id: the person's id, or the beginning of it: six characters or more.
  ///   - petname: what this device calls the person from now on.
  ///   - words: the ten words that the person read from its own device; nil pins without comparing, and then nothing is sealed to
  ///     these keys.
  ///   - store: look for the card only there.
  /// - Throws: ``LatchkeyError`` of kind `key` (the words are wrong, or other keys are pinned as this person or under this name and no
  ///   words were compared), `usage` (no such card, bad name), `store`.
  @discardableResult
  public func pinCard(
    _ id: String, petname: String, words: String? = nil, store: String? = nil
  ) async throws(LatchkeyError) -> CardReport {
    try await reporting {
      try checkName(petname, "name")
      let found = try await findCards(in: try store.map { [$0] } ?? knownStores())
      let matches = found.cards.values.filter { $0.card.person.isMeant(by: id) }
      guard let one = matches.first, matches.count == 1 else {
        throw LatchkeyError(
          .usage, matches.isEmpty ? "no-such-card" : "ambiguous-card",
          matches.isEmpty
            ? "No store at hand shows a card \(id)." : "Several cards begin with \(id): use more of the id.",
          next: ["latchkey card list"])
      }
      let chain = one.card.chain
      guard chain.person != (try contents().person) else {
        throw LatchkeyError(.usage, "yourself", "That is your own card.", next: ["latchkey card list"])
      }
      if let words { try ComparisonWords(card: chain).require(words) }
      let contacts = try contents().contacts
      if words == nil { try refuseOtherKeys(chain, petname, contacts) }
      let isVerified = words != nil || contacts.pin(of: chain.person)?.isVerified == true
      try keyring.update {
        $0.contacts.pin(
          Contacts.Pin(petname: petname, chain: chain, isVerified: isVerified, store: one.store))
      }
      return try report(one, acquaintances())
    }
  }

  /// What was pinned once stays, until a person has compared words with whoever has the new keys.
  private func refuseOtherKeys(_ chain: CertificateChain, _ petname: String, _ contacts: Contacts) throws {
    if let pin = contacts.pin(of: chain.person), pin.chain.keys != chain.keys {
      throw LatchkeyError.cardChanged(pin.petname, chain.person)
    }
    if let pin = contacts.pins.first(where: { $0.petname == petname }), pin.chain.person != chain.person {
      throw LatchkeyError(
        .key, "card-changed",
        "\(petname) is pinned already, with other keys: this card is somebody else's, or \(petname) has begun anew. "
          + "Nothing was changed.",
        next: ["choose another --name", "latchkey card pin \(chain.person.short) --name \(petname) --words WORDS"])
    }
  }

  // MARK: Trust

  /// A card, and the locator of the store that shows it.
  struct FoundCard {
    let card: Card
    let store: String
  }

  /// The newest valid card of each person. A store that cannot be read is warned of, unless there is no other.
  func findCards(in locators: [String]) async throws -> (cards: [PersonID: FoundCard], warnings: [Warning]) {
    var cards: [PersonID: FoundCard] = [:]
    let warnings = try await eachStore(locators) { access in
      let place = CardPlace(store: try await requireStore(access).id)
      let found = try await access.strangers(.card, below: place.prefix)
      var bad = found.left
      for object in found.objects {
        guard let card = try? place.open(object.bytes, at: object.below) else {
          bad += 1
          continue
        }
        if let known = cards[card.person], !Self.isOlder(known.card, card) { continue }
        cards[card.person] = FoundCard(card: card, store: access.locator.text)
      }
      return bad == 0
        ? []
        : [
          Warning(code: "damaged-card", message: "\(access.locator.text): \(bad) objects among the cards are no cards.")
        ]
    }
    return (cards, warnings)
  }

  /// Of one person's cards the later one counts; the rest only makes it a total order.
  private static func isOlder(_ a: Card, _ b: Card) -> Bool { (a.published, a.name) < (b.published, b.name) }

  /// Does something with each store; those that fail are warned of.
  ///
  /// - Throws: what the last one threw, if all failed.
  func eachStore(
    _ locators: [String], _ body: (StoreAccess) async throws -> [Warning]
  ) async throws -> [Warning] {
    var warnings: [Warning] = []
    var failures = 0
    for locator in locators {
      do {
        warnings += try await body(try await openStore(try stores.locator(locator, relativeTo: base)))
      } catch let error as CancellationError {
        throw error
      } catch {
        failures += 1
        let known = LatchkeyError(error)
        guard failures < locators.count else { throw known }
        warnings.append(Warning(code: known.code, message: "\(locator) was left out: \(known.message)"))
      }
    }
    return warnings
  }

  /// The stores that a person on this device has chosen or agreed to.
  func knownStores() throws -> [String] {
    let contents = try contents()
    var seen: Set<String> = []
    return (contents.households.map(\.locator) + contents.contacts.cardStores + contents.contacts.pins.map(\.store))
      .filter { seen.insert($0).inserted }
  }

  /// What this device knows of people, apart from what cards say.
  struct Acquaintances {
    let own: PersonID
    let contacts: Contacts
    /// Devices in households shared with this one, and what their people are called there.
    var shared: [DeviceID: (keys: DevicePublicKeys, person: PersonID, name: String)] = [:]

    func standing(of chain: CertificateChain) -> CardReport.Standing {
      if chain.person == own { return .you }
      if let known = shared[chain.keys.id], known.person == chain.person, known.keys == chain.keys { return .verified }
      guard let pin = contacts.pin(of: chain.person) else { return .unverified }
      guard pin.chain.keys == chain.keys else { return .changed }
      return pin.isVerified ? .verified : .pinned
    }

    func name(of person: PersonID) -> String? { contacts.pin(of: person)?.petname ?? sharedName(of: person) }

    /// The same, unless nobody has found out whose the keys are.
    func verifiedName(of person: PersonID) -> String? {
      contacts.pin(of: person).flatMap { $0.isVerified ? $0.petname : nil } ?? sharedName(of: person)
    }

    private func sharedName(of person: PersonID) -> String? {
      shared.values.filter { $0.person == person }.map(\.name).min()
    }
  }

  func acquaintances() throws -> Acquaintances {
    let contents = try contents()
    var known = Acquaintances(own: contents.person, contacts: contents.contacts)
    for household in contents.households where !household.isPrivate {
      // Whoever came in by the message of somebody unknown knows nobody there any better.
      let came = contents.contacts.received.first { $0.household == household.id && $0.answer == .accepted }
      if let came, !came.isInviterVerified, contents.contacts.pin(of: came.inviter)?.isVerified != true { continue }
      let state = try state(of: household.id)
      if state.isRemoved { continue }
      let roster = state.roster.state
      for device in roster.devices {
        known.shared[device.id] = (device.keys, device.person, roster.person(device.person)?.name ?? "")
      }
    }
    return known
  }

  private func report(_ found: FoundCard, _ known: Acquaintances) throws -> CardReport {
    CardReport(
      id: found.card.person.description, displayName: found.card.displayName,
      petname: known.name(of: found.card.person), standing: known.standing(of: found.card.chain),
      published: Int64(clamping: found.card.published), store: found.store)
  }
}

extension PersonID {
  /// Whether somebody means this person by its id, or the beginning of it.
  func isMeant(by text: String) -> Bool { text.count >= 6 && description.hasPrefix(text.lowercased()) }
}

extension KeyringContents {
  /// Whether a person on this device uses a store already.
  func hasAgreed(to locator: String) -> Bool {
    households.contains { $0.locator == locator } || contacts.cardStores.contains(locator)
  }
}

extension LatchkeyError {
  static func cardChanged(_ name: String, _ person: PersonID) -> LatchkeyError {
    LatchkeyError(
      .key, "card-changed",
      "The card that the store shows for \(name) has other keys than those that were pinned: \(name) published it from another "
        + "device, or somebody put their own in its place. Nothing was changed.",
      next: [
        "ask \(name) for the words of the new card: latchkey card pin \(person.short) --name \(name) --words WORDS"
      ])
  }
}

/// A card in a store, as this device sees it.
public struct CardReport: Sendable, Equatable {
  public enum Standing: String, Sendable, CaseIterable {
    /// This person's own.
    case you
    /// Words were compared, or a household is shared with these very keys.
    case verified
    /// Has a name here; nobody has compared words.
    case pinned
    case unverified
    /// Other keys were pinned for this person: not to be trusted.
    case changed
  }

  /// The person's id.
  public let id: String
  /// What the card calls itself: anybody may write anything there.
  public let displayName: String?
  /// What this device calls the person, or a household that both are in does.
  public let petname: String?
  public let standing: Standing
  /// Milliseconds since 1970, by the publisher's clock.
  public let published: Int64
  /// The URL of the store that shows it.
  public let store: String
}

/// The cards at hand.
public struct CardsReport: Sendable, Equatable {
  /// Ascending by id.
  public let cards: [CardReport]
  public let warnings: [Warning]
}

/// A card that was published.
public struct PublishedCard: Sendable, Equatable {
  /// The person's id.
  public let id: String
  public let publicName: String?
  /// The store's URL.
  public let store: String
  /// Ten words over the card's keys, to be read to whoever pins it.
  public let words: [String]
  /// Whether something was written: the store may show the very same card already.
  public let isNew: Bool
}
