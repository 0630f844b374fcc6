/// What an object in the store is; its ASCII letter stands in its name and in its envelope (format §3).
public enum ObjectKind: UInt8, Sendable, CaseIterable {
  case head = 0x68  // h
  case segment = 0x6c  // l
  case claim = 0x63  // c
  case invite = 0x69  // i
  case next = 0x6e  // n
  case rosterCopy = 0x72  // r
  case base = 0x62  // b
  case asset = 0x61  // a
  case inbox = 0x78  // x
  case card = 0x64  // d
  case kit = 0x6b  // k

  /// The letter as text.
  public var letter: String { String(UnicodeScalar(rawValue)) }

  /// Largest object of this kind, sealed, in bytes (format §12).
  public var maximumSize: Int {
    switch self {
    case .head: Limits.head
    case .claim, .invite, .card, .kit, .inbox: Limits.invite
    case .segment, .next, .rosterCopy, .base, .asset: Limits.segment
    }
  }
}
