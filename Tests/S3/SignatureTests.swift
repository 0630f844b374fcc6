import LatchkeyHTTP
import Testing

@testable import LatchkeyS3

@Suite("S3: signatures")
struct SignatureTests {
  private let time = CivilTime(1_369_353_600)
  private let empty = SHA256.hex([])

  private func sign(
    _ method: String, path: String, query: String = "", _ headers: [(String, String)], payload: String
  ) -> String {
    let credentials = S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    let fields =
      headers.map { (name: $0.0, value: $0.1) } + [
        ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", payload),
        ("x-amz-date", "20130524T000000Z"),
      ]
    return Signature(credentials: credentials, region: "us-east-1").authorization(
      method, path: path, query: query, headers: fields, payload: payload, at: time)
  }

  // The four examples of "Authenticating Requests: Using the Authorization Header", Amazon S3 API Reference.

  @Test("Amazon's example: GET of a range")
  func rangeExample() {
    #expect(
      sign("GET", path: "/test.txt", [("Range", "bytes=0-9")], payload: empty)
        == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        + "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
  }

  @Test("Amazon's example: PUT of an object with a name to encode")
  func putExample() {
    let payload = SHA256.hex(Array("Welcome to Amazon S3.".utf8))
    #expect(payload == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
    let path = "/" + Signature.encoded("test$file.text", keepingSlash: true)
    let headers = [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")]
    #expect(
      sign("PUT", path: path, headers, payload: payload).hasSuffix(
        "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,"
          + "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"))
  }

  @Test("Amazon's example: a parameter without a value")
  func lifecycleExample() {
    let query = Signature.query([("lifecycle", "")])
    #expect(
      sign("GET", path: "/", query: query, [], payload: empty)
        .hasSuffix("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"))
  }

  @Test("Amazon's example: a listing, its parameters in any order")
  func listExample() {
    let query = Signature.query([("prefix", "J"), ("max-keys", "2")])
    #expect(query == "max-keys=2&prefix=J")
    #expect(
      sign("GET", path: "/", query: query, [], payload: empty)
        .hasSuffix("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"))
  }

  @Test("Amazon's example of a derived key, and get-vanilla of its test suite")
  func otherServices() {
    let credentials = S3Credentials(accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    let key = Signature(credentials: credentials, region: "us-east-1", service: "iam").key(on: "20120215")
    #expect(SHA256.hex(of: key) == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d")
    let vanilla = Signature(credentials: credentials, region: "us-east-1", service: "service").authorization(
      "GET", path: "/", query: "",
      headers: [("Host", "example.amazonaws.com"), ("X-Amz-Date", "20150830T123600Z")], payload: empty,
      at: CivilTime(1_440_938_160))
    #expect(vanilla.hasSuffix("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"))
  }

  @Test("HMAC-SHA256 for keys shorter and longer than a block (RFC 4231, cases 2 and 6)")
  func hmac() {
    #expect(
      SHA256.hex(of: SHA256.mac("what do ya want for nothing?", key: Array("Jefe".utf8)))
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    let long = [UInt8](repeating: 0xaa, count: 131)
    #expect(
      SHA256.hex(of: SHA256.mac("Test Using Larger Than Block-Size Key - Hash Key First", key: long))
        == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
  }

  @Test("everything but unreserved characters is encoded once, a space as %20 and never as a plus")
  func encoding() {
    #expect(Signature.encoded("a/b c+d~e%2f\u{e9}") == "a%2Fb%20c%2Bd~e%252f%C3%A9")
    #expect(Signature.encoded("a/b c", keepingSlash: true) == "a/b%20c")
    #expect(Signature.query([("b", "1"), ("a", " +"), ("a-b", ""), ("a", "")]) == "a=&a=%20%2B&a-b=&b=1")
  }
}
