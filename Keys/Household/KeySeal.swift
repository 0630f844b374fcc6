internal import CLatchkeySodium
public import LatchkeyEncoding

/// An epoch key sealed to one box key (format §8).
///
/// The ephemeral key derives from (K_e, recipient), so everyone who holds K_e recomputes every seal, and nobody can hand
/// one recipient a key that differs from the others'.
public struct KeySeal: FixedBytes {
  public static let byteCount = 80
  public let bytes: [UInt8]
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }
  public static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }

  /// Opens the seal and makes sure that it is the one that everybody else computes.
  ///
  /// Nil where it is sealed to another key, altered, or made in any way but the stated one.
  public func open(with key: BoxKey) -> EpochKey? {
    let ephemeral = Array(bytes.prefix(32))
    let box = Array(bytes.dropFirst(32))
    let nonce = Self.nonce(ephemeral, key.publicKey)
    var opened = [UInt8](repeating: 0, count: EpochKey.byteCount)
    guard crypto_box_open_easy(&opened, box, UInt64(box.count), nonce, ephemeral, key.secret.bytes) == 0 else {
      return nil
    }
    let secret = SecretBytes(opened)
    sodium_memzero(&opened, opened.count)
    guard let epochKey = EpochKey(secret), epochKey.seal(to: key.publicKey) == self else { return nil }
    return epochKey
  }

  fileprivate static func nonce(_ ephemeral: [UInt8], _ recipient: BoxPublicKey) -> [UInt8] {
    blake2b(24, "seal-nonce", parts: 2) {
      $0.byteString(ephemeral)
      $0.id(recipient)
    }
  }
}

extension EpochKey {
  /// The one seal of this key to `recipient`. Nil for a public key that no secret belongs to (of small order).
  public func seal(to recipient: BoxPublicKey) -> KeySeal? {
    let ephemeral = SecretBytes(blake2b(32, "seal-key", key: secret.bytes, parts: 1) { $0.id(recipient) })
    guard let key = BoxKey(secret: ephemeral) else { return nil }
    var box = [UInt8](repeating: 0, count: EpochKey.byteCount + Sodium.boxOverhead)
    let nonce = KeySeal.nonce(key.publicKey.bytes, recipient)
    guard
      crypto_box_easy(
        &box, secret.bytes, UInt64(secret.bytes.count), nonce, recipient.bytes, ephemeral.bytes) == 0
    else { return nil }
    return KeySeal(key.publicKey.bytes + box)
  }

  /// `H_32(K_e; "commitment", [parent epoch ids])` (format §8): the first epoch has no parents.
  ///
  /// - Parameter parents: in ascending order.
  public func commitment(parents: [EpochID]) -> Hash32 {
    hash32("commitment", key: secret.bytes, parts: 1) { $0.hashes(parents) }
  }
}
