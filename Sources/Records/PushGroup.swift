public import LatchkeyEncoding

/// The hash of a payload in plain form, which its entry is signed with (format §6).
public func payloadHash(_ bytes: [UInt8]) -> Hash32 {
  hash32("payload", parts: 1) { $0.byteString(bytes) }
}

/// The tie of a push group's stamps: made from the content of all its parts, so that the branches of a forked log
/// differ, and each wins or loses as a whole (format §6).
///
/// - Parameters:
///   - zone: the zone of the log.
///   - origin: whose log it is.
///   - hlc: the group's.
///   - payloadHashes: of all parts, in order.
public func groupTie(zone: ZoneID, origin: Origin, hlc: HLC, payloadHashes: [Hash32]) -> UInt64 {
  let hash = blake2b(32, "group", parts: 5) { writer in
    writer.id(zone)
    writer.id(origin.device)
    writer.id(origin.incarnation)
    writer.uint(hlc.rawValue)
    writer.array(payloadHashes.count)
    for hash in payloadHashes { writer.id(hash) }
  }
  return hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
}
