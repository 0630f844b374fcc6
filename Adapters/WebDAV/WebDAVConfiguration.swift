public import LatchkeyHTTP
public import LatchkeyStorage

/// Which folder on which WebDAV server, and how it is spoken to.
public struct WebDAVConfiguration: Sendable {
  /// The folder: its path ends with a slash, percent-encoded as it is sent.
  public let root: HTTPURL
  /// Certificates, proxy, time-outs.
  public var http: HTTPConfiguration

  /// Connections; providers count idle ones too (Hetzner's storage boxes take ten).
  static let connections = 8
  /// How many operations at a time such a store is said to take well.
  static let concurrency = 4

  /// - Parameter root: the folder; a slash is added to its path where it has none, a query is left out.
  public init(root: HTTPURL) {
    var root = root
    root.query = nil
    while root.path.hasSuffix("/"), root.path != "/" { root.path.removeLast() }
    if root.path != "/" { root.path += "/" }
    self.root = root
    http = HTTPConfiguration()
    http.maximumConnections = Self.connections
  }

  public static let secureScheme = "webdav+https"
  public static let plainScheme = "webdav+http"

  /// The options of a store's URL.
  public static let options = ["ca", "proxy", "insecure"]

  /// How a store's URL is written.
  public static let form = "webdav+https://HOST/PATH"

  /// Reads a store's URL.
  ///
  /// - Throws: ``StorageError`` `.config` that names the option, and what to write.
  public init(_ locator: Locator) throws(StorageError) {
    guard case .url(let authority, let path, _) = locator.place else { throw Self.wrong("write \(Self.form)") }
    let isSecure = locator.scheme == Self.secureScheme
    guard let root = HTTPURL(parsing: "\(isSecure ? "https" : "http")://\(authority)/\(path)") else {
      throw Self.wrong("\(authority) is no name of a host; write \(Self.form)")
    }
    self.init(root: root)
    let isInsistedOn = try Self.isInsistedOn(locator)
    guard isSecure || root.isLoopback || isInsistedOn else {
      throw Self.wrong(
        "\(root.origin.text) is not encrypted: whoever is on the line sees names, sizes and times, and may learn the "
          + "password",
        advice: "Write \(Self.secureScheme)://…, or add insecure=1 if that line is one's own.")
    }
    if let path = locator.option("ca") {
      guard path.hasPrefix("/") else { throw Self.wrong("ca= takes a whole path, beginning with a slash") }
      http.caFile = path
    }
    if let proxy = locator.option("proxy") {
      guard let url = HTTPURL(parsing: proxy) else { throw Self.wrong("proxy= takes http://HOST:PORT") }
      http.proxy = url
    }
  }

  /// An option without a value is on.
  private static func isInsistedOn(_ locator: Locator) throws(StorageError) -> Bool {
    switch locator.option("insecure") {
    case nil, "0", "false", "no": return false
    case "", "1", "true", "yes": return true
    default: throw wrong("insecure= takes 1 or 0")
    }
  }

  private static func wrong(_ detail: String, advice: String = "") -> StorageError {
    StorageError(.config, .open, detail: detail, advice: advice)
  }
}
