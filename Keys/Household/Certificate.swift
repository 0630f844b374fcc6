public import LatchkeyEncoding

/// "This device belongs to this person", signed by a device of the person and by the device itself (format §2).
///
/// It belongs to no household. A certificate whose first signature is still ``Signature/absent`` is a request.
public struct Certificate: Hashable, Sendable {
  public let person: PersonID
  /// The keys of the device that is certified.
  public let keys: DevicePublicKeys
  /// The device that vouches; the first device of a person vouches for itself.
  public let signer: DeviceID
  /// By the signer, over the body.
  public let signature: Signature
  /// By the device itself, over the same body.
  public let ownSignature: Signature

  /// The certificate of a person's first device, which makes the person.
  public init(first keys: DeviceKeys) {
    person = keys.publicKeys.foundedPerson
    self.keys = keys.publicKeys
    signer = keys.id
    signature = keys.signing.sign(.certificate, Self.body(person, keys.publicKeys, keys.id))
    ownSignature = signature
  }

  /// What a further device of a person asks for: signed by itself only.
  ///
  /// - Parameter signer: the device of that person which will vouch; no other can complete it.
  public init(request keys: DeviceKeys, person: PersonID, signer: DeviceID) {
    self.person = person
    self.keys = keys.publicKeys
    self.signer = signer
    signature = .absent
    ownSignature = keys.signing.sign(.certificate, Self.body(person, keys.publicKeys, signer))
  }

  private init(
    _ person: PersonID, _ keys: DevicePublicKeys, _ signer: DeviceID, _ signature: Signature, _ own: Signature
  ) {
    self.person = person
    self.keys = keys
    self.signer = signer
    self.signature = signature
    ownSignature = own
  }

  /// The certificate with the signer's signature in place; nil unless `signer` is the device that was asked and the
  /// request is signed by the device it is for.
  public func completed(by signer: DeviceKeys) -> Certificate? {
    guard signer.id == self.signer, keys.id != signer.id, isOwnSigned else { return nil }
    return Certificate(person, keys, self.signer, signer.signing.sign(.certificate, body), ownSignature)
  }

  /// The signed bytes.
  public var body: [UInt8] { Self.body(person, keys, signer) }

  private static func body(_ person: PersonID, _ keys: DevicePublicKeys, _ signer: DeviceID) -> [UInt8] {
    var writer = CBORWriter()
    writer.array(5)
    writer.uint(1)
    writer.id(person)
    writer.id(keys.signing)
    writer.id(keys.box)
    writer.id(signer)
    return writer.bytes
  }

  /// Whether the device itself signed.
  public var isOwnSigned: Bool { keys.signing.verifies(ownSignature, .certificate, body) }

  /// Whether this is the first certificate of its person: made of the person's founding keys and signed by them.
  public var isFirst: Bool {
    keys.foundedPerson == person && signer == keys.id && signature == ownSignature && isOwnSigned
  }

  /// Whether `signer` vouches, and the device agrees.
  public func isSigned(by signer: DevicePublicKeys) -> Bool {
    signer.id == self.signer && keys.id != signer.id && signer.signing.verifies(signature, .certificate, body)
      && isOwnSigned
  }

  /// As it stands in rosters and claims.
  public var encoded: [UInt8] {
    var writer = CBORWriter()
    write(to: &writer)
    return writer.bytes
  }

  /// Reads what ``encoded`` wrote; the signatures are not checked yet.
  public init(decoding bytes: [UInt8]) throws(FormatError) {
    self = try LatchkeyKeys.decoding { () throws(CBORError) in
      var reader = CBORReader(bytes)
      let certificate = try Certificate.read(&reader)
      try reader.finish()
      return certificate
    }
  }

  func write(to writer: inout CBORWriter) {
    writer.array(3)
    writer.byteString(body)
    writer.id(signature)
    writer.id(ownSignature)
  }

  /// Reads a certificate; its signatures are not checked yet.
  static func read(_ reader: inout CBORReader) throws(CBORError) -> Certificate {
    try reader.array(exactly: 3)
    var body = CBORReader(try reader.byteString(max: 256))
    try body.array(exactly: 5)
    guard try body.uint() == 1 else { throw .unexpected("certificate of version 1") }
    let person: PersonID = try body.id()
    let signing: SigningPublicKey = try body.id()
    let box: BoxPublicKey = try body.id()
    let signer: DeviceID = try body.id()
    try body.finish()
    let signature: Signature = try reader.id()
    let own: Signature = try reader.id()
    return Certificate(person, DevicePublicKeys(signing: signing, box: box), signer, signature, own)
  }
}
