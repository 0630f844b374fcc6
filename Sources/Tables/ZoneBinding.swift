public import LatchkeyEncoding

/// Where a file's rows belong: kept in the file.
public struct ZoneBinding: Equatable, Sendable {
  public var household: HouseholdID
  public var zone: ZoneID
  /// For people.
  public var zoneName: String
  /// Under which device and incarnation this file's changes are stamped.
  public var origin: Origin
  /// 32 bytes; keys the digest (format §9).
  public var digestKey: [UInt8]

  public init(household: HouseholdID, zone: ZoneID, zoneName: String, origin: Origin, digestKey: [UInt8]) {
    self.household = household
    self.zone = zone
    self.zoneName = zoneName
    self.origin = origin
    self.digestKey = digestKey
  }
}
