public import LatchkeyEncoding

/// Why an object in an inbox is no invite for this device.
public enum InboxError: Error, Equatable, Sendable {
  /// Does not begin as an object of Latchkey's inbox, or is shorter than its parts or larger than it may be.
  case notAMessage
  /// Sealed by a newer version, or with a suite that this version does not have.
  case newer
  /// Sealed to another device, or altered: nobody but the right device can tell which.
  case notForThisDevice
  /// Opens, and its length or the zero bytes after the content are wrong.
  case padding
  case format(FormatError)
  /// The inviter's certificates do not hold.
  case certificates(CertificateError)
  /// Not signed by the inviter.
  case forged
  /// Written by the inviter for somebody else, and sealed to this device by whoever opened it.
  case otherRecipient
}

/// An invite that was sent to one device: nothing in it lets anybody else in (format §8, *Inbox*).
///
/// The inviter signs all of it: household, checkpoint, role, zones, expiry, store, and for whom it is. A value of this type exists
/// only if every signature holds.
public struct InboxMessage: Hashable, Sendable {
  /// As a link's blob, with the epoch's key sealed to the recipient device's own box key.
  public let blob: InviteBlob
  public let recipient: PersonID
  public let device: DeviceID
  /// Where the household's store is; used only after a person on the device agreed.
  public let locator: String
  /// From the inviting person's first device to the one that signed.
  public let inviter: CertificateChain

  private let body: [UInt8]
  private let signature: Signature

  private static let elements = 6

  /// The same for every copy of the message, whatever its name.
  public var id: Hash32 { SigningPurpose.inbox.hash(of: body) }

  /// - Parameters:
  ///   - recipient: as on the card.
  ///   - inviter: ends at `keys`.
  public init(
    blob: InviteBlob, recipient: CertificateChain, locator: String, inviter: CertificateChain, keys: DeviceKeys
  ) {
    self.blob = blob
    self.recipient = recipient.person
    device = recipient.keys.id
    self.locator = locator
    self.inviter = inviter
    var writer = CBORWriter()
    writer.array(Self.elements)
    writer.uint(1)
    writer.byteString(blob.encoded)
    writer.id(recipient.person)
    writer.id(recipient.keys.id)
    writer.text(locator)
    write(certificates: inviter.certificates, to: &writer)
    body = writer.bytes
    signature = keys.signing.sign(.inbox, body)
  }

  /// What is padded and sealed.
  public var encoded: [UInt8] {
    var writer = CBORWriter()
    writer.array(2)
    writer.byteString(body)
    writer.id(signature)
    return writer.bytes
  }

  /// Reads and verifies what ``encoded`` wrote; whom it is for is the caller's to compare.
  public init(decoding bytes: [UInt8]) throws(InboxError) {
    let certificates: [Certificate]
    do {
      (body, signature) = try decoding { () throws(CBORError) in
        var reader = CBORReader(bytes)
        try reader.array(exactly: 2)
        let body = try reader.byteString(max: Limits.invite)
        let signature: Signature = try reader.id()
        try reader.finish()
        return (body, signature)
      }
      var reader = CBORReader(body)
      try reader.versionOne(elements: Self.elements)
      let content: [UInt8]
      (content, recipient, device, locator, certificates) = try decoding { () throws(CBORError) in
        let content = try reader.byteString(max: Limits.invite)
        let recipient: PersonID = try reader.id()
        let device: DeviceID = try reader.id()
        let locator = try reader.text(max: Limits.locator)
        let certificates = try readCertificates(&reader)
        try reader.finish()
        return (content, recipient, device, locator, certificates)
      }
      blob = try InviteBlob(decoding: content)
    } catch { throw .format(error) }
    // A person's own device is added with words on both screens, never by a message.
    guard blob.role != .mine else { throw .format(.malformed(.unexpected("role of another person"))) }
    do { inviter = try CertificateChain(verifying: certificates) } catch { throw .certificates(error) }
    guard inviter.keys.signing.verifies(signature, .inbox, body) else { throw .forged }
  }

  // MARK: In the store

  /// 32 digits under which a person's messages lie: known to whoever has seen the card.
  public static func prefix(of person: PersonID) -> String {
    Base32.encode(blake2b(20, "inbox-prefix", parts: 1) { $0.id(person) })
  }

  /// The name of a new message in the store: its tag is random.
  public func objectName(_ random: inout some RandomSource) -> ObjectName {
    derivedName("\(Self.prefix(of: recipient))/\(shardedName(.inbox, random.bytes(20)).text)")
  }

  private static let header = Envelope.magic + [Envelope.version, Envelope.suite, ObjectKind.inbox.rawValue]

  /// Seals it to the recipient's device; nil for a key that nothing can be sealed to, or a message beyond the limit.
  ///
  /// The header is not bound into the box; what is in the box says its own version.
  public func sealed(to box: BoxPublicKey, random: inout some RandomSource) -> [UInt8]? {
    let content = encoded
    let around = Self.header.count + SealedBox.overhead
    let size = Padding.padme(around + Envelope.lengthBytes + content.count)
    guard size <= ObjectKind.inbox.maximumSize else { return nil }
    var plain = (0..<Envelope.lengthBytes).reversed().map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) }
    plain += content
    plain += [UInt8](repeating: 0, count: size - around - plain.count)
    return SealedBox.seal(plain, to: box, random: &random).map { Self.header + $0 }
  }

  /// Opens an object of an inbox and verifies that it is for this device.
  public static func open(
    _ object: [UInt8], by device: DeviceKeys, of person: PersonID
  ) throws(InboxError) -> InboxMessage {
    guard object.starts(with: Envelope.magic), object.count >= header.count + SealedBox.overhead,
      object.count <= ObjectKind.inbox.maximumSize, object[2] != 0, object[3] != 0
    else { throw .notAMessage }
    guard object[2] == Envelope.version, object[3] == Envelope.suite else { throw .newer }
    guard object[4] == ObjectKind.inbox.rawValue else { throw .notAMessage }
    guard let plain = SealedBox.open(Array(object.dropFirst(header.count)), with: device.box) else {
      throw .notForThisDevice
    }
    guard plain.count >= Envelope.lengthBytes else { throw .padding }
    let length = plain.prefix(Envelope.lengthBytes).reduce(0) { $0 << 8 | Int($1) }
    let rest = plain.dropFirst(Envelope.lengthBytes)
    guard length <= rest.count, rest.dropFirst(length).allSatisfy({ $0 == 0 }) else { throw .padding }
    let message = try InboxMessage(decoding: Array(rest.prefix(length)))
    guard message.recipient == person, message.device == device.id else { throw .otherRecipient }
    return message
  }
}
