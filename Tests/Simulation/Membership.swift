import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeySQLite
import LatchkeyTables

/// A link that was made for a newcomer.
struct Invitation {
  let link: InviteLink
  let id: InviteID
  let inviter: Int
  let blob: [UInt8]
  /// Whether the store has confirmed the blob.
  var isThere = false
}

/// How devices come in: the founder's or another owner's link, a claim, an admission, all through the code that devices run.
extension World {
  /// The app's file before Latchkey sees it. Some newcomers have rows of their own, some have no file.
  func prepare(_ device: Device) throws {
    var random = Stream(seed, "prepare", device.index)
    if device.index > 0, random.chance(40) { return }
    let connection = try Connection(":memory:", mode: .create, clock: device.clock)
    try connection.execute(AppSchema.sql)
    try connection.run(
      "INSERT INTO zebrafinLocal VALUES (1, ?)", [SQLiteValue("\(AppSchema.canary) stays on \(device.name)")])
    device.connection = connection
    guard device.index == 0 || random.chance(50) else { return }
    let app = App(
      connection: connection, view: try AppView(connection), device: device.index, operations: [.insert],
      keys: swarm.keys, isWordy: false)
    var serial = 1_000_000 + device.index * 1_000
    for _ in 0..<(2 + random.below(8)) { _ = try app.run(&random, serial: &serial, &marks) }
  }

  /// Attaches the device's file to the zone.
  func attach(_ device: Device) throws {
    var random = secureRandom()
    let binding = ZoneBinding(
      household: keys.household, zone: zone, zoneName: "\(AppSchema.canary) budget",
      origin: Origin(device: device.keys.id, incarnation: Incarnation(random.bytes(8)) ?? Incarnation(1)),
      digestKey: keys.digestKey(zone: zone))
    let connection: Connection
    if let known = device.connection {
      connection = known
      let survey = try Replica.attach(connection, rules: AppSchema.rules, zone: binding)
      guard survey.syncing.map(\.name).sorted() == AppSchema.tables.filter({ !$0.isLater }).map(\.name).sorted() else {
        throw Violation(.database, "the verdicts are \(survey.tables.map { "\($0.name) \($0.verdict)" })")
      }
      device.baseline = Baseline(view: try AppView(connection))
      if try !Snapshot(connection).meaning().isEmpty, device.index > 0 { marks[.rowsBeforeJoining] += 1 }
    } else {
      connection = try Connection(":memory:", mode: .create, clock: device.clock)
      try Replica.createEmpty(connection, zone: binding, createsTables: true)
      marks[.madeFromDescription] += 1
    }
    try device.reopen(connection)
  }

  /// One step of a newcomer: its link is made, its invite confirmed, then it reads the roster's beginning and claims.
  ///
  /// - Returns: false where the next step is somebody else's turn.
  func join(_ device: Device, _ random: inout Stream) throws -> Bool {
    guard var invitation = links[device.index] else {
      try invite(device, &random)
      return false
    }
    do {
      if !invitation.isThere {
        let object = invitation.link.secret.keys.objectName
        try ledger.put(object, invitation.blob)
        try store.put(object, invitation.blob, faults, &random, &marks)
        invitation.isThere = true
        links[device.index] = invitation
        return true
      }
      try open(device, invitation, &random)
    } catch is RequestFailed {
      return false
    }
    return false
  }

  /// A device that may invite opens an invite, between two of its own rounds.
  private func invite(_ device: Device, _ random: inout Stream) throws {
    // Nobody hands out a link into an epoch whose roster the store has not confirmed.
    let owners = devices.filter {
      $0.round == nil && $0.role == .owner && !$0.isRemoved && $0.kept?.outbox.isEmpty == true
    }
    guard let inviter = random.pick(owners), var state = inviter.kept else { return }
    var secure = secureRandom()
    let secret = InviteSecret(&secure)
    let link = secret.keys
    let role: InviteRole =
      swarm.isPrivate || random.chance(20)
      ? .mine
      : random.chance(50) ? .owner : random.chance(swarm.memberShare > 0 ? 15 : 0) ? .reader : .member
    let id = InviteID(secure.bytes(16)) ?? .zero
    let expiry = UInt64(time) + 400 * 365 * 86_400_000
    let terms = OpenInvite(
      id: id, claimKey: link.claimKey.publicKey, boxKey: link.boxKey.publicKey, role: role, expiry: expiry)
    guard state.roster.refusal(of: .openInvite(terms), by: state.log.origin) == nil else { return }
    try state.write(.openInvite(terms), now: now(inviter))
    try state.seal(now: now(inviter), random: &secure)
    inviter.kept = state
    let epoch = try state.currentKeys()
    guard let seal = epoch.key.seal(to: link.boxKey.publicKey) else { throw Violation(.defect, "no seal") }
    let blob = InviteBlob(
      household: keys.household, epoch: epoch.epoch, invite: id, seal: seal, rosterHeads: state.roster.heads,
      householdName: "\(AppSchema.canary) home", inviterName: "\(AppSchema.canary) Ana", role: role, expiry: expiry,
      zones: [.init(id: zone, name: "\(AppSchema.canary) budget")])
    let text = InviteLink(
      secret: secret, household: keys.household, checkpoint: Roster.checkpoint(state.roster.heads),
      locator: "folder:/\(AppSchema.canary)", expiry: expiry, role: role
    ).text
    links[device.index] = Invitation(
      link: try InviteLink(parsing: text), id: id, inviter: inviter.index,
      blob: try Envelope.seal(blob.encoded, at: link.place, key: link.blobKey, nonce: EnvelopeNonce(&secure)))
    trace.note("\(inviter.name) invites \(device.name) as \(role)")
  }

  /// The newcomer opens its link and finds Genesis.
  private func open(_ device: Device, _ invitation: Invitation, _ random: inout Stream) throws {
    let link = invitation.link.secret.keys
    let object = link.objectName
    guard let sealed = try store.get([object], faults, &random, &marks)[object] else { return }
    let blob = try InviteBlob(decoding: Envelope.open(sealed, at: link.place, key: link.blobKey))
    guard blob.belongs(to: invitation.link), let opened = blob.open(with: link), opened.epoch == blob.epoch else {
      throw Violation(.membership, "\(device.name): the invite is not what the link says")
    }
    guard let genesis = try findGenesis(opened, &random) else { return }
    ledger.learn([opened])
    var secure = secureRandom()
    device.secrets = HouseholdSecrets(
      device: device.keys, held: device.held(with: [opened]),
      link: HouseholdSecrets.Link(invite: blob.invite, box: link.boxKey))
    if let kept = device.kept {
      // It knows the household, and answers with another link.
      device.asksForLink = false
      device.kept = try HouseholdState(decoding: kept.encoded(), secrets: device.secrets)
      try claim(device)
      return
    }
    let origin = Origin(device: device.keys.id, incarnation: Incarnation(secure.bytes(8)) ?? Incarnation(1))
    device.kept = try HouseholdState(
      household: blob.household, epoch: blob.epoch, genesis: genesis, origin: origin, secrets: device.secrets)
    try attach(device)
    marks[.joins] += 1
    trace.note("\(device.name) joins")
  }

  /// A newcomer's claim goes into its outbox, in the newest epoch that it knows.
  func claim(_ device: Device) throws {
    guard var state = device.kept, let invitation = links[device.index] else { return }
    let link = invitation.link.secret.keys
    var secure = secureRandom()
    let claim: Claim
    if invitation.link.role == .mine {
      // A real newcomer reads the roster before it claims; here the inviter says who it is.
      let inviter = devices[invitation.inviter]
      guard let chain = inviter.kept?.roster.state.device(inviter.keys.id)?.chain else { return }
      let request = Certificate(request: device.keys, person: chain.person, signer: inviter.keys.id)
      claim = Claim(
        household: state.household, invite: invitation.id, joining: chain, request: request,
        personName: "\(AppSchema.canary) Ana", deviceName: "\(AppSchema.canary) \(device.name)", epoch: state.epoch,
        claimKey: link.claimKey, device: device.keys)
      marks[.ownDevices] += 1
    } else {
      claim = Claim(
        household: state.household, invite: invitation.id, chain: device.chain, personName: "\(AppSchema.canary) Ben",
        deviceName: "\(AppSchema.canary) \(device.name)", epoch: state.epoch, claimKey: link.claimKey,
        device: device.keys)
    }
    try state.enqueue(claim, random: &secure)
    device.kept = state
    trace.note("\(device.name) claims")
  }

  /// A device that was let in forgets its link, and keeps what it opened.
  func forgetLink(_ device: Device) throws {
    guard device.secrets.link != nil, let kept = device.kept, !kept.isProvisional else { return }
    device.secrets = HouseholdSecrets(device: device.keys, held: device.held(with: []))
    device.kept = try HouseholdState(decoding: kept.encoded(), secrets: device.secrets)
  }

  /// A newcomer whose link was withdrawn, used or left behind asks for another one, as people do.
  ///
  /// - Returns: whether it begins anew.
  func needsAnotherInvite(_ device: Device) throws -> Bool {
    guard let kept = device.kept, kept.isProvisional, let invitation = links[device.index] else { return false }
    let invites = kept.roster.state.invites.filter { $0.terms.id == invitation.id }
    let admitted = invites.contains { $0.admitted.contains(device.keys.id) }
    guard !invites.isEmpty, !admitted, invites.allSatisfy({ $0.status(now: 0) != .open }) else { return false }
    inviteAgain(device)
    return true
  }

  func inviteAgain(_ device: Device) {
    links[device.index] = nil
    device.asksForLink = true
    device.loseRound()
    marks[.invitedAgain] += 1
    trace.note("\(device.name) needs another invite")
  }

  private func findGenesis(_ keys: EpochKeys, _ random: inout Stream) throws -> StoredEntry? {
    let prefix = keys.prefix(.roster)
    let listed = try store.list(prefix + "/", faults, &random, &marks).compactMap { name in
      ObjectName(String(name.text.dropFirst(prefix.utf8.count + 1)))
    }
    for below in listed where HeadName(below) != nil || below.text.hasPrefix("r/") {
      let name = keys.objectName(zone: .roster, below)
      guard let bytes = try store.get([name], faults, &random, &marks)[name] else { continue }
      if let entry = GenesisSearch.search(copy: below, bytes: bytes, keys: keys) { return entry }
      switch GenesisSearch.search(head: below, bytes: bytes, keys: keys) {
      case .found(let entry): return entry
      case .notHere: continue
      case .look(let segment):
        let name = keys.objectName(zone: .roster, segment)
        guard let bytes = try store.get([name], faults, &random, &marks)[name] else { continue }
        if let entry = GenesisSearch.search(segment: segment, bytes: bytes, keys: keys) { return entry }
      }
    }
    return nil
  }
}
