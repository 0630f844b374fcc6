internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
public import LatchkeyKeys
internal import LatchkeyLog
public import LatchkeyStorage
internal import LatchkeyTables

/// What joining takes besides the link.
public struct JoinOptions: Sendable {
  /// Where the zone's rows go: a file that does not exist yet; or one that does, whose rows and the zone's that are the same become one.
  /// Nil to join without a database.
  public var database: String?
  /// Which zone, where the household has several.
  public var zone: String?
  /// Makes an identity of that name if there is none.
  public var name: String?
  /// This device's name; the host's if nil.
  public var device: String?
  /// Where the new identity's private household is kept; none is made if nil.
  public var personalStore: String?
  /// Where the household's store is reached from here, if not where the invite says.
  public var store: String?
  /// The ten words that the inviter's screen shows, to compare with this device's; nil where people do that by themselves.
  public var words: String?
  /// A file made by the app, where the zone's description is not enough to make the tables.
  public var template: String?
  /// What the household's store asks for; kept for later. Nil for what the link brings, if it brings any.
  public var credential: StoreCredential?

  public init(
    database: String? = nil, zone: String? = nil, name: String? = nil, device: String? = nil,
    personalStore: String? = nil, store: String? = nil, template: String? = nil, words: String? = nil,
    credential: StoreCredential? = nil
  ) {
    self.words = words
    self.credential = credential
    self.database = database
    self.zone = zone
    self.name = name
    self.device = device
    self.personalStore = personalStore
    self.store = store
    self.template = template
  }
}

/// Something that only a person may answer.
public enum Question: Sendable, Equatable {
  /// May the store that the invite names be used from this device?
  case useStore(url: String)
}

extension Home {
  // MARK: Inviting

  /// Opens an invite to a household. Whoever has the link can join with it, once, until it expires; this device need not be
  /// online then.
  ///
  /// - Parameters:
  ///   - household: its name; nil for the only shared one.
  ///   - role: what the newcomer may do.
  ///   - milliseconds: how long the link can be used, one minute to one year.
  ///   - confirm: whether the link opens nothing until an owner has compared ten words with whoever holds it (``approve(_:words:household:)``).
  public func invite(
    household: String?, role: InviteRole = .member, expiresIn milliseconds: Int64 = 86_400_000, confirm: Bool = false
  ) async throws(LatchkeyError) -> Invite {
    try await reporting {
      guard role != .mine else {
        throw LatchkeyError(.usage, "bad-role", "A device of your own is added with `latchkey device add`.")
      }
      return try await open(role, in: try membership(named: household), expiresIn: milliseconds, confirm: confirm)
    }
  }

  /// Opens an invite for another device of this person, to the private household and through it to all others.
  public func addDevice(expiresIn milliseconds: Int64 = 600_000) async throws(LatchkeyError) -> Invite {
    try await reporting { try await open(.mine, in: try privateMembership(), expiresIn: milliseconds) }
  }

  private func open(
    _ role: InviteRole, in membership: Membership, expiresIn milliseconds: Int64, confirm: Bool = false
  ) async throws -> Invite {
    let access = try await openStore(of: membership)
    var random = world.random()
    let secret = InviteSecret(&random)
    let keys = secret.keys
    let blob = try await open(
      role, in: membership, access, expiresIn: milliseconds, confirm: confirm, claimKey: keys.claimKey.publicKey,
      boxKey: keys.boxKey.publicKey)
    let object = try Envelope.seal(blob.encoded, at: keys.place, key: keys.blobKey, nonce: EnvelopeNonce(&random))
    try await access.store.put(keys.objectName, object)
    let link = InviteLink(
      secret: secret, household: membership.id, checkpoint: Roster.checkpoint(blob.rosterHeads),
      locator: membership.locator, expiry: blob.expiry, role: role)
    return Invite(
      id: blob.invite.description, link: link.text, household: membership.name, role: role.name,
      expires: Int64(clamping: blob.expiry))
  }

  /// Opens an invite in the roster, for whoever holds the secret keys to these public ones.
  ///
  /// - Returns: what that holder is to be given, once the store shows the roster that it was made from.
  func open(
    _ role: InviteRole, in membership: Membership, _ access: StoreAccess, expiresIn milliseconds: Int64,
    confirm: Bool = false, claimKey: SigningPublicKey, boxKey: BoxPublicKey
  ) async throws -> InviteBlob {
    guard (60_000...31_622_400_000).contains(milliseconds) else {
      throw LatchkeyError(.usage, "bad-expiry", "An invite is good for one minute to one year.")
    }
    _ = try await round(membership, access: access)
    var random = world.random()
    let epoch = try state(of: membership.id).currentKeys()
    guard let id = InviteID(random.bytes(16)), let seal = epoch.key.seal(to: boxKey) else {
      throw LatchkeyError(.other, "unexpected", "No invite key could be made.")
    }
    let expires = UInt64(max(world.now() + milliseconds, 0))
    let terms = OpenInvite(
      id: id, claimKey: claimKey, boxKey: boxKey, role: role, expiry: expires, confirm: confirm)
    let state = try write([.openInvite(terms)], into: membership)
    // The roster first: the invite's checkpoint must be what the store already shows.
    _ = try await round(membership, access: access)
    return InviteBlob(
      household: membership.id, epoch: epoch.epoch, invite: id, seal: confirm ? nil : seal,
      rosterHeads: state.roster.heads, householdName: membership.name, inviterName: try contents().personName,
      role: role, expiry: expires,
      zones: state.roster.state.zones.filter { $0.closing == nil }.map { .init(id: $0.id, name: $0.name) })
  }

  // MARK: Joining

  /// Joins a household with a link, and fills a new database from its zone.
  ///
  /// Works while nobody else is online: this device reads at once; what it writes counts for the others once one of their devices
  /// has admitted it, which happens by itself at that device's next sync. Calling it again with the same link goes on where it stopped.
  ///
  /// - Parameters:
  ///   - link: as `invite` gave it.
  ///   - agree: asked before the store that the invite names is used for the first time.
  /// - Throws: ``LatchkeyError`` of kind `key` (wrong, damaged, expired, used or revoked link), `store`, `decision` (not
  ///   agreed, several zones), `usage`, `database`. Nothing is changed then, except that an identity asked for by `name` may have been made.
  public func join(
    link text: String, options: JoinOptions, agree: @Sendable (Question) async -> Bool
  ) async throws(LatchkeyError) -> JoinReport {
    try await reporting(database: options.database) {
      let link: InviteLink
      do throws(LinkError) { link = try InviteLink(parsing: text) } catch { throw LatchkeyError(link: error) }
      let place = try await joinPlace(
        household: link.household, expiry: link.expiry, locator: link.locator, options: options,
        credential: { try self.credential(of: link, for: $0) }, agree: agree)
      let blob = try await readBlob(link, place.access)
      let isKnown = try contentsIfAny()?[link.household] != nil
      if blob.seal == nil, !isKnown, let waiting = try await enter(blob, link, place, options) { return waiting }
      return try await enter(Invitation(blob, of: link.secret), at: place, options: options)
    }
  }

  /// Checks what can be checked before the invite is looked at, asks whether its store may be used, and opens it.
  func joinPlace(
    household: HouseholdID, expiry: UInt64, locator: String, options: JoinOptions,
    credential: (Locator) throws -> StoreCredential? = { _ in nil }, agree: @Sendable (Question) async -> Bool
  ) async throws -> JoinPlace {
    if expiry < UInt64(max(world.now(), 0)) {
      throw LatchkeyError(
        .key, "link-expired", "The invite has expired, or this device's clock is wrong.",
        next: ["ask for a new invite"])
    }
    let database = options.database.map(absolute)
    let isFilled = try database.map { try self.isFilled($0, from: household) } ?? false
    if let database, !fileExists(parent(of: database)) {
      throw LatchkeyError(
        .usage, "no-such-folder",
        "There is no folder \(parent(of: database)) to make the file in. Nothing was changed.")
    }
    if let template = options.template, let database, fileExists(database) {
      throw LatchkeyError(
        .usage, "file-exists", "\(database) exists, so it is not made from \(template). Nothing was changed.",
        next: [
          "leave out --template, and the rows of \(database) come into the household",
          "choose a path where nothing is",
        ])
    }
    if let template = options.template { _ = try Replica.survey(path: absolute(template)) }
    let url = try stores.locator(options.store ?? locator, relativeTo: base)
    if options.store == nil, try contentsIfAny()?.hasAgreed(to: url.text) != true {
      guard await agree(.useStore(url: url.text)) else {
        throw LatchkeyError(
          .decision, "store-not-agreed",
          "The invite's store is \(url.text), and nobody on this device has agreed to use it. Nothing was changed.",
          next: ["run it again with --yes, or with --store URL if the store is reached elsewhere from here"])
      }
    }
    let given = try options.credential ?? credential(url)
    let access = try await openStore(url, credential: given)
    try await requireStore(access)
    return JoinPlace(database: database, isFilled: isFilled, access: access, credential: given)
  }

  /// Claims membership if this device has not yet, and fills the database.
  func enter(_ invitation: Invitation, at place: JoinPlace, options: JoinOptions) async throws -> JoinReport {
    let blob = invitation.blob
    let access = place.access
    var words: [String]?
    guard
      let keys = try invitation.secret != nil && blob.seal == nil
        ? ownKeys(blob.household) : blob.open(with: invitation.boxKey)
    else {
      throw LatchkeyError(.damage, "bad-invite", "The invite in the store does not hold the household's key.")
    }
    if try contentsIfAny()?[keys.household]?.ending != nil { throw LatchkeyError.wasRemoved }
    if let waiting = try contentsIfAny()?[keys.household]?.joining, waiting.invite != blob.invite {
      // Nobody has let this device in with the invite that it used before: it goes on with this one.
      let shown = try await look(keys, invitation, access)
      let invite = try check(shown, invitation)
      let current = try shown.currentKeys()
      let opened = try state(of: keys.household).epochs + [current]
      try keyring.update {
        $0[keys.household]?.joining = invitation.joining
        $0[keys.household]?.hold(opened)
      }
      let membership = try membership(of: keys.household)
      // What the new invite shows is read before the claim is made of it.
      _ = try await roundAlone(membership, access: access)
      if try state(of: keys.household).isProvisional {
        try claim(invite, state(of: keys.household), invitation.secret)
      }
    } else if try contentsIfAny()?[keys.household] == nil {
      // Everything that can be wrong with the invite is found before anything is kept or written.
      let shown = try await look(keys, invitation, access)
      let invite = try check(shown, invitation)
      if place.database != nil {
        if blob.role == .mine, shown.roster.state.zones.allSatisfy({ $0.closing != nil }) {
          throw LatchkeyError(
            .usage, "no-such-zone",
            "Your personal household has no open zone to make a file of: what you share with others comes after this device is in. Nothing was changed.",
            next: [
              "latchkey join, without --db", "latchkey sync   (there, then here)",
              "latchkey attach \(options.database ?? "FILE") --zone ZONE",
            ])
        }
        _ = try chooseZone(options.zone, shown, blob.householdName)
      }
      try await ensureIdentity(for: blob.role, options)
      try keep(place.credential, for: access.locator)
      guard let genesis = shown.genesis else { throw LatchkeyError.noGenesis }
      try adopt(
        try shown.currentKeys(), genesis: genesis, name: blob.householdName, isPrivate: blob.role == .mine,
        locator: access.locator.text, joining: invitation.joining)
      let shared = try claim(invite, shown, invitation.secret)
      if blob.role == .mine { words = shared.words }
    }
    if try state(of: keys.household).isRemoved { throw LatchkeyError.wasRemoved }
    let membership = try membership(of: keys.household)
    let report = try await round(membership, access: access)
    if blob.role == .mine { try await alignOwnDevices(membership, access: access) }
    var rows = 0
    var warnings: [Warning] = []
    var zoneName: String?
    if let database = place.database, !place.isFilled, fileExists(database) {
      let zone = try chooseZone(options.zone, try state(of: membership.id), membership.name)
      zoneName = zone.name
      (rows, warnings) = try await bring(
        database, membership: membership, access: access, zone: zone.id, name: zone.name)
    } else if let database = place.database, place.isFilled {
      zoneName = try binding(database)?.zoneName
    } else if let database = place.database {
      let zone = try chooseZone(options.zone, try state(of: membership.id), membership.name)
      zoneName = zone.name
      (rows, warnings) = try await fill(
        database, membership: membership, access: access, zone: zone.id, name: zone.name, template: options.template)
    }
    return JoinReport(
      household: membership.name, zone: zoneName, database: place.database, rows: rows,
      isProvisional: report.isProvisional, words: words, warnings: warnings)
  }

  /// Of a household that this device holds already.
  private func ownKeys(_ household: HouseholdID) throws -> EpochKeys? { try state(of: household).currentKeys() }

  /// Waits for a person, with an invite that asks for compared words: lays the claim where its inviters look, and enters once they let
  /// this device in.
  ///
  /// - Returns: nil once this device holds the household.
  private func enter(
    _ blob: InviteBlob, _ link: InviteLink, _ place: JoinPlace, _ options: JoinOptions
  ) async throws -> JoinReport? {
    let access = place.access
    try await ensureIdentity(for: link.role, options)
    try keep(place.credential, for: access.locator)
    let contents = try contents()
    let claimKey = link.secret.keys.claimKey
    let claim = Claim(
      household: link.household, invite: blob.invite, chain: contents.chain, personName: contents.personName,
      deviceName: contents.deviceName, epoch: blob.epoch, kit: contents.kitToBring, claimKey: claimKey,
      device: contents.device)
    let words = ComparisonWords(claim: claim)
    if let given = options.words { try words.require(given) }
    let room = WaitingRoom(invite: blob.invite, claimKey: claimKey.publicKey)
    let below = room.welcomeName(contents.device.id)
    let name = room.objectName(below)
    if let object = try await access.get([name])[name] {
      let welcome: InviteBlob
      do {
        welcome = try InviteBlob(decoding: try Envelope.open(object, at: room.place(.invite, below), key: room.key))
      } catch {
        throw LatchkeyError(
          .damage, "damaged-invite", "What lets this device in is damaged in the store: \(error).",
          next: ["ask for a new invite"])
      }
      if welcome.seal == nil, welcome.household == link.household {
        throw LatchkeyError(
          .key, "link-refused",
          "\(welcome.inviterName) did not let this device in with that invite, or let in somebody else.",
          next: ["ask for a new invite"])
      }
      guard welcome.household == link.household, let keys = welcome.open(with: contents.device.box) else {
        throw LatchkeyError(.damage, "forged-invite", "What lets this device in was not made for it.")
      }
      let shown = try await look(keys, Invitation(blob, of: link.secret), access)
      guard (blob.rosterHeads + welcome.rosterHeads).allSatisfy(shown.roster.contains) else {
        throw LatchkeyError.behindCheckpoint
      }
      guard shown.roster.role(of: contents.device.id) != nil, let genesis = shown.genesis else {
        throw LatchkeyError(
          .damage, "forged-invite", "The household's roster does not show that this device was let in.")
      }
      try adopt(
        keys, genesis: genesis, name: welcome.householdName, isPrivate: false, locator: access.locator.text)
      _ = try await roundAlone(try membership(of: keys.household), access: access)
      try settleCredential(try membership(of: keys.household))
      return nil
    }
    let claimBelow = room.claimName(contents.device.id)
    let claimName = room.objectName(claimBelow)
    if try await access.get([claimName]).isEmpty {
      var random = world.random()
      try await access.store.put(
        claimName,
        try Envelope.seal(
          claim.bytes, at: room.place(.claim, claimBelow), key: room.key, nonce: EnvelopeNonce(&random)))
    }
    return JoinReport(
      household: blob.householdName, zone: nil, database: nil, rows: 0, isProvisional: true,
      waitingFor: JoinReport.Waiting(inviter: blob.inviterName, words: words.words), warnings: [])
  }

  /// Whether an earlier call with the same invite made or attached the file already. A file that is attached elsewhere is refused, and
  /// so is one that cannot come into a zone.
  private func isFilled(_ path: String, from household: HouseholdID) throws -> Bool {
    guard fileExists(path) else { return false }
    if let bound = try binding(path) {
      if bound.household == household, try contentsIfAny()?.device.id == bound.origin.device { return true }
      throw LatchkeyError(
        .usage, "attached-already", "\(path) is attached already, to the zone \(bound.zoneName).",
        next: ["latchkey sync \(path)"])
    }
    let survey = try Replica.survey(path: path)
    guard !survey.syncing.isEmpty else {
      throw TablesError.noTableCanSync(survey.tables.map { "\($0.name): \($0.reason)" })
    }
    try checkCanWrite(path)
    return false
  }

  /// A credential in a link is for the store that the link names: not for where else it is reached from here.
  private func credential(of link: InviteLink, for url: Locator) throws -> StoreCredential? {
    guard let credential = link.credential, link.locator == url.text else { return nil }
    return try StoreCredential(parsing: credential.text, source: "the invite's credential")
  }

  @discardableResult
  func requireStore(_ access: StoreAccess) async throws -> StoreMarker {
    switch try await StoreMarker.read(access.store) {
    case .store(let marker): return marker
    case .absent: throw EngineError.storeMissing
    case .newerFormat: throw EngineError.badMarker("of a newer version")
    case .notAStore: throw EngineError.badMarker("not a store's marker")
    }
  }

  private func readBlob(_ link: InviteLink, _ access: StoreAccess) async throws -> InviteBlob {
    let keys = link.secret.keys
    guard let object = try await access.get([keys.objectName])[keys.objectName] else {
      throw LatchkeyError(
        .key, "link-unknown",
        "The store holds no such invite: it was withdrawn, or the household is kept in another store.",
        next: ["check the store's URL (--store)", "ask for a new invite"])
    }
    let blob: InviteBlob
    do {
      blob = try InviteBlob(decoding: try Envelope.open(object, at: keys.place, key: keys.blobKey))
    } catch {
      if case EnvelopeError.newer = error {
        throw LatchkeyError(
          .newer, "newer-invite", "The invite was made by a newer version.", next: ["update latchkey"])
      }
      throw LatchkeyError(
        .damage, "damaged-invite", "The invite in the store is damaged: \(error).", next: ["ask for a new invite"])
    }
    guard blob.belongs(to: link) else {
      throw LatchkeyError(
        .damage, "forged-invite", "The invite in the store is not the one that the link was made for.")
    }
    return blob
  }

  private func ensureIdentity(for role: InviteRole, _ options: JoinOptions) async throws {
    let device = options.device ?? hostName()
    try checkName(device, "device name")
    if let existing = try contentsIfAny() {
      if role == .mine, existing.households.contains(where: \.isPrivate) {
        throw LatchkeyError(
          .usage, "identity-exists",
          "This device has an identity of its own, with a private household: \(existing.personName). One device is one person's.",
          next: ["use another --home DIR"])
      }
      return
    }
    if role == .mine {
      // Named after the person once its roster is read.
      try createIdentity(name: options.name ?? device, device: device)
      return
    }
    guard let name = options.name else { throw LatchkeyError.noIdentity }
    try checkName(name, "name")
    if let store = options.personalStore {
      try await initialize(name: name, device: device, store: store)
    } else {
      try createIdentity(name: name, device: device)
    }
  }

  /// Reads the roster as a stranger who holds the key, keeping and writing nothing.
  private func look(
    _ keys: EpochKeys, _ invitation: Invitation, _ access: StoreAccess
  ) async throws -> HouseholdState {
    var random = world.random()
    let stranger = DeviceKeys(&random)
    guard let genesis = try await findGenesis(keys, access) else { throw LatchkeyError.noGenesis }
    let origin = Origin(device: stranger.id, incarnation: newIncarnation(&random))
    let state = try HouseholdState(
      household: keys.household, epoch: keys.epoch, genesis: genesis, origin: origin,
      secrets: HouseholdSecrets(
        device: stranger, held: [keys.epoch: keys.key],
        link: HouseholdSecrets.Link(invite: invitation.blob.invite, box: invitation.boxKey)))
    return try await passingRound(state, as: stranger, access: access, writing: .never)
  }

  /// Checks what the store shows against the invite.
  private func check(_ state: HouseholdState, _ invitation: Invitation) throws -> RosterState.Invite {
    guard invitation.blob.rosterHeads.allSatisfy(state.roster.contains) else {
      throw LatchkeyError.behindCheckpoint
    }
    let roster = state.roster.state
    if let device = try contentsIfAny()?.device.id,
      roster.limited.contains(where: { $0.device == device && $0.isRemoved })
    {
      throw LatchkeyError.wasRemoved
    }
    guard let invite = roster.invites.first(where: invitation.isOpened),
      roster.isPrivate == (invitation.blob.role == .mine)
    else { throw LatchkeyError(.damage, "forged-invite", "The household's roster does not hold this invite.") }
    switch invite.status(now: UInt64(max(world.now(), 0))) {
    case .open: return invite
    case .used: throw LatchkeyError(.key, "link-used", "The invite was used already.", next: ["ask for a new invite"])
    case .revoked:
      throw LatchkeyError(.key, "link-revoked", "The invite was withdrawn.", next: ["ask for a new invite"])
    case .expired: throw LatchkeyError(.key, "link-expired", "The invite has expired.", next: ["ask for a new invite"])
    }
  }

  /// Puts this device's claim into the outbox; it is sent with the next round.
  ///
  /// - Returns: what whoever lets it in sees, too.
  @discardableResult
  private func claim(
    _ invite: RosterState.Invite, _ shown: HouseholdState, _ secret: InviteSecret?
  ) throws -> ComparisonWords {
    try change(shown.household) { state, random in
      let claim = try makeClaim(try contents(), invite, shown, try state.currentKeys(), secret)
      try state.enqueue(claim, random: &random)
      return ComparisonWords(claim: claim)
    }
  }

  /// Claims where this device has not claimed yet, or in an epoch that has ended before anybody let it in.
  func claimAgain(_ membership: Membership) throws {
    let contents = try contents()
    guard let joining = contents[membership.id]?.joining else { return }
    let state = try state(of: membership.id)
    let claimKey = joining.secret?.keys.claimKey ?? contents.device.signing
    guard state.needsClaim,
      let invite = state.roster.state.invites.first(where: {
        $0.terms.id == joining.invite && $0.terms.claimKey == claimKey.publicKey
      }),
      invite.status(now: UInt64(max(world.now(), 0))) == .open
    else { return }
    try claim(invite, state, joining.secret)
  }

  /// Forgets the link of a device that was let in. What the link opened stays: rows may wait in an epoch that nothing else opens.
  func forgetLink(_ membership: Membership) throws {
    guard try contents()[membership.id]?.joining != nil else { return }
    let opened = try state(of: membership.id).epochs
    try keyring.update {
      $0[membership.id]?.joining = nil
      $0[membership.id]?.hold(opened)
    }
    try settleCredential(membership)
  }

  private func makeClaim(
    _ contents: KeyringContents, _ invite: RosterState.Invite, _ state: HouseholdState, _ keys: EpochKeys,
    _ secret: InviteSecret?
  ) throws -> Claim {
    let claimKey = secret?.keys.claimKey ?? contents.device.signing
    guard invite.terms.role == .mine else {
      return Claim(
        household: keys.household, invite: invite.terms.id, chain: contents.chain, personName: contents.personName,
        deviceName: contents.deviceName, epoch: keys.epoch, kit: contents.kitToBring, claimKey: claimKey,
        device: contents.device)
    }
    // The device that opened the invite is the one that will complete this one's certificate.
    let opener = state.roster.entries.first { $0.hash == invite.opened }?.origin.device
    guard let opener, let device = state.roster.state.device(opener) else {
      throw LatchkeyError(
        .key, "link-unknown", "The device that made the invite is not in the roster any more.", next: ["make a new one"]
      )
    }
    let person = state.roster.state.person(device.person)?.name ?? contents.personName
    if person != contents.personName { try keyring.update { $0.personName = person } }
    let request = Certificate(request: contents.device, person: device.person, signer: opener)
    return Claim(
      household: keys.household, invite: invite.terms.id, joining: device.chain, request: request, personName: person,
      deviceName: contents.deviceName, epoch: keys.epoch, claimKey: claimKey, device: contents.device)
  }

  private func chooseZone(
    _ name: String?, _ state: HouseholdState, _ household: String
  ) throws -> RosterState.Zone {
    let open = state.roster.state.zones.filter { $0.closing == nil }
    let matches = name.map { name in open.filter { $0.name == name } } ?? open
    if matches.count == 1 { return matches[0] }
    let names = open.map(\.name).joined(separator: ", ")
    throw LatchkeyError(
      .usage, matches.isEmpty ? "no-such-zone" : "which-zone",
      matches.isEmpty
        ? "The household \(household) has no open zone\(name.map { " \($0)" } ?? ""). Open ones: \(names.isEmpty ? "none" : names)."
        : "The household \(household) has several zones: \(names). Say which with --zone.",
      next: open.map { "--zone \($0.name)" })
  }
}

extension LatchkeyError {
  static let behindCheckpoint = LatchkeyError(
    .damage, "behind-checkpoint",
    "The store shows an older roster than the invite was made from: it was rolled back, or has not caught up.",
    next: ["try again later", "tell the person who invited you"])

  static let wasRemoved = LatchkeyError(
    .membership, "removed",
    "This device was in the household before, and left it or was removed: with these keys it does not come in again.",
    next: ["join with a new identity: another --home DIR, and --name NAME"])

  init(link error: LinkError) {
    switch error {
    case .notALink:
      self.init(
        .key, "not-a-link", "That is not an invite: a link begins with latchkey://join#.",
        next: ["paste the whole link as it was sent"])
    case .damaged:
      self.init(
        .key, "link-damaged", "The link is cut off or mistyped: its checksum does not fit. Nothing was tried with it.",
        next: ["paste the whole link as it was sent"])
    case .newer: self.init(.newer, "newer-link", "The link was made by a newer version.", next: ["update latchkey"])
    }
  }
}

extension InviteRole {
  var name: String {
    switch self {
    case .mine: "mine"
    case .reader: "reader"
    case .member: "member"
    case .owner: "owner"
    }
  }
}

extension Role {
  var name: String {
    switch self {
    case .reader: "reader"
    case .member: "member"
    case .owner: "owner"
    }
  }
}
