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

extension S3Credentials {
  /// What a credential may hold: our names, and those of the shared credentials file.
  static let names = [
    "access-key", "secret-key", "session-token", "aws_access_key_id", "aws_secret_access_key", "aws_session_token",
  ]

  /// - Throws: ``StorageError`` `.unauthorized` that names what is missing.
  init(_ credential: StoreCredential) throws(StorageError) {
    guard let accessKey = credential["access-key"] ?? credential["aws_access_key_id"],
      let secretKey = credential["secret-key"] ?? credential["aws_secret_access_key"]
    else {
      throw StorageError(
        .unauthorized, .open, detail: "the credential needs lines \"access-key = …\" and \"secret-key = …\"")
    }
    self.init(
      accessKey: accessKey, secretKey: secretKey,
      sessionToken: credential["session-token"] ?? credential["aws_session_token"])
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(credentials)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where keys come from. Asked when a store is opened, and again when the service says that they have expired.
public typealias S3CredentialSource = @Sendable () throws(StorageError) -> S3Credentials
