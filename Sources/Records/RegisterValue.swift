public import LatchkeyEncoding

/// Rows that are one thing, replaced as one: the splits of a transaction (format §5).
public struct RowUnit: Hashable, Sendable {
  /// The record that the rows belong to.
  public let parent: RecordName
  /// How many rows this edit of the unit consists of: all of them show, or none.
  public let rowCount: UInt64

  public init(parent: RecordName, rowCount: UInt64) {
    self.parent = parent
    self.rowCount = rowCount
  }
}

/// That a record is a duplicate of another (format §5).
public struct Alias: Hashable, Sendable {
  /// The record that survives.
  public let canonical: RecordName
  /// Of the key that both had; void once the duplicate has another.
  public let keyHash: Bytes16
  /// Whether the survivor was flagged as preferred.
  public let isPreferred: Bool

  public init(canonical: RecordName, keyHash: Bytes16, isPreferred: Bool) {
    self.canonical = canonical
    self.keyHash = keyHash
    self.isPreferred = isPreferred
  }
}

/// One origin's running contribution to an additive column (format §5).
public struct Contribution: Hashable, Sendable {
  /// The life of the record that it counts from: contributions to earlier lives are void.
  /// In a group that is being built, the group's own stamp is written with tie 0.
  public let born: Stamp
  /// The contribution: an integer or a real.
  public let number: Value

  public init(born: Stamp, number: Value) {
    self.born = born
    self.number = number
  }
}

/// What a register holds.
public enum RegisterValue: Hashable, Sendable {
  /// Of `born` and `tombstone`: the unit that the row belongs to, if any.
  case life(RowUnit?)
  case home(ZoneID)
  indirect case alias(Alias)
  case lend(ZoneID?)
  /// The dead parent because of which the row or reference is hidden; nil: no longer.
  case hide(RecordName?)
  indirect case additive(Contribution)
  case cell(Value)
  /// Of an unknown register: the raw CBOR of its value.
  case raw([UInt8])
}

extension Register {
  /// Whether this register can hold such a value.
  public func accepts(_ value: RegisterValue) -> Bool {
    switch (self, value) {
    case (.born, .life), (.tombstone, .life), (.home, .home), (.alias, .alias), (.lend, .lend), (.hide, .hide),
      (.additive, .additive), (.cell, .cell), (.unknown, .raw):
      true
    case (.born, _), (.tombstone, _), (.home, _), (.alias, _), (.lend, _), (.hide, _), (.additive, _), (.cell, _),
      (.unknown, _):
      false
    }
  }
}

extension RegisterValue {
  /// Bytes on the wire, at most a few less.
  var byteCount: Int {
    switch self {
    case .life(nil), .lend(nil), .hide(nil): 1
    case .life: 27
    case .home, .lend, .hide: 17
    case .alias: 36
    case .additive(let contribution): 4 + contribution.number.byteCount
    case .cell(let value): value.byteCount
    case .raw(let raw): raw.count
    }
  }

  /// Appends the value.
  ///
  /// - Parameter born: appends what stands for the stamp that a contribution counts from.
  func write(to writer: inout CBORWriter, born: (Stamp, inout CBORWriter) -> Void) {
    switch self {
    case .life(nil), .lend(nil), .hide(nil): writer.null()
    case .life(let unit?):
      writer.array(2)
      writer.id(unit.parent)
      writer.uint(unit.rowCount)
    case .home(let zone): writer.id(zone)
    case .alias(let alias):
      writer.array(3)
      writer.id(alias.canonical)
      writer.id(RecordName(raw: alias.keyHash))
      writer.bool(alias.isPreferred)
    case .lend(let zone?): writer.id(zone)
    case .hide(let parent?): writer.id(parent)
    case .additive(let contribution):
      writer.array(2)
      born(contribution.born, &writer)
      contribution.number.write(to: &writer)
    case .cell(let value): value.write(to: &writer)
    case .raw(let raw): writer.raw(raw)
    }
  }

  /// The value with every stamp in full, so that two values are equal iff these bytes are: decides between two values
  /// of one stamp, which an honest device never makes.
  var bytes: [UInt8] {
    var writer = CBORWriter()
    write(to: &writer) { stamp, writer in
      writer.array(5)
      writer.uint(stamp.hlc.rawValue)
      writer.bool(stamp.isFilledIn)
      writer.id(stamp.origin.device)
      writer.id(stamp.origin.incarnation)
      writer.uint(stamp.tie)
    }
    return writer.bytes
  }

  /// Reads the value of a register.
  ///
  /// - Parameter stamps: what an index into the payload's stamps stands for.
  static func read(
    of register: Register, from reader: inout CBORReader, stamps: [Stamp]
  ) throws(CBORError) -> RegisterValue {
    switch register {
    case .cell: return .cell(try Value.read(from: &reader))
    case .born, .tombstone:
      if try reader.null() { return .life(nil) }
      try reader.array(exactly: 2)
      return .life(RowUnit(parent: try reader.id(), rowCount: try reader.uint()))
    case .home: return .home(try reader.id())
    case .alias:
      try reader.array(exactly: 3)
      let canonical: RecordName = try reader.id()
      let key: RecordName = try reader.id()
      return .alias(Alias(canonical: canonical, keyHash: key.raw, isPreferred: try reader.bool()))
    case .lend: return .lend(try reader.null() ? nil : try reader.id())
    case .hide: return .hide(try reader.null() ? nil : try reader.id())
    case .additive:
      try reader.array(exactly: 2)
      let index = try reader.uint(max: stamps.count - 1)
      let number = try Value.read(from: &reader)
      switch number {
      case .integer, .real: return .additive(Contribution(born: stamps[index], number: number))
      case .null, .text, .blob, .reference, .together, .unknown: throw .unexpected("number")
      }
    case .unknown: return .raw(try reader.raw(depth: Value.maximumDepth))
    }
  }
}
