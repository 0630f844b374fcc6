public import LatchkeyEncoding

/// What a person's other devices need to follow into a household; written in private households only (format §8, kind 12).
public struct HouseholdAccess: Hashable, Sendable {
  public let household: HouseholdID
  public let name: String
  public let epoch: EpochID
  public let key: EpochKey
  /// Where its store is.
  public let locator: String
  /// Roster heads that the newcomer must find, ascending.
  public let checkpoint: [EntryHash]

  public init(
    household: HouseholdID, name: String, epoch: EpochID, key: EpochKey, locator: String, checkpoint: [EntryHash]
  ) {
    self.household = household
    self.name = name
    self.epoch = epoch
    self.key = key
    self.locator = locator
    self.checkpoint = checkpoint
  }

  static let elements = 6

  func write(to writer: inout CBORWriter) {
    writer.id(household)
    writer.text(name)
    writer.id(epoch)
    writer.byteString(key.secret.bytes)
    writer.text(locator)
    writer.hashes(checkpoint)
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> HouseholdAccess {
    let household: HouseholdID = try reader.id()
    let name = try reader.name()
    let epoch: EpochID = try reader.id()
    guard let key = EpochKey(SecretBytes(try reader.byteString(max: EpochKey.byteCount))) else {
      throw .unexpected("32 bytes")
    }
    let locator = try reader.text(max: Limits.locator)
    return HouseholdAccess(
      household: household, name: name, epoch: epoch, key: key, locator: locator,
      checkpoint: try reader.hashes(max: Limits.rosterHeads))
  }
}
