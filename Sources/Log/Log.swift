/// The log: what a device writes into a zone, and what it believes of what others wrote.
///
/// A device's log is a chain of signed *entries*. They travel inside *segments* (sealed runs of entries) and in the *tail* of
/// the device's newest *head*, so that a small change costs one object. Payloads are opaque here: the roster's are
/// operations (`LatchkeyKeys`), a row zone's are records (`LatchkeyRecords`).
///
/// Everything is pure: time and randomness come in as parameters, bytes go out. ``OwnLog`` is what this device has
/// written, ``Belief`` what it has accepted from the others; both are values that the caller stores in the same transaction
/// as what they speak of.

/// Limits of format §12 that concern the log.
public enum LogLimits {
  public static let headBytes = 16 << 20
  public static let segmentBytes = 64 << 20
  public static let payloadBytes = 32 << 20
  public static let partsPerGroup = 4096
  public static let rosterHeads = 256
  public static let vector = 65_536
  public static let entriesPerObject = 65_536
  /// Largest sealed head with a tail of entries; more goes into a segment (format §7).
  public static let sealedTailBytes = 8192
  /// Where a writer cuts segments, sealed (format §7).
  public static let segmentTarget = 4 << 20
}

/// Why bytes are not a log object of this format, or not one to believe.
public enum LogError: Error, Equatable, Sendable {
  /// Not the encoding of format §6 or §7.
  case malformed(String)
  /// A version this build does not know; nothing of it is applied (format §11).
  case newer(String)
  /// A signature does not hold.
  case badSignature
  /// The signed contents belong under another name, zone, household or epoch.
  case misplaced(String)
  /// The entries do not continue each other, or what was accepted before.
  case brokenChain(String)
  /// The payload is not the one that was signed.
  case badPayload(String)
}
