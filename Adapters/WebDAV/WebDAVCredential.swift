public import LatchkeyHTTP
public import LatchkeyStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Where a user's name and password come from; nil for a server that asks for none. Asked when a store is opened, and
/// again when the server refuses what it was given.
public typealias WebDAVCredentialSource = @Sendable () throws(StorageError) -> HTTPCredential?

/// What this device has set up for WebDAV:
/// - `LATCHKEY_WEBDAV_USER`: the user's name;
/// - `LATCHKEY_WEBDAV_PASSWORD_FILE`: a file that only its owner can read, with the password in its first line;
/// - `LATCHKEY_WEBDAV_HOST`: `HOST` or `HOST:PORT`, if they are for that server and no other.
///
/// A server learns the password that it is sent. Whoever opens stores of others should set the host.
public struct WebDAVEnvironment: Sendable {
  private let variable: @Sendable (String) -> String?

  /// - Parameter variable: an environment variable's value; nil if it is not set.
  public init(variable: @escaping @Sendable (String) -> String? = WebDAVEnvironment.environmentVariable) {
    self.variable = variable
  }

  /// The credential for a server.
  ///
  /// - Throws: ``StorageError`` `.unauthorized` that says which variable or file is wrong.
  public func credential(for server: HTTPURL) throws(StorageError) -> HTTPCredential? {
    let (user, file) = (value("LATCHKEY_WEBDAV_USER"), value("LATCHKEY_WEBDAV_PASSWORD_FILE"))
    if let host = value("LATCHKEY_WEBDAV_HOST") {
      guard let named = HTTPURL(parsing: "\(server.isSecure ? "https" : "http")://\(host)") else {
        throw Self.wrong("LATCHKEY_WEBDAV_HOST takes HOST or HOST:PORT")
      }
      guard named.origin == server.origin else { return nil }
    }
    switch (user, file) {
    case (nil, nil): return nil
    case (let user?, let file?): return HTTPCredential(user: user, password: try Self.password(in: file))
    case (_, nil): throw Self.wrong("LATCHKEY_WEBDAV_USER is set and LATCHKEY_WEBDAV_PASSWORD_FILE is not; set both")
    case (nil, _): throw Self.wrong("LATCHKEY_WEBDAV_PASSWORD_FILE is set and LATCHKEY_WEBDAV_USER is not; set both")
    }
  }

  /// Empty counts as not set.
  private func value(_ name: String) -> String? {
    guard let value = variable(name), !value.isEmpty else { return nil }
    return value
  }

  /// The first line of a private file.
  private static func password(in path: String) throws(StorageError) -> String {
    var line: String
    do { line = try PrivateFile.read(path, firstLineOnly: true) } catch { throw wrong(error.description) }
    if line.hasSuffix("\r") { line.removeLast() }
    guard !line.isEmpty else { throw wrong("\(path) has no password in its first line") }
    return line
  }

  private static func wrong(_ detail: String) -> StorageError { StorageError(.unauthorized, .open, detail: detail) }

  /// The process's own environment.
  public static func environmentVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
}
