public import LatchkeyEncoding

/// Why a store did not do what it was asked.
///
/// One type for all adapters: act on ``cause``, retry on ``isRetryable``, show ``description``. It never holds a
/// credential: adapters put in ``detail`` what the system or the server said (a status, an error number, a path), and
/// neither headers nor URLs with options.
public struct StorageError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A case for everything that a caller can act on.
  public enum Cause: Equatable, Sendable {
    /// There is no such object.
    case notFound
    /// The folder, bucket or collection itself is not there, or is another than was opened. Stop; nothing was deleted.
    case storeMissing
    /// Other bytes have this name.
    case alreadyExists
    /// Somebody else was at it at the same moment; nothing happened.
    case conflict
    /// The credential is missing, wrong or expired.
    case unauthorized
    /// The credential is right and does not allow this.
    case forbidden
    /// Nothing can be written here.
    case readOnly
    /// Too many requests. `after` is what the store asked to wait, if it said so.
    case rateLimited(after: Duration?)
    /// The store is out of reach, or answers that it cannot just now.
    case unavailable
    /// No answer in time.
    case timeout
    /// Fewer bytes came than there are.
    case truncated
    /// No space left, or the account's quota is used up.
    case quotaExceeded
    /// The object is over the size that the store, or Latchkey, takes.
    case tooLarge
    /// The store's clock and ours differ too much for its signatures.
    case clockSkew
    /// The connection cannot be trusted (certificate, protocol).
    case tls
    /// It is set up wrongly: a region, an address, a file where a folder should be.
    case config
    /// The store answered something that its protocol does not allow.
    case protocolViolation
    /// The store cannot do this, or there is no adapter for it.
    case unsupported
    /// The task was cancelled.
    case cancelled
    /// A range that is empty or not wholly inside the object.
    case invalidRange
    /// A prefix or limit that no listing can have; nothing was sent.
    case invalidArgument
  }

  /// Whether something may have changed in the store.
  public enum Effect: String, Sendable {
    case notApplied, unknown
  }

  /// What was being done.
  public enum Operation: String, Sendable {
    case open, put, get, head, list, delete, probe
  }

  public let cause: Cause
  public let operation: Operation
  /// The object's name, or the prefix of a listing; empty where it is the store itself.
  public let subject: String
  public let effect: Effect
  /// What the system or the server said, for people; may be empty.
  public let detail: String
  /// What to do about this very failure, in sentences; empty where the cause says all there is to say.
  public let advice: String

  public init(
    _ cause: Cause, _ operation: Operation, _ name: ObjectName? = nil, effect: Effect = .notApplied,
    detail: String = "", advice: String = ""
  ) {
    self.init(
      cause: cause, operation: operation, subject: name?.text ?? "", effect: effect, detail: detail, advice: advice)
  }

  public init(_ cause: Cause, _ operation: Operation, prefix: String, detail: String = "", advice: String = "") {
    self.init(
      cause: cause, operation: operation, subject: prefix, effect: .notApplied, detail: detail, advice: advice)
  }

  init(cause: Cause, operation: Operation, subject: String, effect: Effect, detail: String, advice: String) {
    self.cause = cause
    self.operation = operation
    self.subject = subject
    self.effect = effect
    self.detail = detail
    self.advice = advice
  }

  /// The same failure, of what was really being done.
  public func during(_ operation: Operation, _ name: ObjectName? = nil) -> Self {
    Self(cause, operation, name, effect: effect, detail: detail, advice: advice)
  }

  /// Whether the same call may well succeed later without anybody doing anything.
  public var isRetryable: Bool {
    switch cause {
    case .conflict, .rateLimited, .unavailable, .timeout, .truncated: true
    case .notFound, .storeMissing, .alreadyExists, .unauthorized, .forbidden, .readOnly, .quotaExceeded, .tooLarge,
      .clockSkew, .tls, .config, .protocolViolation, .unsupported, .cancelled, .invalidRange, .invalidArgument:
      false
    }
  }

  /// The cause as one stable word, for programs.
  public var code: String {
    switch cause {
    case .notFound: "not-found"
    case .storeMissing: "store-missing"
    case .alreadyExists: "already-exists"
    case .conflict: "conflict"
    case .unauthorized: "unauthorized"
    case .forbidden: "forbidden"
    case .readOnly: "read-only"
    case .rateLimited: "rate-limited"
    case .unavailable: "unavailable"
    case .timeout: "timeout"
    case .truncated: "truncated"
    case .quotaExceeded: "quota-exceeded"
    case .tooLarge: "too-large"
    case .clockSkew: "clock-skew"
    case .tls: "tls"
    case .config: "config"
    case .protocolViolation: "protocol-violation"
    case .unsupported: "unsupported"
    case .cancelled: "cancelled"
    case .invalidRange: "invalid-range"
    case .invalidArgument: "invalid-argument"
    }
  }

  /// What could not be done.
  public var what: String {
    switch operation {
    case .open: "The store could not be opened"
    case .put: "Object \(subject) could not be written"
    case .get: "Object \(subject) could not be read"
    case .head: "Object \(subject) could not be looked up"
    case .list: subject.isEmpty ? "The store could not be listed" : "The objects under \(subject) could not be listed"
    case .delete: "Object \(subject) could not be deleted"
    case .probe: "The store could not be tested"
    }
  }

  /// The reason, without ``detail``.
  public var why: String {
    switch cause {
    case .notFound: "it is not there"
    case .storeMissing: "the store is not there"
    case .alreadyExists: "something else has that name already"
    case .conflict: "somebody else was writing at the same moment"
    case .unauthorized: "the store did not accept the credential"
    case .forbidden: "the store does not allow it"
    case .readOnly: "the store is read-only"
    case .rateLimited: "the store asks for fewer requests"
    case .unavailable: "the store cannot be reached at the moment"
    case .timeout: "the store did not answer in time"
    case .truncated: "it arrived incomplete"
    case .quotaExceeded: "the store is full"
    case .tooLarge: "it is too large"
    case .clockSkew: "this device's clock and the store's differ too much"
    case .tls: "the connection cannot be trusted"
    case .config: "the store is not set up as it should be"
    case .protocolViolation: "the store's answer makes no sense"
    case .unsupported: "the store, or this program, cannot do that"
    case .cancelled: "it was cancelled"
    case .invalidRange: "that part of it does not exist"
    case .invalidArgument: "that cannot be asked of a store"
    }
  }

  /// What the reader of the message can do: the ``advice``, or what helps against all failures of this cause.
  public var next: String { advice.isEmpty ? usualNext : advice }

  private var usualNext: String {
    switch cause {
    case .notFound: "If it should be there, another device can write it again."
    case .storeMissing:
      "Check that the disk is connected, the folder mounted and the address right; nothing is taken for deleted."
    case .alreadyExists: "Nothing was overwritten; what is there may be damaged, or of another program."
    case .conflict, .unavailable, .timeout, .truncated, .rateLimited:
      "Nothing is lost; it is sent again with the next sync."
    case .unauthorized: "Check the user name, the password or the keys for this store."
    case .forbidden: "Check the permissions of the folder or of the credential."
    case .readOnly: "Make the store writable, then sync again."
    case .quotaExceeded: "Free some space there, then sync again; nothing is lost."
    case .tooLarge: "Choose a store that takes larger objects."
    case .clockSkew: "Set this device's clock."
    case .tls: "Check the address and the certificate."
    case .config: "Correct the setup of the store."
    case .protocolViolation: "Check the address; if it is right, this store is not one that Latchkey can use."
    case .unsupported: "Choose another store, or add an adapter for it."
    case .cancelled: "Start it again."
    case .invalidRange, .invalidArgument: "This is a mistake in the program that asked."
    }
  }

  /// What, why and what next, for people.
  public var description: String {
    let reason = detail.isEmpty ? why : "\(why) (\(detail))"
    return "\(what): \(reason). \(next)"
  }
}
