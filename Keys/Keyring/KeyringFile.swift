internal import CLatchkeySodium
internal import LatchkeyEncoding
internal import LatchkeyKeys

/// `CBOR ["latchkey-keyring", version, protection, body] ‖ H_32(; "keyring-file", all before)`.
///
/// The check tells a cut or altered file, of any version, from a newer one. It is no defence against somebody who may
/// write the file: they could as well put another in its place, and that is what the folder's permissions are for.
enum KeyringFile {
  private static let magic = "latchkey-keyring"
  private static let version = 1

  /// How `body` is protected.
  private enum Protection {
    /// Not at all: it is the contents' CBOR.
    static let none = 0
    /// `CBOR [operations, memory in bytes, salt, nonce, commitment ‖ ciphertext]`, see ``PassphraseKey``.
    static let passphrase = 1
  }

  /// - Parameter key: what seals it; nil for nothing.
  static func encode(_ contents: KeyringContents, sealedWith key: PassphraseKey?) -> [UInt8] {
    var body = CBORWriter(reserving: 4096)
    contents.write(to: &body)
    var writer = CBORWriter(reserving: body.bytes.count + 256)
    writer.array(4)
    writer.text(magic)
    writer.uint(version)
    writer.uint(key == nil ? Protection.none : Protection.passphrase)
    writer.byteString(key.map { sealed(body.bytes, $0) } ?? body.bytes)
    return writer.bytes + check(writer.bytes)
  }

  private static func sealed(_ plain: [UInt8], _ key: PassphraseKey) -> [UInt8] {
    var random = SystemRandom()
    let nonce = random.bytes(PassphraseKey.nonceBytes)
    var writer = CBORWriter(reserving: plain.count + 128)
    writer.array(5)
    writer.uint(key.parameters.operations)
    writer.uint(key.parameters.memory)
    writer.byteString(key.parameters.salt)
    writer.byteString(nonce)
    writer.byteString(key.seal(plain, nonce: nonce))
    return writer.bytes
  }

  /// - Parameter unlock: finds the key of a sealed file.
  /// - Returns: the contents, and the key that they are sealed with.
  static func decode(
    _ file: [UInt8], path: String, unlock: (PassphraseParameters) throws(KeyringError) -> PassphraseKey
  ) throws(KeyringError) -> (contents: KeyringContents, key: PassphraseKey?) {
    switch try read(file, path: path) {
    case .plain(let body): return (try contents(body, path), nil)
    case .sealed(let parameters, let nonce, let sealed):
      let key = try unlock(parameters)
      switch key.open(sealed, nonce: nonce) {
      case .plain(let body): return (try contents(body.bytes, path), key)
      case .wrongPassphrase: throw .passphraseWrong(path: path)
      case .damaged: throw .damaged(path: path)
      }
    }
  }

  static func isSealed(_ file: [UInt8], path: String) throws(KeyringError) -> Bool {
    if case .sealed = try read(file, path: path) { true } else { false }
  }

  private enum Body {
    case plain([UInt8])
    case sealed(PassphraseParameters, nonce: [UInt8], [UInt8])
  }

  private static func read(_ file: [UInt8], path: String) throws(KeyringError) -> Body {
    guard file.count > Hash32.byteCount else { throw .damaged(path: path) }
    let whole = Array(file.dropLast(Hash32.byteCount))
    guard check(whole) == Array(file.suffix(Hash32.byteCount)) else { throw .damaged(path: path) }
    let body: Body?
    do { body = try read(whole) } catch { throw .damaged(path: path) }
    guard let body else { throw .newer(path: path) }
    return body
  }

  /// Nil for a newer version, or a protection that this one does not have.
  private static func read(_ whole: [UInt8]) throws(CBORError) -> Body? {
    var reader = CBORReader(whole)
    let count = try reader.array()
    guard try reader.text(max: magic.utf8.count) == magic else { throw .unexpected("keyring") }
    guard try reader.uint() == UInt64(version), count == 4 else { return nil }
    let protection = try reader.uint()
    guard protection <= UInt64(Protection.passphrase) else { return nil }
    let body = try reader.byteString()
    try reader.finish()
    guard protection == UInt64(Protection.passphrase) else { return .plain(body) }
    var inner = CBORReader(body)
    try inner.array(exactly: 5)
    let parameters = PassphraseParameters(
      operations: try inner.uint(), memory: try inner.uint(), salt: try inner.byteString(max: 64))
    let nonce = try inner.byteString(max: PassphraseKey.nonceBytes)
    let sealed = try inner.byteString()
    try inner.finish()
    return .sealed(parameters, nonce: nonce, sealed)
  }

  private static func contents(_ body: [UInt8], _ path: String) throws(KeyringError) -> KeyringContents {
    do {
      var reader = CBORReader(body)
      let contents = try KeyringContents.read(&reader)
      try reader.finish()
      return contents
    } catch { throw .damaged(path: path) }
  }

  private static func check(_ bytes: [UInt8]) -> [UInt8] {
    hash32("keyring-file", parts: 1) { $0.byteString(bytes) }.bytes
  }
}

/// `CBOR ["latchkey-state", 2, household, nonce, ciphertext] ‖ H_32(state key; "state-file", all before)`.
///
/// Whoever can write the file but does not hold the keyring cannot make one that is believed. What is kept of a household holds
/// other households' keys, so it is sealed: XChaCha20-Poly1305 under `H_32(state key; "state-seal", nonce)`, with the household
/// as associated data. Version 1 was `CBOR ["latchkey-state", 1, household, state]`, not sealed; it is still read.
enum StateFile {
  private static let magic = "latchkey-state"
  private static let nonceBytes = 24
  private static let tagBytes = 16

  static func encode(_ state: [UInt8], household: HouseholdID, key: SecretBytes) -> [UInt8] {
    var random = SystemRandom()
    let nonce = random.bytes(nonceBytes)
    var sealed = [UInt8](repeating: 0, count: state.count + tagBytes)
    _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
      &sealed, nil, state, UInt64(state.count), household.bytes, UInt64(household.bytes.count), nil, nonce,
      sealKey(key, nonce).bytes)
    var writer = CBORWriter(reserving: sealed.count + 128)
    writer.array(5)
    writer.text(magic)
    writer.uint(2)
    writer.id(household)
    writer.byteString(nonce)
    writer.byteString(sealed)
    return writer.bytes + code(writer.bytes, key)
  }

  static func decode(
    _ file: [UInt8], household: HouseholdID, key: SecretBytes, path: String
  ) throws(KeyringError) -> [UInt8] {
    guard file.count > Hash32.byteCount else { throw .damaged(path: path) }
    let whole = Array(file.dropLast(Hash32.byteCount))
    guard constantTimeEqual(code(whole, key), Array(file.suffix(Hash32.byteCount))) else { throw .damaged(path: path) }
    let state: [UInt8]?
    do { state = try read(whole, household, key) } catch { throw .damaged(path: path) }
    guard let state else { throw .newer(path: path) }
    return state
  }

  /// Nil for a newer version.
  private static func read(
    _ whole: [UInt8], _ household: HouseholdID, _ key: SecretBytes
  ) throws(CBORError) -> [UInt8]? {
    var reader = CBORReader(whole)
    let count = try reader.array()
    guard try reader.text(max: magic.utf8.count) == magic else { throw .unexpected("state") }
    let version = try reader.uint()
    guard version == 1 && count == 4 || version == 2 && count == 5 else { return nil }
    guard try reader.id(HouseholdID.self) == household else { throw .unexpected("this household") }
    let nonce = version == 2 ? try reader.byteString(max: nonceBytes) : []
    let kept = try reader.byteString()
    try reader.finish()
    if version == 1 { return kept }
    guard nonce.count == nonceBytes, kept.count >= tagBytes else { throw .unexpected("sealed state") }
    var state = [UInt8](repeating: 0, count: kept.count - tagBytes)
    let isOpen =
      crypto_aead_xchacha20poly1305_ietf_decrypt(
        &state, nil, nil, kept, UInt64(kept.count), household.bytes, UInt64(household.bytes.count), nonce,
        sealKey(key, nonce).bytes) == 0
    guard isOpen else { throw .unexpected("state sealed with this key") }
    return state
  }

  private static func sealKey(_ key: SecretBytes, _ nonce: [UInt8]) -> SecretBytes {
    SecretBytes(hash32("state-seal", key: key.bytes, parts: 1) { $0.byteString(nonce) }.bytes)
  }

  private static func code(_ bytes: [UInt8], _ key: SecretBytes) -> [UInt8] {
    hash32("state-file", key: key.bytes, parts: 1) { $0.byteString(bytes) }.bytes
  }
}
