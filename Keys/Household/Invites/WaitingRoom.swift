public import LatchkeyEncoding

/// Where somebody waits who holds a link and no epoch key: an invite that asks for compared words opens nothing until an owner has
/// let its holder in (format §8, *Waiting room*).
///
/// Derived from what the roster says of the invite, so that its members find it, and from what the link gives, so that its holder does. Nobody
/// else can name it or read it. It opens no household.
public struct WaitingRoom: Hashable, Sendable {
  public let invite: InviteID
  private let claimKey: SigningPublicKey

  /// - Parameter claimKey: the invite's, as the roster and the link give it.
  public init(invite: InviteID, claimKey: SigningPublicKey) {
    self.invite = invite
    self.claimKey = claimKey
  }

  private func secret(_ purpose: String) -> [UInt8] {
    blake2b(32, purpose, parts: 2) {
      $0.id(invite)
      $0.id(claimKey)
    }
  }

  /// 32 digits.
  public var prefix: String {
    Base32.encode(blake2b(20, "prefix", key: secret("room-names"), parts: 1) { $0.id(ZoneID.zero) })
  }

  /// Where a device lays its claim, below ``prefix``.
  public func claimName(_ device: DeviceID) -> ObjectName {
    shardedName(.claim, blake2b(20, "room-claim-tag", key: secret("room-names"), parts: 1) { $0.id(device) })
  }

  /// Where it finds the epoch's key once it was let in, below ``prefix``: an invite blob of its own.
  public func welcomeName(_ device: DeviceID) -> ObjectName {
    shardedName(.invite, blake2b(20, "room-welcome-tag", key: secret("room-names"), parts: 1) { $0.id(device) })
  }

  /// The name in the store.
  public func objectName(_ below: ObjectName) -> ObjectName { derivedName("\(prefix)/\(below.text)") }

  /// The place of an object here, for its envelope: it belongs to no epoch.
  public func place(_ kind: ObjectKind, _ below: ObjectName) -> EnvelopePlace {
    EnvelopePlace(kind: kind, household: .zero, epoch: .zero, zone: .zero, name: below)
  }

  /// What is sealed here is sealed with this.
  public var key: ZoneKey { ZoneKey(secret("room-key")) }
}
