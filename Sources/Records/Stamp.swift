public import LatchkeyEncoding

/// When and by whom a register was written: a total order over all writes of all devices (format §5).
///
/// The order is that of the fields: HLC; then real before filled-in; then origin; then tie. Greater is newer.
public struct Stamp: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The push group's reading of its origin's clock.
  public let hlc: HLC
  /// Whether nobody wrote this: the default of a column that an old row gained. Loses to any real write of its time.
  public let isFilledIn: Bool
  /// Who wrote.
  public let origin: Origin
  /// Made from the push group's content (format §6): tells the two branches of a forked log apart, and then the whole
  /// group wins or loses, never half of it. Zero only while the group is still being built.
  public let tie: UInt64

  public init(hlc: HLC, isFilledIn: Bool = false, origin: Origin, tie: UInt64) {
    self.hlc = hlc
    self.isFilledIn = isFilledIn
    self.origin = origin
    self.tie = tie
  }

  public static func < (a: Self, b: Self) -> Bool {
    if a.hlc != b.hlc { return a.hlc < b.hlc }
    if a.isFilledIn != b.isFilledIn { return a.isFilledIn }
    if a.origin != b.origin { return a.origin < b.origin }
    return a.tie < b.tie
  }

  public var description: String { "\(hlc)\(isFilledIn ? "~" : "") \(origin)" }
}

/// How a register's stamp is written in a push group that is being built.
public enum StampReference: Hashable, Sendable {
  /// The group's own stamp.
  case own
  /// The group's origin and tie at the stated HLC, filled-in: a new column's default on a row whose `born` has that
  /// HLC.
  case filledIn(HLC)
  /// Somebody's earlier write, carried. (A stamp of the group's own HLC and origin with tie 0 is the group's own.)
  case other(Stamp)
}
