import Foundation
import Latchkey
import LatchkeyFolder
import LatchkeyStorage
import Synchronization
import Testing

/// Folders behind a door: each takes one key, and writes down every key that it was shown.
private final class Vaults: Sendable {
  private struct State {
    var keys: [String: String] = [:]
    var shown: [String: Set<String>] = [:]
  }
  private let state = Mutex(State())

  func lock(_ path: String, with key: String) { state.withLock { $0.keys[path] = key } }
  func shown(to path: String) -> Set<String> { state.withLock { $0.shown[path] ?? [] } }

  func home(_ directory: String, _ root: String) -> Home {
    var stores = StoreRegistry()
    stores.register(scheme: "vault", form: "vault:PATH", credential: ["key"]) {
      [self] locator, mode, credential throws(StorageError) in
      guard case .opaque(let path) = locator.place else { throw StorageError(.config, .open) }
      let isRight = state.withLock { state in
        if let key = credential?["key"] { state.shown[path, default: []].insert(key) }
        return credential?["key"] == state.keys[path]
      }
      guard isRight else { throw StorageError(.unauthorized, .open) }
      var folders = StoreRegistry()
      folders.registerFolders()
      let folder: Locator
      do { folder = try Locator(folder: path, relativeTo: "") } catch { throw StorageError(.config, .open) }
      return try await folders.open(folder, mode)
    }
    return Home(directory: directory, stores: stores, base: root)
  }
}

@Suite("credentials of stores")
struct CredentialTests {
  @Test(
    "a credential is found again by every later sync, on its own store only, and changed once the store has taken it")
  func kept() async throws {
    let place = try Place()
    let vaults = Vaults()
    let (own, shared) = (place.path("own"), place.path("shared"))
    vaults.lock(own, with: "ana-1")
    vaults.lock(shared, with: "smith-1")
    let key = { (key: String) throws in try StoreCredential(parsing: "key = \(key)") }
    var ana: Home { vaults.home(place.path("ana"), place.root) }
    var ben: Home { vaults.home(place.path("ben"), place.root) }
    try place.run("a.db", budgetSchema)

    let refusal = await #expect(throws: LatchkeyError.self) {
      try await ana.initialize(name: "Ana", device: "laptop", store: "vault:\(own)")
    }
    #expect(refusal?.code == "store-unauthorized")
    try await ana.initialize(name: "Ana", device: "laptop", store: "vault:\(own)", credential: try key("ana-1"))
    try await ana.attach(place.path("a.db"), zone: "Budget")
    _ = try await ana.sync(place.path("a.db"))
    // The private household's credential is no use elsewhere, and is not tried.
    await #expect(throws: LatchkeyError.self) {
      _ = try await ana.share(place.path("a.db"), household: "Smith", store: "vault:\(shared)")
    }
    #expect(vaults.shown(to: shared).isEmpty)
    _ = try await ana.share(
      place.path("a.db"), household: "Smith", store: "vault:\(shared)", credential: try key("smith-1"))
    let invite = try await ana.invite(household: "Smith")

    var options = JoinOptions(database: place.path("b.db"), name: "Ben", device: "phone")
    let unauthorized = await #expect(throws: LatchkeyError.self) {
      _ = try await ben.join(link: invite.link, options: options) { _ in true }
    }
    #expect(unauthorized?.code == "store-unauthorized")
    options.credential = try key("smith-1")
    _ = try await ben.join(link: invite.link, options: options) { _ in true }
    _ = try await ana.sync()
    #expect(try await ben.sync(place.path("b.db")).warnings.isEmpty)

    // The credential is changed where the store is.
    vaults.lock(shared, with: "smith-2")
    let stale = await #expect(throws: LatchkeyError.self) { _ = try await ben.sync(place.path("b.db")) }
    #expect(stale?.code == "store-unauthorized" && stale?.message.contains("smith") == false)
    await #expect(throws: LatchkeyError.self) { try await ben.setCredential(of: "Smith", try key("wrong")) }
    vaults.lock(shared, with: "smith-1")
    _ = try await ben.sync(place.path("b.db"))
    vaults.lock(shared, with: "smith-2")
    let file = place.path("new.credential")
    try Data("key = smith-2\n".utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    let loose = await #expect(throws: LatchkeyError.self) { try await ben.setCredential(of: "Smith", from: file) }
    #expect(loose?.kind == .key && loose?.code == "credential-unusable")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    #expect(try await ben.setCredential(of: "Smith", from: file).household == "Smith")
    _ = try await ben.sync(place.path("b.db"))

    #expect(vaults.shown(to: own) == ["ana-1"])
    #expect(vaults.shown(to: shared) == ["smith-1", "smith-2", "wrong"])
    for home in ["ana", "ben"] {
      for name in try FileManager.default.subpathsOfDirectory(atPath: place.path(home)) where !name.contains("keyring")
      {
        let bytes = (try? Data(contentsOf: URL(fileURLWithPath: place.path(home) + "/" + name))) ?? Data()
        #expect(bytes.range(of: Data("smith-1".utf8)) == nil, "\(name)")
      }
    }
  }
}
