public import LatchkeyEncoding

/// The two public keys of a device, and the id that they make.
public struct DevicePublicKeys: Hashable, Sendable {
  public let signing: SigningPublicKey
  public let box: BoxPublicKey
  /// `H_16(; "device", sign public key, box public key)` (format §2): nobody can claim another device's id.
  public let id: DeviceID

  public init(signing: SigningPublicKey, box: BoxPublicKey) {
    self.signing = signing
    self.box = box
    id = DeviceID(identifier16("device", signing, box)) ?? .zero
  }

  /// The id of the person whose first device this is (format §2).
  public var foundedPerson: PersonID { PersonID(identifier16("person", signing, box)) ?? .zero }
}

private func identifier16(_ purpose: String, _ signing: SigningPublicKey, _ box: BoxPublicKey) -> [UInt8] {
  blake2b(16, purpose, parts: 2) {
    $0.id(signing)
    $0.id(box)
  }
}

/// The secret keys of this install. They never leave it; two devices never share any.
public struct DeviceKeys: Hashable, Sendable, CustomStringConvertible {
  public let signing: SigningKey
  public let box: BoxKey
  public let publicKeys: DevicePublicKeys

  public init(signing: SigningKey, box: BoxKey) {
    self.signing = signing
    self.box = box
    publicKeys = DevicePublicKeys(signing: signing.publicKey, box: box.publicKey)
  }

  /// New keys, each from randomness of its own (format §2).
  public init(_ random: inout some RandomSource) {
    self.init(signing: SigningKey(&random), box: BoxKey(&random))
  }

  public var id: DeviceID { publicKeys.id }
  public var description: String { "(keys of device \(id.short))" }
}
