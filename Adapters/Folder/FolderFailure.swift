internal import LatchkeyEncoding
internal import LatchkeyStorage

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The one place where a system call's error becomes a ``StorageError``.
struct FolderFailure {
  let operation: StorageError.Operation
  let name: ObjectName?
  var prefix = ""

  /// - Parameters:
  ///   - call: the step that failed, for people: "fsync", "link".
  ///   - effect: whether the object may be there all the same.
  func translate(
    _ error: SystemCallError, _ call: String, effect: StorageError.Effect = .notApplied
  ) -> StorageError {
    make(Self.cause(error.code), effect: effect, detail: "\(call): \(String(cString: strerror(error.code)))")
  }

  func make(
    _ cause: StorageError.Cause, effect: StorageError.Effect = .notApplied, detail: String = ""
  ) -> StorageError {
    if let name { return StorageError(cause, operation, name, effect: effect, detail: detail) }
    return StorageError(cause, operation, prefix: prefix, detail: detail)
  }

  /// The same failure, of a step after which the object may be there.
  func unknown(_ error: StorageError) -> StorageError {
    make(error.cause, effect: .unknown, detail: error.detail)
  }

  private static func cause(_ code: Int32) -> StorageError.Cause {
    switch code {
    case ENOENT: .notFound
    // The folder was unmounted, the share gone, the FUSE process dead, the stick pulled out.
    case ESTALE, ENOTCONN, ENODEV, ENXIO: .storeMissing
    case EROFS: .readOnly
    case EACCES, EPERM: .forbidden
    case ENOSPC, EDQUOT: .quotaExceeded
    case EFBIG, EOVERFLOW: .tooLarge
    case ETIMEDOUT: .timeout
    case EEXIST: .alreadyExists
    case ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG, EINVAL, ENOTEMPTY: .config
    case EOPNOTSUPP, ENOTSUP, ENOSYS: .unsupported
    // EIO, EBUSY, EAGAIN, EINTR, EMFILE, ENFILE, ENOMEM, EHOSTDOWN and whatever else may pass.
    default: .unavailable
    }
  }
}

extension SystemCallError {
  /// Nothing has that name. ENOTDIR: something on the way to it is not a directory; ELOOP: it is a symbolic link.
  var saysAbsent: Bool { code == ENOENT || code == ENOTDIR || code == ELOOP }

  var saysExists: Bool { code == EEXIST }

  var saysForbidden: Bool { code == EACCES || code == EPERM }

  /// A file system without hard links says: SMB and FAT EPERM or ENOTSUP, gvfs and other FUSE file systems ENOSYS,
  /// BeeGFS across directories EPERM, one that counts a single link EMLINK.
  var saysNoLinks: Bool { [EPERM, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(code) }

  /// A file system that cannot sync a directory says: SMB EINVAL or ENOTSUP, exFAT ENOTTY.
  var saysNoDirectorySync: Bool { [EINVAL, ENOTSUP, EOPNOTSUPP, ENOTTY].contains(code) }
}
