public import LatchkeyEncoding

/// A signed entry of the roster, as the log hands it over: hash, signature and payload hash are verified already.
public struct RosterEntry: Hashable, Sendable {
  public let hash: EntryHash
  public let origin: Origin
  /// 1 and up.
  public let sequence: UInt64
  /// The author's entry before this one.
  public let previous: EntryHash?
  /// What else the author had seen: with `previous`, the ancestors that this entry is judged by.
  public let heads: [EntryHash]
  /// Hybrid logical clock (format §1); decides between names only, never between rights.
  public let hlc: UInt64
  public let operation: RosterOperation

  public init(
    hash: EntryHash, origin: Origin, sequence: UInt64, previous: EntryHash?, heads: [EntryHash], hlc: UInt64,
    operation: RosterOperation
  ) {
    self.hash = hash
    self.origin = origin
    self.sequence = sequence
    self.previous = previous
    self.heads = heads
    self.hlc = hlc
    self.operation = operation
  }

  /// - Parameter payload: the whole payload, `[1, kind, …]`.
  public init(
    hash: EntryHash, origin: Origin, sequence: UInt64, previous: EntryHash?, heads: [EntryHash], hlc: UInt64,
    payload: [UInt8]
  ) {
    self.init(
      hash: hash, origin: origin, sequence: sequence, previous: previous, heads: heads, hlc: hlc,
      operation: RosterOperation(payload: payload))
  }
}

/// Why an operation counts for nothing.
public enum RosterRefusal: Hashable, Sendable, Error {
  /// Not of the stated form.
  case malformed
  /// Sequence or previous entry do not continue the author's log.
  case chain
  /// A Genesis that did not make this household, or does not stand first.
  case notGenesis
  /// The author was not a device of the household, by what it cites.
  case notEnrolled
  /// The author had seen its own log fork: that incarnation has ended.
  case forked
  /// The author's role is too low.
  case role
  /// Opens the reserved zone, or closes one that was not open.
  case zone
  /// The certificate is not by a device of the author's person, or forged.
  case certificate
  /// The device was in already.
  case alreadyEnrolled
  /// A person may have 16 devices.
  case tooManyDevices
  /// A private household takes one person's devices only, and only it keeps access to others.
  case privateHousehold
  /// No such invite, or not the author's to revoke.
  case invite
  /// The claim does not hold.
  case claim(ClaimError)
  /// The household was closed.
  case closed
  /// The device was removed: it can come back only with new keys.
  case removed
  /// An owner cannot leave while no other owner stays.
  case lastOwner
  /// Names an epoch that is not among its ancestors.
  case unknownEpoch
  /// The seal is not the one that the epoch's key makes for that device.
  case seal
  /// The `Next` is not as it has to be.
  case next(NextRefusal)
}

/// What is wrong with a `Next`.
public enum NextRefusal: Hashable, Sendable {
  /// Does not follow exactly the epochs that end the ancestors.
  case parents
  /// A *closed* one carries something.
  case form
  /// Removes a device that is not in.
  case removals
  /// Somebody who wrote `Leave` is not removed.
  case leaving
  /// Devices that the removed ones brought in are neither removed nor confirmed, ascending.
  case introduced([DeviceID])
  /// Changes the role of somebody who is not in.
  case roles
  /// Would leave no owner.
  case lastOwner
  /// The key is not sealed to exactly those who stay.
  case recipients
  /// Carries the key of an epoch that is not among its ancestors.
  case unknownFormer
  /// The key does not fit the commitment.
  case commitment
  /// A seal is not the one that the key makes.
  case seal
  /// A former key is not the one of its epoch.
  case former
  /// A recipient says that its seal does not open, and nobody has shown the key.
  case denied
  /// Only before signing: nobody has shown the keys of these epochs, and a grace time is not over. Ascending.
  case unproven([EpochID])
  /// Only before signing: the keys of these epochs were never sealed to this device, and a grace time is not over. Ascending.
  case sealedOut([EpochID])
}

/// What became of an entry.
public enum RosterVerdict: Hashable, Sendable {
  /// It counts.
  case counts
  /// It counts for nothing, for ever.
  case refused(RosterRefusal)
  /// This version cannot judge it, or something that it builds on.
  case newer
  /// Held until these ancestors arrive, ascending.
  case waiting([EntryHash])
}
