internal import CLatchkeySodium
internal import LatchkeyEncoding

/// The random key of an epoch, K_e: everything written during it hangs on this.
public struct EpochKey: Hashable, Sendable, CustomStringConvertible {
  public static let byteCount = 32
  public let secret: SecretBytes

  /// Nil unless there are 32 bytes.
  public init?(_ secret: SecretBytes) {
    guard secret.bytes.count == Self.byteCount else { return nil }
    self.secret = secret
  }

  /// A new key.
  public init(_ random: inout some RandomSource) { secret = SecretBytes(random.bytes(Self.byteCount)) }

  public var description: String { "(epoch key)" }
}

/// The key that a zone's envelopes are sealed with during one epoch, or an invite blob with its link's (format §4).
public struct ZoneKey: Hashable, Sendable, CustomStringConvertible {
  package let secret: SecretBytes
  package init(_ bytes: [UInt8]) { secret = SecretBytes(bytes) }
  public var description: String { "(zone key)" }
}
