internal import LatchkeySQLite

/// What a column's declared type makes of values (SQLite, "Datatypes", §3.1).
enum Affinity: Equatable, Sendable {
  case integer, text, blob, real, numeric

  init(declared type: String) {
    let upper = type.uppercased()
    if upper.contains("INT") {
      self = .integer
    } else if upper.contains("CHAR") || upper.contains("CLOB") || upper.contains("TEXT") {
      self = .text
    } else if upper.isEmpty || upper.contains("BLOB") {
      self = .blob
    } else if upper.contains("REAL") || upper.contains("FLOA") || upper.contains("DOUB") {
      self = .real
    } else {
      self = .numeric
    }
  }

  /// Whether a column of this affinity certainly stores `value` as it is.
  func keeps(_ value: SQLiteValue) -> Bool {
    switch value {
    case .null, .blob: true
    case .integer: self == .integer || self == .numeric || self == .blob
    case .real(let x): !x.isNaN && (self == .real || self == .blob || (self != .text && x != x.rounded()))
    case .text: self == .text || self == .blob
    }
  }
}
