/// What holds for all requests of a client.
public struct HTTPConfiguration: Sendable {
  /// PEM file of the certificate authorities that are trusted *instead of* the system's. Absolute path.
  public var caFile: String?
  /// PEM files of the certificate by which this client makes itself known, and of its key (nil: in the same file).
  public var clientCertificateFile: String?
  public var clientKeyFile: String?
  /// The proxy to go through. Nil goes directly: the environment's `http_proxy` and its kind are not looked at.
  public var proxy: HTTPURL?
  /// Longest wait for a connection, its TLS handshake included.
  public var connectTimeout: Duration = .seconds(20)
  /// How long nothing at all may move. There is no bound on the whole request: a slow line is not an error.
  public var stallTimeout: Duration = .seconds(60)
  /// Connections at a time; further requests wait for one. 1...
  public var maximumConnections = 8
  /// Most bytes of all header fields of an answer.
  public var maximumHeaderBytes = 64 << 10
  public var userAgent = "latchkey"

  public init() {}
}
