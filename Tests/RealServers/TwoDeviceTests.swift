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
    try await live(url, "calm", [calm, calm])
    let gateways = try [20_261_130, 20_261_131].map { try FaultyGateway(to: port, seed: $0, percent: 15) }
    try await live(url, "rough", gateways)
    let requests = gateways.reduce(0) { $0 + $1.requests }
    let met = gateways.reduce(into: Set<FaultyGateway.Fate>()) { $0.formUnion($1.met) }
    print(
      "\(url): \(calm.requests) requests undisturbed; \(requests) with \(gateways.reduce(0) { $0 + $1.faults }) faults")
    #expect(met.count >= 8)
    #expect(requests < 4 * calm.requests)
  }

  /// Ana founds and shares, Ben joins, both write at the same time, both settle.
  private func live(_ url: String, _ run: String, _ gateways: [FaultyGateway]) async throws {
    let root = FileManager.default.temporaryDirectory.appending(path: "latchkey-\(UUID())").path
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: root) }
    let store = try RealServers.beside(url, "two-\(run)-\(UInt32.random(in: .min ... .max))")
    let homes = try zip(["ana", "ben"], gateways).map { name, gateway in
      Home(directory: "\(root)/\(name)", stores: try registry(url, gateway.port), base: root)
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
