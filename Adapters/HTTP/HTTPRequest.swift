/// One request, as a value.
///
/// What prints it shows method, origin and path: header fields and query may hold what is nobody's business.
public struct HTTPRequest: Sendable {
  /// `GET`, `PUT`, `PROPFIND`, …: a token, sent as it is.
  public var method: String
  public var url: HTTPURL
  /// Besides these are sent: `Host`, `User-Agent`, `Accept: */*` and `Accept-Encoding: identity` unless given, and
  /// `Content-Length` where there is a body.
  public var headers: HTTPHeaders
  /// Nil for none; empty for `Content-Length: 0`.
  public var body: [UInt8]?
  public var authentication = HTTPAuthentication.none
  /// Most bytes of an answer's body that are accepted; more is ``HTTPError/Cause/bodyTooLarge(limit:)``.
  public var maximumBody = 1 << 20

  public init(_ method: String, _ url: HTTPURL, headers: HTTPHeaders = [:], body: [UInt8]? = nil) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// How the user is made known. Signatures that an adapter makes itself are header fields.
public enum HTTPAuthentication: Equatable, Sendable {
  case none
  /// Basic (RFC 7617), with the first request: only over TLS, or on this machine.
  case basic(HTTPCredential)
  /// Digest (RFC 7616) once the server has asked for it.
  case digest(HTTPCredential)
  /// Whatever the server asks for: Digest where it can be had, else Basic.
  case challenged(HTTPCredential)
}

/// A user's name and password. Never printed.
public struct HTTPCredential: Sendable, Equatable {
  public let user: String
  public let password: String

  public init(user: String, password: String) {
    self.user = user
    self.password = password
  }
}

extension HTTPCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(credential)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "\(method) \(url.origin.text.dropLast())\(url.path)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPRequest {
  /// Throws `.configuration` for what would break out of its line in the request.
  func check() throws(HTTPError) {
    guard !method.isEmpty, method.utf8.allSatisfy(Self.isTokenByte) else {
      throw HTTPError(.configuration, detail: "the request's method is not a token")
    }
    for field in headers.fields {
      guard !field.name.isEmpty, field.name.utf8.allSatisfy(Self.isTokenByte) else {
        throw HTTPError(.configuration, detail: "the name of a header field is not a token")
      }
      guard field.value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
        throw HTTPError(.configuration, detail: "header field \(field.name) has a control character in it")
      }
    }
    let target = url.path + (url.query ?? "")
    guard url.path.hasPrefix("/"), target.utf8.allSatisfy({ (33...126).contains($0) && $0 != 35 }) else {
      throw HTTPError(.configuration, detail: "the path or query has a character that has to be escaped")
    }
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
      || "!#$%&'*+-.^_`|~".utf8.contains(byte)
  }
}
