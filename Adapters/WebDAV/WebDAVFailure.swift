internal import LatchkeyEncoding
internal import LatchkeyHTTP
internal import LatchkeyStorage

/// An answer that says no, and the one place where it becomes a ``StorageError``.
struct WebDAVFailure: Sendable {
  /// The answer's, or that of the first resource inside it that says no.
  let status: Int
  private let reply: WebDAVConnection.Reply
  /// An answer that can be none of a WebDAV server: a page for people, another program.
  private let isForeign: Bool

  /// - Parameters:
  ///   - status: in place of the answer's own.
  ///   - isForeign: the answer is none of this protocol.
  init(_ reply: WebDAVConnection.Reply, status: Int? = nil, isForeign: Bool = false) {
    self.reply = reply
    self.status = status ?? reply.response.status
    self.isForeign = isForeign
  }

  /// - Parameter changes: whether the request would have changed the store.
  func error(
    _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = "", changes: Bool = false
  ) -> StorageError {
    let effect: StorageError.Effect = changes && mayBeApplied ? .unknown : .notApplied
    if name == nil, effect == .notApplied {
      return StorageError(cause, operation, prefix: prefix, detail: detail, advice: advice)
    }
    return StorageError(cause, operation, name, effect: effect, detail: detail, advice: advice)
  }

  var cause: StorageError.Cause {
    if isForeign { return .config }
    switch status {
    case 200...299: return .protocolViolation
    case 300...399: return .config
    case 400, 497: return reply.response.asksForEncryption ? .config : .protocolViolation
    case 401: return reply.isPassing ? .unavailable : .unauthorized
    case 403: return reply.isPassing ? .conflict : .forbidden
    case 404, 410: return .notFound
    case 405, 501: return .unsupported
    case 408: return .timeout
    case 409, 423, 424: return .conflict
    case 412: return .alreadyExists
    case 413: return .tooLarge
    case 416: return .invalidRange
    case 425, 429, 509: return .rateLimited(after: retryAfter)
    case 503: return retryAfter == nil ? .unavailable : .rateLimited(after: retryAfter)
    case 507: return .quotaExceeded
    case 500...599: return .unavailable
    default: return .protocolViolation
    }
  }

  /// Whether the request may have been done all the same: an error of the server after it wrote, or of a gateway.
  var mayBeApplied: Bool {
    [408, 424].contains(status) || (500...599).contains(status) && ![501, 507].contains(status)
  }

  private var retryAfter: Duration? { reply.response.retryAfter(now: reply.response.date ?? reply.time) }

  private var detail: String {
    var parts = ["\(reply.method), status \(status)"]
    if status == 423 { parts.append("somebody else has locked it") }
    if (300...399).contains(status) { parts.append("redirects are not followed") }
    return parts.joined(separator: ", ")
  }

  /// What to do about this very failure, where the cause alone does not say it.
  private var advice: String {
    if isForeign { return "This is not the answer of a WebDAV server: check host and path of the store's URL." }
    if reply.response.asksForEncryption { return "The server wants it encrypted: write webdav+https://…" }
    switch status {
    case 300...399: return redirection
    case 401 where reply.isPassing: return ""
    case 401 where !reply.hadCredential:
      return "The server asks who it is: set LATCHKEY_WEBDAV_USER and LATCHKEY_WEBDAV_PASSWORD_FILE."
    case 401:
      return "User and password do not fit: check both; many providers want a password made for apps rather than "
        + "the account's."
    case 403 where reply.isPassing: return ""
    case 403 where reply.method == "GET" || reply.method == "PROPFIND":
      return "This user may not read here: check the path of the store's URL, and the permissions of that folder."
    case 403: return "This user may not write here, or not in this way: check the permissions of that folder."
    case 405 where reply.method == "PROPFIND", 501 where reply.method == "PROPFIND":
      return "Nothing here speaks WebDAV: check the path of the store's URL, and whether the server offers it."
    default: return ""
    }
  }

  /// Where to instead: without query, which may hold what is nobody's business.
  private var redirection: String {
    guard let location = reply.response.headers["Location"] else { return "" }
    let place = location.prefix { $0 != "?" && $0 != "#" }
    guard place.utf8.count <= 200, place.utf8.allSatisfy({ (33...126).contains($0) }), !place.contains("@") else {
      return ""
    }
    return "The server points to \(place): if that is right, write it into the store's URL."
  }
}
