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

    let system = try await failure(HTTPConfiguration(), url)
    configuration.caFile = server.file("other.pem")
    let wrong = try await failure(configuration, url)
    for error in [system, wrong] {
      #expect(error?.cause == .untrustedCertificate)
      #expect(error?.mayHaveArrived == false)
      let translated = error?.storageError(.open, nil)
      #expect(translated?.cause == .tls)
      #expect(translated?.description.contains("ca=FILE") == true)
    }
    // The certificate names the address and not the name.
    configuration.caFile = server.file("ca.pem")
    let name = HTTPURL(isSecure: true, host: "localhost", port: server.port)
    #expect(try await failure(configuration, name)?.cause == .untrustedCertificate)
    // A file that is no certificate.
    configuration.caFile = server.file("ca.key")
    #expect(try await failure(configuration, url)?.cause == .configuration)
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
