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
    if name == nil, !isUnknown {
      return StorageError(storageCause, operation, prefix: prefix, detail: description, advice: advice)
    }
    return StorageError(
      storageCause, operation, name, effect: isUnknown ? .unknown : .notApplied, detail: description, advice: advice)
  }

  private var storageCause: StorageError.Cause {
    switch cause {
    case .unresolvedHost, .unreachable, .connectionLost: .unavailable
    case .stalled: .timeout
    case .truncated: .truncated
    case .untrustedCertificate, .tls: .tls
    case .bodyTooLarge: .tooLarge
    case .headersTooLarge, .malformedReply: .protocolViolation
    case .configuration, .unusableFile: .config
    case .cancelled: .cancelled
    }
  }

  private var advice: String {
    switch cause {
    case .untrustedCertificate(.unknownAuthority):
      "If the server has an authority of its own, add ca=FILE with that authority's certificate to the store's URL; "
        + "if not, somebody may be in between."
    case .untrustedCertificate(.otherAuthority):
      "Take the file of the authority that this server has now, or leave ca= out for one that the system trusts; "
        + "if it is the right file, somebody may be in between."
    case .untrustedCertificate(.outOfDate):
      "Set this device's clock; if it is right, whoever runs the server has to renew the certificate."
    case .untrustedCertificate(.otherHost): "Write the host in the store's URL as the certificate names it."
    // What OpenSSL says of an answer in plain text.
    case .tls where ["wrong version number", "packet length too long"].contains { detail.contains($0) }:
      "At this port the server does not speak https: check scheme and port in the store's URL."
    case .unusableFile: "Correct the path in the store's URL or in the environment."
    case .unresolvedHost: "Check the host's name in the store's URL, and whether this device is online."
    default: ""
    }
  }
}
