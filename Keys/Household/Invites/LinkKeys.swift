internal import CLatchkeySodium
public import LatchkeyEncoding

/// The random bytes in a link that all its keys derive from.
public struct InviteSecret: Hashable, Sendable, CustomStringConvertible {
  public static let byteCount = 32
  public let secret: SecretBytes

  /// Nil unless there are 32 bytes.
  public init?(_ secret: SecretBytes) {
    guard secret.bytes.count == Self.byteCount else { return nil }
    self.secret = secret
  }

  /// The secret of a new link.
  public init(_ random: inout some RandomSource) { secret = SecretBytes(random.bytes(Self.byteCount)) }

  public var keys: LinkKeys { LinkKeys(secret) }

  public var description: String { "(invite secret)" }
}

/// What derives from a link's secret, by libsodium's `crypto_kdf` with context `lk1-link` (format §8).
public struct LinkKeys: Sendable {
  /// Signs the claim.
  public let claimKey: SigningKey
  /// Opens the epoch key that is sealed for this link.
  public let boxKey: BoxKey
  /// Seals the invite blob.
  public let blobKey: ZoneKey
  /// Below ``blobPrefix``.
  public let blobName: ObjectName
  /// 32 digits: where the blob lies, apart from every zone.
  public let blobPrefix: String

  /// - Parameter secret: 32 bytes.
  fileprivate init(_ secret: SecretBytes) {
    func derived(_ number: UInt64) -> SecretBytes {
      var out = [UInt8](repeating: 0, count: 32)
      _ = crypto_kdf_derive_from_key(&out, out.count, number, "lk1-link", secret.bytes)
      return SecretBytes(out)
    }
    guard let claimKey = SigningKey(seed: derived(1)), let boxKey = BoxKey(seed: derived(2)) else {
      preconditionFailure("32 bytes are a seed")
    }
    self.claimKey = claimKey
    self.boxKey = boxKey
    let names = derived(3)
    blobKey = ZoneKey(derived(4).bytes)
    blobPrefix = Base32.encode(blake2b(20, "prefix", key: names.bytes, parts: 1) { $0.id(ZoneID.zero) })
    blobName = shardedName(.invite, blake2b(20, "invite-tag", key: names.bytes, parts: 0) { _ in })
  }

  /// Where the blob lies in the store.
  public var objectName: ObjectName { derivedName("\(blobPrefix)/\(blobName.text)") }

  /// The blob's place, for its envelope: an invite belongs to no epoch.
  public var place: EnvelopePlace {
    EnvelopePlace(kind: .invite, household: .zero, epoch: .zero, zone: .zero, name: blobName)
  }
}
