/// Bounds of the format (format §12): every decoder of this room keeps to them.
public enum Limits {
  /// Bytes of UTF-8 in the name of a person, device, household or zone.
  public static let name = 1024
  /// Roster heads that one entry or head may cite.
  public static let rosterHeads = 256
  /// Devices of one person, and certificates in a chain.
  public static let devicesPerPerson = 16
  /// Bytes of a sealed claim, invite, kit blob, card or inbox message.
  public static let invite = 65_536
  /// Bytes of a sealed segment (and of whatever else has no bound of its own).
  public static let segment = 64 << 20
  /// Bytes of a sealed head.
  public static let head = 16 << 20
  /// Bytes of the picture on a card.
  public static let picture = 16_384
  /// Bytes of UTF-8 in a store locator or credential: a URL and what belongs to it.
  public static let locator = 8192
  /// Elements of the lists in `Next`, and zones in an invite blob.
  public static let list = 65_536
}
