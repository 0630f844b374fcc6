import Foundation
import LatchkeyHTTP
import LatchkeyScriptedServer
import LatchkeyStorage
import Synchronization
import Testing

@Suite("HTTP: servers and lines that fail")
struct HTTPFaultTests {
  @Test("a body shorter than announced is truncated, in chunks too; never a short answer")
  func truncated() async throws {
    for reply in [
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nabc",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
      let error = await failure { _ in .raw(Array(reply.utf8), .close) }
      #expect(error?.cause == .truncated)
      #expect(error?.storageError(.get, nil).isRetryable == true)
    }
  }

  @Test("a connection that breaks before the answer may have delivered the request")
  func lost() async throws {
    for ending in [ScriptedServer.Ending.close, .reset] {
      let error = await failure(body: [1, 2, 3]) { _ in .nothing(ending) }
      #expect(error?.cause == .connectionLost)
      #expect(error?.mayHaveArrived == true)
      #expect(error?.storageError(.put, nil, changes: true).effect == .unknown)
      #expect(error?.storageError(.get, nil).effect == .notApplied)
    }
    // libcurl takes a header that breaks off for an answer without a body.
    for part in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 204 No Content\r\nETag: x\r\n"] {
      let error = await failure(body: [1]) { _ in .raw(Array(part.utf8), .close) }
      #expect(error?.cause == .connectionLost, "\(part)")
      #expect(error?.mayHaveArrived == true)
    }
  }

  @Test("an upload that is reset half-way is a lost connection")
  func lostUpload() async throws {
    let server = try ScriptedServer { _ in .answer(200) }
    server.resetUploads(after: 1 << 20)
    let body = [UInt8](repeating: 7, count: 8 << 20)
    let error = await #expect(throws: HTTPError.self) {
      _ = try await HTTPClient().send(HTTPRequest("PUT", address(server), body: body))
    }
    #expect(error?.cause == .connectionLost)
    #expect(error?.mayHaveArrived == true)
    #expect(server.requests.isEmpty)
  }

  @Test("a port where nobody listens is unreachable, and nothing has arrived")
  func unreachable() async throws {
    let port = try { try ScriptedServer { _ in .answer(200) }.port }()
    let url = HTTPURL(isSecure: false, host: "127.0.0.1", port: port)
    let error = await #expect(throws: HTTPError.self) {
      _ = try await HTTPClient().send(HTTPRequest("PUT", url, body: [1]))
    }
    #expect(error?.cause == .unreachable)
    #expect(error?.mayHaveArrived == false)
    let nowhere = try #require(HTTPURL(parsing: "http://no-such-host.invalid/"))
    let unknown = await #expect(throws: HTTPError.self) { _ = try await HTTPClient().send(HTTPRequest("GET", nowhere)) }
    #expect(unknown?.cause == .unresolvedHost)
    #expect(unknown?.storageError(.get, nil).cause == .unavailable)
  }

  @Test("a server that stops in the middle, or never begins, is stalled; one that is slow and moves is not")
  func stalled() async throws {
    var configuration = HTTPConfiguration()
    configuration.stallTimeout = .seconds(1)
    for reply in ["", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"] {
      let error = await failure(configuration, body: [1]) { _ in .raw(Array(reply.utf8), .stall) }
      #expect(error?.cause == .stalled)
      #expect(error?.mayHaveArrived == true)
      #expect(error?.storageError(.get, nil).cause == .timeout)
    }
  }

  @Test("a body over the bound is refused, announced or not, and none of it is kept")
  func tooLarge() async throws {
    let chunk = "4000\r\n" + String(repeating: "x", count: 0x4000) + "\r\n"
    for reply in [
      "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 3000),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 20),
    ] {
      let server = try ScriptedServer { _ in .raw(Array(reply.utf8), .close) }
      let request = bounded(server)
      let error = await #expect(throws: HTTPError.self) { _ = try await HTTPClient().send(request) }
      #expect(error?.cause == .bodyTooLarge(limit: 2000))
    }
    let exact = try ScriptedServer { _ in .answer(200, body: [UInt8](repeating: 1, count: 2000)) }
    #expect(try await HTTPClient().send(bounded(exact)).body.count == 2000)
  }

  @Test("headers over the bound are refused: many small ones, and a single huge one", arguments: [1, 1000, 100_000])
  func hugeHeaders(length: Int) async throws {
    let field = "X-Filler: " + String(repeating: "y", count: length) + "\r\n"
    let count = max(2, 400_000 / field.utf8.count)
    let reply = "HTTP/1.1 200 OK\r\n" + String(repeating: field, count: count) + "Content-Length: 0\r\n\r\n"
    let error = await failure { _ in .raw(Array(reply.utf8), .keep) }
    #expect(error?.cause == .headersTooLarge)
  }

  @Test("what is not HTTP is a malformed reply")
  func garbage() async throws {
    for reply in ["SSH-2.0-OpenSSH_9.2\r\n", "\u{0}\u{1}\u{2}\r\n\r\n", "hello"] {
      let error = await failure { _ in .raw(Array(reply.utf8), .close) }
      #expect(error?.cause == .malformedReply)
      #expect(error?.storageError(.get, nil).isRetryable == false)
    }
  }

  @Test("cancelling ends a request that waits, at once, and says whether it may have arrived")
  func cancellation() async throws {
    let arrived = AsyncStream<Void>.makeStream()
    let server = try ScriptedServer { _ in
      arrived.continuation.yield()
      return .nothing(.stall)
    }
    let client = try HTTPClient()
    let task = Task { try await client.send(HTTPRequest("PUT", address(server), body: [1])) }
    for await _ in arrived.stream { break }
    task.cancel()
    let error = await #expect(throws: HTTPError.self) { _ = try await task.value }
    #expect(error == HTTPError(.cancelled, mayHaveArrived: true))

    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await client.send(HTTPRequest("PUT", address(server), body: [1]))
    }
    let neverSent = await #expect(throws: HTTPError.self) { _ = try await early.value }
    #expect(neverSent == HTTPError(.cancelled))
    #expect(server.requests.count == 1)
  }

  @Test("requests that are cancelled at any moment all end, and the client goes on")
  func cancellationRace() async throws {
    let server = try ScriptedServer { _ in .answer(200, body: [UInt8](repeating: 1, count: 50_000)) }
    let client = try HTTPClient()
    let tasks = (0..<200).map { index in
      Task {
        for _ in 0..<(index % 7) { await Task.yield() }
        return try await client.send(HTTPRequest("GET", address(server))).status
      }
    }
    for (index, task) in tasks.enumerated() where index % 2 == 0 { task.cancel() }
    for (index, task) in tasks.enumerated() {
      switch await task.result {
      case .success(let status): #expect(status == 200)
      case .failure(let error): #expect(index % 2 == 0 && (error as? HTTPError)?.cause == .cancelled)
      }
    }
    #expect(try await client.send(HTTPRequest("GET", address(server))).status == 200)
  }

  @Test("a server that never answers Expect gets a large body all the same; one that refuses at once gets none of it")
  func expectations() async throws {
    let body = [UInt8](repeating: 3, count: 2 << 20)
    let silent = try ScriptedServer { _ in .answer(201) }
    silent.answerExpect(false)
    #expect(try await HTTPClient().send(HTTPRequest("PUT", address(silent), body: body)).status == 201)
    #expect(silent.requests.first?.body.count == 2 << 20)
  }

  @Test("Retry-After: seconds, dates, the past, and nonsense")
  func retryAfter() {
    let now = 784_111_777
    let cases: [(String, Duration?)] = [
      ("0", .zero), ("7", .seconds(7)), ("-1", nil), ("99999999999999999999999", .seconds(86_400)), ("soon", nil),
      ("", nil), ("1.5", nil), ("Sun, 06 Nov 1994 08:49:47 GMT", .seconds(10)),
      ("Sun, 06 Nov 1994 08:00:00 GMT", .zero), ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(86_400)),
      ("Sunday, 06-Nov-94 08:49:57 GMT", .seconds(20)),
    ]
    for (text, expected) in cases {
      #expect(HTTPResponse(status: 503, headers: ["Retry-After": text]).retryAfter(now: now) == expected, "\(text)")
    }
    #expect(HTTPResponse(status: 503).retryAfter(now: now) == nil)
  }

  @Test("a file of authorities that cannot be read is named when the client is made")
  func missingFile() {
    var configuration = HTTPConfiguration()
    configuration.caFile = "/nonexistent/ca.pem"
    let error = #expect(throws: HTTPError.self) { _ = try HTTPClient(configuration) }
    #expect(error?.cause == .unusableFile)
    #expect(error?.detail.contains("/nonexistent/ca.pem") == true)
  }

  private func bounded(_ server: ScriptedServer) -> HTTPRequest {
    var request = HTTPRequest("GET", address(server))
    request.maximumBody = 2000
    return request
  }

  /// Sends one request to a server that replies like this, and expects it to fail.
  private func failure(
    _ configuration: HTTPConfiguration = HTTPConfiguration(), body: [UInt8]? = nil,
    _ handler: @escaping ScriptedServer.Handler
  ) async -> HTTPError? {
    await #expect(throws: HTTPError.self) {
      let server = try ScriptedServer(handler)
      _ = try await HTTPClient(configuration).send(
        HTTPRequest(body == nil ? "GET" : "PUT", address(server), body: body))
    }
  }
}
