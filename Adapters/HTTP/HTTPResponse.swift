/// The answer to a request, whatever its status. Interim answers (1xx) and answered challenges are not among them.
public struct HTTPResponse: Sendable {
  public let status: Int
  public let headers: HTTPHeaders
  /// As it came: never decompressed.
  public let body: [UInt8]

  public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// 200...299.
  public var isSuccess: Bool { (200...299).contains(status) }

  /// The server's clock, in seconds since 1970, from the `Date` field.
  public var date: Int? { headers["Date"].flatMap(HTTPDate.parse) }

  /// `Content-Length`, if it is there and a number.
  public var contentLength: Int? {
    guard let text = headers["Content-Length"], !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
      return nil
    }
    return Int(text)
  }

  /// Whether the answer says where its body ends. Where it does not, the end of the connection is all there is, and a
  /// body that was cut short looks whole.
  public var isDelimited: Bool {
    headers["Content-Length"] != nil || headers["Transfer-Encoding"]?.lowercased().contains("chunked") == true
  }

  /// Whether these are a server's words for a request that should have been encrypted (Apache's, nginx's; Go's).
  public var asksForEncryption: Bool {
    guard status == 400 || status == 497 else { return false }
    let text = String(decoding: body.prefix(4096), as: UTF8.self)
    return text.contains("plain HTTP") || text.contains("HTTP request to an HTTPS server")
  }

  /// How long the server asks to be left alone: `Retry-After` as seconds or as a date.
  ///
  /// - Parameter now: seconds since 1970 by the server's clock, if ``date`` tells it, else by ours.
  /// - Returns: nil without the field or for nonsense (a negative number included); zero for a moment that has passed;
  ///   at most a day.
  public func retryAfter(now: Int) -> Duration? {
    guard let text = headers["Retry-After"], !text.isEmpty else { return nil }
    let day = 86_400
    if text.utf8.allSatisfy({ (48...57).contains($0) }) {
      // More digits than an Int holds is a long time too.
      return .seconds(min(day, Int(text) ?? day))
    }
    guard let moment = HTTPDate.parse(text) else { return nil }
    return .seconds(max(0, min(day, moment - now)))
  }
}
