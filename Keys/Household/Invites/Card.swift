public import LatchkeyEncoding

/// Why an object below a store's cards is no card.
public enum CardError: Error, Equatable, Sendable {
  case envelope(EnvelopeError)
  case format(FormatError)
  /// Its certificates do not show that its device belongs to its person.
  case certificates(CertificateError)
  /// Not signed by the device that it ends at.
  case forged
  /// Lies under a name that is not its own.
  case wrongName
}

/// Where the cards of one store lie (format §3): known to whoever sees the store, and so is what is on them.
public struct CardPlace: Sendable {
  /// 32 digits.
  public let prefix: String
  let key: ZoneKey

  /// - Parameter store: the id in the store's marker.
  public init(store: some Identifier16) {
    prefix = Base32.encode(blake2b(20, "cards-prefix", parts: 1) { $0.id(store) })
    key = ZoneKey(hash32("card-key", parts: 1) { $0.id(store) }.bytes)
  }

  /// The name in the store of what lies below ``prefix``.
  public func objectName(_ below: ObjectName) -> ObjectName { derivedName("\(prefix)/\(below.text)") }

  private func place(_ below: ObjectName) -> EnvelopePlace {
    EnvelopePlace(kind: .card, household: .zero, epoch: .zero, zone: .zero, name: below)
  }

  /// - Throws: ``EnvelopeError/tooLarge`` only.
  public func seal(_ card: Card, nonce: EnvelopeNonce) throws(EnvelopeError) -> [UInt8] {
    try Envelope.seal(card.encoded, at: place(card.name), key: key, nonce: nonce)
  }

  /// Opens and verifies an object that was found below ``prefix``.
  public func open(_ object: [UInt8], at below: ObjectName) throws(CardError) -> Card {
    let content: [UInt8]
    do { content = try Envelope.open(object, at: place(below), key: key) } catch { throw .envelope(error) }
    let card = try Card(decoding: content)
    guard card.name == below else { throw .wrongName }
    return card
  }
}

/// A person's public card: the keys that others may send an invite to (format §8, *Cards*).
///
/// Signed by the device that it ends at, so nobody else can change it. That is all it shows: whose it is in the world has to be
/// found out by comparing words (``ComparisonWords/init(card:)``). A value of this type exists only if every signature holds.
public struct Card: Hashable, Sendable {
  /// From the person's first device to the one that published.
  public let chain: CertificateChain
  /// What the person wants everybody to read who sees the store. Nobody has verified it.
  public let displayName: String?
  /// At most 16 KiB; reserved, nobody writes one yet.
  public let picture: [UInt8]?
  /// Milliseconds since 1970, by the publishing device's clock: of several cards of a person the newest counts.
  public let published: UInt64
  /// What the envelope holds.
  public let encoded: [UInt8]

  public var person: PersonID { chain.person }

  private static let elements = 5

  /// - Parameters:
  ///   - chain: ends at `device`.
  ///   - published: greater than of any card of the same person before.
  public init(
    chain: CertificateChain, displayName: String?, picture: [UInt8]? = nil, published: UInt64, device: DeviceKeys
  ) {
    self.chain = chain
    self.displayName = displayName
    self.picture = picture
    self.published = published
    var body = CBORWriter()
    body.array(Self.elements)
    body.uint(1)
    write(certificates: chain.certificates, to: &body)
    if let displayName { body.text(displayName) } else { body.null() }
    if let picture { body.byteString(picture) } else { body.null() }
    body.uint(published)
    var writer = CBORWriter()
    writer.array(2)
    writer.byteString(body.bytes)
    writer.id(device.signing.sign(.card, body.bytes))
    encoded = writer.bytes
  }

  /// Reads and verifies what ``encoded`` is.
  public init(decoding bytes: [UInt8]) throws(CardError) {
    encoded = bytes
    let body: [UInt8]
    let signature: Signature
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
      (certificates, displayName, picture, published) = try decoding { () throws(CBORError) in
        let certificates = try readCertificates(&reader)
        let name = try reader.null() ? nil : try reader.name()
        let picture = try reader.null() ? nil : try reader.byteString(max: Limits.picture)
        let published = try reader.uint()
        try reader.finish()
        return (certificates, name, picture, published)
      }
    } catch { throw .format(error) }
    do { chain = try CertificateChain(verifying: certificates) } catch { throw .certificates(error) }
    guard chain.keys.signing.verifies(signature, .card, body) else { throw .forged }
  }

  /// Where it lies, below the cards' prefix: named by what it says, so that a newer one can stand beside it until it is read back.
  public var name: ObjectName {
    shardedName(
      .card,
      blake2b(20, "card-tag", parts: 2) {
        $0.id(person)
        $0.byteString(encoded)
      })
  }
}
