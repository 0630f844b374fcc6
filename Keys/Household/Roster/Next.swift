public import LatchkeyEncoding

/// Leaving an epoch (format §8, kind 11): rotation, removal, a changed role, closing, another store. The entry's hash is the
/// new epoch's id. Every list is in ascending order, each item once.
///
/// Make one with ``Roster/next(_:by:key:ring:random:)``.
public struct Next: Hashable, Sendable {
  public enum Form: Int, Hashable, Sendable, CaseIterable {
    case moved = 0
    case closed = 1
  }

  public enum RecipientKind: Int, Hashable, Sendable, CaseIterable {
    case device = 0
    case kit = 1
    case invite = 2
  }

  /// The new key, sealed to one who stays.
  public struct Recipient: Hashable, Sendable {
    public let kind: RecipientKind
    /// A device's or an invite's id.
    public let id: [UInt8]
    public let seal: KeySeal
    public init(kind: RecipientKind, id: [UInt8], seal: KeySeal) {
      self.kind = kind
      self.id = id
      self.seal = seal
    }
  }

  /// A former epoch's key, encrypted under the new one; never the reverse: see ``KeyBox``.
  public struct Former: Hashable, Sendable {
    public let epoch: EpochID
    public let nonce: [UInt8]
    public let box: [UInt8]
    public init(epoch: EpochID, nonce: [UInt8], box: [UInt8]) {
      self.epoch = epoch
      self.nonce = nonce
      self.box = box
    }

    var keyBox: KeyBox? { KeyBox(nonce: nonce, box: box) }
  }

  /// The last entry of a device's log that counts.
  public struct Limit: Hashable, Sendable {
    public let zone: ZoneID
    public let incarnation: Incarnation
    public let sequence: UInt64
    public let hash: EntryHash
    public init(zone: ZoneID, incarnation: Incarnation, sequence: UInt64, hash: EntryHash) {
      self.zone = zone
      self.incarnation = incarnation
      self.sequence = sequence
      self.hash = hash
    }
  }

  /// A device that is removed, or one whose person gets another role by the same `Next`: that one stays, and only the
  /// limits hold for it.
  public struct Removal: Hashable, Sendable {
    public let device: DeviceID
    /// Unlisted logs count not at all.
    public let limits: [Limit]
    public init(device: DeviceID, limits: [Limit]) {
      self.device = device
      self.limits = limits
    }
  }

  public struct RoleChange: Hashable, Sendable {
    public let person: PersonID
    public let role: Role
    public init(person: PersonID, role: Role) {
      self.person = person
      self.role = role
    }
  }

  public let parents: [EpochID]
  public let form: Form
  public let commitment: Hash32
  public let recipients: [Recipient]
  public let formers: [Former]
  public let removals: [Removal]
  public let roles: [RoleChange]
  /// Devices that removed ones introduced and that stay all the same.
  public let confirmed: [DeviceID]
  /// Another place for the household, as a locator.
  public let store: String?

  public init(
    parents: [EpochID], form: Form, commitment: Hash32, recipients: [Recipient], formers: [Former], removals: [Removal],
    roles: [RoleChange], confirmed: [DeviceID], store: String?
  ) {
    self.parents = parents
    self.form = form
    self.commitment = commitment
    self.recipients = recipients
    self.formers = formers
    self.removals = removals
    self.roles = roles
    self.confirmed = confirmed
    self.store = store
  }

  /// Leaving for nowhere: the household ends.
  public static func closing(parents: [EpochID]) -> Next {
    Next(
      parents: parents, form: .closed, commitment: .zero, recipients: [], formers: [], removals: [], roles: [],
      confirmed: [], store: nil)
  }

  /// Persons whose role changes.
  var narrowed: Set<PersonID> { Set(roles.map(\.person)) }

  static let elements = 9
  private static let idBytes = 16

  func write(to writer: inout CBORWriter) {
    writer.hashes(parents)
    writer.uint(form.rawValue)
    writer.id(commitment)
    writer.array(recipients.count)
    for recipient in recipients {
      writer.array(3)
      writer.uint(recipient.kind.rawValue)
      writer.byteString(recipient.id)
      writer.id(recipient.seal)
    }
    writer.array(formers.count)
    for former in formers {
      writer.array(3)
      writer.id(former.epoch)
      writer.byteString(former.nonce)
      writer.byteString(former.box)
    }
    writer.array(removals.count)
    for removal in removals {
      writer.array(2)
      writer.id(removal.device)
      writer.array(removal.limits.count)
      for limit in removal.limits {
        writer.array(4)
        writer.id(limit.zone)
        writer.id(limit.incarnation)
        writer.uint(limit.sequence)
        writer.id(limit.hash)
      }
    }
    writer.array(roles.count)
    for change in roles {
      writer.array(2)
      writer.id(change.person)
      writer.uint(change.role.rawValue)
    }
    writer.array(confirmed.count)
    for device in confirmed { writer.id(device) }
    if let store { writer.text(store) } else { writer.null() }
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> Next {
    let parents: [EpochID] = try reader.hashes(max: Limits.rosterHeads)
    guard let form = Form(rawValue: try reader.uint(max: 255)) else { throw .unexpected("form") }
    let commitment: Hash32 = try reader.id()
    let recipients = try reader.list { (item) throws(CBORError) in
      try item.array(exactly: 3)
      guard let kind = RecipientKind(rawValue: try item.uint(max: 255)) else { throw .unexpected("recipient") }
      let id = try item.exactly(idBytes)
      return Recipient(kind: kind, id: id, seal: try item.id())
    }
    let formers = try reader.list { (item) throws(CBORError) in
      try item.array(exactly: 3)
      let epoch: EpochID = try item.id()
      let nonce = try item.exactly(KeyBox.nonceBytes)
      return Former(epoch: epoch, nonce: nonce, box: try item.exactly(KeyBox.boxBytes))
    }
    let removals = try reader.list { (item) throws(CBORError) in
      try item.array(exactly: 2)
      let device: DeviceID = try item.id()
      let limits = try item.list { (limit) throws(CBORError) in
        try limit.array(exactly: 4)
        let zone: ZoneID = try limit.id()
        let incarnation: Incarnation = try limit.id()
        let sequence = try limit.uint()
        return Limit(zone: zone, incarnation: incarnation, sequence: sequence, hash: try limit.id())
      }
      return Removal(device: device, limits: limits)
    }
    let roles = try reader.list { (item) throws(CBORError) in
      try item.array(exactly: 2)
      let person: PersonID = try item.id()
      guard let role = Role(rawValue: try item.uint(max: 255)) else { throw .unexpected("role") }
      return RoleChange(person: person, role: role)
    }
    let confirmed = try reader.list { (item) throws(CBORError) -> DeviceID in try item.id() }
    let store = try reader.null() ? nil : try reader.text(max: Limits.locator)
    // One meaning, one encoding: and nobody is named twice.
    try ascending(recipients) { (UInt8($0.kind.rawValue), $0.id) }
    try ascending(formers) { (0, $0.epoch.bytes) }
    try ascending(removals) { (0, $0.device.bytes) }
    for removal in removals {
      try ascending(removal.limits) { (0, $0.zone.bytes + $0.incarnation.bytes) }
    }
    try ascending(roles) { (0, $0.person.bytes) }
    try ascending(confirmed) { (0, $0.bytes) }
    return Next(
      parents: parents, form: form, commitment: commitment, recipients: recipients, formers: formers,
      removals: removals, roles: roles, confirmed: confirmed, store: store)
  }
}

/// Throws unless the keys of a list rise strictly.
private func ascending<Item>(_ items: [Item], _ key: (Item) -> (UInt8, [UInt8])) throws(CBORError) {
  for (a, b) in zip(items, items.dropFirst()) {
    let (one, two) = (key(a), key(b))
    guard one.0 < two.0 || one.0 == two.0 && one.1.lexicographicallyPrecedes(two.1) else { throw .notDeterministic }
  }
}

extension CBORReader {
  mutating func list<Element>(
    max: Int = Limits.list, _ element: (inout CBORReader) throws(CBORError) -> Element
  ) throws(CBORError) -> [Element] {
    var out: [Element] = []
    for _ in 0..<(try array(max: max)) { out.append(try element(&self)) }
    return out
  }

  mutating func exactly(_ count: Int) throws(CBORError) -> [UInt8] {
    let bytes = try byteString(max: count)
    guard bytes.count == count else { throw .unexpected("\(count) bytes") }
    return bytes
  }
}
