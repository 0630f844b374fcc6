public import LatchkeyEncoding

/// Everything that derives from one epoch's key: where its objects lie and what they are sealed with (format §3, §4).
///
/// Names are functions of secret keys: whoever has no key can neither compute nor link them, whoever has it needs no
/// listing to look one up.
public struct EpochKeys: Sendable {
  public let household: HouseholdID
  public let epoch: EpochID
  public let key: EpochKey
  private let names: SecretBytes

  public init(household: HouseholdID, epoch: EpochID, key: EpochKey) {
    self.household = household
    self.epoch = epoch
    self.key = key
    names = SecretBytes(hash32("names", key: key.secret.bytes, parts: 0) { _ in }.bytes)
  }

  /// `base32(H_20(names key; "prefix", zone))`: 32 digits under which everything of this zone and epoch lies.
  public func prefix(_ zone: ZoneID) -> String {
    Base32.encode(tag("prefix", parts: 1) { $0.id(zone) })
  }

  /// `H_32(K_e; "zone", household, epoch, zone)`.
  public func zoneKey(_ zone: ZoneID) -> ZoneKey {
    ZoneKey(
      hash32("zone", key: key.secret.bytes, parts: 3) {
        $0.id(household)
        $0.id(epoch)
        $0.id(zone)
      }.bytes)
  }

  /// The 32 digits that a device's heads in a zone share: `h/<tag>-` lists them in the order of their counters.
  public func headTag(zone: ZoneID, origin: Origin) -> String {
    Base32.encode(
      tag("head-tag", parts: 3) {
        $0.id(zone)
        $0.id(origin.device)
        $0.id(origin.incarnation)
      })
  }

  /// `h/<tag>-<counter>`, below the zone's prefix.
  public func headName(zone: ZoneID, origin: Origin, counter: UInt64) -> ObjectName {
    derivedName("h/\(headTag(zone: zone, origin: origin))-\(Base32.encode(counter: counter))")
  }

  /// `l/<2>/<30>`, below the zone's prefix.
  ///
  /// - Parameter index: 1 and up, per zone and epoch.
  public func segmentName(zone: ZoneID, origin: Origin, index: UInt64) -> ObjectName {
    shardedName(
      .segment,
      tag("segment-tag", parts: 4) {
        $0.id(zone)
        $0.id(origin.device)
        $0.id(origin.incarnation)
        $0.uint(index)
      })
  }

  /// `c/<2>/<30>`, below the roster's prefix: one name per invite and claiming device.
  public func claimName(invite: InviteID, device: DeviceID) -> ObjectName {
    shardedName(
      .claim,
      tag("claim-tag", parts: 2) {
        $0.id(invite)
        $0.id(device)
      })
  }

  /// `n/<2>/<30>`, below this (the parent) epoch's roster prefix.
  public func nextName(origin: Origin, sequence: UInt64) -> ObjectName {
    shardedName(
      .next,
      tag("next-tag", parts: 3) {
        $0.id(origin.device)
        $0.id(origin.incarnation)
        $0.uint(sequence)
      })
  }

  /// `r/<2>/<30>`, below this epoch's roster prefix: a copy of roster entries is named by what it holds.
  public func rosterCopyName(content: [UInt8]) -> ObjectName {
    shardedName(.rosterCopy, tag("roster-copy-tag", parts: 1) { $0.byteString(content) })
  }

  /// The name in the store: `<prefix of the zone>/<name below it>`.
  public func objectName(zone: ZoneID, _ below: ObjectName) -> ObjectName {
    derivedName("\(prefix(zone))/\(below.text)")
  }

  /// `H_32(K_first; "digest-key", household, zone)`. Ask the *first* epoch's keys, so that it never changes (format §9).
  public func digestKey(zone: ZoneID) -> [UInt8] {
    hash32("digest-key", key: key.secret.bytes, parts: 2) {
      $0.id(household)
      $0.id(zone)
    }.bytes
  }

  /// Where an object of this epoch stands, for its envelope.
  public func place(_ kind: ObjectKind, zone: ZoneID, name: ObjectName) -> EnvelopePlace {
    EnvelopePlace(kind: kind, household: household, epoch: epoch, zone: zone, name: name)
  }

  private func tag(_ purpose: String, parts: Int, _ body: (inout CBORWriter) -> Void) -> [UInt8] {
    blake2b(20, purpose, key: names.bytes, parts: parts, body)
  }
}

/// What the name of a head says without any key.
public struct HeadName: Hashable, Sendable {
  /// Whose it is: see ``EpochKeys/headTag(zone:origin:)``.
  public let tag: String
  public let counter: UInt64

  /// Nil unless `name`, below a zone's prefix, is `h/<32 digits>-<13 digits>`.
  public init?(_ name: ObjectName) {
    let parts = name.text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == "h" else { return nil }
    let halves = parts[1].split(separator: "-", omittingEmptySubsequences: false)
    guard halves.count == 2, halves[0].utf8.count == 32, let counter = Base32.counter(halves[1]) else { return nil }
    tag = String(halves[0])
    self.counter = counter
  }
}

/// A name made of base-32 digits and letters of this format.
func derivedName(_ text: String) -> ObjectName {
  guard let name = ObjectName(text) else {
    preconditionFailure("digits, letters and hyphens always follow the grammar")
  }
  return name
}

/// `<kind>/<2 digits>/<30 digits>` of a 20-byte tag.
func shardedName(_ kind: ObjectKind, _ tag: [UInt8]) -> ObjectName {
  let digits = Base32.encode(tag)
  return derivedName("\(kind.letter)/\(digits.prefix(2))/\(digits.dropFirst(2))")
}
