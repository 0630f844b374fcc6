internal import CLatchkeySodium
public import LatchkeyEncoding

/// An X25519 public key (RFC 7748).
public struct BoxPublicKey: FixedBytes {
  public static let byteCount = 32
  private let raw: Hash32
  public init?(_ bytes: [UInt8]) {
    guard let raw = Hash32(bytes) else { return nil }
    self.raw = raw
  }
  init(raw: Hash32) { self.raw = raw }
  public var bytes: [UInt8] { raw.bytes }
  public static func < (a: Self, b: Self) -> Bool { a.raw < b.raw }
}

/// An X25519 secret key (RFC 7748): opens what was sealed to its public key.
public struct BoxKey: Hashable, Sendable, CustomStringConvertible {
  /// Only the keyring needs this: what to keep.
  public let secret: SecretBytes
  /// What others seal to.
  public let publicKey: BoxPublicKey

  /// Nil unless the secret has 32 bytes.
  public init?(secret: SecretBytes) {
    guard secret.bytes.count == Int(crypto_box_SECRETKEYBYTES) else { return nil }
    var publicKey = [UInt8](repeating: 0, count: Int(crypto_box_PUBLICKEYBYTES))
    _ = crypto_scalarmult_base(&publicKey, secret.bytes)
    self.secret = secret
    self.publicKey = BoxPublicKey(raw: Hash32(publicKey) ?? .zero)
  }

  /// The key that libsodium's `crypto_box_seed_keypair` makes of 32 bytes (a link's: format §8).
  init?(seed: SecretBytes) {
    guard seed.bytes.count == Int(crypto_box_SEEDBYTES) else { return nil }
    var publicKey = [UInt8](repeating: 0, count: Int(crypto_box_PUBLICKEYBYTES))
    var secret = [UInt8](repeating: 0, count: Int(crypto_box_SECRETKEYBYTES))
    _ = crypto_box_seed_keypair(&publicKey, &secret, seed.bytes)
    self.secret = SecretBytes(secret)
    self.publicKey = BoxPublicKey(raw: Hash32(publicKey) ?? .zero)
    sodium_memzero(&secret, secret.count)
  }

  /// A new key.
  public init(_ random: inout some RandomSource) {
    guard let key = BoxKey(secret: SecretBytes(random.bytes(Int(crypto_box_SECRETKEYBYTES)))) else {
      preconditionFailure("a source of randomness gave fewer bytes than asked")
    }
    self = key
  }

  public var description: String { "(box key of \(publicKey.short))" }
}
