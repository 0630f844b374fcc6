import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyS3
import LatchkeyScriptedServer
import LatchkeyStorage
import LatchkeyWebDAV
import Testing

@Suite("real servers", .enabled(if: !RealServers.urls.isEmpty), .serialized)
struct RealServerTests {
  @Test("the adapter keeps the contract through two connections", arguments: RealServers.urls)
  func conformance(url: String) async throws {
    let first = try await RealServers.open(url, .create)
    print("\n\(url)\n\(try await first.probe())")
    let report = await runConformance(ConformanceFactory { try await RealServers.open(url) })
    print(report)
    #expect(report.passed, "\(url)")
    // What it wrote is gone, trial objects included.
    #expect(try await first.listAll().isEmpty)
  }

  @Test(
    "over a line that breaks all the time everything arrives, once and whole",
    arguments: RealServers.s3)
  func faultyLine(url: String) async throws {
    var configuration = try S3Configuration(Locator(parsing: url, relativeTo: ""))
    configuration.prefix += "/line"
    let straight = configuration
    let direct = try await S3Store.open(straight, credentials: keys, .create)
    // The certificate covers the address, whatever the port.
    let line = try FaultyLine(to: try #require(configuration.endpoint.port), seed: 20_261_130, stalls: true)
    configuration.endpoint.port = line.port
    configuration.http.stallTimeout = .seconds(1)
    let policy = RetryPolicy(maximumAttempts: 100, base: .milliseconds(5), cap: .milliseconds(50))
    let broken = configuration
    let store = try await RealServers.retrying(policy) { () async throws(StorageError) in
      RetryingStore(try await S3Store.open(broken, credentials: keys), policy: policy)
    }

    try await carry(120, store, direct, line)
  }

  @Test("over a line that breaks all the time everything arrives, once and whole", arguments: RealServers.webDAV)
  func faultyLineToWebDAV(url: String) async throws {
    let straight = try WebDAVConfiguration(Locator(parsing: url, relativeTo: ""))
    let direct = try await WebDAVStore.open(straight, credential: user(straight.root), .create)
    let line = try FaultyLine(to: try #require(straight.root.port), seed: 20_261_201, stalls: true)
    var root = straight.root
    root.port = line.port
    var configuration = WebDAVConfiguration(root: root)
    configuration.http = straight.http
    configuration.http.stallTimeout = .seconds(1)
    let policy = RetryPolicy(maximumAttempts: 100, base: .milliseconds(5), cap: .milliseconds(50))
    let broken = configuration
    let store = try await RealServers.retrying(policy) { () async throws(StorageError) in
      RetryingStore(try await WebDAVStore.open(broken, credential: user(broken.root)), policy: policy)
    }
    try await carry(50, store, direct, line)
  }

  /// Writes, reads, lists and deletes over a line that breaks, and compares with what is there.
  private func carry(
    _ count: Int, _ store: any ObjectStore, _ direct: any ObjectStore, _ line: FaultyLine
  ) async throws {
    let sizes = (0..<count).map { $0 % 10 == 0 ? 700_000 : ($0 * 7919) % 60_000 }
    let names = try sizes.indices.map { try #require(ObjectName("w/\($0)")) }
    func content(_ index: Int) -> [UInt8] { (0..<sizes[index]).map { UInt8(truncatingIfNeeded: $0 &* (index + 1)) } }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in 0..<4 {
        group.addTask {
          for index in stride(from: start, to: names.count, by: 4) {
            try await store.put(names[index], content(index))
            #expect(try await store.get(names[index]) == content(index))
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await store.listAll(pageSize: 50).map(\.name) == names.sorted())
    for index in names.indices { #expect(try await direct.get(names[index]) == content(index)) }
    for name in names { try await store.delete(name) }
    #expect(try await direct.listAll().isEmpty)
    print("\(line.faults) of \(line.connections) connections broke")
    #expect(line.faults > 20)
  }

  @Test("each mistake in keys, bucket and certificate has its own message", arguments: RealServers.s3)
  func mistakes(url: String) async throws {
    let configuration = try S3Configuration(Locator(parsing: url, relativeTo: ""))
    _ = try await S3Store.open(configuration, credentials: keys, .create)
    let good = try keys()
    func refusal(_ configuration: S3Configuration, _ credentials: S3Credentials? = nil) async -> StorageError? {
      await #expect(throws: StorageError.self) {
        _ = try await S3Store.open(configuration, credentials: { () throws(StorageError) in credentials ?? good })
      }
    }
    let secret = "hunter2hunter2"
    var errors = [
      await refusal(configuration, S3Credentials(accessKey: good.accessKey, secretKey: secret)),
      await refusal(configuration, S3Credentials(accessKey: "NOBODY", secretKey: secret)),
    ]
    #expect(errors.allSatisfy { $0?.cause == .unauthorized })
    var missing = configuration
    missing.bucket = "no-such-bucket-here"
    errors.append(await refusal(missing))
    #expect(errors.last??.cause == .storeMissing)
    if configuration.endpoint.isSecure {
      var untrusting = configuration
      untrusting.http.caFile = nil
      errors.append(await refusal(untrusting))
      #expect(errors.last??.cause == .tls && errors.last??.next.contains("add ca=FILE") == true)
      untrusting.http.caFile = try RealServers.otherAuthority(than: configuration.http.caFile)
      errors.append(await refusal(untrusting))
      #expect(errors.last??.cause == .tls && errors.last??.next.contains("leave ca= out") == true)
    }
    let texts = errors.compactMap { $0.map { "\($0)" } }
    for text in texts { #expect(!text.contains(secret) && !text.contains(good.secretKey)) }
    #expect(Set(texts).count == errors.count)
    print(texts.joined(separator: "\n"))
  }

  @Test("each mistake in user, path, certificate and encryption has its own message", arguments: RealServers.webDAV)
  func mistakesOnWebDAV(url: String) async throws {
    let configuration = try WebDAVConfiguration(Locator(parsing: url, relativeTo: ""))
    _ = try await WebDAVStore.open(configuration, credential: user(configuration.root), .create)
    let good = try #require(try user(configuration.root)())
    func refusal(_ configuration: WebDAVConfiguration, _ credential: HTTPCredential?) async -> StorageError? {
      await #expect(throws: StorageError.self) {
        _ = try await WebDAVStore.open(configuration, credential: { () throws(StorageError) in credential })
      }
    }
    let secret = "hunter2hunter2"
    var errors = [
      await refusal(configuration, HTTPCredential(user: good.user, password: secret)),
      await refusal(configuration, nil),
    ]
    #expect(errors.allSatisfy { $0?.cause == .unauthorized })
    var root = configuration.root
    root.path += "no-such-folder/"
    var missing = WebDAVConfiguration(root: root)
    missing.http = configuration.http
    errors.append(await refusal(missing, good))
    #expect(errors.last??.cause == .storeMissing)
    if configuration.root.isSecure {
      var untrusting = configuration
      untrusting.http.caFile = nil
      errors.append(await refusal(untrusting, good))
      #expect(errors.last??.cause == .tls && errors.last??.next.contains("add ca=FILE") == true)
      untrusting.http.caFile = try RealServers.otherAuthority(than: configuration.http.caFile)
      errors.append(await refusal(untrusting, good))
      #expect(errors.last??.cause == .tls && errors.last??.next.contains("leave ca= out") == true)
      // Plain words to a port that speaks TLS: some servers explain, others hang up.
      root = configuration.root
      root.isSecure = false
      errors.append(await refusal(WebDAVConfiguration(root: root), good))
      #expect([.config, .unavailable, .protocolViolation].contains(errors.last??.cause))
    } else {
      root = configuration.root
      root.isSecure = true
      errors.append(await refusal(WebDAVConfiguration(root: root), good))
      #expect([.tls, .unavailable].contains(errors.last??.cause))
    }
    let texts = errors.compactMap { $0.map { "\($0)" } }
    for text in texts { #expect(!text.contains(secret) && !text.contains(good.password)) }
    #expect(Set(texts).count == errors.count)
    print(texts.joined(separator: "\n"))
  }

  private let keys: S3CredentialSource = { () throws(StorageError) in try AWSEnvironment().credentials(profile: nil) }

  private func user(_ server: HTTPURL) -> WebDAVCredentialSource {
    { () throws(StorageError) in try WebDAVEnvironment().credential(for: server) }
  }
}
