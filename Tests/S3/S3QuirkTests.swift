import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Testing

@testable import LatchkeyS3

/// What real services do that is not in the book, each with the answer that it needs. The numbers are those of the
/// project's list of quirks.
@Suite("S3: quirks of services")
struct S3QuirkTests {
  private let name: ObjectName
  private let bytes: [UInt8] = Array("sealed".utf8)

  init() throws { name = try #require(ObjectName("n/1")) }

  private func service(_ change: (inout ScriptedS3.Manner) -> Void = { _ in }) throws -> ScriptedS3 {
    var manner = ScriptedS3.Manner()
    change(&manner)
    return try ScriptedS3(manner)
  }

  /// A service and a store on it that has found out how creation works.
  private func warm(_ change: (inout ScriptedS3.Manner) -> Void = { _ in }) async throws -> (ScriptedS3, S3Store) {
    let service = try service(change)
    let store = try await service.open()
    _ = try await store.probe()
    return (service, store)
  }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }

  @Test(
    "1, 16: a conflict of creations (AWS) or an aborted operation (OVH) is tried again, not taken for an object in the way",
    arguments: ["ConditionalRequestConflict", "OperationAborted"])
  func conflicts(code: String) async throws {
    let (service, store) = try await warm()
    service.fail("PUT", ScriptedS3.error(409, code))
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .conflict && error?.isRetryable == true && error?.effect == .notApplied)
    try await store.put(name, bytes)
    let retrying = try await service.openRetrying()
    service.fail("PUT", ScriptedS3.error(409, code), times: 2)
    try await retrying.put(try #require(ObjectName("n/2")), bytes)
  }

  @Test("3: a service that says 304 where 412 is meant refuses other bytes all the same")
  func notModified() async throws {
    let (service, store) = try await warm { $0.ifNoneMatch = .notModified }
    try await store.put(name, bytes)
    try await store.put(name, bytes)
    #expect(await failure { try await store.put(name, [9]) }?.cause == .alreadyExists)
    #expect(try await store.get(name) == bytes)
    #expect(service.objects.count == 1)
  }

  @Test(
    "4: an error inside a success (AWS) is an error, whether the object landed or not",
    arguments: ["InternalError", "SlowDown"], [true, false])
  func errorInSuccess(code: String, lands: Bool) async throws {
    let (service, store) = try await warm()
    service.fail("PUT", ScriptedS3.error(200, code), isDone: lands)
    if lands, code == "InternalError" {
      try await store.put(name, bytes)
    } else {
      let error = await failure { try await store.put(name, bytes) }
      #expect(error?.isRetryable == true)
      try await store.put(name, bytes)
    }
    #expect(try await store.get(name) == bytes)
    service.fail("GET", ScriptedS3.error(200, code))
    #expect(await failure { _ = try await store.list(prefix: "", after: nil, limit: 5) }?.isRetryable == true)
  }

  @Test("5: a wrong region is a mistake of setup that names the right one, by error, by redirect and by HEAD")
  func regions() async throws {
    let service = try service { $0.region = "eu-west-3" }
    let error = await failure { _ = try await service.open() }
    #expect(error?.cause == .config)
    #expect(error?.description.contains("write region=eu-west-3") == true)

    let (other, store) = try await warm()
    let header = [("x-amz-bucket-region", "ap-south-1")]
    other.fail("GET", ScriptedS3.error(301, "PermanentRedirect", headers: header))
    other.fail("HEAD", .answer(301, header))
    other.fail("PUT", ScriptedS3.error(307, "TemporaryRedirect", "<Region>ap-south-1</Region>"))
    for operation in [
      { _ = try await store.get(name) }, { _ = try await store.head(name) }, { try await store.put(name, bytes) },
    ] as [() async throws -> Void] {
      let error = await failure { try await operation() }
      #expect(error?.cause == .config)
      #expect(error?.description.contains("write region=ap-south-1") == true, "\(error.map { "\($0)" } ?? "")")
    }
  }

  @Test(
    "6, 7, 8: where creation overwrites (Garage), is inverted (Ceph on POSIX) or refused (Swift), the adapter looks first",
    arguments: [ScriptedS3.Manner.Condition.ignored, .inverted, .notImplemented])
  func conditions(condition: ScriptedS3.Manner.Condition) async throws {
    let service = try service { $0.ifNoneMatch = condition }
    let store = try await service.open()
    try await store.put(name, bytes)
    try await store.put(name, bytes)
    #expect(await failure { try await store.put(name, [9]) }?.cause == .alreadyExists)
    #expect(try await store.get(name) == bytes)
    #expect(try await store.probe().conditionalCreate == .none)
  }

  @Test("7: a service that says in turns that an object exists and that it does not is given up on, soon")
  func contradiction() async throws {
    let (service, store) = try await warm()
    service.change { $0.ifNoneMatch = .inverted }
    let before = service.server.requests.count
    #expect(await failure { try await store.put(name, bytes) }?.cause == .protocolViolation)
    #expect(service.server.requests.count - before <= 6)
  }

  @Test("8: a service that stops knowing the condition in the middle of a session is looked at first from then on")
  func conditionLost() async throws {
    let (service, store) = try await warm()
    service.change { $0.ifNoneMatch = .notImplemented }
    try await store.put(name, bytes)
    #expect(try await store.get(name) == bytes)
  }

  @Test("9, 10: no checksum field is ever sent, which R2 and Backblaze refuse")
  func checksums() async throws {
    let (service, store) = try await warm { $0.refusedHeaderPrefix = "x-amz-checksum" }
    try await store.put(name, bytes)
    #expect(!service.server.requests.contains { $0.everything.lowercased().contains("x-amz-sdk-checksum") })
  }

  @Test("11: after a 503 (Backblaze: no tomes available) the next try goes over a connection of its own")
  func freshConnection() async throws {
    let service = try service()
    let store = try await service.openRetrying()
    _ = try await store.probe()
    let before = service.server.connections
    service.fail("PUT", ScriptedS3.error(503, "ServiceUnavailable"), times: 2)
    try await store.put(name, bytes)
    let puts = service.server.requests.filter { $0.method == "PUT" }.suffix(3)
    #expect(Set(puts.map(\.connection)).count == 3)
    #expect(service.server.connections >= before + 2)
  }

  @Test("14: two writes of one key are not under way at once, which R2 answers with 429")
  func serialWrites() async throws {
    let (service, store) = try await warm { $0.refusesConcurrentWrites = true }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 { group.addTask { try await store.put(name, bytes) } }
      try await group.waitForAll()
    }
    #expect(service.count("PUT") == 2 + 6)
  }

  @Test("15: load shed with 408 (Tigris) and AWS's 400 RequestTimeout are tried again")
  func timeouts() async throws {
    let (service, store) = try await warm()
    for reply in [.answer(408), ScriptedS3.error(400, "RequestTimeout")] as [ScriptedServer.Reply] {
      service.fail("GET", reply)
      #expect(await failure { _ = try await store.get(name) }?.cause == .timeout)
      service.fail("PUT", reply)
      let error = await failure { try await store.put(name, bytes) }
      #expect(error?.cause == .timeout && error?.effect == .unknown)
    }
    try await store.put(name, bytes)
  }

  @Test(
    "17, 18: a listing of version 2 that is refused, taken for version 1, or cut off without a token goes on by markers",
    arguments: [ScriptedS3.Manner.Listing.version2Refused, .version1Only, .withoutToken])
  func versions(listing: ScriptedS3.Manner.Listing) async throws {
    let service = try service { ($0.listing, $0.pageSize) = (listing, 3) }
    let names = try (10..<30).map { try #require(ObjectName("n/\($0)")) }
    for name in names { service.place(service.configuration.key(name.text), [1]) }
    let store = try await service.open()
    #expect(try await store.listAll(prefix: "n/", pageSize: 7).map(\.name) == names)
    #expect(try await store.list(prefix: "n/", after: names[9], limit: 2).entries.map(\.name) == Array(names[10...11]))
  }

  @Test("18: a listing that does not advance ends as an error, after a bounded number of requests")
  func endless() async throws {
    let service = try service { ($0.listing, $0.pageSize) = (.endless, 3) }
    for index in 10..<30 { service.place(service.configuration.key("n/\(index)"), [1]) }
    let store = try await service.open()
    let error = await failure { _ = try await store.listAll(prefix: "n/") }
    #expect(error?.cause == .protocolViolation && error?.isRetryable == false)
    #expect(service.server.requests.count < 20)
  }

  @Test(
    "17: a page of nothing but other people's keys is followed by the next; a page that is not the last is not empty")
  func foreignPages() async throws {
    let service = try service { $0.pageSize = 2 }
    for key in ["n/.a", "n/.b", "n/.c", "n/A", "n/B", "n/x"] { service.place(service.configuration.key(key), [1]) }
    let store = try await service.open()
    let page = try await store.list(prefix: "n/", after: nil, limit: 2)
    #expect(page.entries.map(\.name.text) == ["n/x"] && page.isLast)
  }

  @Test("19, 20: a prefix with space and plus is encoded once, and listings are not asked to be encoded")
  func encoding() async throws {
    let (service, store) = try await warm()
    try await store.put(name, bytes)
    _ = try await store.listAll()
    #expect(service.refused.isEmpty)
    #expect(service.objects.keys.sorted() == ["pre fix/+x/n/1"])
    for request in service.server.requests {
      #expect(!request.target.contains("+") && !request.target.contains("encoding-type"))
      #expect(request.target.contains("pre%20fix"))
    }
  }

  @Test("22: a HEAD that finds nothing is checked once by reading (Wasabi's are late)")
  func lateHead() async throws {
    let (service, store) = try await warm { $0.hasLateHead = true }
    service.place(service.configuration.key(name.text), bytes)
    #expect(try await store.head(name) == bytes.count)
    service.place(service.configuration.key("n/2"), [])
    #expect(try await store.head(try #require(ObjectName("n/2"))) == 0)
    #expect(await failure { _ = try await store.head(try #require(ObjectName("n/3"))) }?.cause == .notFound)
  }

  @Test("23: a deletion that fails though it was done (Backblaze) is a success when it is tried again")
  func deletions() async throws {
    let service = try service()
    let store = try await service.openRetrying()
    try await store.put(name, bytes)
    service.fail("DELETE", ScriptedS3.error(500, "InternalError"), isDone: true)
    try await store.delete(name)
    service.fail("DELETE", ScriptedS3.error(404, "NoSuchKey"))
    try await store.delete(name)
  }

  @Test("24: HEAD refused where GET is allowed (Backblaze) is worked around; a refusal is never taken for absence")
  func refusedHead() async throws {
    let (service, store) = try await warm { $0.refusesHead = true }
    service.place(service.configuration.key(name.text), bytes)
    #expect(try await store.head(name) == bytes.count)
    service.fail("GET", ScriptedS3.error(403, "AccessDenied"))
    let error = await failure { _ = try await store.head(name) }
    #expect(error?.cause == .forbidden)
  }

  @Test(
    "25: where deletions come late (Swift), an object that was deleted may be listed and read, and is deleted again")
  func lateDeletions() async throws {
    let (service, store) = try await warm()
    try await store.put(name, bytes)
    service.fail("DELETE", .answer(204))
    try await store.delete(name)
    #expect(try await store.listAll().map(\.name) == [name])
    try await store.put(name, bytes)
    try await store.delete(name)
    #expect(try await store.listAll().isEmpty)
    try await store.delete(name)
  }

  @Test(
    "2, 41, 43: no entity tag is ever sent as a condition, nor believed: an object is created once and never replaced")
  func entityTags() async throws {
    let (service, store) = try await warm()
    try await store.put(name, bytes)
    try await store.put(name, bytes)
    _ = try await store.get(name)
    for request in service.server.requests {
      for field in ["If-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"] {
        #expect(request.header(field) == nil)
      }
      #expect([nil, "*"].contains(request.header("If-None-Match")))
    }
  }

  @Test("12, 13: a body is signed whole and sent with its length, never in signed chunks or as a stream")
  func wholeBodies() async throws {
    let (service, store) = try await warm()
    try await store.put(name, [UInt8](repeating: 7, count: 3 << 20))
    let put = try #require(service.server.requests.last { $0.method == "PUT" })
    #expect(put.header("Content-Length") == "\(3 << 20)")
    #expect(put.header("x-amz-content-sha256") == SHA256.hex(put.body))
    #expect(put.header("Content-Encoding") == nil && put.header("x-amz-decoded-content-length") == nil)
    #expect(put.header("Transfer-Encoding") == nil && put.header("x-amz-trailer") == nil)
  }

  @Test("26: a bucket that is gone is a missing store for every operation, never an absent object or an empty listing")
  func missingBucket() async throws {
    let (service, store) = try await warm()
    service.change { $0.hasBucket = false }
    for operation in [
      { _ = try await store.get(name) }, { _ = try await store.head(name) }, { try await store.put(name, bytes) },
      { try await store.delete(name) }, { _ = try await store.list(prefix: "", after: nil, limit: 1) },
    ] as [() async throws -> Void] {
      #expect(await failure { try await operation() }?.cause == .storeMissing)
    }
  }
}
