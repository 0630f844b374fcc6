internal import CLatchkeySodium
public import LatchkeyEncoding

/// An epoch's key under another epoch's: how whoever holds the newer one reads back (format §8).
///
/// `XChaCha20-Poly1305-IETF` with the key `H_32(K_outer; "former", inner epoch id)`, the given nonce and the inner epoch's id
/// as associated data. That cipher does not commit to its key, which does no harm here: what is opened must fit the
/// inner epoch's own commitment.
public struct KeyBox: Hashable, Sendable {
  public static let nonceBytes = 24
  public static let boxBytes = EpochKey.byteCount + 16
  /// 24 bytes.
  public let nonce: [UInt8]
  /// 48 bytes.
  public let box: [UInt8]

  /// Nil unless the lengths are as stated.
  public init?(nonce: [UInt8], box: [UInt8]) {
    guard nonce.count == Self.nonceBytes, box.count == Self.boxBytes else { return nil }
    self.nonce = nonce
    self.box = box
  }

  /// - Parameters:
  ///   - key: of `epoch`: the inner one.
  ///   - outer: whoever holds this will read `key`.
  public init(_ key: EpochKey, of epoch: EpochID, under outer: EpochKey, random: inout some RandomSource) {
    nonce = random.bytes(Self.nonceBytes)
    let boxKey = Self.key(outer, epoch)
    let associatedData = epoch.bytes
    var out = [UInt8](repeating: 0, count: Self.boxBytes)
    _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
      &out, nil, key.secret.bytes, UInt64(EpochKey.byteCount), associatedData, UInt64(associatedData.count), nil, nonce,
      boxKey.bytes)
    box = out
  }

  /// The key inside; nil if it was not sealed under `outer` for `epoch`. Whether it is that epoch's is for its commitment
  /// to say.
  public func open(_ epoch: EpochID, under outer: EpochKey) -> EpochKey? {
    let boxKey = Self.key(outer, epoch)
    let associatedData = epoch.bytes
    var opened = [UInt8](repeating: 0, count: EpochKey.byteCount)
    guard
      crypto_aead_xchacha20poly1305_ietf_decrypt(
        &opened, nil, nil, box, UInt64(box.count), associatedData, UInt64(associatedData.count), nonce, boxKey.bytes)
        == 0
    else { return nil }
    let secret = SecretBytes(opened)
    sodium_memzero(&opened, opened.count)
    return EpochKey(secret)
  }

  private static func key(_ outer: EpochKey, _ epoch: EpochID) -> SecretBytes {
    SecretBytes(blake2b(32, "former", key: outer.secret.bytes, parts: 1) { $0.id(epoch) })
  }
}
