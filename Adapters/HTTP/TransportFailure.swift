public import LatchkeyEncoding
public import LatchkeyStorage

extension HTTPError {
  /// What a failed request means for a store: the same for every adapter that speaks HTTP.
  ///
  /// - Parameters:
  ///   - changes: whether the request would have changed something; then a lost reply leaves the effect unknown.
  public func storageError(
    _ operation: StorageError.Operation, _ name: ObjectName?, prefix: String = "", changes: Bool = false
  ) -> StorageError {
    let isUnknown = changes && mayHaveArrived
    if name == nil, !isUnknown { return StorageError(storageCause, operation, prefix: prefix, detail: advice) }
    return StorageError(storageCause, operation, name, effect: isUnknown ? .unknown : .notApplied, detail: advice)
  }

  private var storageCause: StorageError.Cause {
    switch cause {
    case .unresolvedHost, .unreachable, .connectionLost: .unavailable
    case .stalled: .timeout
    case .truncated: .truncated
    case .untrustedCertificate, .tls: .tls
    case .bodyTooLarge: .tooLarge
    case .headersTooLarge, .malformedReply: .protocolViolation
    case .configuration: .config
    case .cancelled: .cancelled
    }
  }

  private var advice: String {
    switch cause {
    case .untrustedCertificate:
      return "\(description); for an authority of one's own add ca=FILE to the store's URL"
    // What OpenSSL says of an answer in plain text.
    case .tls where ["wrong version number", "packet length too long"].contains { detail.contains($0) }:
      return "\(description); at this port the server does not speak https: check scheme and port"
    default: return description
    }
  }
}
