public import LatchkeyEncoding
public import LatchkeyKeys

/// Why the engine cannot go on.
public enum EngineError: Error, Equatable, Sendable {
  /// The place has no marker object: not mounted, emptied, or never a store.
  case storeMissing
  /// The marker is another store's than the one this household was kept in.
  case otherStore
  /// The marker is not one, or of a newer version.
  case badMarker(String)
  /// An operation would not count: the author may not do this.
  case refused(RosterRefusal)
  /// The roster holds an operation that this version does not evaluate; nothing is uploaded.
  case newerRoster
  /// Kept state does not decode.
  case damagedState(String)
  /// This device holds no key of the epoch that it would have to read or write.
  case noKey(EpochID)
  /// A sealed object would exceed its limit.
  case tooLarge
  /// The performer answered with another event than the effect asks for: a defect of the performer.
  case outOfOrder(String)
}
