/// One value as SQLite holds it, byte for byte.
///
/// Text is bytes, not `String`: a column may hold NUL characters or bytes that are not UTF-8, and both must survive a
/// trip through Latchkey. Equality of reals is equality of their bits, so `-0.0` differs from `0.0`.
public enum SQLiteValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text([UInt8])
  case blob([UInt8])

  public init(_ text: String) { self = .text(Array(text.utf8)) }

  public static func == (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.integer(let x), .integer(let y)): x == y
    case (.real(let x), .real(let y)): x.bitPattern == y.bitPattern
    case (.text(let x), .text(let y)): x == y
    case (.blob(let x), .blob(let y)): x == y
    case (.null, _), (.integer, _), (.real, _), (.text, _), (.blob, _): false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .integer(let x): hasher.combine(x)
    case .real(let x): hasher.combine(x.bitPattern)
    case .text(let x), .blob(let x): hasher.combine(x)
    }
  }

  public var isNull: Bool { self == .null }

  /// The integer, if it is one.
  public var integer: Int64? { if case .integer(let x) = self { x } else { nil } }

  /// The bytes of a text or blob.
  public var bytes: [UInt8]? {
    switch self {
    case .text(let x), .blob(let x): x
    case .null, .integer, .real: nil
    }
  }

  /// The text, with bytes that are not UTF-8 replaced: for names and messages, never for data.
  public var string: String? { if case .text(let x) = self { String(decoding: x, as: UTF8.self) } else { nil } }
}
