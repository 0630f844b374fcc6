public import LatchkeyEncoding

/// What a reader met that it does not simply accept (format §10). Findings never stop other logs.
public enum Finding: Error, Hashable, Sendable {
  /// Wrong commitment, tag, padding, signature, name or encoding: set aside; that log waits.
  case damaged(object: ObjectName, reason: String)
  /// Written by a newer version; that log waits.
  case newer(object: ObjectName, reason: String)
  /// The author is not (yet) in the roster; the head waits.
  case unknownAuthor(device: DeviceID, object: ObjectName)
  /// The store shows less of a log than was accepted before; rows stay.
  case rollback(origin: Origin, accepted: UInt64, shown: UInt64)
  /// Two entries or heads of one origin at one position; that log stops.
  case fork(origin: Origin, sequence: UInt64)
  /// The author's entries cite roster entries that the store has not shown; the log waits.
  case rosterBehind(origin: Origin)
  /// A segment that a head names is not there; the log waits.
  case missing(object: ObjectName, origin: Origin)
  /// A member's device says that it had accepted more of a log than the store has shown since, for longer than a grace time: withheld, late,
  /// or a false citation. Whose log it is, is not to blame.
  case withheld(origin: Origin, accepted: UInt64, cited: UInt64, by: DeviceID)
  /// A device that has merged exactly what this one has holds other rows: damage on one of the two, or a device that is not honest.
  case divergence(origin: Origin)
  /// A log under this device's own name that it did not write: keys were copied or stolen, or an old copy is in use.
  case notMine(origin: Origin)
  /// A reader's row entries: chained, not applied.
  case notAuthorised(origin: Origin, sequence: UInt64)
  /// A signed group whose payload this version cannot read: newer, or its author does not follow the format. That log waits.
  case unreadable(origin: Origin, sequence: UInt64, reason: String, isNewer: Bool)
}
