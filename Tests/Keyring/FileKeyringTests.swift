import Foundation
import LatchkeyEncoding
import LatchkeyKeyring
import LatchkeyKeys
import Testing

/// A folder that goes away with the value.
private final class Scratch {
  let path: String
  init() throws {
    path = NSTemporaryDirectory() + "/latchkey-keyring-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(atPath: path) }
  var home: String { path + "/home" }
}

private func contents(_ seed: String) -> KeyringContents {
  var random = SeededRandom(seed)
  let device = DeviceKeys(&random)
  var contents = KeyringContents(
    device: device, chain: CertificateChain(first: device), personName: "Ana", deviceName: "laptop", random: &random)
  for number in 0..<3 {
    let id = Hash32(random.bytes(32)) ?? .zero
    contents[id] = HouseholdKeys(
      id: id, name: "h\(number)", isPrivate: number == 0,
      epochs: [.init(id: id, key: EpochKey(&random)), .init(id: .zero, key: EpochKey(&random))],
      locator: "folder:/somewhere", role: number == 2 ? .reader : nil,
      checkpoint: number == 2 ? id : nil, rosterIncarnation: Incarnation(UInt64(number)),
      mirror: number == 1 ? "folder:/elsewhere" : nil,
      moving: number == 0 ? nil : HouseholdKeys.StoreMove(number == 1 ? .copying : .leaving, "folder:/new"),
      decided: number == 2 ? HouseholdKeys.StoreDecision(store: "folder:/new", isAgreed: false) : nil)
  }
  contents[credentialOf: "webdav+https://host/path"] = Credential("password = hunter2\nuser = ana\n")
  return contents
}

private func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }
private func write(_ bytes: [UInt8], _ path: String) throws {
  // In place: permissions stay.
  let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try handle.truncate(atOffset: 0)
  try handle.write(contentsOf: bytes)
  try handle.close()
}
private func mode(_ path: String) throws -> Int {
  let attributes = try FileManager.default.attributesOfItem(atPath: path)
  return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
}
private func setMode(_ mode: Int, _ path: String) throws {
  try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}

@Suite("The keyring in a folder")
struct FileKeyringTests {
  @Test("what was kept is read again, in a folder and files that are the owner's alone")
  func roundTrip() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home + "/")
    let kept = contents("a")
    try keyring.create(kept)
    #expect(try FileKeyring(home: scratch.home).load() == kept)
    #expect(try mode(scratch.home) == 0o700)
    #expect(try mode(keyring.path) == 0o600)
    #expect(kept.households.map(\.id) == kept.households.map(\.id).sorted())
    let first = try #require(kept.households.first)
    #expect(first.epochKeys.map(\.epoch) == [first.id, .zero])
  }

  @Test("pinned cards, answered invites and an invite answered with own keys are kept")
  func contactsKept() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    var random = SeededRandom("contacts")
    var kept = contents("a")
    let people = (0..<3).map { _ in CertificateChain(first: DeviceKeys(&random)) }
    for (number, chain) in people.enumerated() {
      kept.contacts.pin(
        .init(petname: "p\(number)", chain: chain, isVerified: number == 1, store: "folder:/store\(number)"))
      kept.contacts.note(
        .init(
          message: Hash32(random.bytes(32)) ?? .zero, answer: number == 1 ? .declined : .accepted,
          household: Hash32(random.bytes(32)) ?? .zero, householdName: "Smith", role: .reader, inviter: chain.person,
          inviterName: "Ana", isInviterVerified: number == 2, expiry: UInt64(number)))
      kept.contacts.note(cardStore: "folder:/store\(3 - number)")
    }
    let household = try #require(kept.households.first?.id)
    kept[household]?.joining = .init(invite: InviteID(random.bytes(16)) ?? .zero, secret: nil)
    try keyring.create(kept)
    #expect(try FileKeyring(home: scratch.home).load() == kept)
    #expect(kept.contacts.pins.map(\.chain.person) == people.map(\.person).sorted())
    #expect(kept.contacts.cardStores == ["folder:/store1", "folder:/store2", "folder:/store3"])

    // A petname is one person's, and a person has one.
    kept.contacts.pin(.init(petname: "p0", chain: people[1], isVerified: false, store: ""))
    #expect(Set(kept.contacts.pins.map(\.petname)) == ["p0", "p2"])
    #expect(kept.contacts.pin(of: people[0].person) == nil)
    #expect(kept.contacts.pin(of: people[1].person)?.petname == "p0")
  }

  @Test("folders above the keyring's are made, private too")
  func parents() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.path + "/config/latchkey")
    try keyring.create(contents("a"))
    #expect(try keyring.load() == contents("a"))
    #expect(try mode(scratch.path + "/config") == 0o700)
  }

  @Test("an empty folder that others may enter is made private; one that holds something is refused as it is")
  func looseFolder() throws {
    let scratch = try Scratch()
    try FileManager.default.createDirectory(
      atPath: scratch.home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    try FileKeyring(home: scratch.home).create(contents("a"))
    #expect(try mode(scratch.home) == 0o700)
    let other = scratch.path + "/other"
    try FileManager.default.createDirectory(
      atPath: other + "/something", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    #expect(throws: KeyringError.loosePermissions(path: other)) { try FileKeyring(home: other).create(contents("a")) }
    #expect(try mode(other) == 0o755)
  }

  @Test("the folder may be reached by a symbolic link, and is judged by what it leads to")
  func linkedFolder() throws {
    let scratch = try Scratch()
    try FileKeyring(home: scratch.home).create(contents("a"))
    try FileManager.default.createSymbolicLink(atPath: scratch.path + "/link", withDestinationPath: scratch.home)
    let linked = FileKeyring(home: scratch.path + "/link")
    #expect(try linked.load() == contents("a"))
    try setMode(0o755, scratch.home)
    #expect(throws: KeyringError.loosePermissions(path: linked.home)) { try linked.load() }
  }

  @Test("a keyring that is not there is missing, and one that is there is not replaced")
  func missingAndExisting() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    #expect(throws: KeyringError.missing(path: keyring.path)) { try keyring.load() }
    #expect(throws: KeyringError.missing(path: keyring.path)) { try keyring.update { _ in } }
    #expect(throws: KeyringError.missing(path: keyring.path)) { try keyring.setState([1], of: .zero) }
    #expect(!FileManager.default.fileExists(atPath: scratch.home))
    try keyring.create(contents("a"))
    #expect(throws: KeyringError.exists(path: keyring.path)) { try keyring.create(contents("b")) }
    #expect(try keyring.load() == contents("a"))
  }

  @Test("a change is kept whole; one that throws leaves everything as it was")
  func update() throws {
    struct Stop: Error {}
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents("a"))
    let before = try bytes(keyring.path)
    #expect(throws: Stop.self) {
      try keyring.update { contents in
        contents.personName = "Anna"
        throw Stop()
      }
    }
    #expect(try bytes(keyring.path) == before)
    let count = try keyring.update { contents -> Int in
      contents.personName = "Anna"
      if let id = contents.households.first?.id { contents[id] = nil }
      return contents.households.count
    }
    #expect(count == 2)
    #expect(try keyring.load().personName == "Anna" && keyring.load().households.count == 2)
    #expect(try mode(keyring.path) == 0o600)
  }

  @Test("every cut of the file and a flip in every byte of it is told as damage")
  func damage() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents("a"))
    let whole = try bytes(keyring.path)
    for length in stride(from: 0, to: whole.count, by: 7) {
      try write(Array(whole.prefix(length)), keyring.path)
      #expect(throws: KeyringError.damaged(path: keyring.path)) { try keyring.load() }
    }
    for index in whole.indices {
      var altered = whole
      altered[index] ^= 1 << UInt8(index % 8)
      try write(altered, keyring.path)
      #expect(throws: KeyringError.damaged(path: keyring.path)) { try keyring.load() }
    }
    try write(whole + [0], keyring.path)
    #expect(throws: KeyringError.damaged(path: keyring.path)) { try keyring.load() }
    try write(whole, keyring.path)
    #expect(try keyring.load() == contents("a"))
  }

  @Test("a newer version, and a protection that this one does not have, are newer and not damaged")
  func newer() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents("a"))
    for (version, protection) in [(2, 0), (2, 1), (1, 2)] {
      var writer = CBORWriter()
      writer.array(4)
      writer.text("latchkey-keyring")
      writer.uint(version)
      writer.uint(protection)
      writer.byteString([1, 2, 3])
      let check = hash32("keyring-file", parts: 1) { $0.byteString(writer.bytes) }
      try write(writer.bytes + check.bytes, keyring.path)
      #expect(throws: KeyringError.newer(path: keyring.path)) { try keyring.load() }
    }
  }

  @Test(
    "keys that others could read, and a symbolic link in their place, are refused", arguments: [0o640, 0o604, 0o660])
  func permissions(_ loose: Int) throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents("a"))
    try setMode(loose, keyring.path)
    #expect(throws: KeyringError.loosePermissions(path: keyring.path)) { try keyring.load() }
    try setMode(0o600, keyring.path)
    try setMode(0o750, scratch.home)
    #expect(throws: KeyringError.loosePermissions(path: scratch.home)) { try keyring.load() }
    #expect(throws: KeyringError.loosePermissions(path: scratch.home)) { try keyring.create(contents("b")) }
    try setMode(0o700, scratch.home)
    try FileManager.default.moveItem(atPath: keyring.path, toPath: scratch.path + "/elsewhere")
    try FileManager.default.createSymbolicLink(atPath: keyring.path, withDestinationPath: scratch.path + "/elsewhere")
    #expect(throws: KeyringError.damaged(path: keyring.path)) { try keyring.load() }
  }

  @Test("a failure at any step of writing leaves the old keys and says what it was", arguments: FileStep.allCases)
  func faults(_ step: FileStep) throws {
    let scratch = try Scratch()
    try FileKeyring(home: scratch.home).create(contents("a"))
    for (code, expected) in [
      (ENOSPC, KeyringError.full(path: scratch.home + "/keyring")),
      (EROFS, .readOnly(path: scratch.home + "/keyring")), (EACCES, .readOnly(path: scratch.home + "/keyring")),
      (EIO, .system(path: scratch.home + "/keyring", step: step.rawValue, code: EIO)),
    ] {
      let failing = FileKeyring(home: scratch.home) { $0 == step ? code : nil }
      #expect(throws: expected) { try failing.update { $0.personName = "Eve" } }
      // The new bytes are in place once they are renamed; only their durability is in doubt then.
      let name = try FileKeyring(home: scratch.home).load().personName
      #expect(name == (step == .syncFolder ? "Eve" : "Ana"))
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.home).sorted() == ["keyring", "lock"])
      try FileKeyring(home: scratch.home).update { $0.personName = "Ana" }
    }
  }

  @Test("what an interrupted run left beside the keyring is no hindrance")
  func leftovers() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents("a"))
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: keyring.path + ".new"))
    try keyring.update { $0.deviceName = "desk" }
    #expect(try keyring.load().deviceName == "desk")
    #expect(try mode(keyring.path) == 0o600)
  }

  @Test("whoever holds the lock keeps others out, who say so when their patience ends")
  func lock() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home, patience: 20)
    try keyring.create(contents("a"))
    let other = FileKeyring(home: scratch.home, patience: 0)
    try keyring.withLock { () throws in
      #expect(throws: KeyringError.busy(path: scratch.home + "/lock")) { try other.update { $0.personName = "x" } }
      #expect(throws: KeyringError.busy(path: scratch.home + "/lock")) { try other.setState([1], of: .zero) }
      #expect(try other.load() == contents("a"), "reading needs no lock")
    }
    try other.update { $0.personName = "x" }
    #expect(try keyring.load().personName == "x")
  }

  @Test("a household's state is kept apart from others', and forgotten when told to")
  func state() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    let kept = contents("a")
    try keyring.create(kept)
    let (one, two) = (kept.households[0].id, kept.households[1].id)
    #expect(try keyring.state(of: one) == nil)
    try keyring.setState([1, 2, 3], of: one)
    try keyring.setState([], of: two)
    #expect(try keyring.state(of: one) == [1, 2, 3] && keyring.state(of: two) == [])
    #expect(try mode(scratch.home + "/state-" + one.description) == 0o600)
    try keyring.setState([4], of: one)
    #expect(try keyring.state(of: one) == [4])
    try keyring.setState(nil, of: one)
    try keyring.setState(nil, of: one)
    #expect(try keyring.state(of: one) == nil)
  }

  @Test("a state file that was altered, cut, exchanged with another's or made with other keys is not believed")
  func forgedState() throws {
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    let kept = contents("a")
    try keyring.create(kept)
    let (one, two) = (kept.households[0].id, kept.households[1].id)
    let path = scratch.home + "/state-" + one.description
    try keyring.setState([1, 2, 3], of: one)
    try keyring.setState([9], of: two)
    let whole = try bytes(path)
    for index in whole.indices {
      var altered = whole
      altered[index] ^= 1
      try write(altered, path)
      #expect(throws: KeyringError.damaged(path: path)) { try keyring.state(of: one) }
      try write(Array(whole.prefix(index)), path)
      #expect(throws: KeyringError.damaged(path: path)) { try keyring.state(of: one) }
    }
    try write(try bytes(scratch.home + "/state-" + two.description), path)
    #expect(throws: KeyringError.damaged(path: path)) { try keyring.state(of: one) }
    let other = try Scratch()
    let foreign = FileKeyring(home: other.home)
    try foreign.create(contents("b"))
    try foreign.setState([1, 2, 3], of: one)
    try write(try bytes(other.home + "/state-" + one.description), path)
    #expect(throws: KeyringError.damaged(path: path)) { try keyring.state(of: one) }
    try write(whole, path)
    #expect(try keyring.state(of: one) == [1, 2, 3])
  }

  @Test("no error, and no value printed, shows a secret")
  func redaction() throws {
    let kept = contents("a")
    var printed = "\(kept) \(String(reflecting: kept))"
    dump(kept, to: &printed)
    var secrets = [kept.device.signing.secret, kept.device.box.secret, kept.stateKey]
    secrets += kept.households.flatMap { $0.epochs.map(\.key.secret) }
    for secret in secrets {
      #expect(!printed.contains(hex(secret.bytes)))
      #expect(!printed.contains("\(secret.bytes)"))
      #expect(!printed.contains(secret.bytes.prefix(4).map { "\($0)" }.joined(separator: ", ")))
    }
    #expect(printed.contains("(secret)"))
    #expect(!printed.contains("password"))
  }

  @Test("the system's randomness has the length that was asked for, and does not repeat")
  func systemRandom() {
    var random = SystemRandom()
    for length in [0, 1, 7, 8, 9, 32, 100] { #expect(random.bytes(length).count == length) }
    #expect(random.bytes(32) != random.bytes(32))
  }
}
