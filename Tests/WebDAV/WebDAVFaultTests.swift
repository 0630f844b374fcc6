import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Testing

@testable import LatchkeyWebDAV

@Suite("WebDAV: faults, and what is said about them")
struct WebDAVFaultTests {
  private let name: ObjectName
  private let bytes: [UInt8] = Array("sealed".utf8)

  init() throws { name = try #require(ObjectName("n/1")) }

  private func start() async throws -> (ScriptedWebDAV, WebDAVStore) {
    let service = try ScriptedWebDAV()
    let store = try await service.open()
    _ = try await store.probe()
    service.place("n", nil)
    return (service, store)
  }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }

  @Test(
    "a step whose reply is lost after it was done is a success: dropped, reset, cut off, or answered with an error",
    arguments: ["PUT", "MOVE"])
  func committedThenLost(method: String) async throws {
    let replies: [ScriptedServer.Reply] = [
      .nothing(.close), .nothing(.reset), .raw(Array("HTTP/1.1 201 Created\r\nContent-Le".utf8), .close),
      .raw(Array("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n".utf8), .close),
      .answer(500), .answer(502, body: Array("<html>".utf8)), .answer(504),
    ]
    let (service, store) = try await start()
    for (index, reply) in replies.enumerated() {
      let name = try #require(ObjectName("lost/\(index)"))
      service.fail(method, reply, isDone: true)
      try await store.put(name, bytes)
      #expect(try await store.get(name) == bytes)
    }
    #expect(service.files.count == replies.count)
  }

  @Test(
    "an upload that is lost has not touched the object; a move that is lost is of unknown effect until it is settled")
  func droppedBefore() async throws {
    let (service, store) = try await start()
    // With a line of an answer: a kept connection that closes without one is replaced on the quiet.
    let begun = Array("HTTP/1.1 200 OK\r\nContent-".utf8)
    for (method, effect) in [("PUT", .notApplied), ("MOVE", .unknown)] as [(String, StorageError.Effect)] {
      for reply in [.raw(begun, .close), .answer(503), .answer(504)] as [ScriptedServer.Reply] {
        service.fail(method, reply)
        let error = await failure { try await store.put(name, bytes) }
        #expect(error?.isRetryable == true && error?.effect == effect, "\(method) \(reply)")
        try await store.put(name, bytes)
        service.remove("\(ScriptedWebDAV.folder)/n/1")
      }
    }
    let retrying = try await service.openRetrying()
    service.fail("PUT", .nothing(.reset), times: 2)
    service.fail("MOVE", .nothing(.reset), times: 2)
    try await retrying.put(name, bytes)
    #expect(service.files == ["n/1": bytes])
  }

  @Test("a lost move where somebody else's bytes are is alreadyExists; where that cannot be read it stays unknown")
  func lostAndDifferent() async throws {
    let (service, store) = try await start()
    let begun = ScriptedServer.Reply.raw(Array("HTTP/1.1 200 OK\r\nContent-".utf8), .close)
    service.place("n/1", [9, 9])
    service.fail("MOVE", begun)
    #expect(await failure { try await store.put(name, bytes) }?.cause == .alreadyExists)
    service.place("n/1", [UInt8](repeating: 1, count: 200_000))
    service.fail("MOVE", begun)
    #expect(await failure { try await store.put(name, bytes) }?.cause == .alreadyExists)
    service.fail("MOVE", begun)
    service.fail("GET", .answer(403))
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .unavailable && error?.effect == .unknown)
  }

  @Test("a put that is cancelled ends at once and without another request, of unknown effect only while it moves")
  func cancelledPut() async throws {
    for (method, effect) in [("PUT", .notApplied), ("MOVE", .unknown)] as [(String, StorageError.Effect)] {
      let (service, store) = try await start()
      service.fail(method, .nothing(.stall))
      let before = service.count(method)
      let task = Task { try await store.put(name, bytes) }
      while service.count(method) == before { await Task.yield() }
      task.cancel()
      let requests = service.server.requests.count
      let error = await failure { try await task.value }
      #expect(error?.cause == .cancelled && error?.effect == effect)
      #expect(service.server.requests.count == requests)
    }
  }

  @Test("a body shorter than announced is truncated; a range that is passed over is cut out of the whole")
  func parts() async throws {
    let (service, store) = try await start()
    service.place("n/1", (0..<100).map { UInt8($0) })
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".utf8), .close))
    #expect(await failure { _ = try await store.get(name) }?.cause == .truncated)
    service.change { $0.ignoresRange = true }
    #expect(try await store.get(name, range: 10..<20) == (10..<20).map { UInt8($0) })
    service.fail("GET", .answer(206, [("Content-Range", "bytes 0-9/100")], body: [UInt8](repeating: 0, count: 10)))
    #expect(await failure { _ = try await store.get(name, range: 10..<20) }?.cause == .protocolViolation)
    service.fail("GET", .answer(200, [("Content-Encoding", "gzip")], body: [1]))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
  }

  @Test("a redirect is a mistake of setup that says where to; the password does not go there")
  func redirects() async throws {
    let stranger = try ScriptedServer { _ in .answer(200) }
    let (service, store) = try await start()
    for method in ["GET", "PUT", "PROPFIND"] {
      service.fail(method, .answer(307, [("Location", stranger.url + "/elsewhere?token=hunter3")]))
    }
    for operation in [
      { _ = try await store.get(name) }, { try await store.put(name, bytes) }, { _ = try await store.head(name) },
    ] as [() async throws -> Void] {
      let error = await failure { try await operation() }
      #expect(error?.cause == .config)
      let text = error.map { "\($0)" } ?? ""
      #expect(text.contains("redirects are not followed") && text.contains("/elsewhere") && !text.contains("hunter3"))
    }
    #expect(stranger.connections == 0)
  }

  @Test("a wish to be left alone is passed on; a full or forbidding server is said to be that")
  func statuses() async throws {
    let (service, store) = try await start()
    service.place("n/1", bytes)
    let cases: [(Int, String?, StorageError.Cause)] = [
      (429, "3", .rateLimited(after: .seconds(3))), (503, "2", .rateLimited(after: .seconds(2))),
      (503, nil, .unavailable), (509, "x", .rateLimited(after: nil)), (429, "-1", .rateLimited(after: nil)),
      (503, HTTPDate.format(ScriptedWebDAV.time - 9), .rateLimited(after: .zero)), (507, nil, .quotaExceeded),
      (413, nil, .tooLarge), (403, nil, .forbidden), (408, nil, .timeout), (504, nil, .unavailable),
      (418, nil, .protocolViolation),
    ]
    for (status, wish, cause) in cases {
      service.fail("GET", .answer(status, wish.map { [("Retry-After", $0)] } ?? []))
      #expect(await failure { _ = try await store.get(name) }?.cause == cause, "\(status) \(wish ?? "")")
    }
  }

  @Test("listings that are broken, hostile or of something else are refused; none is taken for an empty store")
  func hostileListings() async throws {
    let (service, store) = try await start()
    let bomb =
      "<?xml version=\"1.0\"?><!DOCTYPE m [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><multistatus>&b;</multistatus>"
    let cases: [(String, StorageError.Cause)] = [
      ("<D:multistatus xmlns:D=\"DAV:\"><D:response>", .truncated), ("", .truncated), (bomb, .protocolViolation),
      ("<D:multistatus xmlns:D=\"DAV:\"></D:multistatus>", .config), ("<multistatus xmlns=\"urn:x\"/>", .config),
      ("not xml at all", .protocolViolation),
      (String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40), .protocolViolation),
    ]
    for (text, cause) in cases {
      service.fail("PROPFIND", .answer(207, body: Array(text.utf8)))
      #expect(await failure { _ = try await store.listAll() }?.cause == cause, "\(text.prefix(60))")
    }
    // A part of it that may not be read, or that vanishes between its parent's listing and its own.
    service.place("a/b", bytes)
    service.fail("PROPFIND", .answer(404), skipping: 1)
    #expect(await failure { _ = try await store.listAll() }?.cause == .conflict)
    service.fail("PROPFIND", .answer(403), skipping: 1)
    #expect(await failure { _ = try await store.listAll() }?.cause == .forbidden)
    #expect(try await store.listAll().map(\.name.text) == ["a/b"])
  }

  @Test("names that lead out of the folder, or repeat, are not believed")
  func hostileNames() async throws {
    let (service, store) = try await start()
    let base = "/dav/pre%20fix/household/n"
    let hrefs = [
      base + "/", base + "/1", base + "/1", base + "/%2e%2e/2", base + "/..%2f3", "/dav/pre%20fix/household/4",
      "/etc/5",
      base + "/%ff", base + "/%", base + "/6?x=/7", "http://evil.example\(base)/8", base + "//9",
    ]
    let parts = hrefs.map {
      "<response><href>\($0)</href><propstat><prop><resourcetype/><getcontentlength>1</getcontentlength></prop>"
        + "<status>HTTP/1.1 200 OK</status></propstat></response>"
    }
    service.fail(
      "PROPFIND", .answer(207, body: Array("<multistatus xmlns=\"DAV:\">\(parts.joined())</multistatus>".utf8)))
    #expect(try await store.listAll(prefix: "n/").map(\.name.text) == ["n/1", "n/6", "n/8", "n/9"])
  }

  @Test("a server that stalls is timed out, and a move is settled by reading")
  func stalls() async throws {
    let service = try ScriptedWebDAV()
    var configuration = service.configuration
    configuration.http.stallTimeout = .seconds(1)
    let store = try await service.open(configuration)
    _ = try await store.probe()
    service.place("n", nil)
    service.fail("MOVE", .nothing(.stall), isDone: true)
    try await store.put(name, bytes)
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsea".utf8), .stall))
    #expect(await failure { _ = try await store.get(name) }?.cause == .timeout)
  }

  @Test("each mistake has a message of its own that says what to do, and never the password")
  func messages() async throws {
    let service = try ScriptedWebDAV()
    let wrong = HTTPCredential(user: ScriptedWebDAV.user, password: "hunter2-wrong")
    var errors = [
      await failure { _ = try await service.open(credential: wrong) },
      await failure { _ = try await service.open(credential: nil) },
    ]
    #expect(errors.allSatisfy { $0?.cause == .unauthorized })
    #expect(errors[1]?.description.contains("LATCHKEY_WEBDAV_USER") == true)
    var elsewhere = service.configuration.root
    elsewhere.path = "/dav/nowhere"
    let lost = WebDAVConfiguration(root: elsewhere)
    errors.append(await failure { _ = try await service.open(lost) })
    #expect(errors.last??.cause == .storeMissing)
    for (reply, cause, hint) in [
      (.answer(405), .unsupported, "Nothing here speaks WebDAV"),
      (.answer(200, body: Array("<html>".utf8)), .config, "not the answer of a WebDAV server"),
      (.answer(302, [("Location", "https://cloud.example/dav/")]), .config, "https://cloud.example/dav/"),
      (
        .answer(400, body: Array("Your browser sent: You're speaking plain HTTP to an SSL-enabled server port.".utf8)),
        .config, "webdav+https"
      ),
      (.answer(403), .forbidden, "may not read here"),
    ] as [(ScriptedServer.Reply, StorageError.Cause, String)] {
      service.fail("PROPFIND", reply)
      errors.append(await failure { _ = try await service.open() })
      #expect(errors.last??.cause == cause)
      #expect(errors.last??.description.contains(hint) == true, "\(hint)")
    }
    // Encryption spoken to a server without.
    var secure = service.configuration.root
    secure.isSecure = true
    let encrypted = WebDAVConfiguration(root: secure)
    errors.append(await failure { _ = try await service.open(encrypted) })
    // A store that is a file.
    service.place("file", bytes)
    var file = service.configuration.root
    file.path += "file"
    let notFolder = WebDAVConfiguration(root: file)
    errors.append(await failure { _ = try await service.open(notFolder) })
    // A user who may read and not write.
    let store = try await service.open()
    service.fail("PUT", .answer(403))
    errors.append(await failure { try await store.put(name, bytes) })
    #expect(errors.last??.cause == .forbidden && errors.last??.next.contains("may not write here") == true)
    let texts = errors.compactMap { $0.map { "\($0)" } }
    #expect(texts.count == errors.count && Set(texts).count == texts.count)
    #expect(Set(errors.compactMap { $0?.next }).count == errors.count)
    for text in texts { #expect(!text.contains("hunter2")) }
  }

  @Test("Basic goes with every request to this machine; Digest is used once the server asks for it, and never both")
  func authentication() async throws {
    let (basic, _) = try await start()
    #expect(basic.server.requests.allSatisfy { $0.header("Authorization")?.hasPrefix("Basic ") == true })
    var manner = ScriptedWebDAV.Manner()
    manner.authentication = .digest
    let service = try ScriptedWebDAV(manner)
    let store = try await service.open()
    try await store.put(name, bytes)
    #expect(try await store.get(name) == bytes)
    let later = service.server.requests.dropFirst()
    #expect(later.allSatisfy { $0.header("Authorization")?.hasPrefix("Basic ") != true })
    #expect(service.server.requests.allSatisfy { !$0.everything.contains(ScriptedWebDAV.password) })
  }
}
