public import LatchkeyEncoding

/// One register of one record.
public struct RegisterEntry: Hashable, Sendable {
  public let register: Register
  public let stamp: Stamp
  public let value: RegisterValue

  public init(_ register: Register, _ stamp: Stamp, _ value: RegisterValue) {
    self.register = register
    self.stamp = stamp
    self.value = value
  }

  /// The order by which one of two writes of the same register wins (format §5). Total: of two entries of one register,
  /// unless they are equal, one is newer.
  func isNewer(than other: RegisterEntry) -> Bool {
    #if LATCHKEY_MUTATIONS
      if Mutation.isOn(.tieBreak), stamp.hlc == other.stamp.hlc, stamp != other.stamp { return false }
    #endif
    if case .additive(let mine) = value, case .additive(let theirs) = other.value, mine.born != theirs.born {
      // Counted from a later life first: a fork may stamp them the other way round.
      return mine.born > theirs.born
    }
    if stamp != other.stamp { return stamp > other.stamp }
    return value != other.value && other.value.bytes.lexicographicallyPrecedes(value.bytes)
  }
}

/// What is known of one record: its registers, in order, each with its newest stamp.
///
/// Merging is a join: commutative, associative and idempotent, so that the order, number and batching of arrivals
/// cannot matter. The state is always in normal form: what an insert or delete has made void is not in it, and comes
/// back by no merge, because what voids it never leaves.
public struct RecordState: Hashable, Sendable {
  /// The registers in ascending order, each once.
  public let registers: [RegisterEntry]

  /// Nothing known.
  public static let empty = RecordState(normal: [])

  private init(normal registers: [RegisterEntry]) { self.registers = registers }

  /// Of entries in any order; of several for one register the newest counts.
  public init(_ entries: [RegisterEntry]) {
    let sorted = entries.sorted { a, b in a.register != b.register ? a.register < b.register : b.isNewer(than: a) }
    var newest: [RegisterEntry] = []
    newest.reserveCapacity(sorted.count)
    for entry in sorted {
      if let last = newest.last, last.register == entry.register { newest.removeLast() }
      newest.append(entry)
    }
    self.init(ascending: newest)
  }

  /// Of entries in ascending order of distinct registers.
  init(ascending entries: [RegisterEntry]) {
    self.init(normal: RecordState.withoutVoid(entries))
  }

  public var isEmpty: Bool { registers.isEmpty }

  public subscript(register: Register) -> RegisterEntry? {
    var low = 0
    var high = registers.count
    while low < high {
      let middle = (low + high) / 2
      if registers[middle].register < register { low = middle + 1 } else { high = middle }
    }
    guard low < registers.count, registers[low].register == register else { return nil }
    return registers[low]
  }

  /// The join of two states. (When called as `mine.merging(theirs)` the result is the same as the other way round.)
  public func merging(_ other: RecordState) -> RecordState {
    if registers.isEmpty { return other }
    if other.registers.isEmpty { return self }
    var out: [RegisterEntry] = []
    out.reserveCapacity(max(registers.count, other.registers.count))
    var i = 0
    var j = 0
    while i < registers.count, j < other.registers.count {
      let mine = registers[i].register
      let theirs = other.registers[j].register
      if mine == theirs {
        out.append(other.registers[j].isNewer(than: registers[i]) ? other.registers[j] : registers[i])
        i += 1
        j += 1
      } else if mine < theirs {
        out.append(registers[i])
        i += 1
      } else {
        out.append(other.registers[j])
        j += 1
      }
    }
    out.append(contentsOf: registers[i...])
    out.append(contentsOf: other.registers[j...])
    return RecordState(ascending: out)
  }

  /// Drops what is void (format §5, "Live").
  ///
  /// That this commutes with merging rests on two things: the floor only rises, and whatever is older than a void entry
  /// of the same register is void too (HLC comes first in the order of cells, the born counted from in that of
  /// contributions). A filled-in cell has the HLC of its `born`, so the same comparison serves it.
  private static func withoutVoid(_ entries: [RegisterEntry]) -> [RegisterEntry] {
    var born: Stamp?
    var floor: HLC?
    // The keys of born and tombstone are the two least.
    for entry in entries.prefix(2) {
      switch entry.register {
      case .born:
        born = entry.stamp
        floor = entry.stamp.hlc
      case .tombstone: floor = max(floor ?? .zero, entry.stamp.hlc)
      case .home, .alias, .lend, .hide, .additive, .cell, .unknown: break
      }
    }
    guard let floor else { return entries }
    func isVoid(_ entry: RegisterEntry) -> Bool {
      switch entry.value {
      case .cell: return entry.stamp.hlc < floor
      case .additive(let contribution):
        guard let born else { return false }
        return contribution.born < born
      case .life, .home, .alias, .lend, .hide, .raw: return false
      }
    }
    return entries.contains(where: isVoid) ? entries.filter { !isVoid($0) } : entries
  }
}

extension RecordState {
  /// The stamp of the newest insert, if one has arrived.
  public var newestBorn: Stamp? {
    guard let first = registers.first, first.register == .born else { return nil }
    return first.stamp
  }

  /// The stamp of the newest delete.
  public var newestTombstone: Stamp? {
    registers.prefix(2).first { $0.register == .tombstone }?.stamp
  }

  /// Whether the record exists: its newest insert is newer than its newest delete. An edit never revives a record.
  public var isLive: Bool {
    guard let born = newestBorn else { return false }
    guard let tombstone = newestTombstone else { return true }
    return born > tombstone
  }

  /// The columns, in order, each with its stamp and value.
  public var cells: [(column: String, stamp: Stamp, value: Value)] {
    registers.compactMap { entry in
      guard case .cell(let column) = entry.register, case .cell(let value) = entry.value else { return nil }
      return (column, entry.stamp, value)
    }
  }

  /// The value of a column; nil if the record has none (which is not null).
  public func cell(_ column: String) -> Value? {
    guard case .cell(let value)? = self[.cell(column)]?.value else { return nil }
    return value
  }

  /// The zone that the record belongs to, where it says so; else that of its insert.
  public var home: ZoneID? {
    guard case .home(let zone)? = self[.home]?.value else { return nil }
    return zone
  }

  /// The names of the additive columns that have contributions to the present life.
  public var additiveColumns: [String] {
    var out: [String] = []
    for entry in registers {
      guard case .additive(let column, _) = entry.register, case .additive(let contribution) = entry.value,
        contribution.born == newestBorn
      else { continue }
      if let last = out.last, sameBytes(last, column) { continue }
      out.append(column)
    }
    return out
  }

  /// The sum of all origins' contributions to the present life; nil if there is none.
  ///
  /// Integers add up to an integer while it fits in 64 bits, else to the nearest real. Contributions are added in the
  /// order of their registers, so that rounding is the same on every device.
  public func sum(of column: String) -> Value? {
    var total: Value?
    for entry in registers {
      guard case .additive(let name, _) = entry.register, sameBytes(name, column),
        case .additive(let contribution) = entry.value, contribution.born == newestBorn
      else { continue }
      total = total.map { plus($0, contribution.number) } ?? contribution.number
    }
    return total
  }
}

private func plus(_ a: Value, _ b: Value) -> Value {
  func real(_ value: Value) -> Double {
    switch value {
    case .integer(let integer): Double(integer)
    case .real(let real): real
    case .null, .text, .blob, .reference, .together, .unknown: 0
    }
  }
  if case .integer(let x) = a, case .integer(let y) = b {
    let (sum, overflow) = x.addingReportingOverflow(y)
    if !overflow { return .integer(sum) }
  }
  return .real(real(a) + real(b))
}
