public import LatchkeyEncoding

/// A random record name, for tables whose rows have no identity of their own (format §5).
///
/// - Parameter random: sixteen random bytes, from the caller.
public func generatedName(random: Bytes16) -> RecordName { RecordName(raw: random) }

/// The record name that a row's key has on every device, so that two devices that insert the same key mean the same row
/// (format §5). Made at the first insert only: a later change of the key does not rename the record.
///
/// - Parameters:
///   - table: the table's wire name.
///   - values: the key's values in the order of its columns, after SQLite's affinity of their columns, folded with
///     ``Collation/fold(_:)``, references as record names.
/// - Returns: nil if a value is null: such rows are never the same, and get a random name.
public func keyedName(table: String, values: [Value]) -> RecordName? {
  if values.contains(where: \.isNull) { return nil }
  let bytes = blake2b(16, "record-name", parts: 2) { writer in
    writer.text(table)
    writer.array(values.count)
    for value in values { value.comparable.write(to: &writer) }
  }
  return RecordName(bytes)
}

extension Value {
  /// A real that SQLite compares as equal to an integer, as that integer: else 1 and 1.0 would be two records of one
  /// key.
  fileprivate var comparable: Value {
    // 2^63 and beyond, and what is not a number, equal no integer.
    guard case .real(let real) = self, real >= -0x1p63, real < 0x1p63, Double(Int64(real)) == real else { return self }
    return .integer(Int64(real))
  }
}

/// How SQLite compares the text of a key column.
public enum Collation: Hashable, Sendable {
  case binary
  /// ASCII letters without regard to case.
  case noCase
  /// Without regard to trailing spaces.
  case rightTrim

  /// The one form that stands for all texts that the collation takes for equal. Other values are left as they are.
  public func fold(_ value: Value) -> Value {
    guard case .text(let bytes) = value else { return value }
    switch self {
    case .binary: return value
    case .noCase: return .text(bytes.map { (65...90).contains($0) ? $0 + 32 : $0 })
    case .rightTrim: return .text(Array(bytes.prefix(upTo: (bytes.lastIndex { $0 != 32 } ?? -1) + 1)))
    }
  }
}
