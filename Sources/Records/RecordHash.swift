public import LatchkeyEncoding

/// What a record adds to its zone's digest (format §9): a keyed hash of what its row says, without stamps.
///
/// - Parameters:
///   - key: the zone's digest key, 32 bytes.
///   - name: the record's name.
///   - table: its table's wire name.
///   - state: its merged state.
///   - fingerprint: of a value; given by a device that holds some values no more.
/// - Returns: nil unless the record is live.
public func recordHash(
  key: [UInt8], name: RecordName, table: String, state: RecordState,
  fingerprint: (Value) -> UInt64 = { $0.fingerprint }
) -> Hash32? {
  guard state.isLive else { return nil }
  var entries: [(key: Register, value: Value)] = []
  entries.reserveCapacity(state.registers.count)
  for entry in state.registers {
    guard case .cell(let value) = entry.value, !value.isNull else { continue }
    entries.append((entry.register, value))
  }
  let sums = state.additiveColumns.compactMap { column in state.sum(of: column).map { (column, $0) } }
  return hash32("record", key: key, parts: 3) { writer in
    writer.id(name)
    writer.text(table)
    writer.array(entries.count + sums.count)
    for entry in entries {
      writer.array(2)
      entry.key.write(to: &writer)
      writer.uint(fingerprint(entry.value))
    }
    // [6, column] sorts after every text.
    for (column, sum) in sums {
      writer.array(2)
      writer.array(2)
      writer.uint(6 as UInt64)
      writer.text(column)
      writer.uint(fingerprint(sum))
    }
  }
}
