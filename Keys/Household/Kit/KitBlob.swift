public import LatchkeyEncoding

/// What a recovery kit finds in the store with its words alone: an epoch to begin with, from which it walks forward to the
/// newest (format §8). Written when the kit is let in.
public struct KitBlob: Hashable, Sendable {
  public let household: HouseholdID
  public let epoch: EpochID
  /// The epoch's key, sealed to the kit's box key.
  public let seal: KeySeal
  /// Ascending: entries that the recovered device must find, so that the store cannot show it an older world.
  public let rosterHeads: [EntryHash]
  public let householdName: String
  public let isPrivate: Bool

  public init(
    household: HouseholdID, epoch: EpochID, seal: KeySeal, rosterHeads: [EntryHash], householdName: String,
    isPrivate: Bool
  ) {
    self.household = household
    self.epoch = epoch
    self.seal = seal
    self.rosterHeads = rosterHeads
    self.householdName = householdName
    self.isPrivate = isPrivate
  }

  private static let elements = 7

  public var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(Self.elements)
    writer.uint(1)
    writer.id(household)
    writer.id(epoch)
    writer.id(seal)
    writer.hashes(rosterHeads)
    writer.text(householdName)
    writer.bool(isPrivate)
    return writer.bytes
  }

  public init(decoding bytes: [UInt8]) throws(FormatError) {
    var reader = CBORReader(bytes)
    try reader.versionOne(elements: Self.elements)
    self = try decoding { () throws(CBORError) in
      let household: HouseholdID = try reader.id()
      let epoch: EpochID = try reader.id()
      let seal: KeySeal = try reader.id()
      let heads = try reader.hashes(max: Limits.rosterHeads)
      let name = try reader.name()
      let isPrivate = try reader.bool()
      try reader.finish()
      return KitBlob(
        household: household, epoch: epoch, seal: seal, rosterHeads: heads, householdName: name, isPrivate: isPrivate)
    }
  }

  /// Where it lies, below the kit's prefix; a reader refuses a blob under another name.
  public func name(_ place: KitPlace) -> ObjectName { place.name(household: household, epoch: epoch) }

  /// The epoch's keys, opened with the kit. Nil if the seal is not the one that everybody else computes.
  public func open(with kit: DeviceKeys) -> EpochKeys? {
    seal.open(with: kit.box).map { EpochKeys(household: household, epoch: epoch, key: $0) }
  }
}
