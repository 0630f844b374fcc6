public import LatchkeyEncoding
public import LatchkeyKeys

/// Whom this device knows beyond the rosters of its households, and what became of the invites that were sent to it.
public struct Contacts: Hashable, Sendable {
  /// A card that a person on this device has given a name: from then on these keys are that somebody, and no others.
  public struct Pin: Hashable, Sendable {
    public var petname: String
    /// As on the card.
    public var chain: CertificateChain
    /// Whether words were compared with the person.
    public var isVerified: Bool
    /// The locator of the store that the card lay in.
    public var store: String

    public init(petname: String, chain: CertificateChain, isVerified: Bool, store: String) {
      (self.petname, self.chain, self.isVerified, self.store) = (petname, chain, isVerified, store)
    }
  }

  /// An invite that came to this device and was answered.
  public struct Received: Hashable, Sendable {
    public enum Answer: UInt8, Sendable { case declined, accepted }

    public let message: Hash32
    public var answer: Answer
    public let household: HouseholdID
    public let householdName: String
    public let role: InviteRole
    public let inviter: PersonID
    /// What the inviter calls itself.
    public let inviterName: String
    /// Whether it was known whose these keys are when the invite was answered.
    public let isInviterVerified: Bool
    /// Milliseconds since 1970.
    public let expiry: UInt64

    public init(
      message: Hash32, answer: Answer, household: HouseholdID, householdName: String, role: InviteRole,
      inviter: PersonID, inviterName: String, isInviterVerified: Bool, expiry: UInt64
    ) {
      self.message = message
      self.answer = answer
      self.household = household
      self.householdName = householdName
      self.role = role
      self.inviter = inviter
      self.inviterName = inviterName
      self.isInviterVerified = isInviterVerified
      self.expiry = expiry
    }
  }

  /// Ascending by person, each once.
  public private(set) var pins: [Pin] = []
  /// Ascending by message, each once.
  public private(set) var received: [Received] = []
  /// Locators of the stores that this device has put its card into, ascending: there, too, invites may come.
  public private(set) var cardStores: [String] = []

  public init() {}

  public func pin(of person: PersonID) -> Pin? { pins.first { $0.chain.person == person } }

  /// Takes the place of what was pinned of the same person, or under the same petname.
  public mutating func pin(_ pin: Pin) {
    pins.removeAll { $0.chain.person == pin.chain.person || $0.petname == pin.petname }
    pins.append(pin)
    pins.sort { $0.chain.person < $1.chain.person }
  }

  public func answer(to message: Hash32) -> Received? { received.first { $0.message == message } }

  /// Takes the place of an earlier answer to the same message.
  public mutating func note(_ answer: Received) {
    received.removeAll { $0.message == answer.message }
    received.append(answer)
    received.sort { $0.message < $1.message }
  }

  public mutating func note(cardStore locator: String) {
    if !cardStores.contains(locator) { cardStores = (cardStores + [locator]).sorted() }
  }

  // MARK: In the keyring's file

  func write(to writer: inout CBORWriter) {
    writer.array(3)
    writer.array(pins.count)
    for pin in pins {
      writer.array(4)
      writer.text(pin.petname)
      writer.byteString(pin.chain.encoded)
      writer.bool(pin.isVerified)
      writer.text(pin.store)
    }
    writer.array(received.count)
    for one in received {
      writer.array(9)
      writer.id(one.message)
      writer.uint(UInt64(one.answer.rawValue))
      writer.id(one.household)
      writer.text(one.householdName)
      writer.uint(one.role.rawValue)
      writer.id(one.inviter)
      writer.text(one.inviterName)
      writer.bool(one.isInviterVerified)
      writer.uint(one.expiry)
    }
    writer.array(cardStores.count)
    for store in cardStores { writer.text(store) }
  }

  static func read(_ reader: inout CBORReader) throws(CBORError) -> Contacts {
    var contacts = Contacts()
    try reader.array(exactly: 3)
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 4)
      let petname = try reader.text()
      let chain: CertificateChain
      do { chain = try CertificateChain.decode(try reader.byteString()) } catch { throw .unexpected("certificates") }
      contacts.pins.append(
        Pin(petname: petname, chain: chain, isVerified: try reader.bool(), store: try reader.text()))
    }
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 9)
      let message: Hash32 = try reader.id()
      guard let answer = Received.Answer(rawValue: UInt8(try reader.uint(max: 255))) else {
        throw .unexpected("answer")
      }
      let household: HouseholdID = try reader.id()
      let householdName = try reader.text()
      guard let role = InviteRole(rawValue: try reader.uint(max: 255)) else { throw .unexpected("role") }
      contacts.received.append(
        Received(
          message: message, answer: answer, household: household, householdName: householdName, role: role,
          inviter: try reader.id(), inviterName: try reader.text(), isInviterVerified: try reader.bool(),
          expiry: try reader.uint()))
    }
    for _ in 0..<(try reader.array()) { contacts.cardStores.append(try reader.text()) }
    return contacts
  }
}
