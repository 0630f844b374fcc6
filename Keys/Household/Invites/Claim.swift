public import LatchkeyEncoding

/// Why a claim does not let its device in.
public enum ClaimError: Error, Hashable, Sendable {
  /// For another household.
  case otherHousehold
  /// No invite that this roster knows has this id and this claim key.
  case unknownInvite
  /// Lies under a name that is not its own.
  case wrongName
  /// Not signed by the holder of the link.
  case notFromLink
  /// Not signed by the device that it names.
  case notFromDevice
  /// Its certificates do not show that the device belongs to the person.
  case certificates(CertificateError)
  /// A *mine* claim for a person other than the inviter, or asking a device that cannot vouch.
  case otherPerson
  /// The device is in already.
  case alreadyEnrolled
  /// The invite was revoked.
  case revoked
  /// The invite has been used as often as it may be.
  case used
  /// The invite's time is over, by the given clock.
  case expired
}

/// A newcomer's answer to a link: who it is, signed with the link's claim key and by the device (format §8).
///
/// It is in nobody's chain; `Admit` carries its bytes verbatim.
public struct Claim: Hashable, Sendable {
  public let household: HouseholdID
  public let invite: InviteID
  /// From the person's first device to the newcomer. In a *mine* claim the last one still lacks the first signature.
  public let certificates: [Certificate]
  public let personName: String
  public let deviceName: String
  /// The epoch that the link opened.
  public let epoch: EpochID
  /// A device on paper that comes along; signed by a device of the chain.
  public let kit: Certificate?
  /// What `Admit` carries and the store holds, sealed.
  public let bytes: [UInt8]

  private let body: [UInt8]
  private let linkSignature: Signature
  private let deviceSignature: Signature

  /// The newcomer as the claim states it. Verified only by ``verify(household:claimKey:role:)``.
  public var device: DevicePublicKeys { newcomer.keys }
  private let newcomer: Certificate

  /// Makes a claim for a person of one's own.
  ///
  /// - Parameters:
  ///   - chain: ends at `device`.
  ///   - claimKey: from the link; the device's own for an invite that was sent to it.
  public init(
    household: HouseholdID, invite: InviteID, chain: CertificateChain, personName: String, deviceName: String,
    epoch: EpochID, kit: Certificate? = nil, claimKey: SigningKey, device: DeviceKeys
  ) {
    self.init(
      household, invite, chain.certificates, chain.certificates[chain.certificates.count - 1], personName, deviceName,
      epoch, kit, claimKey, device)
  }

  /// Makes a *mine* claim: asks to become a device of the inviter's person.
  ///
  /// - Parameters:
  ///   - chain: of the device that is asked to vouch, as the roster has it.
  ///   - request: names that device as its signer.
  public init(
    household: HouseholdID, invite: InviteID, joining chain: CertificateChain, request: Certificate, personName: String,
    deviceName: String, epoch: EpochID, claimKey: SigningKey, device: DeviceKeys
  ) {
    self.init(
      household, invite, chain.certificates + [request], request, personName, deviceName, epoch, nil, claimKey, device)
  }

  private init(
    _ household: HouseholdID, _ invite: InviteID, _ certificates: [Certificate], _ newcomer: Certificate,
    _ personName: String, _ deviceName: String, _ epoch: EpochID, _ kit: Certificate?, _ claimKey: SigningKey,
    _ device: DeviceKeys
  ) {
    self.household = household
    self.invite = invite
    self.certificates = certificates
    self.newcomer = newcomer
    self.personName = personName
    self.deviceName = deviceName
    self.epoch = epoch
    self.kit = kit
    var writer = CBORWriter()
    writer.array(8)
    writer.uint(1)
    writer.id(household)
    writer.id(invite)
    write(certificates: certificates, to: &writer)
    writer.text(personName)
    writer.text(deviceName)
    writer.id(epoch)
    if let kit { kit.write(to: &writer) } else { writer.null() }
    body = writer.bytes
    linkSignature = claimKey.sign(Self.purpose(claimKey.publicKey, newcomer.keys), body)
    deviceSignature = device.signing.sign(.claim, body)
    bytes = Self.encode(body, linkSignature, deviceSignature)
  }

  private static func encode(_ body: [UInt8], _ link: Signature, _ device: Signature) -> [UInt8] {
    var writer = CBORWriter()
    writer.array(3)
    writer.byteString(body)
    writer.id(link)
    writer.id(device)
    return writer.bytes
  }

  /// Reads a claim; nothing in it is verified yet.
  public init(decoding bytes: [UInt8]) throws(FormatError) {
    var body: [UInt8] = []
    (body, linkSignature, deviceSignature) = try decoding { () throws(CBORError) in
      var reader = CBORReader(bytes)
      try reader.array(exactly: 3)
      let body = try reader.byteString(max: Limits.invite)
      let link: Signature = try reader.id()
      let device: Signature = try reader.id()
      try reader.finish()
      return (body, link, device)
    }
    self.body = body
    self.bytes = bytes
    var reader = CBORReader(body)
    try reader.versionOne(elements: 8)
    (household, invite, certificates, personName, deviceName, epoch, kit, newcomer) =
      try decoding { () throws(CBORError) in
        let household: HouseholdID = try reader.id()
        let invite: InviteID = try reader.id()
        let certificates = try readCertificates(&reader)
        guard let newcomer = certificates.last else { throw .unexpected("certificates") }
        let personName = try reader.name()
        let deviceName = try reader.name()
        let epoch: EpochID = try reader.id()
        let kit = try reader.null() ? nil : try Certificate.read(&reader)
        try reader.finish()
        return (household, invite, certificates, personName, deviceName, epoch, kit, newcomer)
      }
  }

  /// Whether the holder of the link, or the device that the invite was sent to, signed; the claim key also tells invites of
  /// one id apart.
  public func isFromLink(_ claimKey: SigningPublicKey) -> Bool {
    claimKey.verifies(linkSignature, Self.purpose(claimKey, newcomer.keys), body)
  }

  /// A device signs every claim of its own: what it signed to answer one invite must not pass for its consent to another
  /// that somebody opened for its key.
  private static func purpose(_ claimKey: SigningPublicKey, _ newcomer: DevicePublicKeys) -> SigningPurpose {
    claimKey == newcomer.signing ? .directedClaim : .claim
  }

  /// Verifies all that the claim itself can show.
  ///
  /// - Parameters:
  ///   - claimKey: of the invite, from the roster.
  ///   - role: of the invite.
  /// - Returns: the verified chain: to the newcomer, or for a *mine* claim to the device that is asked to vouch.
  public func verify(
    household: HouseholdID, claimKey: SigningPublicKey, role: InviteRole
  ) throws(ClaimError) -> CertificateChain {
    guard household == self.household else { throw .otherHousehold }
    guard isFromLink(claimKey) else { throw .notFromLink }
    guard newcomer.keys.signing.verifies(deviceSignature, .claim, body) else { throw .notFromDevice }
    let vouched = role == .mine ? Array(certificates.dropLast()) : certificates
    let chain: CertificateChain
    do { chain = try CertificateChain(verifying: vouched) } catch { throw .certificates(error) }
    if role == .mine {
      guard kit == nil, newcomer.person == chain.person else { throw .otherPerson }
      guard newcomer.signer == chain.keys.id else { throw .otherPerson }
      guard newcomer.signature == .absent, newcomer.isOwnSigned else { throw .certificates(.forged) }
      guard !chain.certificates.contains(where: { $0.keys.id == newcomer.keys.id }) else {
        throw .certificates(.repeated)
      }
    } else if let kit {
      do { _ = try chain.adding(kit) } catch { throw .certificates(error) }
    }
    return chain
  }

  /// The request of a *mine* claim; complete it with ``Certificate/completed(by:)`` and write it as `addDevice`.
  public var request: Certificate { newcomer }

  /// Where this claim lies, below the roster's prefix in the epoch that the link opened.
  public func name(_ keys: EpochKeys) -> ObjectName { keys.claimName(invite: invite, device: newcomer.keys.id) }
}
