public import LatchkeyEncoding
public import LatchkeyKeys
public import LatchkeyLog

/// How somebody who holds an epoch's key, and nothing else, finds the roster's beginning.
///
/// Whose log Genesis lies in is not known yet, so nothing can be checked by signature; but the household's id is the hash of
/// that entry, so whatever hashes to it is it.
public enum GenesisSearch {
  public enum Finding: Sendable {
    case found(StoredEntry)
    /// It may lie in this segment, below the roster's prefix.
    case look(in: ObjectName)
    case notHere
  }

  /// Looks into the head of some log.
  public static func search(head name: ObjectName, bytes: [UInt8], keys: EpochKeys) -> Finding {
    guard
      let content = try? Envelope.open(
        bytes, at: keys.place(.head, zone: .roster, name: name), key: keys.zoneKey(.roster)),
      let head = try? HeadContent(decoding: content), let body = try? HeadBody(decoding: head.body)
    else { return .notHere }
    if let entry = match(head.tail, keys) { return .found(entry) }
    guard body.firstSegment == 1 else { return .notHere }
    return .look(in: keys.segmentName(zone: .roster, origin: body.origin, index: 1))
  }

  /// Looks into the segment that ``search(head:bytes:keys:)`` named.
  public static func search(segment name: ObjectName, bytes: [UInt8], keys: EpochKeys) -> StoredEntry? {
    guard
      let content = try? Envelope.open(
        bytes, at: keys.place(.segment, zone: .roster, name: name), key: keys.zoneKey(.roster)),
      let segment = try? SegmentContent(decoding: content)
    else { return nil }
    return match(segment.entries, keys)
  }

  /// Looks into a copy of the roster, with which later epochs begin.
  public static func search(copy name: ObjectName, bytes: [UInt8], keys: EpochKeys) -> StoredEntry? {
    guard
      let content = try? Envelope.open(
        bytes, at: keys.place(.rosterCopy, zone: .roster, name: name), key: keys.zoneKey(.roster)),
      let copy = try? RosterCopy(decoding: content)
    else { return nil }
    return match(copy.entries, keys)
  }

  private static func match(_ entries: [StoredEntry], _ keys: EpochKeys) -> StoredEntry? {
    entries.first { EntryBody.hash(of: $0.body) == keys.household }
  }
}
