internal import CLatchkeyCurl

/// Sends requests: the transport of the adapters that speak HTTP, on libcurl.
///
/// Each client has one thread and its own connections, which are kept and used again; all of it ends with the last
/// reference to the client. Requests run at the same time, ``HTTPConfiguration/maximumConnections`` of them.
///
/// What it never does: follow a redirect (a status of 3xx is an answer like any other, so that no header field ever goes
/// to an origin that it was not meant for), read `.netrc` or the environment's proxies, keep cookies, ask for
/// compression, use any other protocol than HTTP/1.1, or bound the whole time of a request (``HTTPConfiguration``'s
/// `stallTimeout` ends one that does not move).
///
/// A request is sent again only where a kept connection turned out to be closed before a byte of the answer came.
public final class HTTPClient: Sendable {
  private let loop: TransferLoop

  /// - Throws: ``HTTPError``; `.configuration` for files that cannot be read.
  public init(_ configuration: HTTPConfiguration = HTTPConfiguration()) throws(HTTPError) {
    loop = try TransferLoop(configuration)
  }

  /// Sends a request and waits for the whole answer. Cancelling the task ends it at once, and closes its connection.
  ///
  /// - Throws: ``HTTPError``, where no complete answer came.
  public func send(_ request: HTTPRequest) async throws(HTTPError) -> HTTPResponse {
    try request.check()
    return try await loop.perform(request).get()
  }

  deinit { loop.close() }
}
