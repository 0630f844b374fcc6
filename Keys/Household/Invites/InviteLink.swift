public import LatchkeyEncoding

/// Why a text is not a link that can be followed.
public enum LinkError: Error, Equatable, Sendable {
  /// Not a Latchkey link at all.
  case notALink
  /// A link, but cut off or mistyped: its check bytes do not match.
  case damaged
  /// Made by a newer version.
  case newer
}

/// What an inviter hands over, as text or QR: everything needed to reach and open a household (format §8).
///
/// Whoever has it can read the household until its epoch ends: it is printed only where a person asked for it.
public struct InviteLink: Hashable, Sendable, CustomStringConvertible {
  public let secret: InviteSecret
  public let household: HouseholdID
  /// Over the roster heads at the time of the invite: a newcomer is not shown an older world (``Roster/checkpoint(_:)``).
  public let checkpoint: Hash32
  /// Where the store is; used only after a person on this device agreed.
  public let locator: String
  /// For the store, if the inviter adds one.
  public let credential: Credential?
  /// Milliseconds since 1970. For telling people; what counts is the admitter's clock.
  public let expiry: UInt64
  public let role: InviteRole

  static let checkBytes = 4
  /// What every link begins with.
  public static let scheme = "latchkey://join#"
  /// Longer texts are no links.
  static let maximumLength = 32_768

  public init(
    secret: InviteSecret, household: HouseholdID, checkpoint: Hash32, locator: String, credential: Credential? = nil,
    expiry: UInt64, role: InviteRole
  ) {
    self.secret = secret
    self.household = household
    self.checkpoint = checkpoint
    self.locator = locator
    self.credential = credential
    self.expiry = expiry
    self.role = role
  }

  /// The link itself. A secret: show it to the person who asked, log it nowhere.
  public var text: String {
    var writer = CBORWriter()
    writer.array(8)
    writer.uint(1)
    writer.byteString(secret.secret.bytes)
    writer.id(household)
    writer.id(checkpoint)
    writer.text(locator)
    if let credential { writer.text(credential.text) } else { writer.null() }
    writer.uint(expiry)
    writer.uint(role.rawValue)
    return Self.scheme + Base64URL.encode(writer.bytes + Self.check(writer.bytes))
  }

  /// Reads a link; white space around it is left out. Whether its time is over is the caller's to decide.
  public init(parsing text: String) throws(LinkError) {
    let trimmed = Self.trimmed(text)
    guard trimmed.hasPrefix(Self.scheme), trimmed.utf8.count <= Self.maximumLength else { throw .notALink }
    guard let bytes = Base64URL.decode(trimmed.dropFirst(Self.scheme.count)), bytes.count > Self.checkBytes else {
      throw .damaged
    }
    let payload = Array(bytes.dropLast(Self.checkBytes))
    guard Self.check(payload) == Array(bytes.suffix(Self.checkBytes)) else { throw .damaged }
    do { self = try Self.read(payload) } catch { throw error == .newer ? .newer : .damaged }
  }

  private static func trimmed(_ text: String) -> Substring {
    let isSpace: (Character) -> Bool = { $0.isWhitespace }
    var rest = text.drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return rest
  }

  private static func read(_ payload: [UInt8]) throws(FormatError) -> InviteLink {
    var reader = CBORReader(payload)
    try reader.versionOne(elements: 8)
    return try decoding { () throws(CBORError) in
      guard let secret = InviteSecret(SecretBytes(try reader.byteString(max: InviteSecret.byteCount))) else {
        throw .unexpected("32 bytes")
      }
      let household: HouseholdID = try reader.id()
      let checkpoint: Hash32 = try reader.id()
      let locator = try reader.text(max: Limits.locator)
      let credential = try reader.null() ? nil : Credential(try reader.text(max: Limits.locator))
      let expiry = try reader.uint()
      let role = try reader.inviteRole()
      try reader.finish()
      return InviteLink(
        secret: secret, household: household, checkpoint: checkpoint, locator: locator,
        credential: credential, expiry: expiry, role: role)
    }
  }

  private static func check(_ payload: [UInt8]) -> [UInt8] {
    Array(hash32("link", parts: 1) { $0.byteString(payload) }.bytes.prefix(checkBytes))
  }

  public var description: String { "(invite to household \(household.short))" }
}
