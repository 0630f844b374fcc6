internal import CLatchkeySodium
public import LatchkeyEncoding

/// What a signature is for: bytes signed for one purpose never pass for another (format §1).
public enum SigningPurpose: String, Sendable, CaseIterable {
  case certificate, entry, head, claim
  /// In place of `claim` where an invite's claim key is the claimant's own: answering a link never answers an invite that was
  /// sent to the device itself.
  case directedClaim = "directed-claim"
  case card, inbox

  /// `H_32(; purpose, body)`: what the signature covers; for `entry` it is the entry's hash (format §6).
  public func hash(of body: [UInt8]) -> Hash32 {
    hash32(rawValue, parts: 1) { $0.byteString(body) }
  }

  /// What Ed25519 signs.
  func message(_ body: [UInt8]) -> [UInt8] {
    Array("latchkey/1/sign/\(rawValue)".utf8) + hash(of: body).bytes
  }
}

/// An Ed25519 signature (RFC 8032).
public struct Signature: FixedBytes {
  public static let byteCount = 64
  public let bytes: [UInt8]
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }
  private init(unchecked bytes: [UInt8]) { self.bytes = bytes }
  /// Stands where a signature is still to come (format §8, *mine*). It verifies under no key.
  public static let absent = Signature(unchecked: [UInt8](repeating: 0, count: byteCount))
  public static func < (a: Self, b: Self) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }
}

/// An Ed25519 public key.
public struct SigningPublicKey: FixedBytes {
  public static let byteCount = 32
  private let raw: Hash32
  public init?(_ bytes: [UInt8]) {
    guard let raw = Hash32(bytes) else { return nil }
    self.raw = raw
  }
  init(raw: Hash32) { self.raw = raw }
  public var bytes: [UInt8] { raw.bytes }
  public static func < (a: Self, b: Self) -> Bool { a.raw < b.raw }

  /// Whether the holder of this key signed `body` for `purpose`. Non-canonical signatures and small-order keys fail.
  public func verifies(_ signature: Signature, _ purpose: SigningPurpose, _ body: [UInt8]) -> Bool {
    let message = purpose.message(body)
    return crypto_sign_verify_detached(signature.bytes, message, UInt64(message.count), bytes) == 0
  }
}

/// An Ed25519 key that signs (RFC 8032); kept as its 32-byte seed.
public struct SigningKey: Hashable, Sendable, CustomStringConvertible {
  private let seed: SecretBytes
  private let expanded: SecretBytes
  /// What others verify with.
  public let publicKey: SigningPublicKey

  /// Nil unless the seed has 32 bytes.
  public init?(seed: SecretBytes) {
    guard seed.bytes.count == Int(crypto_sign_SEEDBYTES) else { return nil }
    var publicKey = [UInt8](repeating: 0, count: Int(crypto_sign_PUBLICKEYBYTES))
    var secret = [UInt8](repeating: 0, count: Int(crypto_sign_SECRETKEYBYTES))
    _ = crypto_sign_seed_keypair(&publicKey, &secret, seed.bytes)
    self.seed = seed
    self.expanded = SecretBytes(secret)
    self.publicKey = SigningPublicKey(raw: Hash32(publicKey) ?? .zero)
    sodium_memzero(&secret, secret.count)
  }

  /// A new key.
  public init(_ random: inout some RandomSource) {
    guard let key = SigningKey(seed: SecretBytes(random.bytes(Int(crypto_sign_SEEDBYTES)))) else {
      preconditionFailure("a source of randomness gave fewer bytes than asked")
    }
    self = key
  }

  /// Signs `body` for `purpose`; the same input gives the same signature.
  public func sign(_ purpose: SigningPurpose, _ body: [UInt8]) -> Signature {
    let message = purpose.message(body)
    var out = [UInt8](repeating: 0, count: Int(crypto_sign_BYTES))
    _ = crypto_sign_detached(&out, nil, message, UInt64(message.count), expanded.bytes)
    return Signature(out) ?? .absent
  }

  /// Only the keyring needs this: what to keep.
  public var secret: SecretBytes { seed }

  public var description: String { "(signing key of \(publicKey.short))" }
}
