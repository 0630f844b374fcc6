/// The names that travel: fixed-length byte strings, each with a type of its own so that one cannot stand for another.

/// A value that is a fixed number of bytes on the wire.
public protocol FixedBytes: Hashable, Comparable, Sendable, CustomStringConvertible {
  static var byteCount: Int { get }
  /// Nil unless there are exactly `byteCount` bytes.
  init?(_ bytes: [UInt8])
  var bytes: [UInt8] { get }
}

extension FixedBytes {
  public var description: String { hex(bytes) }
  /// The first eight hexadecimal digits, for people.
  public var short: String { String(hex(bytes).prefix(8)) }
}

/// Sixteen bytes in two words, compared in byte order.
public struct Bytes16: Hashable, Comparable, Sendable {
  public let high: UInt64
  public let low: UInt64
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
  public static func < (a: Self, b: Self) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

/// An identifier of sixteen bytes.
public protocol Identifier16: FixedBytes {
  var raw: Bytes16 { get }
  init(raw: Bytes16)
}

extension Identifier16 {
  public static var byteCount: Int { 16 }
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    self.init(raw: Bytes16(high: word(bytes, 0), low: word(bytes, 8)))
  }
  public var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(16)
    append(raw.high, to: &out)
    append(raw.low, to: &out)
    return out
  }
  public static func < (a: Self, b: Self) -> Bool { a.raw < b.raw }
  /// All zeros: the reserved value.
  public static var zero: Self { Self(raw: Bytes16(high: 0, low: 0)) }
}

/// A hash of thirty-two bytes.
public struct Hash32: FixedBytes {
  public static let byteCount = 32
  private let a, b, c, d: UInt64
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    (a, b, c, d) = (word(bytes, 0), word(bytes, 8), word(bytes, 16), word(bytes, 24))
  }
  private init(_ a: UInt64, _ b: UInt64, _ c: UInt64, _ d: UInt64) { (self.a, self.b, self.c, self.d) = (a, b, c, d) }
  public static let zero = Hash32(0, 0, 0, 0)
  public var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(32)
    for w in [a, b, c, d] { append(w, to: &out) }
    return out
  }
  public static func < (x: Self, y: Self) -> Bool { (x.a, x.b, x.c, x.d) < (y.a, y.b, y.c, y.d) }

  /// Sum and difference mod 2^256, big-endian: state digests are sums of record hashes (format §9).
  public static func &+ (x: Self, y: Self) -> Self {
    var carry = false
    func add(_ p: UInt64, _ q: UInt64) -> UInt64 {
      let (s, o1) = p.addingReportingOverflow(q)
      let (t, o2) = s.addingReportingOverflow(carry ? 1 : 0)
      carry = o1 || o2
      return t
    }
    let d = add(x.d, y.d)
    let c = add(x.c, y.c)
    let b = add(x.b, y.b)
    return Hash32(add(x.a, y.a), b, c, d)
  }
  public static func &- (x: Self, y: Self) -> Self {
    x &+ Hash32(~y.a, ~y.b, ~y.c, ~y.d) &+ Hash32(0, 0, 0, 1)
  }
}

/// One install: a hash of its two public keys (format §2).
public struct DeviceID: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
}

/// A set of devices: a hash of the first device's public keys (format §2).
public struct PersonID: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
}

/// A named set of rows in a household; random. The zero value is the roster's zone.
public struct ZoneID: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
  public static let roster = ZoneID.zero
}

/// The name of a record, the same on every device.
public struct RecordName: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
}

/// An invite; random.
public struct InviteID: Identifier16 {
  public let raw: Bytes16
  public init(raw: Bytes16) { self.raw = raw }
}

/// One life of one log: renewed before the first write after a restore or copy. Random.
public struct Incarnation: FixedBytes {
  public static let byteCount = 8
  public let value: UInt64
  public init(_ value: UInt64) { self.value = value }
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == 8 else { return nil }
    value = word(bytes, 0)
  }
  public var bytes: [UInt8] {
    var out: [UInt8] = []
    append(value, to: &out)
    return out
  }
  public static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

/// Who wrote: a device in one of its incarnations. Signed entries are numbered per origin and zone.
public struct Origin: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let device: DeviceID
  public let incarnation: Incarnation
  public init(device: DeviceID, incarnation: Incarnation) {
    self.device = device
    self.incarnation = incarnation
  }
  public static func < (a: Self, b: Self) -> Bool { (a.device, a.incarnation) < (b.device, b.incarnation) }
  public var description: String { "\(device.short)/\(hex(incarnation.bytes).prefix(4))" }
}

/// A household: the hash of its Genesis entry.
public typealias HouseholdID = Hash32
/// An epoch: the hash of the entry that began it; the first epoch's is the household's.
public typealias EpochID = Hash32
/// A signed entry: the hash of its signed bytes.
public typealias EntryHash = Hash32

@inline(__always)
func word(_ bytes: [UInt8], _ at: Int) -> UInt64 {
  var value: UInt64 = 0
  for i in at..<at + 8 { value = value << 8 | UInt64(bytes[i]) }
  return value
}

@inline(__always)
func append(_ value: UInt64, to out: inout [UInt8]) {
  for shift in stride(from: 56, through: 0, by: -8) { out.append(UInt8(truncatingIfNeeded: value >> UInt64(shift))) }
}

/// Lower-case hexadecimal.
public func hex(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var out: [UInt8] = []
  for byte in bytes {
    out.append(digits[Int(byte >> 4)])
    out.append(digits[Int(byte & 15)])
  }
  return String(decoding: out, as: UTF8.self)
}

/// The bytes of hexadecimal text, or nil where it is not that.
public func unhex(_ text: some StringProtocol) -> [UInt8]? {
  var out: [UInt8] = []
  var high: UInt8?
  for c in text.utf8 {
    let v: UInt8
    switch c {
    case 48...57: v = c - 48
    case 97...102: v = c - 87
    case 65...70: v = c - 55
    default: return nil
    }
    if let h = high {
      out.append(h << 4 | v)
      high = nil
    } else {
      high = v
    }
  }
  return high == nil ? out : nil
}
