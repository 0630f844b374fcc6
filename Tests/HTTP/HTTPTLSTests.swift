import LatchkeyScriptedServer
import LatchkeyStorage
import Testing

@testable import LatchkeyHTTP

@Suite("HTTP: TLS", .serialized)
struct HTTPTLSTests {
  @Test(
    "what libcurl says of a handshake that was refused is not what it says of a connection that broke: only that is tried again",
    arguments: [
      ("error:0A00010B:SSL routines::wrong version number", true),
      ("error:0A000410:SSL routines::sslv3 alert handshake failure", true),
      ("error:0A000126:SSL routines::unexpected eof while reading", false),
      ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to 127.0.0.1:443", false),
      ("SSL_write() error: error:0A00007F:SSL routines::bad write retry", false),
      ("OpenSSL SSL_read: SSL_read() error: error:0A000139:SSL routines::record layer failure", false),
    ])
  func refusals(said: String, isRefusal: Bool) { #expect(Transfer.isRefusal(said) == isRefusal) }

  @Test("only a certificate of a trusted authority for this very host is accepted; another is named, with what to do")
  func authorities() async throws {
    let server = try TLSServer()
    let url = HTTPURL(isSecure: true, host: "127.0.0.1", port: server.port)
    var configuration = HTTPConfiguration()
    configuration.caFile = server.file("ca.pem")
    let response = try await HTTPClient(configuration).send(HTTPRequest("GET", url))
    #expect(response.status == 200)

    var mistakes = [try await failure(HTTPConfiguration(), url)]
    #expect(mistakes[0]?.cause == .untrustedCertificate(.unknownAuthority))
    let other = server.file("other.pem")
    configuration.caFile = other
    mistakes.append(try await failure(configuration, url))
    #expect(mistakes[1]?.cause == .untrustedCertificate(.otherAuthority(file: other)))
    // The certificate names the address and not the name.
    configuration.caFile = server.file("ca.pem")
    let name = HTTPURL(isSecure: true, host: "localhost", port: server.port)
    mistakes.append(try await failure(configuration, name))
    #expect(mistakes[2]?.cause == .untrustedCertificate(.otherHost))
    // A file that is no certificate, and one that is not there.
    configuration.caFile = server.file("ca.key")
    mistakes.append(try await failure(configuration, url))
    configuration.caFile = server.file("nowhere.pem")
    mistakes.append(try await failure(configuration, url))
    #expect(mistakes[3...].allSatisfy { $0?.cause == .unusableFile })
    let errors = mistakes.compactMap { $0?.storageError(.open, nil) }
    #expect(errors.map(\.cause) == [.tls, .tls, .tls, .config, .config])
    #expect(mistakes.allSatisfy { $0?.mayHaveArrived == false })
    // Each says something else, and what to do about it.
    #expect(Set(errors.map(\.description)).count == 5)
    #expect(Set(errors.map(\.next)).count == 4 && errors.allSatisfy { !$0.advice.isEmpty })
    for (error, hint) in zip(errors, ["add ca=FILE", "leave ca= out", "Write the host", "ca.key", "nowhere.pem"]) {
      #expect(error.description.contains(hint), "\(error)")
    }
  }

  @Test(
    "what is wrong with a certificate is read from the words of OpenSSL and libcurl",
    arguments: [
      ("SSL certificate problem: unable to get local issuer certificate", HTTPError.Distrust.unknownAuthority),
      ("SSL certificate problem: self-signed certificate in certificate chain", .unknownAuthority),
      ("SSL certificate problem: unable to verify the first certificate", .unknownAuthority),
      ("SSL certificate problem: certificate has expired", .outOfDate),
      ("SSL certificate problem: certificate is not yet valid", .outOfDate),
      ("SSL: no alternative certificate subject name matches target host name 'x'", .otherHost),
      ("SSL: certificate subject name 'x' does not match target host name 'y'", .otherHost),
      ("SSL certificate problem: something new", .other),
    ])
  func distrust(said: String, expected: HTTPError.Distrust) {
    #expect(Transfer.distrust(said, nil) == expected)
    let own = Transfer.distrust(said, "/ca.pem")
    #expect(own == (expected == .unknownAuthority ? .otherAuthority(file: "/ca.pem") : expected))
  }

  @Test(
    "a kept connection that breaks under a large body after a small one is a lost connection, the handshake after it too",
    arguments: [3000, 40_000, 400_000, 3_000_000], [true, false])
  func brokenUpload(after: Int, isReset: Bool) async throws {
    let server = try ScriptedServer { _ in .answer(201) }
    let certificates = try Certificates.shared()
    let front = try TLSFront(to: server.port, certificates) {
      switch $0 {
      case 1: TLSFront.Break(after: after, isReset: isReset)
      case 2: TLSFront.Break(after: 100, isReset: isReset)
      default: nil
      }
    }
    var configuration = HTTPConfiguration()
    configuration.caFile = certificates.file("ca.pem")
    let client = try HTTPClient(configuration)
    let url = HTTPURL(isSecure: true, host: "127.0.0.1", port: front.port)
    #expect(try await client.send(HTTPRequest("PUT", url, body: [1])).status == 201)
    let large = HTTPRequest("PUT", url, body: [UInt8](repeating: 7, count: 4 << 20))
    var failures: [HTTPError] = []
    while front.connections < 3 {
      do throws(HTTPError) { #expect(try await client.send(large).status == 201) } catch { failures.append(error) }
    }
    // What goes once more by itself breaks again.
    #expect(!failures.isEmpty)
    for error in failures {
      #expect(error.cause == .connectionLost, "\(error)")
      #expect(error.storageError(.put, nil, changes: true).isRetryable)
    }
    #expect(failures[0].mayHaveArrived && failures[0].storageError(.put, nil, changes: true).effect == .unknown)
    #expect(server.requests.last?.body.count == 4 << 20)
  }

  @Test("a server that wants a client's certificate gets it, and refuses who has none")
  func clientCertificates() async throws {
    let server = try TLSServer(asksForCertificate: true)
    let url = HTTPURL(isSecure: true, host: "127.0.0.1", port: server.port)
    var configuration = HTTPConfiguration()
    configuration.caFile = server.file("ca.pem")
    let without = try await failure(configuration, url)
    #expect(without?.cause == .tls)
    configuration.clientCertificateFile = server.file("client.pem")
    configuration.clientKeyFile = server.file("client.key")
    #expect(try await HTTPClient(configuration).send(HTTPRequest("GET", url)).status == 200)
  }

  @Test("TLS to a server that speaks none fails as such, and nothing but the handshake is sent")
  func plainServer() async throws {
    let server = try ScriptedServer { _ in .answer(200) }
    let url = HTTPURL(isSecure: true, host: "127.0.0.1", port: server.port)
    let error = try await failure(HTTPConfiguration(), url)
    #expect(error.map { [.tls, .connectionLost].contains($0.cause) } == true)
    #expect(error?.mayHaveArrived == false)
    #expect(server.requests.isEmpty)
  }

  @Test("a line that breaks during the handshake is a lost connection, to be tried again, wherever it breaks")
  func brokenHandshake() async throws {
    let server = try TLSServer()
    var configuration = HTTPConfiguration()
    configuration.caFile = server.file("ca.pem")
    var lost = 0
    for seed in 0..<60 as Range<UInt64> {
      // A handshake has some 2000 bytes.
      let line = try FaultyLine(to: server.port, seed: seed, allowance: 2000)
      let url = HTTPURL(isSecure: true, host: "127.0.0.1", port: line.port)
      do throws(HTTPError) { _ = try await HTTPClient(configuration).send(HTTPRequest("GET", url)) } catch {
        #expect(error.storageError(.get, nil).isRetryable, "seed \(seed): \(error)")
        lost += 1
      }
    }
    #expect(lost > 20)
  }

  private func failure(_ configuration: HTTPConfiguration, _ url: HTTPURL) async throws -> HTTPError? {
    await #expect(throws: HTTPError.self) {
      _ = try await HTTPClient(configuration).send(HTTPRequest("PUT", url, headers: ["Authorization": "x"], body: [1]))
    }
  }
}
