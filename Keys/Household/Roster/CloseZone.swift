public import LatchkeyEncoding

/// The end of a zone (format §8, kind 3).
public struct CloseZone: Hashable, Sendable {
  public enum Reason: Int, Hashable, Sendable, CaseIterable {
    /// The owner keeps the rows; others decide what becomes of their copies.
    case unshared = 0
    /// Everyone's copy goes to the trash.
    case deleted = 1
    /// The rows live on in another zone.
    case moved = 2
  }

  /// Where the rows live on.
  public struct Successor: Hashable, Sendable {
    public let household: HouseholdID
    public let zone: ZoneID
    public init(household: HouseholdID, zone: ZoneID) {
      self.household = household
      self.zone = zone
    }
  }

  public let zone: ZoneID
  public let reason: Reason
  public let successor: Successor?

  public init(zone: ZoneID, reason: Reason, successor: Successor? = nil) {
    self.zone = zone
    self.reason = reason
    self.successor = successor
  }

  static let elements = 3

  func write(to writer: inout CBORWriter) {
    writer.id(zone)
    writer.uint(reason.rawValue)
    if let successor {
      writer.array(2)
      writer.id(successor.household)
      writer.id(successor.zone)
    } else {
      writer.null()
    }
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> CloseZone {
    let zone: ZoneID = try reader.id()
    guard let reason = Reason(rawValue: try reader.uint(max: 255)) else { throw .unexpected("reason") }
    if try reader.null() { return CloseZone(zone: zone, reason: reason) }
    try reader.array(exactly: 2)
    let household: HouseholdID = try reader.id()
    return CloseZone(zone: zone, reason: reason, successor: Successor(household: household, zone: try reader.id()))
  }
}
