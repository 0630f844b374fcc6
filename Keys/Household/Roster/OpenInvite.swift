public import LatchkeyEncoding

/// An invite as the roster knows it: public keys and conditions (format §8, kind 5). The secret is in the link only.
public struct OpenInvite: Hashable, Sendable {
  public let id: InviteID
  /// Verifies claims.
  public let claimKey: SigningPublicKey
  /// What epoch keys are sealed to for whoever holds the link.
  public let boxKey: BoxPublicKey
  public let role: InviteRole
  /// Milliseconds since 1970, by the clock of whoever admits.
  public let expiry: UInt64
  /// How many devices may be admitted, at least 1.
  public let uses: UInt64
  /// Whether an owner compares words with the person before a key is sealed.
  public let confirm: Bool

  public init(
    id: InviteID, claimKey: SigningPublicKey, boxKey: BoxPublicKey, role: InviteRole, expiry: UInt64, uses: UInt64 = 1,
    confirm: Bool = false
  ) {
    self.id = id
    self.claimKey = claimKey
    self.boxKey = boxKey
    self.role = role
    self.expiry = expiry
    self.uses = uses
    self.confirm = confirm
  }

  static let elements = 7

  func write(to writer: inout CBORWriter) {
    writer.id(id)
    writer.id(claimKey)
    writer.id(boxKey)
    writer.uint(role.rawValue)
    writer.uint(expiry)
    writer.uint(uses)
    writer.bool(confirm)
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> OpenInvite {
    let id: InviteID = try reader.id()
    let claimKey: SigningPublicKey = try reader.id()
    let boxKey: BoxPublicKey = try reader.id()
    let role = try reader.inviteRole()
    let expiry = try reader.uint()
    let uses = try reader.uint()
    guard uses > 0 else { throw .unexpected("at least one use") }
    let confirm = try reader.bool()
    return OpenInvite(
      id: id, claimKey: claimKey, boxKey: boxKey, role: role, expiry: expiry, uses: uses, confirm: confirm)
  }
}

extension CBORReader {
  mutating func inviteRole() throws(CBORError) -> InviteRole {
    guard let role = InviteRole(rawValue: try uint(max: 255)) else { throw .unexpected("role") }
    return role
  }
}
