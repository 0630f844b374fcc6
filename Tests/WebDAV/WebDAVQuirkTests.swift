import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Testing

@testable import LatchkeyWebDAV

/// What real servers do that is not in the book, each with the answer that it needs. The numbers are those of the
/// project's list of quirks.
@Suite("WebDAV: quirks of servers")
struct WebDAVQuirkTests {
  private let name: ObjectName
  private let bytes: [UInt8] = Array("sealed".utf8)

  init() throws { name = try #require(ObjectName("n/1")) }

  private func start(
    _ change: (inout ScriptedWebDAV.Manner) -> Void = { _ in }
  ) async throws -> (ScriptedWebDAV, WebDAVStore) {
    var manner = ScriptedWebDAV.Manner()
    change(&manner)
    let service = try ScriptedWebDAV(manner)
    return (service, try await service.open())
  }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }

  @Test("27, 28: where moving overwrites, other bytes are refused all the same, and what was there stays")
  func overwriting() async throws {
    let (service, store) = try await start { $0.exists = nil }
    try await store.put(name, bytes)
    try await store.put(name, bytes)
    #expect(await failure { try await store.put(name, [9]) }?.cause == .alreadyExists)
    _ = try await store.probe()
    #expect(await failure { try await store.put(name, [8]) }?.cause == .alreadyExists)
    #expect(service.files == ["n/1": bytes])
  }

  @Test("28, 29: half an upload that the server keeps (WsgiDAV, Go) is found out, and never shown under the name")
  func halfUploads() async throws {
    let (service, store) = try await start { $0.keeps = 3 }
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .truncated && error?.effect == .notApplied && error?.isRetryable == true)
    #expect(service.files.isEmpty)
    #expect(service.count("MOVE") == 0)
    service.change { $0.keeps = nil }
    service.server.resetUploads(after: 2)
    #expect(await failure { try await store.put(name, bytes) }?.effect == .notApplied)
    service.server.resetUploads(after: nil)
    #expect(try await store.listAll().isEmpty)
  }

  @Test(
    "30, 31, 33: directories are made with a slash, whatever the server says of those that are there and those that are not",
    arguments: [405, 409, 301, 201, 423], [409, 404, 500, 403])
  func directories(madeAlready: Int, lacksDirectory: Int) async throws {
    let (service, store) = try await start {
      ($0.madeAlready, $0.lacksDirectory, $0.needsSlash) = (madeAlready, lacksDirectory, true)
    }
    let deep = try #require(ObjectName("a/b/c/d"))
    try await store.put(deep, bytes)
    // Made by another device meanwhile: this store knows it as missing.
    service.place("x/y", nil)
    try await store.put(try #require(ObjectName("x/y/z")), bytes)
    #expect(service.files == ["a/b/c/d": bytes, "x/y/z": bytes])
    // Gone again, though this store knows it.
    if lacksDirectory != 403 {
      service.remove("\(ScriptedWebDAV.folder)/a")
      try await store.put(deep, bytes)
      #expect(service.files["a/b/c/d"] == bytes)
    }
  }

  @Test("34: what is locked (an interrupted upload on ownCloud) is tried again; the lock is left alone")
  func locked() async throws {
    let (service, store) = try await start()
    service.fail("MOVE", .answer(423))
    let error = await failure { try await store.put(name, bytes) }
    #expect(error?.cause == .conflict && error?.isRetryable == true && error?.effect == .notApplied)
    let retrying = try await service.openRetrying()
    service.fail("PUT", .answer(423), times: 2)
    try await retrying.put(name, bytes)
    #expect(service.count("UNLOCK") == 0 && service.count("LOCK") == 0)
  }

  @Test("35: a refusal in a session that has written is taken for a lock twice (ownCloud), then for what it says")
  func refusedWrites() async throws {
    let (service, store) = try await start()
    service.fail("PUT", .answer(403))
    #expect(await failure { try await store.put(name, bytes) }?.cause == .forbidden)
    try await store.put(name, bytes)
    let second = try #require(ObjectName("n/2"))
    service.fail("PUT", .answer(403), times: 3)
    for cause in [.conflict, .conflict, .forbidden] as [StorageError.Cause] {
      #expect(await failure { try await store.put(second, bytes) }?.cause == cause)
    }
    let retrying = RetryingStore(store, policy: RetryPolicy(maximumAttempts: 9, base: .zero, cap: .zero))
    service.fail("PUT", .answer(403), times: 9)
    #expect(await failure { try await retrying.put(second, bytes) }?.cause == .forbidden)
  }

  @Test("36: an answer in parts whose only part is not there (nginx) is absence")
  func hiddenAbsence() async throws {
    let (service, store) = try await start { $0.hidesAbsence = true }
    #expect(await failure { _ = try await store.head(name) }?.cause == .notFound)
    #expect(try await store.listAll(prefix: "n/").isEmpty)
    try await store.delete(name)
    #expect(service.count("DELETE") == 0)
  }

  @Test(
    "37, 38, 39: properties that are not there, namespaces of every kind and addresses of every form are read alike",
    arguments: [ScriptedWebDAV.Manner.References.path, .foreign, .escaped])
  func tolerance(references: ScriptedWebDAV.Manner.References) async throws {
    for namespace in [ScriptedWebDAV.Manner.Namespace.prefixed, .standard, .repeated, .undeclared] {
      for isSeparate in [false, true] {
        let (service, store) = try await start {
          ($0.references, $0.namespace, $0.namesAbsentProperties) = (references, namespace, isSeparate)
        }
        service.place("n/1", bytes)
        service.place("n/a-b/c", [])
        let listed = try await store.listAll().map { "\($0.name) \($0.size)" }
        #expect(listed == ["n/1 6", "n/a-b/c 0"], "\(namespace) \(isSeparate)")
        #expect(try await store.head(name) == 6)
      }
    }
  }

  @Test("39: a server whose addresses are of another path is an error that names both, never an empty store")
  func movedReferences() async throws {
    let (service, store) = try await start { $0.references = .moved }
    service.place("n/1", bytes)
    let error = await failure { _ = try await store.listAll() }
    #expect(error?.cause == .config)
    #expect(error?.description.contains("/dav/") == true && error?.description.contains("/backend/") == true)
  }

  @Test("40: a server that shows 750 entries and no more (Jianguoyun) is found out; one that has so many is not blamed")
  func cappedListings() async throws {
    let (service, store) = try await start { $0.cap = 750 }
    for index in 0..<750 { service.place("n/\(1000 + index)", []) }
    #expect(await failure { _ = try await store.listAll(prefix: "n/") }?.cause == .unsupported)
    service.change { $0.cap = nil }
    #expect(try await store.listAll(prefix: "n/").count == 750)
    #expect(service.files.count == 750)
  }

  @Test(
    "44: an address that a server behind a proxy takes for a stranger's is sent as a path, and that is remembered",
    arguments: [400, 502])
  func destinations(status: Int) async throws {
    let (service, store) = try await start { $0.destination = .pathOnly }
    service.fail("MOVE", .answer(status))
    try await store.put(name, bytes)
    let before = service.count("MOVE")
    try await store.put(try #require(ObjectName("n/2")), bytes)
    #expect(service.count("MOVE") == before + 1)
    service.change { $0.destination = .addressOnly }
    try await store.put(try #require(ObjectName("n/3")), bytes)
    #expect(service.files.count == 3)
  }

  @Test(
    "46: whatever a server says of a name that is taken, the same bytes are a success and others are refused",
    arguments: [412, 409, 403, 405, 423, 500])
  func taken(status: Int) async throws {
    let (service, store) = try await start { $0.exists = status }
    _ = try await store.probe()
    try await store.put(name, bytes)
    try await store.put(name, bytes)
    #expect(await failure { try await store.put(name, [9]) }?.cause == .alreadyExists)
    #expect(service.files == ["n/1": bytes])
  }

  @Test("47: a page for people with status 200 is not an object, nor a folder")
  func pages() async throws {
    let (service, store) = try await start()
    service.fail("GET", .raw(Array("HTTP/1.1 200 OK\r\n\r\n<html>gone".utf8), .close))
    #expect(await failure { _ = try await store.get(name) }?.cause == .protocolViolation)
    for status in [200, 207] {
      service.fail("PROPFIND", .answer(status, body: Array("<html><body>Welcome</body></html>".utf8)))
      let error = await failure { _ = try await store.listAll() }
      #expect(error?.cause == .config && error?.description.contains("not the answer of a WebDAV server") == true)
    }
  }

  @Test("50: a user who was let in before and is refused for a moment (pCloud) is not told that the password is wrong")
  func sporadicRefusal() async throws {
    let (service, _) = try await start()
    service.place("n/1", bytes)
    let store = try await service.openRetrying(attempts: 5)
    service.fail("GET", .answer(401), times: 2)
    #expect(try await store.get(name) == bytes)
    service.fail("GET", .answer(401), times: 9)
    #expect(await failure { _ = try await store.get(name) }?.cause == .unauthorized)
  }

  @Test("51: Box has no WebDAV any more, and that is said instead of trying")
  func box() async throws {
    let configuration = WebDAVConfiguration(root: HTTPURL(isSecure: true, host: "dav.box.com", path: "/dav/x"))
    let error = await failure { _ = try await WebDAVStore.open(configuration, credential: { nil }) }
    #expect(error?.cause == .unsupported && error?.description.contains("Box") == true)
  }

  @Test("32: a directory that somebody else is making at the moment (ownCloud: 423) is looked at, and used")
  func lockedDirectory() async throws {
    let (service, store) = try await start()
    service.fail("MKCOL", .answer(423), isDone: true)
    try await store.put(try #require(ObjectName("a/b")), bytes)
    #expect(service.files == ["a/b": bytes])
    #expect(service.count("MKCOL") == 1)
  }

  @Test(
    "41, 42, 43, 45, 48: no entity tag is sent or believed, no lock taken, no MOVE has a depth, no name a dot at its beginning"
  )
  func plainRequests() async throws {
    let (service, store) = try await start()
    try await store.put(name, bytes)
    _ = try await store.probe()
    try await store.put(try #require(ObjectName("n/2")), bytes)
    _ = try await store.get(name)
    try await store.delete(name)
    for request in service.server.requests {
      for field in ["If-Match", "If-None-Match", "If", "If-Range", "Lock-Token"] {
        #expect(request.header(field) == nil)
      }
      if request.method == "MOVE" { #expect(request.header("Depth") == nil) }
      #expect(!["LOCK", "UNLOCK", "PROPPATCH", "COPY", "OPTIONS"].contains(request.method))
      #expect(request.path.split(separator: "/").allSatisfy { !$0.hasPrefix(".") })
    }
  }

  @Test("46: an object that is in the way is never deleted to make room")
  func neverDeletes() async throws {
    let (service, store) = try await start { $0.exists = 409 }
    try await store.put(name, bytes)
    await #expect(throws: StorageError.self) { try await store.put(name, [9]) }
    let deleted = service.server.requests.filter { $0.method == "DELETE" }.map(\.path)
    #expect(!deleted.contains { $0.hasSuffix("/n/1") })
    #expect(service.files == ["n/1": bytes])
  }

  @Test("49: after much at once eight connections are open at most, idle ones included (Hetzner takes ten)")
  func connections() async throws {
    let (service, store) = try await start()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<40 {
        group.addTask { try await store.put(try #require(ObjectName("n/\(index)")), bytes) }
      }
      try await group.waitForAll()
    }
    #expect(service.files.count == 40)
    // A connection that was replaced may be on its way out.
    for _ in 0..<500 where service.server.openConnections > 8 { try await Task.sleep(for: .milliseconds(10)) }
    #expect(service.server.openConnections <= 8)
  }

  @Test(
    "52: what a server refuses while a store is tried out is told with the request and its status (Synology: PUT, 405)")
  func refusedTrial() async throws {
    let (service, store) = try await start()
    service.fail("PUT", .answer(405))
    let error = await failure { _ = try await store.probe() }
    #expect(error?.cause == .unsupported && error?.description.contains("PUT, status 405") == true)
  }

  @Test("207 to a deletion or a move is a success only if everything inside it is")
  func parts() async throws {
    let (service, store) = try await start { $0.answersInParts = true }
    try await store.put(name, bytes)
    let part = { (status: Int) in
      ScriptedServer.Reply.answer(
        207,
        body: Array(
          "<multistatus xmlns=\"DAV:\"><response><href>/x</href><status>HTTP/1.1 \(status) X</status></response></multistatus>"
            .utf8))
    }
    service.fail("DELETE", part(423))
    #expect(await failure { try await store.delete(name) }?.cause == .conflict)
    service.fail("DELETE", part(507))
    #expect(await failure { try await store.delete(name) }?.cause == .quotaExceeded)
    service.fail("MOVE", part(507))
    #expect(await failure { try await store.put(try #require(ObjectName("n/2")), bytes) }?.cause == .quotaExceeded)
    try await store.delete(name)
    #expect(service.files.isEmpty)
  }
}
