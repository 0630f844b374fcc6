internal import LatchkeyEncoding
internal import LatchkeyKeys

/// `CBOR ["latchkey-keyring", version, protection, body] ‖ H_32(; "keyring-file", all before)`.
///
/// The check tells a cut or altered file, of any version, from a newer one. It is no defence against somebody who may
/// write the file: they could as well put another in its place, and that is what the folder's permissions are for.
enum KeyringFile {
  private static let magic = "latchkey-keyring"
  private static let version = 1
  /// How `body` is protected. 0: not at all, it is the contents' CBOR.
  private static let unprotected = 0

  static func encode(_ contents: KeyringContents) -> [UInt8] {
    var body = CBORWriter(reserving: 4096)
    contents.write(to: &body)
    var writer = CBORWriter(reserving: body.bytes.count + 64)
    writer.array(4)
    writer.text(magic)
    writer.uint(version)
    writer.uint(unprotected)
    writer.byteString(body.bytes)
    return writer.bytes + check(writer.bytes)
  }

  static func decode(_ file: [UInt8], path: String) throws(KeyringError) -> KeyringContents {
    guard file.count > Hash32.byteCount else { throw .damaged(path: path) }
    let whole = Array(file.dropLast(Hash32.byteCount))
    guard check(whole) == Array(file.suffix(Hash32.byteCount)) else { throw .damaged(path: path) }
    do {
      guard let contents = try read(whole) else { throw KeyringError.newer(path: path) }
      return contents
    } catch let error as KeyringError {
      throw error
    } catch {
      throw .damaged(path: path)
    }
  }

  /// Nil for a newer version, or a protection that this one does not have.
  private static func read(_ whole: [UInt8]) throws(CBORError) -> KeyringContents? {
    var reader = CBORReader(whole)
    let count = try reader.array()
    guard try reader.text(max: magic.utf8.count) == magic else { throw .unexpected("keyring") }
    guard try reader.uint() == UInt64(version), count == 4, try reader.uint() == UInt64(unprotected) else { return nil }
    var body = CBORReader(try reader.byteString())
    try reader.finish()
    let contents = try KeyringContents.read(&body)
    try body.finish()
    return contents
  }

  private static func check(_ bytes: [UInt8]) -> [UInt8] {
    hash32("keyring-file", parts: 1) { $0.byteString(bytes) }.bytes
  }
}

/// `CBOR ["latchkey-state", version, household, state] ‖ H_32(state key; "state-file", all before)`.
///
/// Whoever can write the file but does not hold the keyring cannot make one that is believed.
enum StateFile {
  private static let magic = "latchkey-state"
  private static let version = 1

  static func encode(_ state: [UInt8], household: HouseholdID, key: SecretBytes) -> [UInt8] {
    var writer = CBORWriter(reserving: state.count + 96)
    writer.array(4)
    writer.text(magic)
    writer.uint(version)
    writer.id(household)
    writer.byteString(state)
    return writer.bytes + code(writer.bytes, key)
  }

  static func decode(
    _ file: [UInt8], household: HouseholdID, key: SecretBytes, path: String
  ) throws(KeyringError) -> [UInt8] {
    guard file.count > Hash32.byteCount else { throw .damaged(path: path) }
    let whole = Array(file.dropLast(Hash32.byteCount))
    guard constantTimeEqual(code(whole, key), Array(file.suffix(Hash32.byteCount))) else { throw .damaged(path: path) }
    do {
      var reader = CBORReader(whole)
      let count = try reader.array()
      guard try reader.text(max: magic.utf8.count) == magic else { throw KeyringError.damaged(path: path) }
      guard try reader.uint() == UInt64(version), count == 4 else { throw KeyringError.newer(path: path) }
      guard try reader.id(HouseholdID.self) == household else { throw KeyringError.damaged(path: path) }
      let state = try reader.byteString()
      try reader.finish()
      return state
    } catch let error as KeyringError {
      throw error
    } catch {
      throw .damaged(path: path)
    }
  }

  private static func code(_ bytes: [UInt8], _ key: SecretBytes) -> [UInt8] {
    hash32("state-file", key: key.bytes, parts: 1) { $0.byteString(bytes) }.bytes
  }
}
