public import LatchkeyEncoding

/// The first entry of a household's roster; its hash is the household's id (format §8, kind 1).
public struct Genesis: Hashable, Sendable {
  public let householdName: String
  /// Whether only one person's devices can be in it.
  public let isPrivate: Bool
  /// Of the device that makes the household, from its person's first device on. Verified.
  public let chain: CertificateChain
  public let personName: String
  public let deviceName: String
  /// To the first epoch's key.
  public let commitment: Hash32
  /// The first epoch's key, sealed to the device that makes the household.
  public let seal: KeySeal
  /// Two households with the same names on the same day are still two.
  public let salt: [UInt8]
  /// The author's device on paper, if it has one: signed by a device of the chain.
  public let kit: Certificate?

  /// Length of the salt, in bytes.
  static let saltBytes = 16

  public init(
    householdName: String, isPrivate: Bool, chain: CertificateChain, personName: String, deviceName: String,
    commitment: Hash32, seal: KeySeal, salt: [UInt8], kit: Certificate? = nil
  ) {
    self.householdName = householdName
    self.isPrivate = isPrivate
    self.chain = chain
    self.personName = personName
    self.deviceName = deviceName
    self.commitment = commitment
    self.seal = seal
    self.salt = salt
    self.kit = kit
  }

  /// A new household, made by the device that `chain` ends at.
  ///
  /// Nil only if that device's box key is of small order, which no honestly made key is.
  public init?(
    householdName: String, isPrivate: Bool, chain: CertificateChain, personName: String, deviceName: String,
    key: EpochKey, kit: Certificate? = nil, random: inout some RandomSource
  ) {
    guard let seal = key.seal(to: chain.keys.box) else { return nil }
    self.init(
      householdName: householdName, isPrivate: isPrivate, chain: chain, personName: personName, deviceName: deviceName,
      commitment: key.commitment(parents: []), seal: seal, salt: random.bytes(Self.saltBytes), kit: kit)
  }

  /// Whether commitment and seal are the ones that this key has: everyone who holds the first epoch's key checks it.
  public func isMade(with key: EpochKey) -> Bool {
    key.commitment(parents: []) == commitment && key.seal(to: chain.keys.box) == seal
  }

  /// From the person's first device to the kit.
  var kitChain: CertificateChain? { kit.flatMap { try? chain.adding($0) } }

  static let elements = 8...9

  func write(to writer: inout CBORWriter) {
    writer.text(householdName)
    writer.bool(isPrivate)
    LatchkeyKeys.write(certificates: chain.certificates, to: &writer)
    writer.text(personName)
    writer.text(deviceName)
    writer.id(commitment)
    writer.id(seal)
    writer.byteString(salt)
    if let kit { kit.write(to: &writer) }
  }

  static func read(_ reader: inout CBORReader, withKit: Bool) throws(CBORError) -> Genesis {
    let householdName = try reader.name()
    let isPrivate = try reader.bool()
    let certificates = try readCertificates(&reader)
    let personName = try reader.name()
    let deviceName = try reader.name()
    let commitment: Hash32 = try reader.id()
    let seal: KeySeal = try reader.id()
    let salt = try reader.byteString(max: saltBytes)
    guard salt.count == saltBytes else { throw .unexpected("16 bytes") }
    let kit = withKit ? try Certificate.read(&reader) : nil
    let chain: CertificateChain
    do { chain = try CertificateChain(verifying: certificates) } catch {
      throw .unexpected("certificate chain that verifies")
    }
    if let kit {
      do { _ = try chain.adding(kit) } catch { throw .unexpected("kit's certificate that verifies") }
    }
    return Genesis(
      householdName: householdName, isPrivate: isPrivate, chain: chain, personName: personName, deviceName: deviceName,
      commitment: commitment, seal: seal, salt: salt, kit: kit)
  }
}
