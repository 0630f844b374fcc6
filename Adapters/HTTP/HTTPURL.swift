/// An address of HTTP or HTTPS, in the parts that are sent.
///
/// Path and query are kept as they are written, already percent-encoded: what an adapter signs is byte for byte what is
/// sent. There is no user information (credentials do not belong into addresses) and no fragment.
///
/// Source: RFC 3986; RFC 9110 §4.2.
public struct HTTPURL: Hashable, Sendable, CustomStringConvertible {
  /// `https` rather than `http`.
  public var isSecure: Bool
  /// A name, an IPv4 address, or an IPv6 address in brackets; lower case.
  public var host: String
  /// Nil for the scheme's own.
  public var port: Int?
  /// Begins with `/`.
  public var path: String
  /// Without the `?`; nil if there is none.
  public var query: String?

  public init(isSecure: Bool, host: String, port: Int? = nil, path: String = "/", query: String? = nil) {
    self.isSecure = isSecure
    self.host = host
    self.port = port
    self.path = path
    self.query = query
  }

  /// Parses an absolute address.
  ///
  /// - Returns: nil unless it begins with `http://` or `https://`, names a host, and holds only characters of RFC 3986;
  ///   also for user information and fragments.
  public init?(parsing text: String) {
    let lower = text.prefix(8).lowercased()
    let rest: Substring
    if lower == "https://" {
      (isSecure, rest) = (true, text.dropFirst(8))
    } else if lower.hasPrefix("http://") {
      (isSecure, rest) = (false, text.dropFirst(7))
    } else {
      return nil
    }
    guard rest.utf8.allSatisfy(Self.mayStandInURL) else { return nil }
    let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    guard let (host, port) = Self.splitAuthority(rest[..<authorityEnd]) else { return nil }
    (self.host, self.port) = (host, port)
    let target = rest[authorityEnd...]
    if let mark = target.firstIndex(of: "?") {
      path = mark == target.startIndex ? "/" : String(target[..<mark])
      query = String(target[target.index(after: mark)...])
    } else {
      path = target.isEmpty ? "/" : String(target)
      query = nil
    }
  }

  /// The same server: scheme, host and port, with the path `/`. Two addresses are of one origin iff these are equal.
  public var origin: HTTPURL {
    HTTPURL(isSecure: isSecure, host: host, port: port == standardPort ? nil : port)
  }

  /// Whether this can only be the same machine: `localhost`, 127.0.0.0/8 or `[::1]`, as written.
  public var isLoopback: Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  /// Host and, unless it is the scheme's own, port: the value of the `Host` header.
  public var hostHeader: String {
    guard let port, port != standardPort else { return host }
    return "\(host):\(port)"
  }

  public var text: String { "\(isSecure ? "https" : "http")://\(hostHeader)\(path)" + (query.map { "?" + $0 } ?? "") }
  public var description: String { text }

  private var standardPort: Int { isSecure ? 443 : 80 }

  private static func splitAuthority(_ authority: Substring) -> (host: String, port: Int?)? {
    var host = authority
    var port: Int?
    let searchStart = authority.lastIndex(of: "]") ?? authority.startIndex
    if let colon = authority[searchStart...].lastIndex(of: ":") {
      let digits = authority[authority.index(after: colon)...]
      host = authority[..<colon]
      if !digits.isEmpty {
        guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = UInt16(digits), number > 0 else {
          return nil
        }
        port = Int(number)
      }
    }
    guard isHost(host) else { return nil }
    return (host.lowercased(), port)
  }

  private static func isHost(_ host: Substring) -> Bool {
    if host.hasPrefix("["), host.hasSuffix("]"), host.count > 2 {
      return host.dropFirst().dropLast().utf8.allSatisfy { isHexDigit($0) || $0 == 58 || $0 == 46 }
    }
    return !host.isEmpty && host.utf8.allSatisfy { isLetter($0) || (48...57).contains($0) || "-._".utf8.contains($0) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...70).contains(byte) || (97...102).contains(byte)
  }

  private static func mayStandInURL(_ byte: UInt8) -> Bool {
    isLetter(byte) || (48...57).contains(byte) || "-._~:/?[]@!$&'()*+,;=%".utf8.contains(byte)
  }
}
