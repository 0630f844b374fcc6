import Foundation
import Latchkey
import LatchkeyHTTP
import LatchkeyS3
import LatchkeySQLite
import LatchkeyScriptedServer
import LatchkeyStorage
import LatchkeyWebDAV
import Testing

/// The whole program on real servers, behind gateways that lose, cut and refuse.
@Suite("two devices on real servers", .enabled(if: !RealServers.urls.isEmpty), .serialized)
struct TwoDeviceTests {
  /// Servers without encryption: the gateway reads what passes.
  static let urls = RealServers.urls.filter { $0.hasPrefix("webdav+http:") || $0.contains("endpoint=http:") }

  @Test(
    "over a gateway that loses, cuts and refuses, two devices agree on every row, in a bounded number of requests",
    arguments: urls)
  func converge(url: String) async throws {
    let port = try #require(try RealServers.port(of: url))
    // The same work undisturbed tells how many requests it takes.
    let calm = try FaultyGateway(to: port, seed: 1, percent: 0)
    try await live(url, "calm", try [calm, calm].map { try registry(url, $0.port) })
    let gateways = try [20_261_130, 20_261_131].map { try FaultyGateway(to: port, seed: $0, percent: 15) }
    try await live(url, "rough", try gateways.map { try registry(url, $0.port) })
    let requests = gateways.reduce(0) { $0 + $1.requests }
    let met = gateways.reduce(into: Set<FaultyGateway.Fate>()) { $0.formUnion($1.met) }
    print(
      "\(url): \(calm.requests) requests undisturbed; \(requests) with \(gateways.reduce(0) { $0 + $1.faults }) faults")
    #expect(met.count >= 8)
    #expect(requests < 4 * calm.requests)
  }

  @Test(
    "over TLS with an authority of their own, two devices agree on every row",
    arguments: RealServers.urls.filter { $0.contains("ca=") })
  func converge(securely url: String) async throws {
    try await live(url, "tls", [RealServers.stores, RealServers.stores])
  }

  @Test(
    "each mistake of setup has its own code and message and a next step, and none repeats a secret",
    arguments: RealServers.s3)
  func mistakes(url: String) async throws {
    let root = FileManager.default.temporaryDirectory.appending(path: "latchkey-\(UUID())").path
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: root) }
    let home = Home(directory: "\(root)/home", stores: RealServers.stores, base: root)
    let keys = try AWSEnvironment().credentials(profile: nil)
    let store = try RealServers.beside(url, "mistakes-\(UInt32.random(in: .min ... .max))")
    let isSecure = url.contains("endpoint=https:")
    let secret = "hunter2hunter2hunter2"
    func credential(_ access: String, _ secret: String) throws -> StoreCredential {
      try StoreCredential(parsing: "access-key = \(access)\nsecret-key = \(secret)")
    }
    let right = try credential(keys.accessKey, keys.secretKey)
    var refusals: [(what: String, error: LatchkeyError?)] = []
    func expect(_ code: [String], _ what: String, _ url: String, _ credential: StoreCredential) async {
      let error = await #expect(throws: LatchkeyError.self, "\(what)") {
        _ = try await home.listStore(url, credential: credential)
      }
      #expect(error.map { code.contains($0.code) } == true, "\(what): \(error.map { "\($0)" } ?? "")")
      refusals.append((what, error))
    }
    await expect(["store-unauthorized"], "wrong secret", store, try credential(keys.accessKey, secret))
    await expect(["store-unauthorized"], "unknown key", store, try credential("NOBODYKNOWSTHIS", secret))
    await expect(
      ["store-missing"], "missing bucket", store.replacing("s3://latchkey-tests/", with: "s3://no-such-bucket-here/"),
      right)
    let port = try #require(try RealServers.port(of: url))
    let path = store.replacing("127.0.0.1:\(port)", with: "127.0.0.1:\(port)/not/here")
    await expect(["store-missing", "store-config", "store-unauthorized", "store-read-only"], "wrong path", path, right)
    await expect(
      ["store-unavailable"], "nobody there", store.replacing("127.0.0.1:\(port)", with: "127.0.0.1:1"), right)
    if isSecure {
      let own = String(try #require(store.split(separator: "ca=").last))
      let other = try RealServers.otherAuthority(than: own)
      await expect(["store-tls"], "wrong authority", store.replacing(own, with: other), right)
      await expect(["store-tls"], "no authority", store.replacing("&ca=\(own)", with: ""), right)
      await expect(["store-config"], "a file that is not there", store.replacing(own, with: own + ".not"), right)
      await expect(
        ["store-config", "store-unavailable", "store-protocol-violation"], "plain words to TLS",
        store.replacing("endpoint=https:", with: "endpoint=http:").replacing("&ca=\(own)", with: ""), right)
    }
    let messages = refusals.compactMap { $0.error?.message }
    #expect(Set(messages).count == refusals.count, "\(messages)")
    for (what, error) in refusals {
      print("\(what): \(error.map { "\($0)" } ?? "")\n    \(error?.next.first ?? "")")
      #expect(error?.next.isEmpty == false)
      for text in [error?.message ?? ""] + (error?.next ?? []) {
        #expect(!text.contains(secret) && !text.contains(keys.secretKey), "\(what)")
      }
    }
  }

  @Test(
    "with keys that may only read, a household is not begun, and that is what is said",
    arguments: RealServers.s3.filter { $0.contains(":28330") || $0.contains(":28340") })
  func readOnly(url: String) async throws {
    let root = FileManager.default.temporaryDirectory.appending(path: "latchkey-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: root) }
    let home = Home(directory: root, stores: RealServers.stores, base: "/")
    let secret = try AWSEnvironment().credentials(profile: nil).secretKey
    let error = await #expect(throws: LatchkeyError.self) {
      try await home.initialize(
        name: "Ana", device: "laptop", store: try RealServers.beside(url, "read-only"),
        credential: try StoreCredential(parsing: "access-key = reader\nsecret-key = \(secret)"))
    }
    #expect(error?.code == "store-read-only" && error?.next.isEmpty == false)
    #expect(await #expect(throws: LatchkeyError.self) { _ = try await home.identity() }?.code == "no-identity")
  }

  /// Ana founds and shares, Ben joins, both write at the same time, both settle.
  private func live(_ url: String, _ run: String, _ registries: [StoreRegistry]) async throws {
    let root = FileManager.default.temporaryDirectory.appending(path: "latchkey-\(UUID())").path
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: root) }
    let store = try RealServers.beside(url, "two-\(run)-\(UInt32.random(in: .min ... .max))")
    let homes = zip(["ana", "ben"], registries).map { name, stores in
      Home(directory: "\(root)/\(name)", stores: stores, base: root)
    }
    let (ana, ben) = (homes[0], homes[1])
    try execute("\(root)/a.db", Self.schema)
    try await ana.initialize(name: "Ana", device: "laptop", store: store)
    try await ana.attach("\(root)/a.db", zone: "Budget")
    _ = try await again { try await ana.sync("\(root)/a.db") }
    _ = try await ana.share("\(root)/a.db", household: "Smith")
    let invite = try await ana.invite(household: "Smith")
    _ = try await ben.join(
      link: invite.link, options: JoinOptions(database: "\(root)/b.db", name: "Ben", device: "phone")
    ) { _ in true }
    _ = try await again { try await ana.sync("\(root)/a.db") }
    _ = try await again { try await ben.sync("\(root)/b.db") }
    for round in 0..<4 {
      for (file, who) in [("a", "Ana"), ("b", "Ben")] {
        try execute(
          "\(root)/\(file).db",
          "INSERT INTO entries(account, cents, note) VALUES (1, \(round), '\(who) \(round)');"
            + "UPDATE accounts SET name = '\(who) \(round)' WHERE id = 2")
      }
      async let first = again { try await ana.sync("\(root)/a.db") }
      async let second = again { try await ben.sync("\(root)/b.db") }
      _ = try await (first, second)
    }
    for _ in 0..<3 {
      _ = try await again { try await ana.sync("\(root)/a.db") }
      _ = try await again { try await ben.sync("\(root)/b.db") }
    }
    let dump = "SELECT e.cents, e.note, a.name FROM entries e JOIN accounts a ON a.id = e.account ORDER BY 1, 2, 3"
    let (mine, yours) = (try rows("\(root)/a.db", dump), try rows("\(root)/b.db", dump))
    #expect(mine == yours)
    // Nothing lost, nothing twice: two to begin with, and four of each.
    #expect(mine.count == 10 && Set(mine).count == 10)
    for home in [(ana, "a"), (ben, "b")] {
      let status = try await home.0.status("\(root)/\(home.1).db")
      #expect(status.allSatisfy { $0.zone?.waiting == 0 && $0.zone?.parked == 0 })
    }
  }

  /// Runs a command again where it says so, as a person would.
  private func again<T: Sendable>(_ body: () async throws -> T) async throws -> T {
    for _ in 0..<4 {
      do { return try await body() } catch let error as LatchkeyError where error.kind == .store {
        print("again: \(error)")
      }
    }
    return try await body()
  }

  /// Opens the URL's stores through a gateway, with little patience.
  private func registry(_ url: String, _ port: Int) throws -> StoreRegistry {
    var stores = StoreRegistry()
    stores.register(scheme: "s3", form: "", options: S3Configuration.options) { locator, mode throws(StorageError) in
      var configuration = try S3Configuration(locator)
      configuration.endpoint.port = port
      configuration.http.stallTimeout = .seconds(1)
      return try await S3Store.open(
        configuration,
        credentials: { () throws(StorageError) in try AWSEnvironment().credentials(profile: nil) }, mode)
    }
    stores.register(scheme: "webdav+http", form: "", options: WebDAVConfiguration.options) {
      locator, mode throws(StorageError) in
      var address = try WebDAVConfiguration(locator).root
      address.port = port
      let root = address
      var configuration = WebDAVConfiguration(root: root)
      configuration.http.stallTimeout = .seconds(1)
      return try await WebDAVStore.open(
        configuration, credential: { () throws(StorageError) in try WebDAVEnvironment().credential(for: root) }, mode)
    }
    return stores
  }

  private static let schema = """
    CREATE TABLE accounts(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE entries(id INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts(id), cents INTEGER, note TEXT);
    INSERT INTO accounts VALUES (1, 'Joint'), (2, 'Cash');
    INSERT INTO entries(account, cents, note) VALUES (1, -100, 'a'), (2, -200, 'b');
    """

  private func execute(_ path: String, _ sql: String) throws {
    try Connection(path, mode: FileManager.default.fileExists(atPath: path) ? .readWrite : .create).execute(sql)
  }

  private func rows(_ path: String, _ sql: String) throws -> [String] {
    try Connection(path, mode: .readOnly).rows(sql).map { row in row.map { "\($0)" }.joined(separator: "|") }
  }
}
