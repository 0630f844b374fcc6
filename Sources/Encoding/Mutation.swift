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

    /// Set once, before the first device runs.
    nonisolated(unsafe) public static var active: Mutation?  // written before any thread starts, read only afterwards

    public static func isOn(_ mutation: Mutation) -> Bool { active == mutation }
  }
#endif
