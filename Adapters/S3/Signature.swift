internal import CLatchkeySodium
internal import LatchkeyHTTP

/// Signs requests: AWS Signature Version 4, with libsodium's SHA-256 and HMAC.
///
/// libcurl can do this too, but not right for all requests before 8.19 (order of the query, encoding of the path,
/// empty values), and forwards the session token to redirects.
///
/// Source: "Signature Version 4 signing process", AWS General Reference; "Authenticating Requests", Amazon S3 API
/// Reference.
struct Signature {
  let credentials: S3Credentials
  let region: String
  var service = "s3"

  static let unsignedPayload = "UNSIGNED-PAYLOAD"

  /// The value of the `Authorization` field.
  ///
  /// - Parameters:
  ///   - target: path and query exactly as they are sent: encoded once, the query sorted.
  ///   - headers: what is signed; `host` and `x-amz-date` must be among them.
  ///   - payload: SHA-256 of the body in hexadecimal, or ``unsignedPayload``.
  ///   - time: that of `x-amz-date`.
  func authorization(
    _ method: String, path: String, query: String, headers: [(name: String, value: String)], payload: String,
    at time: CivilTime
  ) -> String {
    let fields = headers.map { (name: $0.name.lowercased(), value: Self.collapsed($0.value)) }
      .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let signed = fields.map(\.name).joined(separator: ";")
    let canonical =
      "\(method)\n\(path)\n\(query)\n" + fields.map { "\($0.name):\($0.value)\n" }.joined()
      + "\n\(signed)\n\(payload)"
    let scope = "\(time.compactDay)/\(region)/\(service)/aws4_request"
    let text = "AWS4-HMAC-SHA256\n\(time.compact)\n\(scope)\n\(SHA256.hex(Array(canonical.utf8)))"
    let signature = SHA256.hex(of: SHA256.mac(text, key: key(on: time.compactDay)))
    return "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope),SignedHeaders=\(signed),"
      + "Signature=\(signature)"
  }

  /// The key of one day, region and service.
  func key(on day: String) -> [UInt8] {
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [day, region, service, "aws4_request"] { key = SHA256.mac(part, key: key) }
    return key
  }

  /// Without space at the ends, and one space where there are several.
  private static func collapsed(_ value: String) -> String {
    value.split(separator: " ").joined(separator: " ")
  }

  /// Percent-encodes everything but RFC 3986's unreserved characters: the one encoding that services verify. A space is
  /// `%20`; `+` would be read as a space by some and as a plus by others (Ceph).
  static func encoded(_ text: String, keepingSlash: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var out: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
        out.append(byte)
      case UInt8(ascii: "/") where keepingSlash: out.append(byte)
      default: out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// A query in the order in which it is signed, and sent.
  static func query(_ parameters: [(name: String, value: String)]) -> String {
    parameters.map { (encoded($0.name), encoded($0.value)) }
      .sorted { ($0.0 == $1.0 ? $0.1 < $1.1 : $0.0.utf8.lexicographicallyPrecedes($1.0.utf8)) }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }
}

/// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), by libsodium.
enum SHA256 {
  static func hex(_ bytes: [UInt8]) -> String {
    var digest = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
    _ = crypto_hash_sha256(&digest, bytes, UInt64(bytes.count))
    return hex(of: digest)
  }

  /// - Parameter key: of any length, which is why it is not libsodium's one-shot function.
  static func mac(_ text: String, key: [UInt8]) -> [UInt8] {
    var state = crypto_auth_hmacsha256_state()
    defer { withUnsafeMutableBytes(of: &state) { sodium_memzero($0.baseAddress, $0.count) } }
    let bytes = Array(text.utf8)
    var mac = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    _ = crypto_auth_hmacsha256_init(&state, key, key.count)
    _ = crypto_auth_hmacsha256_update(&state, bytes, UInt64(bytes.count))
    _ = crypto_auth_hmacsha256_final(&state, &mac)
    return mac
  }

  static func hex(of bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
