import Foundation
import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Synchronization
import Testing

@testable import LatchkeyS3

@Suite("S3: faults, and what is said about them")
struct S3FaultTests {
  private let name: ObjectName
  private let bytes: [UInt8] = Array("sealed".utf8)

  init() throws { name = try #require(ObjectName("n/1")) }

  private func warm() async throws -> (ScriptedS3, S3Store) {
    let service = try ScriptedS3()
    let store = try await service.open()
    _ = try await store.probe()
    return (service, store)
  }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }

  @Test("a put whose reply is lost after it was done is a success: dropped, reset, cut off, or answered with an error")
  func committedThenLost() async throws {
    let replies: [ScriptedServer.Reply] = [
      .nothing(.close), .nothing(.reset), .raw(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8), .close),
      .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".utf8), .close),
      ScriptedS3.error(500, "InternalError"), .answer(502, body: Array("<html>".utf8)), .answer(504),
    ]
    let (service, store) = try await warm()
    for (index, reply) in replies.enumerated() {
      let name = try #require(ObjectName("lost/\(index)"))
      service.fail("PUT", reply, isDone: true)
      try await store.put(name, bytes)
      #expect(try await store.get(name) == bytes)
    }
  }

  @Test("a put that is lost before it was done is an error of unknown effect, and succeeds when it is tried again")
  func droppedBefore() async throws {
    let (service, store) = try await warm()
    // With a line of an answer: a kept connection that closes without one is replaced on the quiet.
    let begun = Array("HTTP/1.1 200 OK\r\nContent-".utf8)
    for reply in [.raw(begun, .close), ScriptedS3.error(500, "InternalError")] as [ScriptedServer.Reply] {
      service.fail("PUT", reply)
      let error = await failure { try await store.put(name, bytes) }
      #expect(error?.isRetryable == true && error?.effect == .unknown)
    }
    let retrying = try await service.openRetrying()
    service.fail("PUT", .nothing(.reset), times: 2)
    try await retrying.put(name, bytes)
    #expect(service.objects.count == 1)
  }

  @Test("a lost reply where somebody else's bytes are is alreadyExists; where that cannot be read it stays unknown")
  func lostAndDifferent() async throws {
    let (service, store) = try await warm()
    service.place(service.configuration.key(name.text), [9, 9])
    service.fail("PUT", .nothing(.reset))
    #expect(await failure { try await store.put(name, bytes) }?.cause == .alreadyExists)
    service.place(service.configuration.key(name.text), [UInt8](repeating: 1, count: 200_000))
    service.fail("PUT", .nothing(.reset))
    #expect(await failure { try await store.put(name, bytes) }?.cause == .alreadyExists)
    service.fail("PUT", .nothing(.reset))
    service.fail("GET", ScriptedS3.error(403, "AccessDenied"))
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .unavailable && error?.effect == .unknown)
  }

  @Test("a put that is cancelled on its way ends at once, with an unknown effect and without another request")
  func cancelledPut() async throws {
    let (service, store) = try await warm()
    service.fail("PUT", .nothing(.stall))
    let before = service.count("PUT")
    let task = Task { try await store.put(name, bytes) }
    while service.count("PUT") == before { await Task.yield() }
    task.cancel()
    let requests = service.server.requests.count
    let error = await failure { try await task.value }
    #expect(error?.cause == .cancelled && error?.effect == .unknown)
    #expect(service.server.requests.count == requests)
  }

  @Test(
    "over TLS, a kept connection that breaks under a large put after a small one is settled inside the put, whether it had arrived or not",
    arguments: [20_000, 2_000_000])
  func brokenSecureUpload(after: Int) async throws {
    for isReset in [true, false] {
      let service = try ScriptedS3()
      let certificates = try Certificates.shared()
      let front = try TLSFront(to: service.server.port, certificates) {
        $0 == 1 ? TLSFront.Break(after: after, isReset: isReset) : nil
      }
      var configuration = service.configuration
      configuration.endpoint = HTTPURL(isSecure: true, host: "127.0.0.1", port: front.port)
      configuration.http.caFile = certificates.file("ca.pem")
      let store = try await service.open(configuration)
      try await store.put(name, bytes)
      let large = try #require(ObjectName("n/large"))
      let body = [UInt8](repeating: 7, count: 4 << 20)
      let before = service.count("GET")
      do throws(StorageError) {
        try await store.put(large, body)
        // Sent once more by the transport, since not a byte had left.
        #expect(service.objects[configuration.key(large.text)] == body)
      } catch {
        #expect(error.cause == .unavailable && error.effect == .unknown && error.isRetryable, "\(error)")
        // It looked whether the object is there.
        #expect(service.count("GET") == before + 1)
        try await store.put(large, body)
      }
      #expect(try await store.get(large) == body)
    }
  }

  @Test("a body shorter than announced is truncated; a part other than the one asked for is refused")
  func parts() async throws {
    let (service, store) = try await warm()
    let content = (0..<100).map { UInt8($0) }
    service.place(service.configuration.key(name.text), content)
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".utf8), .close))
    #expect(await failure { _ = try await store.get(name) }?.cause == .truncated)

    let wrong: [(Int, [(String, String)], Int, StorageError.Cause)] = [
      (206, [("Content-Range", "bytes 0-9/100")], 10, .protocolViolation),
      (206, [("Content-Range", "bytes 10-18/100")], 9, .protocolViolation),
      (206, [("Content-Range", "bytes 10-19/100")], 9, .protocolViolation),
      (206, [("Content-Range", "bytes 10-20/100")], 11, .protocolViolation),
      (206, [], 10, .protocolViolation), (206, [("Content-Range", "nonsense")], 10, .protocolViolation),
      (206, [("Content-Range", "bytes 10-14/15")], 5, .invalidRange), (200, [], 19, .invalidRange),
    ]
    for (status, headers, count, cause) in wrong {
      service.fail("GET", .answer(status, headers, body: [UInt8](repeating: 1, count: count)))
      #expect(await failure { _ = try await store.get(name, range: 10..<20) }?.cause == cause, "\(status) \(headers)")
    }
    service.fail("GET", .answer(200, body: content))
    #expect(try await store.get(name, range: 10..<20) == Array(content[10..<20]))
    service.fail("GET", .answer(200, [("Content-Encoding", "gzip")], body: [1]))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\n\r\nabc".utf8), .close))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
    service.fail("GET", .answer(206, body: content))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
  }

  @Test("a redirect to another origin is a mistake of setup; keys, token and signature do not go there")
  func redirects() async throws {
    let stranger = try ScriptedServer { _ in .answer(200) }
    let (service, store) = try await warm()
    for method in ["GET", "PUT", "HEAD", "DELETE"] {
      service.fail(method, .answer(307, [("Location", stranger.url + "/bucket/x")]))
    }
    for operation in [
      { _ = try await store.get(name) }, { try await store.put(name, bytes) }, { _ = try await store.head(name) },
      { try await store.delete(name) },
    ] as [() async throws -> Void] {
      let error = await failure { try await operation() }
      #expect(error?.cause == .config)
      #expect(error?.description.contains("redirects are not followed") == true)
    }
    #expect(stranger.connections == 0)
  }

  @Test("a wish to be left alone is passed on as it is meant, however it is written")
  func retryAfter() async throws {
    let (service, store) = try await warm()
    let date = HTTPDate.format(ScriptedS3.time + 9)
    let cases: [(Int, String?, String?, StorageError.Cause)] = [
      (503, "SlowDown", "3", .rateLimited(after: .seconds(3))), (503, "SlowDown", nil, .rateLimited(after: nil)),
      (429, nil, "-5", .rateLimited(after: nil)), (503, nil, "99999999999", .rateLimited(after: .seconds(86_400))),
      (503, nil, nil, .unavailable), (503, nil, date, .rateLimited(after: .seconds(9))),
      (503, "ServiceUnavailable", "1", .rateLimited(after: .seconds(1))), (509, nil, "x", .rateLimited(after: nil)),
      (503, nil, HTTPDate.format(ScriptedS3.time - 9), .rateLimited(after: .zero)),
    ]
    for (status, code, wish, cause) in cases {
      let headers = wish.map { [("Retry-After", $0)] } ?? []
      service.fail("GET", code.map { ScriptedS3.error(status, $0, headers: headers) } ?? .answer(status, headers))
      #expect(await failure { _ = try await store.get(name) }?.cause == cause, "\(status) \(wish ?? "")")
    }
  }

  @Test("a service that stalls is timed out, and a put is settled by reading")
  func stalls() async throws {
    let service = try ScriptedS3()
    var configuration = service.configuration
    configuration.http.stallTimeout = .seconds(1)
    let store = try await service.open(configuration)
    _ = try await store.probe()
    service.fail("PUT", .nothing(.stall), isDone: true)
    try await store.put(name, bytes)
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsea".utf8), .stall))
    #expect(await failure { _ = try await store.get(name) }?.cause == .timeout)
  }

  @Test("listings that are broken, hostile or of something else are refused; none is taken for an empty store")
  func hostileListings() async throws {
    let (service, store) = try await warm()
    let open = "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    let cases: [(String, StorageError.Cause)] = [
      (open + "<IsTruncated>false</IsTruncated>", .truncated), ("", .truncated),
      ("<html><body>Welcome</body></html>", .protocolViolation), ("not XML at all", .protocolViolation),
      ("<!DOCTYPE x [<!ENTITY a 'b'>]>" + open + "</ListBucketResult>", .protocolViolation),
      (open + "<Contents><Key>a</Key></Contents></ListBucketResult>", .protocolViolation),
      (open + "<Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>", .protocolViolation),
      (open + "<Contents><Size>1</Size></Contents></ListBucketResult>", .protocolViolation),
      (String(repeating: "<a>", count: 100_000), .protocolViolation),
      (String(repeating: " ", count: 9 << 20), .tooLarge),
    ]
    for (text, cause) in cases {
      service.fail("GET", .answer(200, body: Array(text.utf8)))
      let error = await failure { _ = try await store.list(prefix: "", after: nil, limit: 10) }
      #expect(error?.cause == cause, "\(text.prefix(60))")
    }
    let header = String(repeating: "X: y\r\n", count: 50_000)
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\n\(header)\r\n".utf8), .close))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
  }

  @Test("a clock that is wrong is corrected by the server's, once; if that does not help it is said")
  func clockSkew() async throws {
    let service = try ScriptedS3()
    service.change { $0.clockOffset = 86_400 * 400 + 7200 }
    let store = try await service.open()
    try await store.put(name, bytes)
    #expect(service.refused == ["RequestTimeTooSkewed"])

    let (other, second) = try await warm()
    let early = [("Date", HTTPDate.format(ScriptedS3.time - 7200))]
    other.fail("GET", ScriptedS3.error(403, "RequestTimeTooSkewed", headers: early), times: 2)
    let before = other.count("GET")
    #expect(await failure { _ = try await second.get(name) }?.cause == .clockSkew)
    #expect(other.count("GET") == before + 2)
    // rclone says AccessDenied; the difference of the clocks tells.
    let late = [("Date", HTTPDate.format(ScriptedS3.time + 3600))]
    other.change { $0.clockOffset = 3600 }
    other.fail("GET", ScriptedS3.error(400, "AccessDenied", headers: late))
    #expect(await failure { _ = try await second.get(name) }?.cause == .notFound)
  }

  @Test("keys that have expired are fetched anew, once; the same keys again are an error that says so")
  func expiry() async throws {
    let service = try ScriptedS3()
    service.change { $0.sessionToken = "first" }
    let tokens = Tokens()
    let store = try await S3Store.open(
      service.configuration, credentials: { () throws(StorageError) in tokens.current }, now: { ScriptedS3.time })
    service.change { $0.sessionToken = "second" }
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .unauthorized)
    #expect(error?.description.contains("expired") == true)
    tokens.token = "second"
    try await store.put(name, bytes)
    #expect(service.objects.count == 1)
  }

  @Test("each mistake has a message of its own that says what to do, and never a secret")
  func messages() async throws {
    let service = try ScriptedS3()
    func message(_ change: (inout ScriptedS3.Manner) -> Void = { _ in }, _ credentials: S3Credentials? = nil) async
      -> String
    {
      service.change(change)
      defer { service.change { $0 = ScriptedS3.Manner() } }
      let error = await failure { _ = try await service.open(credentials: credentials) }
      return error.map { "\($0)" } ?? ""
    }
    let wrongAccess = S3Credentials(accessKey: "AKIDWRONG", secretKey: "hunter4", sessionToken: "hunter5")
    let wrongSecret = S3Credentials(accessKey: ScriptedS3.accessKey, secretKey: "hunter4", sessionToken: "hunter5")
    let unreachable = StorageError(.unavailable, .open).why
    let messages = [
      (await message({ _ in }, wrongAccess), "InvalidAccessKeyId", "does not know this access key"),
      (await message({ _ in }, wrongSecret), "SignatureDoesNotMatch", "secret key does not belong"),
      (await message { $0.region = "eu-1" }, "AuthorizationHeaderMalformed", "write region=eu-1"),
      (await message { $0.hasBucket = false }, "NoSuchBucket", "no such bucket"),
      (await message({ $0.sessionToken = "other" }, wrongSecret), "ExpiredToken", "get new ones"),
    ]
    for (text, code, hint) in messages {
      #expect(text.contains(code) && text.contains(hint), "\(text)")
      #expect(text.contains("request REQUEST1"), "\(text)")
    }
    #expect(Set(messages.map(\.0)).count == messages.count)

    let (other, store) = try await warm()
    other.fail("PUT", ScriptedS3.error(403, "AccessDenied"))
    let readOnly = await failure { try await store.put(name, bytes) }
    #expect(readOnly?.cause == .forbidden && readOnly?.next.contains("may not write") == true)
    other.fail("GET", ScriptedS3.error(403, "AccessDenied"), times: 2)
    let unreadable = await failure { _ = try await store.get(name) }
    let unlisted = await failure { _ = try await store.listAll() }
    #expect(unreadable?.next.contains("may not read") == true && unlisted?.next.contains("may not list") == true)
    let words = "Client sent an HTTP request to an HTTPS server.\n"
    other.fail("GET", .answer(400, body: Array(words.utf8)))
    let plain = await failure { _ = try await store.listAll() }
    #expect(plain?.cause == .config && plain?.next.contains("endpoint=https") == true)
    let codes: [(Int, String, StorageError.Cause)] = [
      (507, "InsufficientStorage", .quotaExceeded), (403, "QuotaExceeded", .quotaExceeded),
      (413, "EntityTooLarge", .tooLarge), (400, "EntityTooLarge", .tooLarge), (423, "Locked", .conflict),
      (418, "Teapot", .protocolViolation), (400, "IncompleteBody", .truncated), (400, "BadDigest", .unavailable),
    ]
    for (status, code, cause) in codes {
      other.fail("PUT", ScriptedS3.error(status, code))
      #expect(await failure { try await store.put(name, bytes) }?.cause == cause, "\(code)")
    }
    // A web server is not a service of this kind.
    let web = try ScriptedServer { _ in .answer(404, body: Array("<html>no such page</html>".utf8)) }
    var configuration = service.configuration
    configuration.endpoint.port = web.port
    let wrongPlace = await failure { _ = try await service.open(configuration) }
    #expect(wrongPlace?.cause == .storeMissing && wrongPlace?.description.contains("check endpoint=") == true)
    configuration.endpoint.port = 1
    let nobody = await failure { _ = try await service.open(configuration) }
    #expect(nobody?.description.contains(unreachable) == true)

    let others = [readOnly, unreadable, unlisted, plain, wrongPlace, nobody].compactMap(\.self)
    let all = messages.map(\.0) + others.map { "\($0)" }
    #expect(Set(all).count == 11 && Set(others.map(\.next)).count == 6)
    for text in all {
      for secret in ["hunter", ScriptedS3.secretKey, "Signature=", "AKIDWRONG"] {
        #expect(!text.contains(secret), "\(text)")
      }
    }
    var dumped = ""
    dump(wrongSecret, to: &dumped)
    dump(store, to: &dumped)
    #expect(!dumped.contains("hunter") && !dumped.contains(ScriptedS3.secretKey))
  }
}

/// Keys that change.
private final class Tokens: Sendable {
  private let value = Mutex("first")
  var token: String {
    get { value.withLock { $0 } }
    set { value.withLock { $0 = newValue } }
  }
  var current: S3Credentials {
    S3Credentials(accessKey: ScriptedS3.accessKey, secretKey: ScriptedS3.secretKey, sessionToken: token)
  }
}
