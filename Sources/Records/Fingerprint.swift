internal import LatchkeyEncoding

extension Value {
  /// Eight bytes that stand for the value in a record's hash (format §9), so that a device that no longer has a value
  /// still knows what it adds to the digest.
  ///
  /// It guards against nobody who chooses values: whoever may write a row could make two values with one fingerprint, and
  /// gains nothing by it. Two other values share one with probability 2^-64. Never zero; meaningless for null.
  public var fingerprint: UInt64 {
    let hash: UInt64
    switch self {
    case .null: hash = 0
    case .integer(let x): hash = withUnsafeBytes(of: UInt64(bitPattern: x).bigEndian) { sipHash($0, kind: 1) }
    case .real(let x): hash = withUnsafeBytes(of: x.bitPattern.bigEndian) { sipHash($0, kind: 2) }
    case .text(let bytes): hash = bytes.withUnsafeBytes { sipHash($0, kind: 3) }
    case .blob(let bytes): hash = bytes.withUnsafeBytes { sipHash($0, kind: 4) }
    case .reference(let name):
      hash = withUnsafeBytes(of: (name.raw.high.bigEndian, name.raw.low.bigEndian)) { sipHash($0, kind: 5) }
    case .together, .unknown: hash = encoded.withUnsafeBytes { sipHash($0, kind: 6) }
    }
    return hash == 0 ? 1 : hash
  }
}
