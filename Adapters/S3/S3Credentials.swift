public import LatchkeyStorage

/// Keys for an S3 service. Never printed.
public struct S3Credentials: Equatable, Sendable {
  public let accessKey: String
  public let secretKey: String
  /// Of temporary keys.
  public let sessionToken: String?

  public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(credentials)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where keys come from. Asked when a store is opened, and again when the service says that they have expired.
public typealias S3CredentialSource = @Sendable () throws(StorageError) -> S3Credentials
