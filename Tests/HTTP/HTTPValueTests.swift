import LatchkeyHTTP
import Testing

@Suite("HTTP: addresses and dates")
struct HTTPValueTests {
  @Test("an address is split into its parts, and written again as it was")
  func addresses() throws {
    let full = try #require(HTTPURL(parsing: "https://Host.Example:8443/a%2Fb/../c?x=%20"))
    #expect(full.isSecure && full.host == "host.example" && full.port == 8443)
    #expect(full.path == "/a%2Fb/../c" && full.query == "x=%20")
    #expect(full.text == "https://host.example:8443/a%2Fb/../c?x=%20")
    #expect(full.origin.text == "https://host.example:8443/")
    let bare = try #require(HTTPURL(parsing: "http://[::1]?q"))
    #expect(bare.host == "[::1]" && bare.port == nil && bare.path == "/" && bare.query == "q" && bare.isLoopback)
    #expect(HTTPURL(parsing: "http://[fe80::1]:81/")?.port == 81)
    let standard = try #require(HTTPURL(parsing: "https://a:443/b"))
    #expect(standard.hostHeader == "a" && standard.origin == HTTPURL(parsing: "https://A/"))
  }

  @Test(
    "what is no address of HTTP is refused",
    arguments: [
      "", "ftp://a/", "http:/a", "http://", "http:///a", "http://u@a/", "http://u:p@a/", "http://a/#f", "http://a b/",
      "http://a/\u{e9}", "http://a:0/", "http://a:65536/", "http://a:x/", "http://[::1/", "http://a\r\n/",
    ])
  func refusals(text: String) { #expect(HTTPURL(parsing: text) == nil) }

  @Test("loopback is what can only be this machine")
  func loopback() {
    for host in ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"] {
      #expect(HTTPURL(isSecure: false, host: host).isLoopback, "\(host)")
    }
    for host in ["127.0.0.1.example.org", "127.1", "localhost.example", "128.0.0.1", "[::]", "0.0.0.0", "127.0.0.256"] {
      #expect(!HTTPURL(isSecure: false, host: host).isLoopback, "\(host)")
    }
  }

  @Test("dates in all three forms, and back; what is none is refused")
  func dates() {
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
      #expect(HTTPDate.parse(text) == 784_111_777)
    }
    #expect(HTTPDate.format(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    for seconds in stride(from: -3_000_000_000, to: 9_000_000_000, by: 86_399 * 997) {
      #expect(HTTPDate.parse(HTTPDate.format(seconds)) == seconds)
    }
    for text in ["", "tomorrow", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT", "06 Nov 1994"] {
      #expect(HTTPDate.parse(text) == nil)
    }
    #expect(CivilTime(1_369_353_600).compact == "20130524T000000Z")
    #expect(CivilTime(951_782_399).compact == "20000228T235959Z")
    #expect(CivilTime(951_782_400).compactDay == "20000229")
  }

  @Test("header fields are found whatever their case, and setting one replaces all of its name")
  func headers() {
    var headers: HTTPHeaders = ["ETag": "a"]
    headers.add("etag", "b")
    #expect(headers["ETAG"] == "a" && headers.all("eTag") == ["a", "b"])
    headers["Etag"] = "c"
    #expect(headers.all("etag") == ["c"])
    headers["etag"] = nil
    #expect(headers.fields.isEmpty)
  }
}
