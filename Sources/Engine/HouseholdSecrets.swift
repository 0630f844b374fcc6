public import LatchkeyEncoding
public import LatchkeyKeys

/// The keys that a device opens a household's epochs with.
public struct HouseholdSecrets: Hashable, Sendable {
  public let device: DeviceKeys
  /// Keys that came with an invite, from the private household or with a kit: where walking begins.
  public var held: [EpochID: EpochKey]
  /// The link that this device joins with, until it was let in: epochs that begin meanwhile are sealed to it.
  public var link: Link?

  public struct Link: Hashable, Sendable {
    public let invite: InviteID
    public let box: BoxKey
    public init(invite: InviteID, box: BoxKey) { (self.invite, self.box) = (invite, box) }
  }

  public init(device: DeviceKeys, held: [EpochID: EpochKey] = [:], link: Link? = nil) {
    (self.device, self.held, self.link) = (device, held, link)
  }

  func ring(of household: HouseholdID) -> EpochRing {
    var ring = EpochRing(household: household)
    ring.hold(device.box, of: device.id)
    if let link { ring.hold(link.box, of: link.invite) }
    for (epoch, key) in held.sorted(by: { $0.key < $1.key }) { ring.hold(key, of: epoch) }
    return ring
  }
}
