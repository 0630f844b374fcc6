internal import LatchkeyEncoding
internal import LatchkeyHTTP
internal import LatchkeyStorage

/// An answer that says no, and the one place where it becomes a ``StorageError``.
struct S3Failure: Sendable {
  let status: Int
  /// The error's code, if it is one; empty for an answer without.
  let code: String
  /// The region that the bucket is in, where the answer says so.
  private let region: String?
  private let request: String
  private let retryAfter: Duration?
  /// The server's clock, in seconds since 1970.
  let date: Int?
  /// Something that is not a service of this kind answered: a web page, a proxy.
  private let isForeign: Bool
  /// The port speaks TLS, and nothing else.
  private let asksForEncryption: Bool

  /// - Parameters:
  ///   - isObject: whether a body of a success is the object itself, and not for us to read.
  ///   - now: by our clock.
  /// - Returns: nil for an answer that says yes.
  init?(_ response: HTTPResponse, isObject: Bool, now: Int) {
    // A success that turns out to be none while it is written has its error in the body (AWS, for PUT and lists too).
    if response.isSuccess, isObject || !Self.mayBeError(response.body) { return nil }
    let root = try? XMLReader.read(response.body)
    let said = root?.name == "Error" ? root : root?.first("Error")
    if response.isSuccess, said == nil { return nil }
    status = response.status
    code = Self.word(said?.text("Code"), maximum: 64)
    let bucketRegion = said?.text("Region") ?? response.headers["x-amz-bucket-region"]
    let regionWord = Self.word(bucketRegion, maximum: 40)
    region = regionWord.isEmpty ? nil : regionWord
    request = Self.word(response.headers["x-amz-request-id"] ?? said?.text("RequestId"), maximum: 64)
    retryAfter = response.retryAfter(now: response.date ?? now)
    date = response.date
    isForeign = said == nil && !response.body.isEmpty
    asksForEncryption = response.asksForEncryption
  }

  /// Whether the root element of a body can be an error's: a long listing is not read twice to find out.
  private static func mayBeError(_ body: [UInt8]) -> Bool {
    String(decoding: body.prefix(1024), as: UTF8.self).contains("<Error")
  }

  /// A word of a stranger's, if it is one: what else it wrote (a message, a copy of the request) stays out of errors.
  private static func word(_ text: String?, maximum: Int) -> String {
    guard let text, (1...maximum).contains(text.utf8.count) else { return "" }
    let isWord = text.utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || "-._".utf8.contains($0)
    }
    return isWord ? text : ""
  }

  /// - Parameter changes: whether the request would have changed something.
  func error(
    _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = "", changes: Bool = false
  ) -> StorageError {
    let effect: StorageError.Effect = changes && mayBeApplied ? .unknown : .notApplied
    let advice = advice(operation)
    if name == nil, effect == .notApplied {
      return StorageError(cause, operation, prefix: prefix, detail: detail, advice: advice)
    }
    return StorageError(cause, operation, name, effect: effect, detail: detail, advice: advice)
  }

  var cause: StorageError.Cause {
    guard let cause = S3Quirks.causes[code] else { return statusCause }
    switch cause {
    case .rateLimited: return .rateLimited(after: retryAfter)
    // A bare 503 with a wish is a wish for fewer requests.
    case .unavailable where status == 503 && retryAfter != nil: return .rateLimited(after: retryAfter)
    default: return cause
    }
  }

  private var statusCause: StorageError.Cause {
    switch status {
    case 200...299: .unavailable
    // 304 for 412 where a condition is on a PUT (some gateways).
    case 304, 412: .alreadyExists
    case 300...399: .config
    case 400, 497: asksForEncryption ? .config : .protocolViolation
    case 401: .unauthorized
    case 403: .forbidden
    case 404: isForeign ? .storeMissing : .notFound
    case 405, 501: .unsupported
    // Tigris sheds load with 408.
    case 408: .timeout
    case 409, 423: .conflict
    case 413: .tooLarge
    case 416: .invalidRange
    case 429, 509: .rateLimited(after: retryAfter)
    // Backblaze's "no tomes available" is one without a wish.
    case 503: retryAfter == nil ? .unavailable : .rateLimited(after: retryAfter)
    case 507: .quotaExceeded
    case 500...599: .unavailable
    default: .protocolViolation
    }
  }

  /// Whether the request may have been done all the same: an error of the server after it wrote, or of a gateway before
  /// it. An error inside a success is one.
  var mayBeApplied: Bool {
    switch cause {
    case .unavailable, .timeout: true
    case .rateLimited: code.isEmpty && status == 503
    default: false
    }
  }

  private var detail: String {
    var parts = ["status \(status)"]
    if !code.isEmpty { parts.insert(code, at: 0) }
    if !request.isEmpty { parts.append("request \(request)") }
    if (300...399).contains(status) { parts.append("redirects are not followed") }
    return parts.joined(separator: ", ")
  }

  /// What to do about this very failure, where the cause alone does not say it.
  private func advice(_ operation: StorageError.Operation) -> String {
    if cause == .config, let region { return "The bucket is in region \(region): write region=\(region) in its URL." }
    switch code {
    case "InvalidAccessKeyId": return "The service does not know this access key: check it, and endpoint=."
    case "SignatureDoesNotMatch", "InvalidSignature":
      return "The secret key does not belong to the access key, or region= is not the service's: check both."
    case "ExpiredToken", "TokenRefreshRequired": return "The temporary keys have expired: get new ones."
    case "InvalidToken": return "The session token is not valid: get new temporary keys."
    case "NoSuchBucket":
      return "There is no such bucket: make it with the service's own tools, or correct its name; nothing is taken "
        + "for deleted."
    case "InvalidObjectState": return "The object was moved to an archive: restore it there, and end that rule."
    case "InvalidBucketName": return "The service does not allow this name for a bucket: choose another."
    case "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
      return "region= is not the service's: write the region that the service names."
    default: break
    }
    if asksForEncryption { return "The server wants it encrypted: write endpoint=https://…" }
    if isForeign, status == 404 { return "This is not the answer of an S3 service: check endpoint=." }
    if cause == .config, (300...399).contains(status) {
      return "The bucket is served elsewhere: check endpoint= and region=."
    }
    if cause == .forbidden { return Self.permission(operation) }
    return ""
  }

  /// What a credential that is known lacks.
  private static func permission(_ operation: StorageError.Operation) -> String {
    switch operation {
    case .put, .delete, .probe:
      "This credential may not write: let it put and delete objects under the store's prefix."
    case .get, .head: "This credential may not read: let it get objects under the store's prefix."
    case .open, .list:
      "This credential may not list the bucket: let it list, get, put and delete under the store's prefix."
    }
  }
}
