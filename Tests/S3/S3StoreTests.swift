import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyStorage
import Testing

@testable import LatchkeyS3

@Suite("S3: the contract")
struct S3StoreTests {
  @Test(
    "the adapter keeps the contract on services of every manner",
    arguments: ["well-behaved", "conditions ignored", "version 1", "slash first", "no ranges, no HEAD"])
  func conformance(manner name: String) async throws {
    var manner = ScriptedS3.Manner()
    switch name {
    case "conditions ignored": manner.ifNoneMatch = .ignored
    case "version 1": manner.listing = .version1Only
    case "slash first": (manner.isSlashFirst, manner.server) = (true, "SeaweedFS 1")
    case "no ranges, no HEAD": (manner.ignoresRange, manner.refusesHead) = (true, true)
    default: break
    }
    let service = try ScriptedS3(manner)
    let report = await runConformance(
      ConformanceFactory(run: "s3") {
        try await service.open()
      } plantDebris: { prefix in
        for key in ["\(prefix)UPPER", "\(prefix).hidden", "\(prefix)sp ace", "\(prefix)<&>", "\(prefix)dir/", "other"] {
          service.place("pre fix/+x/\(key)", [1, 2, 3])
        }
        service.place("elsewhere/\(prefix)h/own", [9])
      } checkDebris: { prefix in
        #expect(service.objects["pre fix/+x/\(prefix)dir/"] == [1, 2, 3])
        #expect(service.objects["elsewhere/\(prefix)h/own"] == [9])
      })
    #expect(report.passed, "\(report)")
    #expect(service.refused.isEmpty, "signatures that did not hold")
    #expect(!service.objects.keys.contains { $0.contains(".latchkey-trial") })
  }

  @Test("a whole put is one request once the session knows the service; a get and a listing always are")
  func requestCounts() async throws {
    let service = try ScriptedS3()
    let store = try await service.open()
    let names = try (0..<3).map { try #require(ObjectName("n/\($0)")) }
    try await store.put(names[0], [1])
    let before = service.server.requests.count
    try await store.put(names[1], [2])
    _ = try await store.get(names[1])
    _ = try await store.head(names[1])
    _ = try await store.list(prefix: "n/", after: nil, limit: 10)
    try await store.delete(names[1])
    #expect(service.server.requests.count == before + 5)
  }

  @Test("no checksum field, no chunks, no secret key: what is sent is what every service takes")
  func fields() async throws {
    var manner = ScriptedS3.Manner()
    manner.sessionToken = "token-hunter3"
    let service = try ScriptedS3(manner)
    let store = try await service.open(
      credentials: S3Credentials(
        accessKey: ScriptedS3.accessKey, secretKey: ScriptedS3.secretKey, sessionToken: "token-hunter3"))
    try await store.put(try #require(ObjectName("a")), [1, 2, 3])
    for request in service.server.requests {
      #expect(!request.headers.contains { $0.name.lowercased().contains("checksum") || $0.name == "Content-MD5" })
      #expect(request.header("Transfer-Encoding") == nil && request.header("Expect") == nil)
      #expect(request.header("Accept-Encoding") == "identity")
      #expect(request.header("x-amz-security-token") == "token-hunter3")
      #expect(request.header("Authorization")?.contains("x-amz-security-token") == true)
      #expect(request.header("Authorization")?.contains("accept-encoding") == false)
      #expect(!request.everything.contains(ScriptedS3.secretKey))
      if request.method == "PUT" { #expect(request.header("Content-Length") == "\(request.body.count)") }
    }
  }

  @Test("a bucket that is not there is made where that was asked for, and missing where not")
  func makingBuckets() async throws {
    var manner = ScriptedS3.Manner()
    (manner.hasBucket, manner.region) = (false, "eu-x-1")
    let service = try ScriptedS3(manner)
    var configuration = service.configuration
    configuration.region = "eu-x-1"
    let missing = await #expect(throws: StorageError.self) { _ = try await service.open(configuration) }
    #expect(missing?.cause == .storeMissing)
    let store = try await service.open(configuration, .create)
    let made = try #require(service.server.requests.first { $0.method == "PUT" })
    #expect(made.everything.contains("<LocationConstraint>eu-x-1</LocationConstraint>"))
    #expect(try await StoreMarker.read(store) == .absent(empty: true))
  }

  @Test("the probe says what was found, and promises one winner only where that is known of the service")
  func probing() async throws {
    for (condition, server, expected) in [
      (.honoured, "Scripted", .bestEffort), (.honoured, "AmazonS3", .atomic), (.ignored, "AmazonS3", .none),
      (.inverted, "Ceph Object Gateway", .none), (.notImplemented, "Swift", .none), (.notModified, "x", .bestEffort),
    ] as [(ScriptedS3.Manner.Condition, String, Capabilities.ConditionalCreate)] {
      var manner = ScriptedS3.Manner()
      (manner.ifNoneMatch, manner.server) = (condition, server)
      let service = try ScriptedS3(manner)
      let store = try await service.open()
      #expect(try await store.probe().conditionalCreate == expected, "\(condition)")
      #expect(service.objects.isEmpty)
    }
  }
}
