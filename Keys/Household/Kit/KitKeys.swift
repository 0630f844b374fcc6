internal import CLatchkeySodium
public import LatchkeyEncoding

/// What derives from a recovery kit's seed, by libsodium's `crypto_kdf` with context `lk1-kit-` (format §8): the keys of a
/// device on paper, and where its blobs lie.
public struct KitKeys: Sendable {
  /// The device that the paper is.
  public let device: DeviceKeys
  /// Names and seals the blobs. A device that made a kit may keep this until the kit is let in, and forgets the rest.
  public let place: KitPlace

  public init(_ phrase: RecoveryPhrase) {
    func derived(_ number: UInt64) -> SecretBytes {
      var out = [UInt8](repeating: 0, count: 32)
      _ = crypto_kdf_derive_from_key(&out, out.count, number, "lk1-kit-", phrase.seed.bytes)
      return SecretBytes(out)
    }
    guard let signing = SigningKey(seed: derived(1)), let box = BoxKey(seed: derived(2)) else {
      preconditionFailure("32 bytes are a seed")
    }
    device = DeviceKeys(signing: signing, box: box)
    place = KitPlace(names: derived(3), blobs: derived(4))
  }
}

/// Where a kit's blobs lie and what they are sealed with. It opens no household: the epoch key in a blob is sealed to the kit.
public struct KitPlace: Hashable, Sendable, CustomStringConvertible {
  /// Only the keyring needs these two: what to keep until the kit is let in.
  public let names: SecretBytes
  public let blobs: SecretBytes

  public init(names: SecretBytes, blobs: SecretBytes) {
    self.names = names
    self.blobs = blobs
  }

  /// 32 digits under which all blobs of this kit lie, whatever the household: list it with the words alone.
  public var prefix: String { Base32.encode(blake2b(20, "prefix", key: names.bytes, parts: 1) { $0.id(ZoneID.zero) }) }

  /// `k/<2>/<30>`, below ``prefix``: one per household and epoch.
  public func name(household: HouseholdID, epoch: EpochID) -> ObjectName {
    shardedName(
      .kit,
      blake2b(20, "kit-tag", key: names.bytes, parts: 2) {
        $0.id(household)
        $0.id(epoch)
      })
  }

  /// The name in the store.
  public func objectName(_ below: ObjectName) -> ObjectName { derivedName("\(prefix)/\(below.text)") }

  /// A blob's place, for its envelope: a kit belongs to no epoch.
  public func place(_ below: ObjectName) -> EnvelopePlace {
    EnvelopePlace(kind: .kit, household: .zero, epoch: .zero, zone: .zero, name: below)
  }

  /// What blobs are sealed with.
  public var key: ZoneKey { ZoneKey(blobs.bytes) }

  public var description: String { "(place of a kit)" }
}
