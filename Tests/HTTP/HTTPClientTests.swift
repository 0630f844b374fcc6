import Foundation
import LatchkeyHTTP
import LatchkeyScriptedServer
import Synchronization
import Testing

@Suite("HTTP: requests and answers")
struct HTTPClientTests {
  @Test("a request is sent byte for byte as it was written, with nothing added that could spoil a signature")
  func exactRequest() async throws {
    let server = try ScriptedServer { _ in .answer(200) }
    let url = try #require(HTTPURL(parsing: server.url + "/a/../b%2Fc//d+e?x=%20&y&z=a%2Bb"))
    var request = HTTPRequest("PROPFIND", url, headers: ["Depth": "1", "X-Empty": ""], body: Array("<a/>".utf8))
    request.headers.add("X-Two", "one")
    request.headers.add("X-Two", "two")
    _ = try await HTTPClient().send(request)
    let seen = try #require(server.requests.first)
    #expect(seen.method == "PROPFIND")
    #expect(seen.target == "/a/../b%2Fc//d+e?x=%20&y&z=a%2Bb")
    #expect(seen.body == Array("<a/>".utf8))
    let names = seen.headers.map { $0.name.lowercased() }.sorted()
    #expect(
      names == [
        "accept", "accept-encoding", "content-length", "depth", "host", "user-agent", "x-empty", "x-two", "x-two",
      ])
    #expect(seen.header("Host") == "127.0.0.1:\(server.port)")
    #expect(seen.header("Accept-Encoding") == "identity")
    #expect(seen.header("Content-Length") == "4")
  }

  @Test(
    "a body of any size, also an empty one, arrives with its exact length", arguments: [0, 1, 100, 70_000, 3 << 20])
  func bodies(count: Int) async throws {
    let server = try ScriptedServer { _ in .answer(201) }
    let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let response = try await HTTPClient().send(HTTPRequest("PUT", address(server), body: body))
    #expect(response.status == 201)
    let seen = try #require(server.requests.first)
    #expect(seen.body == body)
    #expect(seen.header("Content-Length") == "\(count)")
    #expect(seen.header("Transfer-Encoding") == nil)
    #expect((seen.header("Expect") != nil) == (count > 1 << 20))
  }

  @Test("without a body there is no Content-Length; after a PUT and a HEAD the same connection does a GET")
  func noBody() async throws {
    let server = try ScriptedServer { .answer(200, [("ETag", "\"x\"")], body: Array($0.method.utf8)) }
    let client = try HTTPClient()
    for method in ["DELETE", "PUT", "GET", "HEAD", "GET", "MKCOL", "HEAD", "PUT", "DELETE"] {
      let body: [UInt8]? = method == "PUT" ? [1, 2] : nil
      let response = try await client.send(HTTPRequest(method, address(server), body: body))
      #expect(response.body == (method == "HEAD" ? [] : Array(method.utf8)))
      #expect(response.contentLength == method.utf8.count)
      #expect(response.headers["etag"] == "\"x\"")
    }
    for request in server.requests {
      #expect((request.header("Content-Length") != nil) == (request.method == "PUT"))
    }
    expectKept(server)
  }

  /// One connection served them all, unless the machine was so busy that it grew old between two requests (two minutes).
  private func expectKept(_ server: ScriptedServer) {
    #expect(server.connections <= 1 + server.requests.count / 5)
  }

  @Test("every status is an answer, and a redirect to another origin is not followed: no secret leaves")
  func redirects() async throws {
    let stranger = try ScriptedServer { _ in .answer(200) }
    let elsewhere = stranger.url
    let server = try ScriptedServer { request in
      .answer(Int(request.path.dropFirst()) ?? 0, [("Location", elsewhere + "/taken")], body: Array("moved".utf8))
    }
    let client = try HTTPClient()
    for status in [301, 302, 303, 307, 308, 304, 400, 401, 403, 404, 407, 500] {
      var request = HTTPRequest("PUT", address(server, "/\(status)"), headers: ["Authorization": "hunter2"], body: [1])
      request.headers["X-Amz-Security-Token"] = "hunter3"
      let response = try await client.send(request)
      #expect(response.status == status)
      #expect(response.headers["location"] == elsewhere + "/taken")
    }
    #expect(stranger.connections == 0)
    #expect(server.requests.count == 12)
  }

  @Test("connections are kept; one that answered 503 is not used again")
  func keepAlive() async throws {
    let server = try ScriptedServer { .answer($0.path == "/busy" ? 503 : 200) }
    let client = try HTTPClient()
    for _ in 0..<20 { _ = try await client.send(HTTPRequest("GET", address(server))) }
    expectKept(server)
    #expect(try await client.send(HTTPRequest("PUT", address(server, "/busy"), body: [1])).status == 503)
    #expect(try await client.send(HTTPRequest("GET", address(server))).status == 200)
    let last = server.requests.suffix(2).map(\.connection)
    #expect(last[0] != last[1])
  }

  @Test("a kept connection that the server has closed meanwhile is replaced without anybody noticing")
  func staleConnection() async throws {
    let server = try ScriptedServer { _ in
      .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), .close)
    }
    let client = try HTTPClient()
    for _ in 0..<20 {
      let response = try await client.send(HTTPRequest("PUT", address(server), body: [1, 2, 3]))
      #expect(response.body == Array("ok".utf8))
    }
  }

  @Test("no more connections are opened than allowed, and all requests are answered")
  func concurrency() async throws {
    let server = try ScriptedServer { .answer(200, body: Array($0.path.utf8)) }
    var configuration = HTTPConfiguration()
    configuration.maximumConnections = 4
    let client = try HTTPClient(configuration)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<200 {
        group.addTask {
          let response = try await client.send(HTTPRequest("GET", address(server, "/\(index)")))
          #expect(response.body == Array("/\(index)".utf8))
        }
      }
      try await group.waitForAll()
    }
    #expect(server.requests.count == 200)
    #expect(server.connections <= 4)
  }

  @Test("an answer in chunks, interim answers and trailers come out as one plain answer")
  func chunks() async throws {
    let reply =
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ETag\r\n"
      + "X-A:  spaced \t\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nETag: \"late\"\r\n\r\n"
    let server = try ScriptedServer { _ in .raw(Array(reply.utf8), .keep) }
    let response = try await HTTPClient().send(HTTPRequest("GET", address(server)))
    #expect(response.body == Array("abcde".utf8))
    #expect(response.headers["X-A"] == "spaced")
    #expect(response.headers["Link"] == nil)
    #expect(response.headers["ETag"] == nil)
  }

  @Test("the environment's proxy and .netrc are not looked at; a proxy that is given is used")
  func proxies() async throws {
    let proxy = try ScriptedServer { .answer(200, body: Array($0.target.utf8)) }
    let server = try ScriptedServer { .answer(200, body: Array(($0.header("Authorization") ?? "none").utf8)) }
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] { setenv(name, proxy.url, 1) }
    defer { for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] { unsetenv(name) } }
    let direct = try await HTTPClient().send(HTTPRequest("GET", address(server)))
    #expect(direct.body == Array("none".utf8))
    #expect(proxy.connections == 0)
    var configuration = HTTPConfiguration()
    configuration.proxy = HTTPURL(parsing: proxy.url)
    let target = try #require(HTTPURL(parsing: "http://store.invalid/x?y"))
    let through = try await HTTPClient(configuration).send(HTTPRequest("GET", target))
    #expect(through.body == Array("http://store.invalid/x?y".utf8))
  }

  @Test("Basic goes with the first request; Digest answers a challenge, and is remembered for the next request")
  func authentication() async throws {
    let server = try ScriptedServer { request in
      let sent = request.header("Authorization") ?? ""
      if request.path == "/basic" { return .answer(sent == "Basic dTpwOnE=" ? 200 : 401) }
      if sent.hasPrefix("Digest "), sent.contains("username=\"u\""), sent.contains("qop=auth") { return .answer(200) }
      let challenge = "Digest realm=\"dav\", nonce=\"abc\", qop=\"auth\", algorithm=MD5"
      return .answer(401, [("WWW-Authenticate", challenge)], body: Array("who?".utf8))
    }
    let client = try HTTPClient()
    let credential = HTTPCredential(user: "u", password: "p:q")
    var basic = HTTPRequest("GET", address(server, "/basic"))
    basic.authentication = .basic(credential)
    #expect(try await client.send(basic).status == 200)
    #expect(server.requests.count == 1)

    for round in 0..<3 {
      var digest = HTTPRequest("PUT", address(server, "/d/\(round)"), body: Array("content".utf8))
      digest.authentication = .challenged(credential)
      let response = try await client.send(digest)
      #expect(response.status == 200)
      #expect(response.body.isEmpty)
      #expect(server.requests.last?.body == Array("content".utf8))
    }
    // One challenge, three requests, and the password nowhere.
    #expect(server.requests.count == 1 + 1 + 3)
    #expect(
      !server.requests.dropFirst().contains { $0.everything.contains("p:q") || $0.everything.contains("dTpwOnE=") })

    // A wrong password is not tried for ever, and the next request without a credential sends none.
    let strict = try ScriptedServer { _ in .answer(401, [("WWW-Authenticate", "Digest realm=\"d\", nonce=\"n\"")]) }
    var wrong = HTTPRequest("GET", address(strict))
    wrong.authentication = .challenged(credential)
    #expect(try await client.send(wrong).status == 401)
    #expect(strict.requests.count == 2)
    #expect(try await client.send(HTTPRequest("GET", address(strict))).status == 401)
    #expect(strict.requests.last?.header("Authorization") == nil)
  }

  @Test("a hundred clients that come and go leave no connection behind")
  func lifetimes() async throws {
    let server = try ScriptedServer { _ in .answer(200) }
    for _ in 0..<100 { _ = try await HTTPClient().send(HTTPRequest("GET", address(server))) }
    #expect(server.connections == 100)
    // Their threads end when they have been woken up, which takes a while on a busy machine.
    for _ in 0..<6000 where server.openConnections > 0 { try await Task.sleep(for: .milliseconds(10)) }
    #expect(server.openConnections == 0)
  }

  @Test("a name or value that would break out of its line is refused before anything is sent")
  func injection() async throws {
    let server = try ScriptedServer { _ in .answer(200) }
    let client = try HTTPClient()
    var requests = [
      HTTPRequest("GET", address(server), headers: ["X": "a\r\nY: b"]),
      HTTPRequest("GET", address(server), headers: ["X\r\nY": "a"]), HTTPRequest("GET X", address(server)),
      HTTPRequest("GET", address(server), headers: ["X": "a\u{0}b"]),
    ]
    var url = address(server)
    url.path = "/a b"
    requests.append(HTTPRequest("GET", url))
    url.path = "/a\r\nX: y"
    requests.append(HTTPRequest("GET", url))
    for request in requests {
      let error = await #expect(throws: HTTPError.self) { _ = try await client.send(request) }
      #expect(error?.cause == .configuration)
    }
    #expect(server.requests.isEmpty)
  }

  @Test("what prints a request or a credential shows no header field, no query and no password")
  func printing() throws {
    let url = try #require(HTTPURL(parsing: "https://store.example/path?signature=hunter2"))
    var request = HTTPRequest("GET", url, headers: ["Authorization": "hunter2"], body: Array("hunter2".utf8))
    request.authentication = .basic(HTTPCredential(user: "hunter2", password: "hunter2"))
    var dumped = ""
    dump(request, to: &dumped)
    dump(request.authentication, to: &dumped)
    for text in ["\(request)", String(reflecting: request), dumped, "\(request.authentication)"] {
      #expect(!text.contains("hunter2"))
    }
    #expect("\(request)" == "GET https://store.example/path")
  }
}

/// The address of a path on a scripted server.
func address(_ server: ScriptedServer, _ path: String = "/") -> HTTPURL {
  HTTPURL(isSecure: false, host: "127.0.0.1", port: server.port, path: path)
}
