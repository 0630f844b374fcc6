import Foundation
import LatchkeyEncoding
import LatchkeyKeyring
import LatchkeyKeys
import Synchronization
import Testing

/// A folder that goes away with the value.
private final class Scratch {
  let path: String
  init() throws {
    path = NSTemporaryDirectory() + "/latchkey-passphrase-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(atPath: path) }
  var home: String { path + "/home" }
}

private func contents() -> KeyringContents {
  var random = SeededRandom("passphrase")
  let device = DeviceKeys(&random)
  var contents = KeyringContents(
    device: device, chain: CertificateChain(first: device), personName: "Ana", deviceName: "laptop", random: &random)
  for number in 0..<2 {
    let id = Hash32(random.bytes(32)) ?? .zero
    contents[id] = HouseholdKeys(
      id: id, name: "Smith", isPrivate: number == 0, epochs: [.init(id: id, key: EpochKey(&random))],
      locator: "folder:/somewhere", rosterIncarnation: Incarnation(UInt64(number)))
  }
  return contents
}

private func secret(_ text: String) -> SecretBytes { SecretBytes(Array(text.utf8)) }

/// Every file of a folder, by name.
private func files(_ folder: String) throws -> [String: [UInt8]] {
  var out: [String: [UInt8]] = [:]
  for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
    out[name] = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
  }
  return out
}

private func contains(_ bytes: [UInt8], _ sought: [UInt8]) -> Bool { Data(bytes).range(of: Data(sought)) != nil }

private func write(_ bytes: [UInt8], _ path: String) throws {
  // In place: permissions stay.
  let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  try handle.truncate(atOffset: 0)
  try handle.write(contentsOf: bytes)
  try handle.close()
}

/// Counts how often somebody was asked.
private final class Asked: Sendable {
  let count = Mutex(0)
  let answer: SecretBytes?
  init(_ answer: String?) { self.answer = answer.map(secret) }
  var provider: @Sendable () throws -> SecretBytes? {
    { [self] in
      count.withLock { $0 += 1 }
      return answer
    }
  }
  var times: Int { count.withLock { $0 } }
}

/// Serialised, and few: each opening takes 256 MiB and most of a second.
@Suite("The keyring's passphrase", .serialized)
struct PassphraseTests {
  @Test("a sealed keyring opens with its passphrase alone, asked for once, and works as before")
  func roundTrip() throws {
    let scratch = try Scratch()
    let kept = contents()
    let household = kept.households[0].id
    let plain = FileKeyring(home: scratch.home)
    try plain.create(kept)
    #expect(try !plain.hasPassphrase())
    try plain.setState(Array("a state".utf8) + kept.households[1].epochs[0].key.secret.bytes, of: household)
    try plain.setPassphrase(secret("correct horse"))
    #expect(try plain.hasPassphrase())
    #expect(try plain.load() == kept, "whoever set it need not say it")

    let secrets =
      [kept.device.signing.secret, kept.device.box.secret, kept.stateKey]
      + kept.households.map { $0.epochs[0].key.secret }
    for (name, bytes) in try files(scratch.home) {
      for secret in secrets { #expect(!contains(bytes, secret.bytes), "a key lies in \(name)") }
      #expect(!contains(bytes, Array("Smith".utf8)) && !contains(bytes, Array("correct".utf8)))
    }

    let asked = Asked("correct horse")
    let sealed = FileKeyring(home: scratch.home, passphrase: asked.provider)
    #expect(try sealed.hasPassphrase() && asked.times == 0)
    #expect(try sealed.load() == kept)
    try sealed.update { $0.deviceName = "desk" }
    #expect(try sealed.load().deviceName == "desk")
    #expect(try sealed.hasPassphrase(), "a change leaves it sealed")
    let state = try #require(try sealed.state(of: household))
    #expect(state.starts(with: Array("a state".utf8)))
    #expect(try sealed.replaceState(of: household, former: state, with: [1]))
    try sealed.setState([2], of: household)
    #expect(try sealed.state(of: household) == [2] && plain.state(of: household) == [2])
    #expect(asked.times == 1)
    let mode = try FileManager.default.attributesOfItem(atPath: sealed.path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
  }

  @Test("no passphrase, a wrong one, one that cannot be read, damage and loose permissions are told apart")
  func refusals() throws {
    struct Broken: Error, CustomStringConvertible { let description = "the file is gone" }
    let scratch = try Scratch()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(contents())
    try keyring.setPassphrase(secret("correct horse"))
    let path = keyring.path
    #expect(throws: KeyringError.passphraseMissing(path: path)) { try FileKeyring(home: scratch.home).load() }
    #expect(throws: KeyringError.passphraseMissing(path: path)) {
      try FileKeyring(home: scratch.home, passphrase: Asked("").provider).update { $0.personName = "Eve" }
    }
    #expect(throws: KeyringError.passphraseUnavailable(path: path, reason: "the file is gone")) {
      try FileKeyring(home: scratch.home) { throw Broken() }.load()
    }
    let wrong = Asked("correct horsf")
    let mistaken = FileKeyring(home: scratch.home, passphrase: wrong.provider)
    #expect(throws: KeyringError.passphraseWrong(path: path)) { try mistaken.load() }
    #expect(throws: KeyringError.passphraseWrong(path: path)) { try mistaken.removePassphrase() }
    #expect(wrong.times == 2, "who was wrong is asked again")

    let whole = try #require(try files(scratch.home)["keyring"])
    for index in stride(from: 0, to: whole.count, by: 5) {
      var altered = whole
      altered[index] ^= 1 << UInt8(index % 8)
      try write(altered, path)
      #expect(throws: KeyringError.damaged(path: path)) { try keyring.load() }
      try write(Array(whole.prefix(index)), path)
      #expect(throws: KeyringError.damaged(path: path)) { try keyring.load() }
    }
    // Altered by somebody who also makes the check right: what was said still opens nothing but what it sealed.
    var altered = Array(whole.dropLast(32))
    altered[altered.count - 1] ^= 1
    try write(altered + hash32("keyring-file", parts: 1) { $0.byteString(altered) }.bytes, path)
    #expect(throws: KeyringError.damaged(path: path)) { try keyring.load() }

    try write(whole, path)
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    #expect(throws: KeyringError.loosePermissions(path: path)) { try keyring.load() }
  }

  @Test(
    "a file that asks for less stretching than the floor, or more than is sane, is refused before anybody is asked",
    arguments: [(2, 256 << 20), (3, (256 << 20) - 1024), (1, 8192), (17, 256 << 20), (3, (1 << 30) + 1024), (0, 0)])
  func parameters(_ operations: Int, _ memory: Int) throws {
    let scratch = try Scratch()
    let asked = Asked("correct horse")
    let keyring = FileKeyring(home: scratch.home, passphrase: asked.provider)
    try keyring.create(contents())
    var body = CBORWriter()
    body.array(5)
    body.uint(operations)
    body.uint(memory)
    body.byteString([UInt8](repeating: 7, count: 16))
    body.byteString([UInt8](repeating: 8, count: 24))
    body.byteString([UInt8](repeating: 9, count: 300))
    var file = CBORWriter()
    file.array(4)
    file.text("latchkey-keyring")
    file.uint(1)
    file.uint(1)
    file.byteString(body.bytes)
    try write(file.bytes + hash32("keyring-file", parts: 1) { $0.byteString(file.bytes) }.bytes, keyring.path)
    #expect(throws: KeyringError.unsafeParameters(path: keyring.path)) { try keyring.load() }
    #expect(asked.times == 0)
  }

  @Test("it is changed and taken away by who knows it; a write that fails leaves what was")
  func change() throws {
    let scratch = try Scratch()
    let kept = contents()
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(kept)
    #expect(throws: KeyringError.passphraseTooShort(minimum: 8)) { try keyring.setPassphrase(secret("seven77")) }
    #expect(try keyring.removePassphrase() == false)
    // What an interrupted run left is not sealed.
    try FileManager.default.copyItem(atPath: keyring.path, toPath: keyring.path + ".new")
    let failing = FileKeyring(home: scratch.home) { $0 == .rename ? EIO : nil }
    #expect(throws: KeyringError.self) { try failing.setPassphrase(secret("correct horse")) }
    #expect(try !keyring.hasPassphrase() && keyring.load() == kept)
    try keyring.setPassphrase(secret("correct horse"))
    #expect(try files(scratch.home).keys.sorted() == ["keyring", "lock"])

    let other = FileKeyring(home: scratch.home, passphrase: Asked("correct horse").provider)
    try other.setPassphrase(secret("battery staple"))
    #expect(throws: KeyringError.passphraseWrong(path: keyring.path)) { try keyring.load() }
    #expect(try other.load() == kept)
    #expect(try other.removePassphrase())
    #expect(try FileKeyring(home: scratch.home).load() == kept)
  }

  @Test("states that an older version kept unsealed are read, and sealed when a passphrase is set")
  func olderState() throws {
    let scratch = try Scratch()
    let kept = contents()
    let household = kept.households[0].id
    let keyring = FileKeyring(home: scratch.home)
    try keyring.create(kept)
    let path = scratch.home + "/state-" + household.description
    try keyring.setState([], of: household)
    var writer = CBORWriter()
    writer.array(4)
    writer.text("latchkey-state")
    writer.uint(1)
    writer.id(household)
    writer.byteString(Array("a state".utf8))
    try write(
      writer.bytes + hash32("state-file", key: kept.stateKey.bytes, parts: 1) { $0.byteString(writer.bytes) }.bytes,
      path)
    #expect(try keyring.state(of: household) == Array("a state".utf8))
    try keyring.setPassphrase(secret("correct horse"))
    #expect(try keyring.state(of: household) == Array("a state".utf8))
    #expect(try !contains(#require(files(scratch.home)["state-" + household.description]), Array("a state".utf8)))
  }
}
