internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
public import LatchkeyKeys
internal import LatchkeyStorage

/// Silent invites: sealed to the keys on somebody's card and left in a store, so that no link has to be sent.
extension Home {
  // MARK: Inviting

  /// Opens an invite for one person and leaves it in the store that shows the person's card. Nobody else can use it; this device need
  /// not be online when it is accepted.
  ///
  /// - Parameters:
  ///   - recipient: what this device, or a shared household, calls the person; or the beginning of the person's id: six
  ///     characters or more. What a card calls itself does not count.
  ///   - household: its name; nil for the only shared one.
  ///   - milliseconds: how long it can be accepted, one minute to one year.
  /// - Throws: ``LatchkeyError`` of kind `decision` (`card-unverified`: words have not been compared), `key` (`card-changed`: the store
  ///   shows other keys than were pinned), `usage` (nobody of that name, a member already), `membership`, `store`.
  public func invite(
    to recipient: String, household: String? = nil, role: InviteRole = .member,
    expiresIn milliseconds: Int64 = 86_400_000
  ) async throws(LatchkeyError) -> SentInvite {
    try await reporting {
      guard role != .mine else {
        throw LatchkeyError(.usage, "bad-role", "A device of your own is added with `latchkey device add`.")
      }
      let membership = try membership(named: household)
      let (chain, locator, name) = try await verifiedRecipient(recipient)
      if try state(of: membership.id).roster.state.person(chain.person) != nil {
        throw LatchkeyError(
          .usage, "already-member", "\(name) is in the household \(membership.name) already.",
          next: ["latchkey members list"])
      }
      // Where it goes must be there before anything is opened.
      let inbox = try await openStore(stores.locator(locator, relativeTo: base))
      try await requireStore(inbox)
      let contents = try contents()
      let blob = try await open(
        role, in: membership, try await openStore(of: membership), expiresIn: milliseconds,
        claimKey: chain.keys.signing, boxKey: chain.keys.box)
      let message = InboxMessage(
        blob: blob, recipient: chain, locator: membership.locator, inviter: contents.chain, keys: contents.device)
      var random = world.random()
      guard let object = message.sealed(to: chain.keys.box, random: &random) else {
        throw LatchkeyError(.other, "unexpected", "The invite could not be sealed to these keys.")
      }
      try await inbox.store.put(message.objectName(&random), object)
      return SentInvite(
        id: blob.invite.description, recipient: name, recipientID: chain.person.description,
        household: membership.name, role: role.name, expires: Int64(clamping: blob.expiry), store: locator)
    }
  }

  /// The keys of somebody who was named, if they are known to be that person's.
  private func verifiedRecipient(
    _ text: String
  ) async throws -> (chain: CertificateChain, store: String, name: String) {
    let found = try await findCards(in: try knownStores())
    let known = try acquaintances()
    let pins = known.contacts.pins
    var people = Set(pins.filter { $0.petname == text }.map(\.chain.person))
    if people.isEmpty { people = Set(known.shared.values.filter { $0.name == text }.map(\.person)) }
    if people.isEmpty {
      people = Set(found.cards.keys).union(pins.map(\.chain.person)).filter { $0.isMeant(by: text) }
    }
    guard let person = people.first, people.count == 1 else {
      throw LatchkeyError(
        .usage, people.isEmpty ? "no-such-card" : "ambiguous-card",
        people.isEmpty
          ? "Nobody is known here as \(text). What a card calls itself is not proof of whose it is: pin it first."
          : "Several people are meant by \(text): use the id.",
        next: ["latchkey card list", "latchkey card pin ID --name \(text) --words WORDS"])
    }
    let name = known.name(of: person) ?? person.short
    let pin = known.contacts.pin(of: person)
    // A store that hides a card does not hide what was pinned of it.
    guard let chain = found.cards[person]?.card.chain ?? pin?.chain,
      let store = found.cards[person]?.store ?? pin?.store
    else {
      throw LatchkeyError(
        .usage, "no-such-card", "No store at hand shows a card of \(name).",
        next: ["ask \(name) to run latchkey card publish"])
    }
    switch known.standing(of: chain) {
    case .verified: return (chain, store, name)
    case .you: throw LatchkeyError(.usage, "yourself", "That is you.", next: ["latchkey device add"])
    case .changed: throw LatchkeyError.cardChanged(name, person)
    case .pinned, .unverified:
      throw LatchkeyError(
        .decision, "card-unverified",
        "Nobody has compared words with whoever published this card: the store may have put it there. Nothing was sent.",
        next: ["ask for the ten words of the card: latchkey card pin \(person.short) --name NAME --words WORDS"])
    }
  }

  // MARK: Receiving

  /// The invites that came to this device, from all stores at hand, and those that were answered before.
  ///
  /// - Throws: ``LatchkeyError`` of kind `store` if no store can be read; of several those that cannot are warned of.
  public func inbox() async throws(LatchkeyError) -> InboxReport {
    try await reporting {
      let found = try await readInbox()
      let known = try acquaintances()
      let contents = try contents()
      let lying = Set(found.messages.map(\.message.id))
      let answered = contents.contacts.received.filter { !lying.contains($0.message) }.map { record in
        entry(record, known, isRemoved: isOut(of: record.household))
      }
      let came = found.messages.map { one in
        let answer = contents.contacts.answer(to: one.message.id)
        return entry(one, answer, known, isRemoved: answer != nil && isOut(of: one.message.blob.household))
      }
      return InboxReport(
        invites: (came + answered).sorted { ($0.expires, $0.id) < ($1.expires, $1.id) }, unreadable: found.unreadable,
        warnings: found.warnings)
    }
  }

  /// Joins the household of an invite that came to this device, as ``join(link:options:agree:)`` does with a link.
  ///
  /// - Parameters:
  ///   - id: the message's id, or the beginning of it: six characters or more.
  ///   - agree: asked before a store is used that this device does not use yet.
  /// - Throws: as ``join(link:options:agree:)``; `usage` for no such message.
  public func acceptInvite(
    _ id: String, options: JoinOptions, agree: @Sendable (Question) async -> Bool
  ) async throws(LatchkeyError) -> JoinReport {
    try await reporting(database: options.database) {
      let contents = try contents()
      let lying = try await message(id)
      let message = lying.message
      let blob = message.blob
      let place = try await joinPlace(
        household: blob.household, expiry: blob.expiry, locator: message.locator, options: options, agree: agree)
      // Before it is joined: nobody vouches for themselves.
      let isVerified = try acquaintances().standing(of: message.inviter) == .verified
      var report = try await enter(Invitation(message, to: contents.device), at: place, options: options)
      try keyring.update {
        if $0.contacts.answer(to: message.id)?.answer != .accepted {
          $0.contacts.note(Contacts.Received(message, .accepted, isInviterVerified: isVerified))
        }
      }
      try await lying.delete()
      if !isVerified {
        report.warnings.append(
          Warning(
            code: "inviter-unverified",
            message: "Nobody has compared words with whoever sent this invite; it calls itself \(blob.inviterName)."))
      }
      return report
    }
  }

  /// Deletes an invite that came to this device, and remembers that it was declined. The inviter is not told.
  ///
  /// - Returns: the invite.
  /// - Throws: ``LatchkeyError`` of kind `usage` (no such message, accepted already), `store`.
  @discardableResult
  public func declineInvite(_ id: String) async throws(LatchkeyError) -> InboxEntry {
    try await reporting {
      let known = try acquaintances()
      let answered = known.contacts.received.filter { $0.message.isMeant(by: id) }
      if let record = answered.first, answered.count == 1, record.answer == .accepted {
        throw LatchkeyError(
          .usage, "accepted-already", "This invite was accepted already.",
          next: ["latchkey leave --household \(record.householdName)"])
      }
      let lying: LyingMessage
      do { lying = try await message(id) } catch let error as LatchkeyError {
        // A second call finds what the first one deleted.
        if error.code == "no-such-invite", let record = answered.first, answered.count == 1 {
          return entry(record, known, isRemoved: false)
        }
        throw error
      }
      let record = Contacts.Received(
        lying.message, .declined, isInviterVerified: known.standing(of: lying.message.inviter) == .verified)
      try keyring.update { $0.contacts.note(record) }
      try await lying.delete()
      return entry(record, known, isRemoved: false)
    }
  }

  // MARK: In the stores

  /// A message, and every place where it lies.
  private struct LyingMessage {
    let message: InboxMessage
    var places: [(access: StoreAccess, name: ObjectName)]

    func delete() async throws {
      for place in places { try await place.access.store.delete(place.name) }
    }
  }

  private func readInbox() async throws -> (messages: [LyingMessage], unreadable: Int, warnings: [Warning]) {
    let contents = try contents()
    let prefix = InboxMessage.prefix(of: contents.person)
    var messages: [Hash32: LyingMessage] = [:]
    var unreadable = 0
    let warnings = try await eachStore(try knownStores()) { access in
      try await requireStore(access)
      var newer = 0
      let found = try await access.strangers(.inbox, below: prefix)
      for object in found.objects {
        do throws(InboxError) {
          let message = try InboxMessage.open(object.bytes, by: contents.device, of: contents.person)
          guard let name = ObjectName("\(prefix)/\(object.below.text)") else { continue }
          messages[message.id, default: LyingMessage(message: message, places: [])].places.append((access, name))
        } catch {
          // Whoever may write the store may put anything there; and what is for another device of the person looks the same.
          unreadable += 1
          if error == .newer || error == .format(.newer) { newer += 1 }
        }
      }
      unreadable += found.left
      return newer == 0
        ? []
        : [Warning(code: "newer-invite", message: "\(newer) invites in \(access.locator.text) are of a newer version.")]
    }
    return (messages.keys.sorted().compactMap { messages[$0] }, unreadable, warnings)
  }

  private func message(_ id: String) async throws -> LyingMessage {
    let matches = try await readInbox().messages.filter { $0.message.id.isMeant(by: id) }
    guard let one = matches.first, matches.count == 1 else {
      throw LatchkeyError(
        .usage, matches.isEmpty ? "no-such-invite" : "ambiguous-invite",
        matches.isEmpty
          ? "No invite \(id) lies in the stores at hand." : "Several invites begin with \(id): use more of the id.",
        next: ["latchkey inbox"])
    }
    return one
  }

  /// Whether this device is in a household no more that it once was in.
  private func isOut(of household: HouseholdID) -> Bool {
    guard let state = try? state(of: household), let known = try? contents()[household] else { return true }
    return state.isRemoved || known.ending != nil
  }

  private func entry(_ record: Contacts.Received, _ known: Acquaintances, isRemoved: Bool) -> InboxEntry {
    InboxEntry(
      id: record.message.description, household: record.householdName, role: record.role.name,
      inviter: known.verifiedName(of: record.inviter), inviterID: record.inviter.description,
      inviterCallsItself: record.inviterName,
      status: record.answer == .declined ? .declined : isRemoved ? .removed : .accepted,
      expires: Int64(clamping: record.expiry))
  }

  private func entry(
    _ lying: LyingMessage, _ answer: Contacts.Received?, _ known: Acquaintances, isRemoved: Bool
  ) -> InboxEntry {
    if let answer { return entry(answer, known, isRemoved: isRemoved) }
    let blob = lying.message.blob
    let isVerified = known.standing(of: lying.message.inviter) == .verified
    return InboxEntry(
      id: lying.message.id.description, household: blob.householdName, role: blob.role.name,
      inviter: isVerified ? known.name(of: lying.message.inviter.person) : nil,
      inviterID: lying.message.inviter.person.description, inviterCallsItself: blob.inviterName,
      status: blob.expiry < UInt64(max(world.now(), 0)) ? .expired : .pending, expires: Int64(clamping: blob.expiry))
  }
}

extension Contacts.Received {
  fileprivate init(_ message: InboxMessage, _ answer: Answer, isInviterVerified: Bool) {
    self.init(
      message: message.id, answer: answer, household: message.blob.household,
      householdName: message.blob.householdName, role: message.blob.role, inviter: message.inviter.person,
      inviterName: message.blob.inviterName, isInviterVerified: isInviterVerified, expiry: message.blob.expiry)
  }
}

extension Hash32 {
  fileprivate func isMeant(by text: String) -> Bool { text.count >= 6 && description.hasPrefix(text.lowercased()) }
}

/// An invite that was sent to somebody's keys.
public struct SentInvite: Sendable, Equatable {
  public let id: String
  /// What this device calls the recipient.
  public let recipient: String
  public let recipientID: String
  public let household: String
  public let role: String
  /// Milliseconds since 1970.
  public let expires: Int64
  /// The URL of the store that it lies in.
  public let store: String
}

/// An invite that came to this device.
public struct InboxEntry: Sendable, Equatable {
  public enum Status: String, Sendable, CaseIterable {
    case pending, accepted, declined
    /// Accepted, and this device is not in the household any more.
    case removed
    /// Its time is over, by this device's clock, and nobody answered.
    case expired
  }

  /// The same for the message wherever it lies.
  public let id: String
  /// What the inviter calls the household.
  public let household: String
  public let role: String
  /// What this device calls the inviter; nil if nobody has verified who sent it.
  public let inviter: String?
  public let inviterID: String
  /// Anybody may call itself anything.
  public let inviterCallsItself: String
  public let status: Status
  /// Milliseconds since 1970.
  public let expires: Int64
}

/// What lies in this person's inboxes.
public struct InboxReport: Sendable, Equatable {
  public let invites: [InboxEntry]
  /// Objects that are not for this device: for another device of the person, damaged, or put there by anybody.
  public let unreadable: Int
  public let warnings: [Warning]
}
