internal import CLatchkeySodium
internal import LatchkeyEncoding

/// libsodium's sealed boxes (`crypto_box_seal`): for one recipient, from nobody in particular.
enum SealedBox {
  /// Bytes that a box is longer than what is in it: the ephemeral public key and the tag.
  static let overhead = 32 + Sodium.boxOverhead

  /// The same bytes that `crypto_box_seal` makes, with the ephemeral key from the caller's randomness.
  ///
  /// Nil for a public key that no secret belongs to (of small order).
  static func seal(
    _ plain: [UInt8], to recipient: BoxPublicKey, random: inout some RandomSource
  ) -> [UInt8]? {
    let ephemeral = BoxKey(&random)
    var hasher = Blake2b(length: 24)
    hasher.update(ephemeral.publicKey.bytes)
    hasher.update(recipient.bytes)
    let nonce = hasher.finish()
    var box = [UInt8](repeating: 0, count: plain.count + Sodium.boxOverhead)
    guard
      crypto_box_easy(&box, plain, UInt64(plain.count), nonce, recipient.bytes, ephemeral.secret.bytes) == 0
    else { return nil }
    return ephemeral.publicKey.bytes + box
  }

  /// Nil if it was sealed to another key, or altered.
  static func open(_ box: [UInt8], with key: BoxKey) -> [UInt8]? {
    guard box.count >= overhead else { return nil }
    var plain = [UInt8](repeating: 0, count: box.count - overhead)
    let opened = crypto_box_seal_open(&plain, box, UInt64(box.count), key.publicKey.bytes, key.secret.bytes)
    return opened == 0 ? plain : nil
  }
}
