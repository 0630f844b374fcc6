/// Why there is no answer. A status of 300 and more is an answer.
public struct HTTPError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Cause: Equatable, Sendable {
    /// The host's name, or the proxy's, is not known; also without a network.
    case unresolvedHost
    /// Nobody takes the connection.
    case unreachable
    /// The connection broke before the answer was complete.
    case connectionLost
    /// Nothing moved for ``HTTPConfiguration/stallTimeout``, or no connection came about in time.
    case stalled
    /// The body is shorter than the answer says.
    case truncated
    case untrustedCertificate(Distrust)
    /// TLS failed for another reason.
    case tls
    case bodyTooLarge(limit: Int)
    case headersTooLarge
    /// The answer is not HTTP/1.1.
    case malformedReply
    /// The request or the client cannot be: a header with a line break.
    case configuration
    /// A file of certificates that cannot be read, or is none.
    case unusableFile
    /// The task was cancelled.
    case cancelled
  }

  /// What is wrong with a server's certificate.
  public enum Distrust: Equatable, Sendable {
    /// No authority that the system trusts has signed it.
    case unknownAuthority
    /// No authority in ``HTTPConfiguration/caFile`` has signed it: that path.
    case otherAuthority(file: String)
    /// It has expired, or is not valid yet.
    case outOfDate
    /// It is for another host.
    case otherHost
    /// Whatever else libcurl finds wrong.
    case other
  }

  public let cause: Cause
  /// Whether the server may have acted on the request: some of it was sent.
  public let mayHaveArrived: Bool
  /// For people. Host and port may be in it; never a header field, a query or a credential.
  public let detail: String

  public init(_ cause: Cause, mayHaveArrived: Bool = false, detail: String = "") {
    self.cause = cause
    self.mayHaveArrived = mayHaveArrived
    self.detail = detail
  }

  public var description: String {
    let why =
      switch cause {
      case .unresolvedHost: "the host's name is not known"
      case .unreachable: "no connection to the server"
      case .connectionLost: "the connection broke"
      case .stalled: "the server does not go on"
      case .truncated: "the answer is incomplete"
      case .untrustedCertificate(.unknownAuthority):
        "nobody whom this system trusts has signed the server's certificate"
      case .untrustedCertificate(.otherAuthority(let file)):
        "no authority in \(file) has signed the server's certificate"
      case .untrustedCertificate(.outOfDate): "the server's certificate is not valid at this time"
      case .untrustedCertificate(.otherHost): "the server's certificate is for another host"
      case .untrustedCertificate(.other): "the server's certificate is not trusted"
      case .tls: "no secure connection"
      case .bodyTooLarge(let limit): "the answer has more than \(limit) bytes"
      case .headersTooLarge: "the answer's header is too long"
      case .malformedReply: "the answer is not HTTP"
      case .configuration: "the request cannot be made"
      case .unusableFile: "a file of certificates cannot be used"
      case .cancelled: "cancelled"
      }
    return detail.isEmpty ? why : "\(why) (\(detail))"
  }
}
