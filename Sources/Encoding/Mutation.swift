#if LATCHKEY_MUTATIONS
  /// Deliberate bugs, compiled only into the simulator (`-DLATCHKEY_MUTATIONS`), to prove that it finds them.
  public enum Mutation: String, CaseIterable, Sendable {
    /// Equal clocks: each device prefers its own value.
    case tieBreak = "tie-break"
    /// Clearing the capture log also clears what was written while it was read.
    case clearQueue = "clear-queue"
    /// A reference whose target has not arrived is pushed back as NULL.
    case nullReference = "null-reference"
    /// A retry seals again instead of sending the stored bytes.
    case resendReseal = "resend-reseal"
    /// A new epoch's key is sealed to those whom it removes, too, and nobody minds.
    case sealRemoved = "seal-removed"
    /// Rows of a removed device count, however many it has written.
    case ignoreLimit = "ignore-limit"
    /// Rows are sent though somebody who was removed has the key.
    case ignoreHold = "ignore-hold"
    /// What was accepted of a removed device beyond its limit is not published again.
    case omitCarry = "omit-carry"
    /// An epoch is read only once the operation that began it is judged.
    case judgeFirst = "judge-first"

    /// Set once, before the first device runs.
    nonisolated(unsafe) public static var active: Mutation?  // written before any thread starts, read only afterwards

    public static func isOn(_ mutation: Mutation) -> Bool { active == mutation }
  }
#endif
