internal import CLatchkeySodium
internal import LatchkeyEncoding
internal import LatchkeyKeys

/// What a passphrase is stretched with (Argon2id 1.3, RFC 9106, as libsodium's `crypto_pwhash` takes it). Stored in the file.
struct PassphraseParameters: Hashable, Sendable {
  /// Passes over the memory.
  let operations: UInt64
  /// Bytes.
  let memory: UInt64
  /// 16 bytes.
  let salt: [UInt8]

  static let saltBytes = Int(crypto_pwhash_SALTBYTES)
  /// libsodium's "moderate" cost: 256 MiB, most of a second on one core. Files are written with it, and whoever writes less
  /// into one is not served: it would make guessing cheap.
  static let floor = (operations: UInt64(3), memory: UInt64(256 << 20))
  /// A file must not be able to make its reader run for minutes or out of memory.
  static let ceiling = (operations: UInt64(16), memory: UInt64(1 << 30))

  init(operations: UInt64, memory: UInt64, salt: [UInt8]) {
    (self.operations, self.memory, self.salt) = (operations, memory, salt)
  }

  /// The cost that files are written with, and a new salt.
  static func new() -> PassphraseParameters {
    var random = SystemRandom()
    return PassphraseParameters(
      operations: floor.operations, memory: floor.memory, salt: random.bytes(saltBytes))
  }

  var isAcceptable: Bool {
    (Self.floor.operations...Self.ceiling.operations).contains(operations)
      && (Self.floor.memory...Self.ceiling.memory).contains(memory) && salt.count == Self.saltBytes
  }
}

/// A passphrase, stretched: what seals the keyring file.
struct PassphraseKey: Sendable {
  let parameters: PassphraseParameters
  /// 32 bytes.
  let secret: SecretBytes

  static let nonceBytes = 24
  static let commitmentBytes = 32
  private static let tagBytes = 16

  /// Takes most of a second, and the memory that the parameters say.
  ///
  /// - Throws: ``KeyringError/unsafeParameters(path:)``; `system` if there is not so much memory.
  init(_ passphrase: SecretBytes, _ parameters: PassphraseParameters, path: String) throws(KeyringError) {
    guard parameters.isAcceptable else { throw .unsafeParameters(path: path) }
    var out = [UInt8](repeating: 0, count: 32)
    let failed = passphrase.bytes.withUnsafeBytes { bytes -> Bool in
      guard sodium_init() >= 0, let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return true }
      return crypto_pwhash(
        &out, UInt64(out.count), start, UInt64(bytes.count), parameters.salt, parameters.operations,
        Int(parameters.memory), crypto_pwhash_ALG_ARGON2ID13) != 0
    }
    guard !failed else { throw .system(path: path, step: "find the memory to open", code: outOfMemory) }
    self.parameters = parameters
    secret = SecretBytes(out)
  }

  /// `commitment ‖ ciphertext`: XChaCha20-Poly1305 under a key of this one sealing.
  func seal(_ plain: [UInt8], nonce: [UInt8]) -> [UInt8] {
    let data = associatedData
    let (commitment, key) = keys(data, nonce)
    var sealed = [UInt8](repeating: 0, count: plain.count + Self.tagBytes)
    _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
      &sealed, nil, plain, UInt64(plain.count), data, UInt64(data.count), nil, nonce, key.bytes)
    return commitment + sealed
  }

  /// What opening comes to.
  enum Opened {
    case plain(SecretBytes)
    /// Sealed with another passphrase.
    case wrongPassphrase
    case damaged
  }

  func open(_ sealed: [UInt8], nonce: [UInt8]) -> Opened {
    guard sealed.count >= Self.commitmentBytes + Self.tagBytes, nonce.count == Self.nonceBytes else { return .damaged }
    let data = associatedData
    let (commitment, key) = keys(data, nonce)
    // The cipher does not commit to its key: this does, and tells a wrong passphrase from an altered file.
    guard constantTimeEqual(commitment, Array(sealed.prefix(Self.commitmentBytes))) else { return .wrongPassphrase }
    let rest = Array(sealed.dropFirst(Self.commitmentBytes))
    var plain = [UInt8](repeating: 0, count: rest.count - Self.tagBytes)
    let isOpen =
      crypto_aead_xchacha20poly1305_ietf_decrypt(
        &plain, nil, nil, rest, UInt64(rest.count), data, UInt64(data.count), nonce, key.bytes) == 0
    return isOpen ? .plain(SecretBytes(plain)) : .damaged
  }

  private func keys(_ data: [UInt8], _ nonce: [UInt8]) -> (commitment: [UInt8], key: SecretBytes) {
    let okm = blake2b(64, "keyring-seal", key: secret.bytes, parts: 2) {
      $0.byteString(data)
      $0.byteString(nonce)
    }
    return (Array(okm.prefix(Self.commitmentBytes)), SecretBytes(Array(okm.suffix(32))))
  }

  /// The parameters, so that they are what the file was sealed with.
  private var associatedData: [UInt8] {
    var writer = CBORWriter()
    writer.array(4)
    writer.text("latchkey-keyring")
    writer.uint(parameters.operations)
    writer.uint(parameters.memory)
    writer.byteString(parameters.salt)
    return writer.bytes
  }
}

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

private let outOfMemory: Int32 = ENOMEM
