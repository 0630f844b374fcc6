public import LatchkeyEncoding

/// What an entry of the roster does (format §8).
///
/// Payloads that are not of the stated form, or of a kind or version that this one does not know, are cases too: such an
/// entry is still an ancestor of others.
public enum RosterOperation: Hashable, Sendable {
  case genesis(Genesis)
  /// Opens a zone, or renames it.
  case zone(ZoneID, name: String)
  case closeZone(CloseZone)
  /// A further device of the author's person. A kit is a device on paper.
  case addDevice(Certificate, name: String, isKit: Bool)
  case openInvite(OpenInvite)
  case revokeInvite(InviteID)
  /// A claim's bytes, verbatim: see ``Claim``.
  case admit(claim: [UInt8])
  case leave
  /// What the author calls its person and itself.
  case profile(personName: String, deviceName: String)
  /// An epoch's key for a device that was added in it, or concurrently with it.
  case seal(DeviceID, epoch: EpochID, KeySeal)
  case next(Next)
  case household(HouseholdAccess)
  /// An epoch's key for whoever holds another's: one that lost against a better `Next`, or that of a void `Next`.
  case carryKey(EpochID, under: EpochID, KeyBox)
  /// The author's seal in this `Next` does not open.
  case deny(EpochID)
  /// Written by a newer version: the payload as it is. `kind` is nil if the payload itself is of a newer version.
  case unknown(kind: UInt64?, payload: [UInt8])
  /// Not of the stated form. Counts for nothing.
  case malformed(payload: [UInt8])

  /// Reads a roster entry's payload. Never fails: see ``unknown(kind:payload:)`` and ``malformed(payload:)``.
  public init(payload: [UInt8]) {
    do { self = try Self.read(payload) } catch { self = .malformed(payload: payload) }
  }

  /// The whole payload, `[1, kind, content…]`.
  public var payload: [UInt8] {
    var writer = CBORWriter()
    func begin(_ kind: Kind, _ elements: Int) {
      writer.array(elements + 2)
      writer.uint(1)
      writer.uint(kind.rawValue)
    }
    switch self {
    case .genesis(let genesis):
      begin(.genesis, genesis.kit == nil ? Genesis.elements.lowerBound : Genesis.elements.upperBound)
      genesis.write(to: &writer)
    case .zone(let zone, let name):
      begin(.zone, 2)
      writer.id(zone)
      writer.text(name)
    case .closeZone(let closing):
      begin(.closeZone, CloseZone.elements)
      closing.write(to: &writer)
    case .addDevice(let certificate, let name, let isKit):
      begin(.addDevice, 3)
      certificate.write(to: &writer)
      writer.text(name)
      writer.bool(isKit)
    case .openInvite(let invite):
      begin(.openInvite, OpenInvite.elements)
      invite.write(to: &writer)
    case .revokeInvite(let invite):
      begin(.revokeInvite, 1)
      writer.id(invite)
    case .admit(let claim):
      begin(.admit, 1)
      writer.byteString(claim)
    case .leave:
      begin(.leave, 0)
    case .profile(let personName, let deviceName):
      begin(.profile, 2)
      writer.text(personName)
      writer.text(deviceName)
    case .seal(let device, let epoch, let seal):
      begin(.seal, 3)
      writer.id(device)
      writer.id(epoch)
      writer.id(seal)
    case .next(let next):
      begin(.next, Next.elements)
      next.write(to: &writer)
    case .household(let access):
      begin(.household, HouseholdAccess.elements)
      access.write(to: &writer)
    case .carryKey(let epoch, let outer, let box):
      begin(.carryKey, 4)
      writer.id(epoch)
      writer.id(outer)
      writer.byteString(box.nonce)
      writer.byteString(box.box)
    case .deny(let epoch):
      begin(.deny, 1)
      writer.id(epoch)
    case .unknown(_, let payload), .malformed(let payload):
      return payload
    }
    return writer.bytes
  }

  /// The kinds that this version knows, by their numbers on the wire.
  enum Kind: UInt64 {
    case genesis = 1
    case zone, closeZone, addDevice, openInvite, revokeInvite, admit, leave, profile, seal, next, household, carryKey,
      deny
  }

  private static func read(_ payload: [UInt8]) throws(CBORError) -> RosterOperation {
    var reader = CBORReader(payload)
    let count = try reader.array()
    let version = try reader.uint()
    guard version > 0 else { throw .unexpected("version 1") }
    if version > 1 { return .unknown(kind: nil, payload: payload) }
    let number = try reader.uint()
    guard number > 0 else { throw .unexpected("kind") }
    guard let kind = Kind(rawValue: number) else { return .unknown(kind: number, payload: payload) }
    let operation = try read(kind, elements: count - 2, &reader)
    try reader.finish()
    return operation
  }

  private static func read(
    _ kind: Kind, elements: Int, _ reader: inout CBORReader
  ) throws(CBORError) -> RosterOperation {
    func expect(_ count: Int) throws(CBORError) {
      guard elements == count else { throw .unexpected("array of \(count + 2)") }
    }
    switch kind {
    case .genesis:
      guard Genesis.elements.contains(elements) else { throw .unexpected("array of 10 or 11") }
      return .genesis(try Genesis.read(&reader, withKit: elements == Genesis.elements.upperBound))
    case .zone:
      try expect(2)
      let zone: ZoneID = try reader.id()
      return .zone(zone, name: try reader.name())
    case .closeZone:
      try expect(CloseZone.elements)
      return .closeZone(try CloseZone.read(&reader))
    case .addDevice:
      try expect(3)
      let certificate = try Certificate.read(&reader)
      let name = try reader.name()
      return .addDevice(certificate, name: name, isKit: try reader.bool())
    case .openInvite:
      try expect(OpenInvite.elements)
      return .openInvite(try OpenInvite.read(&reader))
    case .revokeInvite:
      try expect(1)
      return .revokeInvite(try reader.id())
    case .admit:
      try expect(1)
      return .admit(claim: try reader.byteString(max: Limits.invite))
    case .leave:
      try expect(0)
      return .leave
    case .profile:
      try expect(2)
      let personName = try reader.name()
      return .profile(personName: personName, deviceName: try reader.name())
    case .seal:
      try expect(3)
      let device: DeviceID = try reader.id()
      let epoch: EpochID = try reader.id()
      return .seal(device, epoch: epoch, try reader.id())
    case .next:
      try expect(Next.elements)
      return .next(try Next.read(&reader))
    case .household:
      try expect(HouseholdAccess.elements)
      return .household(try HouseholdAccess.read(&reader))
    case .carryKey:
      try expect(4)
      let epoch: EpochID = try reader.id()
      let outer: EpochID = try reader.id()
      let nonce = try reader.exactly(KeyBox.nonceBytes)
      guard let box = KeyBox(nonce: nonce, box: try reader.exactly(KeyBox.boxBytes)) else { throw .unexpected("box") }
      return .carryKey(epoch, under: outer, box)
    case .deny:
      try expect(1)
      return .deny(try reader.id())
    }
  }
}
