public import LatchkeyHTTP
public import LatchkeyStorage

/// Which bucket, where, and how it is spoken to.
public struct S3Configuration: Sendable {
  /// The service: `https://s3.eu-central-1.amazonaws.com`. A path there stands before bucket and key.
  public var endpoint: HTTPURL
  public var bucket: String
  /// Stands before all keys, with a slash between; empty for the whole bucket.
  public var prefix: String
  /// Part of every signature.
  public var region: String
  /// `https://HOST/BUCKET/KEY` rather than `https://BUCKET.HOST/KEY`.
  public var usesPathStyle: Bool
  /// Whether a body's hash is part of its signature. Without, TLS alone protects it on its way (the objects are sealed
  /// in any case), or nothing where it does not leave this machine; some services demand it (Hetzner). The hash is what
  /// takes longest of a large upload.
  public var signsPayload = true
  /// Certificates, proxy, time-outs.
  public var http: HTTPConfiguration

  /// How many connections are opened, and how many operations at a time the store is said to take well.
  static let connections = 16
  static let concurrency = 8

  /// - Parameters:
  ///   - bucket: 1 to 255 letters, digits, `.`, `-` and `_`.
  ///   - usesPathStyle: nil chooses: a host's name without dots in the bucket's takes it as a part; an address, a
  ///     loopback, or a bucket with dots (which no certificate of TLS covers) does not.
  public init(
    endpoint: HTTPURL, bucket: String, prefix: String = "", region: String = "us-east-1", usesPathStyle: Bool? = nil
  ) {
    self.endpoint = endpoint
    self.bucket = bucket
    self.prefix = prefix
    self.region = region
    let isAddress = endpoint.host.hasPrefix("[") || endpoint.host.utf8.allSatisfy { $0 == 46 || (48...57).contains($0) }
    self.usesPathStyle = usesPathStyle ?? (isAddress || endpoint.isLoopback || bucket.contains("."))
    http = HTTPConfiguration()
    http.maximumConnections = Self.connections
  }

  /// The options of a store's URL.
  public static let options = [
    "endpoint", "region", "path-style", "profile", "ca", "sign-payload", "proxy", "insecure",
  ]

  /// How a store's URL is written.
  public static let form = "s3://BUCKET/PREFIX?endpoint=URL&region=R&path-style=1"

  /// Reads a store's URL.
  ///
  /// - Throws: ``StorageError`` `.config` that names the option, and what to write.
  public init(_ locator: Locator, _ environment: AWSEnvironment = AWSEnvironment()) throws(StorageError) {
    guard case .url(let bucket, let path, _) = locator.place else { throw Self.wrong("write \(Self.form)") }
    guard (1...255).contains(bucket.utf8.count), bucket.utf8.allSatisfy(Self.mayStandInBucket) else {
      throw Self.wrong("\(bucket) is no name of a bucket; write \(Self.form), and the server after endpoint=")
    }
    let region = locator.option("region") ?? environment.region(profile: locator.option("profile")) ?? "us-east-1"
    guard !region.isEmpty, region.utf8.allSatisfy(Self.mayStandInBucket) else {
      throw Self.wrong("\(region) is no name of a region")
    }
    let endpoint = try Self.endpoint(locator.option("endpoint"), region: region)
    self.init(
      endpoint: endpoint, bucket: bucket, prefix: Self.unescaped(path), region: region,
      usesPathStyle: try Self.flag("path-style", locator))
    try setSecurity(locator)
    http.caFile = try Self.file("ca", locator) ?? environment.caFile
    if let proxy = locator.option("proxy") {
      guard let url = HTTPURL(parsing: proxy) else { throw Self.wrong("proxy= takes http://HOST:PORT") }
      http.proxy = url
    }
  }

  private mutating func setSecurity(_ locator: Locator) throws(StorageError) {
    let isInsistedOn = try Self.flag("insecure", locator) ?? false
    guard endpoint.isSecure || endpoint.isLoopback || isInsistedOn else {
      throw Self.wrong(
        "\(endpoint.text) is not encrypted: whoever is on the line sees names, sizes and times",
        advice: "Write endpoint=https://…, or add insecure=1 if that line is one's own.")
    }
    signsPayload = try Self.flag("sign-payload", locator) ?? true
    guard signsPayload || endpoint.isSecure || endpoint.isLoopback else {
      throw Self.wrong(
        "sign-payload=0 needs an endpoint with https: without either, a body could be changed on its way")
    }
  }

  private static func endpoint(_ option: String?, region: String) throws(StorageError) -> HTTPURL {
    guard let option else {
      let domain = region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
      return HTTPURL(isSecure: true, host: "s3.\(region).\(domain)")
    }
    guard var url = HTTPURL(parsing: option), url.query == nil else {
      throw wrong("endpoint= takes the service's address, for instance https://s3.example.org")
    }
    while url.path.hasSuffix("/"), url.path != "/" { url.path.removeLast() }
    return url
  }

  /// An option without a value is on.
  private static func flag(_ name: String, _ locator: Locator) throws(StorageError) -> Bool? {
    switch locator.option(name) {
    case nil: return nil
    case "", "1", "true", "yes": return true
    case "0", "false", "no": return false
    default: throw wrong("\(name)= takes 1 or 0")
    }
  }

  private static func file(_ name: String, _ locator: Locator) throws(StorageError) -> String? {
    guard let path = locator.option(name) else { return nil }
    guard path.hasPrefix("/") else { throw wrong("\(name)= takes a whole path, beginning with a slash") }
    return path
  }

  private static func wrong(_ detail: String, advice: String = "") -> StorageError {
    StorageError(.config, .open, detail: detail, advice: advice)
  }

  private static func mayStandInBucket(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "-._".utf8.contains(byte)
  }

  /// `%XX` are known to be well-formed.
  private static func unescaped(_ path: String) -> String {
    var out: [UInt8] = []
    var rest = Array(path.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) {
        out.append(value)
        rest = rest.dropFirst(2)
      } else {
        out.append(byte)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}

extension S3Configuration {
  /// The key of an object, or of a prefix of objects.
  func key(_ name: String) -> String { prefix.isEmpty ? name : "\(prefix)/\(name)" }

  /// The address of a key; of the bucket itself for nil.
  func url(_ key: String?) -> HTTPURL {
    var url = endpoint
    var path = endpoint.path == "/" ? "" : endpoint.path
    if usesPathStyle { path += "/" + Signature.encoded(bucket) } else { url.host = "\(bucket).\(url.host)" }
    if let key { path += "/" + Signature.encoded(key, keepingSlash: true) }
    url.path = path.isEmpty ? "/" : path
    // The bucket's own address ends with a slash where its name is in the host.
    if key == nil, !usesPathStyle, !path.isEmpty { url.path += "/" }
    return url
  }
}
