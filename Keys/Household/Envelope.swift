internal import CLatchkeySodium
public import LatchkeyEncoding

/// Why an object does not open. Nothing of an object that fails is ever used (format §10).
public enum EnvelopeError: Error, Equatable, Sendable {
  /// Does not begin as an object of Latchkey.
  case notLatchkey
  /// Shorter than its parts.
  case truncated
  /// Larger than an object of its kind may be.
  case tooLarge
  /// Sealed by a newer version, or with a suite that this version does not have.
  case newer(version: UInt8, suite: UInt8)
  /// An object of another kind lies here.
  case wrongKind
  /// Sealed with another key, or for another place: household, epoch, zone, name or kind.
  case commitment
  /// The bytes were altered.
  case tag
  /// The length or the zero bytes after the content are wrong: its maker does not follow the format.
  case padding
}

/// Where an object stands. All of it is bound into the envelope, so an object opens at its own place only.
public struct EnvelopePlace: Hashable, Sendable {
  public let kind: ObjectKind
  public let household: HouseholdID
  public let epoch: EpochID
  public let zone: ZoneID
  /// Relative to the prefix; never the store, so that moving and mirroring are byte copies.
  public let name: ObjectName

  public init(kind: ObjectKind, household: HouseholdID, epoch: EpochID, zone: ZoneID, name: ObjectName) {
    self.kind = kind
    self.household = household
    self.epoch = epoch
    self.zone = zone
    self.name = name
  }

  /// The associated data (format §4).
  var associatedData: [UInt8] {
    var writer = CBORWriter()
    writer.array(8)
    writer.text("latchkey/1/ad")
    writer.uint(UInt64(Envelope.version))
    writer.uint(UInt64(Envelope.suite))
    writer.text(kind.letter)
    writer.id(household)
    writer.id(epoch)
    writer.id(zone)
    writer.text(name.text)
    return writer.bytes
  }
}

/// 24 random bytes, fresh for every sealing.
public struct EnvelopeNonce: Hashable, Sendable {
  package let bytes: [UInt8]

  public init(_ random: inout some RandomSource) {
    bytes = random.bytes(Envelope.nonceBytes)
    precondition(bytes.count == Envelope.nonceBytes, "a source of randomness gave fewer bytes than asked")
  }
}

/// Seals and opens objects (format §4).
///
/// XChaCha20-Poly1305 alone does not commit to its key: one ciphertext can be made to open under two. So a key per object
/// and a commitment come from one hash over (zone key, place, nonce), and the commitment is compared first.
public enum Envelope {
  static let version: UInt8 = 1
  static let suite: UInt8 = 1
  static let magic: [UInt8] = [0x4c, 0x4b]  // "LK"
  static let nonceBytes = 24
  static let commitmentBytes = 32
  /// Magic, version, suite and kind.
  static let prefaceBytes = 5
  static let headerBytes = prefaceBytes + nonceBytes + commitmentBytes
  static let tagBytes = 16
  static let lengthBytes = 4

  /// Bytes that an object has beyond its content, before padding: what writers subtract from a size they aim at.
  public static let overhead = headerBytes + lengthBytes + tagBytes

  /// How large the object becomes: PADMÉ with a floor of 4 KiB; heads go up to powers of two, because their lengths would
  /// otherwise count edits.
  public static func sealedSize(_ kind: ObjectKind, content: Int) -> Int {
    kind == .head ? Padding.powerOfTwo(content + overhead) : Padding.padme(content + overhead)
  }

  /// Seals `content` for one place.
  ///
  /// - Throws: ``EnvelopeError/tooLarge`` only.
  public static func seal(
    _ content: [UInt8], at place: EnvelopePlace, key: ZoneKey, nonce: EnvelopeNonce
  ) throws(EnvelopeError) -> [UInt8] {
    let size = sealedSize(place.kind, content: content.count)
    guard size <= place.kind.maximumSize else { throw .tooLarge }
    Sodium.start()
    let associatedData = place.associatedData
    let (commitment, objectKey) = keys(key, associatedData, nonce.bytes)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      count = size
      var header = magic
      header.append(contentsOf: [version, suite, place.kind.rawValue])
      header.append(contentsOf: nonce.bytes)
      header.append(contentsOf: commitment)
      let length = UInt32(content.count)
      for shift in stride(from: 24, through: 0, by: -8) {
        header.append(UInt8(truncatingIfNeeded: length >> UInt32(shift)))
      }
      // The memory is sealed where it lies: one allocation for objects of megabytes.
      let afterContent = header.count + content.count
      _ = buffer[0..<header.count].initialize(fromContentsOf: header)
      _ = buffer[header.count..<afterContent].initialize(fromContentsOf: content)
      buffer[afterContent...].initialize(repeating: 0)
      guard let start = buffer.baseAddress else { return }
      let plain = start + headerBytes
      _ = crypto_aead_xchacha20poly1305_ietf_encrypt(
        plain, nil, plain, UInt64(size - headerBytes - tagBytes), associatedData, UInt64(associatedData.count), nil,
        nonce.bytes, objectKey.bytes)
    }
  }

  /// Opens an object that lies at `place`. The checks and their order are those of format §10.
  public static func open(
    _ object: [UInt8], at place: EnvelopePlace, key: ZoneKey
  ) throws(EnvelopeError) -> [UInt8] {
    guard object.starts(with: magic) else { throw object.isEmpty ? .truncated : .notLatchkey }
    guard object.count >= prefaceBytes else { throw .truncated }
    guard object[2] == version, object[3] == suite else {
      throw object[2] == 0 || object[3] == 0 ? .notLatchkey : .newer(version: object[2], suite: object[3])
    }
    guard object[4] == place.kind.rawValue else { throw .wrongKind }
    guard object.count >= overhead else { throw .truncated }
    guard object.count <= place.kind.maximumSize else { throw .tooLarge }
    Sodium.start()
    let nonce = Array(object[prefaceBytes..<prefaceBytes + nonceBytes])
    let associatedData = place.associatedData
    let (commitment, objectKey) = keys(key, associatedData, nonce)
    guard constantTimeEqual(commitment, Array(object[prefaceBytes + nonceBytes..<headerBytes])) else {
      throw .commitment
    }
    var failure: EnvelopeError?
    let plainCount = object.count - headerBytes - tagBytes
    let content = [UInt8](unsafeUninitializedCapacity: plainCount) { plain, count in
      count = 0
      let opened = object.withUnsafeBufferPointer { sealed -> Int32 in
        guard let start = sealed.baseAddress else { return -1 }
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
          plain.baseAddress, nil, nil, start + headerBytes, UInt64(object.count - headerBytes),
          associatedData, UInt64(associatedData.count), nonce, objectKey.bytes)
      }
      guard opened == 0, let start = plain.baseAddress else {
        failure = .tag
        return
      }
      var length = 0
      for byte in plain[0..<lengthBytes] { length = length << 8 | Int(byte) }
      guard length <= plainCount - lengthBytes,
        sodium_is_zero(start + lengthBytes + length, plainCount - lengthBytes - length) == 1
      else {
        failure = .padding
        return
      }
      start.update(from: start + lengthBytes, count: length)
      count = length
    }
    if let failure { throw failure }
    return content
  }

  /// `okm = H_64(zone key; "envelope", AD, nonce)`: the commitment, and the key of this one object.
  static func keys(_ key: ZoneKey, _ associatedData: [UInt8], _ nonce: [UInt8]) -> ([UInt8], SecretBytes) {
    let okm = blake2b(64, "envelope", key: key.secret.bytes, parts: 2) {
      $0.byteString(associatedData)
      $0.byteString(nonce)
    }
    return (Array(okm.prefix(commitmentBytes)), SecretBytes(Array(okm.suffix(32))))
  }
}
