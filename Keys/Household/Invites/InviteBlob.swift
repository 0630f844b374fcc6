public import LatchkeyEncoding

/// What the link opens in the store: the epoch's key for the link, and what to show before joining (format §8).
public struct InviteBlob: Hashable, Sendable {
  public struct Zone: Hashable, Sendable {
    public let id: ZoneID
    public let name: String
    public init(id: ZoneID, name: String) {
      self.id = id
      self.name = name
    }
  }

  public let household: HouseholdID
  public let epoch: EpochID
  public let invite: InviteID
  /// The epoch's key, sealed to the link's box key; to the newcomer's own, in the blob that welcomes it after words were compared. Nil in
  /// the blob of an invite that asks for words: it opens nothing.
  public let seal: KeySeal?
  /// Ascending; the link's checkpoint is over these.
  public let rosterHeads: [EntryHash]
  public let householdName: String
  public let inviterName: String
  public let role: InviteRole
  /// Milliseconds since 1970.
  public let expiry: UInt64
  public let zones: [Zone]

  public init(
    household: HouseholdID, epoch: EpochID, invite: InviteID, seal: KeySeal?, rosterHeads: [EntryHash],
    householdName: String, inviterName: String, role: InviteRole, expiry: UInt64, zones: [Zone]
  ) {
    self.household = household
    self.epoch = epoch
    self.invite = invite
    self.seal = seal
    self.rosterHeads = rosterHeads
    self.householdName = householdName
    self.inviterName = inviterName
    self.role = role
    self.expiry = expiry
    self.zones = zones
  }

  public var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(11)
    writer.uint(1)
    writer.id(household)
    writer.id(epoch)
    writer.id(invite)
    if let seal { writer.id(seal) } else { writer.null() }
    writer.hashes(rosterHeads)
    writer.text(householdName)
    writer.text(inviterName)
    writer.uint(role.rawValue)
    writer.uint(expiry)
    writer.array(zones.count)
    for zone in zones {
      writer.array(2)
      writer.id(zone.id)
      writer.text(zone.name)
    }
    return writer.bytes
  }

  public init(decoding bytes: [UInt8]) throws(FormatError) {
    var reader = CBORReader(bytes)
    try reader.versionOne(elements: 11)
    self = try decoding { () throws(CBORError) in
      let household: HouseholdID = try reader.id()
      let epoch: EpochID = try reader.id()
      let invite: InviteID = try reader.id()
      let seal: KeySeal? = try reader.null() ? nil : try reader.id()
      let heads = try reader.hashes(max: Limits.rosterHeads)
      let householdName = try reader.name()
      let inviterName = try reader.name()
      let role = try reader.inviteRole()
      let expiry = try reader.uint()
      let zones = try reader.list { (item) throws(CBORError) in
        try item.array(exactly: 2)
        let id: ZoneID = try item.id()
        return Zone(id: id, name: try item.name())
      }
      try reader.finish()
      return InviteBlob(
        household: household, epoch: epoch, invite: invite, seal: seal, rosterHeads: heads,
        householdName: householdName, inviterName: inviterName, role: role, expiry: expiry, zones: zones)
    }
  }

  /// Whether this is the blob that the link speaks of: its household, its checkpoint, its role.
  public func belongs(to link: InviteLink) -> Bool {
    household == link.household && Roster.checkpoint(rosterHeads) == link.checkpoint && role == link.role
  }

  /// The epoch's keys, opened with the link. Nil if the seal is not the one that everybody else computes.
  public func open(with link: LinkKeys) -> EpochKeys? { open(with: link.boxKey) }

  /// The same, with the newcomer's own key.
  public func open(with box: BoxKey) -> EpochKeys? {
    seal?.open(with: box).map { EpochKeys(household: household, epoch: epoch, key: $0) }
  }
}
