internal import LatchkeyStorage

/// What services do differently, as data: each entry names who does it. What can be found out by trying is tried
/// (``S3Store/probe()``) and is not here.
enum S3Quirks {
  /// What an error's code means, for codes whose status alone would say something else or nothing.
  ///
  /// Source: "Error responses", Amazon S3 API Reference, and the services named below.
  static let causes: [String: StorageError.Cause] = [
    "NoSuchKey": .notFound,
    // A bucket that is gone is not an object that is gone.
    "NoSuchBucket": .storeMissing,
    "AccessDenied": .forbidden,
    "AllAccessDisabled": .forbidden,
    "AccountProblem": .forbidden,
    "InvalidAccessKeyId": .unauthorized,
    "SignatureDoesNotMatch": .unauthorized,
    "ExpiredToken": .unauthorized,
    "InvalidToken": .unauthorized,
    "InvalidSecurity": .unauthorized,
    "TokenRefreshRequired": .unauthorized,
    "MissingSecurityHeader": .unauthorized,
    // Garage, Ceph.
    "InvalidSignature": .unauthorized,
    "RequestTimeTooSkewed": .clockSkew,
    "RequestExpired": .clockSkew,
    "SlowDown": .rateLimited(after: nil),
    "SlowDownRead": .rateLimited(after: nil),
    "SlowDownWrite": .rateLimited(after: nil),
    "TooManyRequests": .rateLimited(after: nil),
    "RequestLimitExceeded": .rateLimited(after: nil),
    "Throttling": .rateLimited(after: nil),
    "ThrottlingException": .rateLimited(after: nil),
    "BandwidthLimitExceeded": .rateLimited(after: nil),
    "InternalError": .unavailable,
    "ServiceUnavailable": .unavailable,
    // AWS says 400 when it waited too long for a body.
    "RequestTimeout": .timeout,
    // The bytes were changed or cut on their way; the same bytes again may well arrive.
    "BadDigest": .unavailable,
    "XAmzContentSHA256Mismatch": .unavailable,
    "IncompleteBody": .truncated,
    // AWS: somebody else was creating the name, and nothing of ours landed. OVH and Swift say OperationAborted.
    "ConditionalRequestConflict": .conflict,
    "OperationAborted": .conflict,
    "EntityTooLarge": .tooLarge,
    "InvalidRange": .invalidRange,
    "QuotaExceeded": .quotaExceeded,
    "InsufficientStorage": .quotaExceeded,
    // MinIO.
    "XMinioStorageFull": .quotaExceeded,
    "XMinioAdminBucketQuotaExceeded": .quotaExceeded,
    "PermanentRedirect": .config,
    "TemporaryRedirect": .config,
    "Redirect": .config,
    "AuthorizationHeaderMalformed": .config,
    "IllegalLocationConstraintException": .config,
    "InvalidBucketName": .config,
    "InvalidLocationConstraint": .config,
    // An object that a lifecycle rule moved to an archive.
    "InvalidObjectState": .config,
    "NotImplemented": .unsupported,
    "MethodNotAllowed": .unsupported,
  ]

  /// Keys that were right once.
  static let expiredCodes: Set<String> = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"]

  /// How much the clocks may differ before a refused signature is put down to it, in seconds: a minute less than the
  /// quarter of an hour that services allow. rclone says AccessDenied for a skewed clock.
  static let suspiciousSkew = 840

  /// Services whose listings are not in byte order, by the beginning of their `Server` field: SeaweedFS sorts `/` before
  /// everything else, as the file tree below it does. There a page cannot begin in the middle.
  static let unorderedServers = ["SeaweedFS"]

  /// Services of which it is known, beyond what one client can try, that of several creations at once exactly one
  /// succeeds: Amazon documents it; SeaweedFS and Ceph's gateway held in races.
  static let atomicServers = ["AmazonS3", "SeaweedFS", "Ceph"]
}
