internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// A record: its name says which only within its table. Honest names are random or hashes, but a member could write the
/// name of somebody's record under another table, and that must not take its place.
struct RecordID: Hashable, Comparable, Sendable {
  let table: Int64
  let name: RecordName

  static func < (a: Self, b: Self) -> Bool { (a.table, a.name) < (b.table, b.name) }
}

/// One record as this file holds it: what is merged, what the table shows of it, and what it does not show.
///
/// Values that are shown are read from the app's table and not stored twice.
final class Row {
  let name: RecordName
  let table: SyncedTable
  /// Its number in `lk_row`; nil until saved.
  var id: Int64?
  /// The key under which the table shows it; nil while it is not shown.
  var key: [SQLiteValue]?
  /// What the table showed last, by column number.
  var shown: FieldHashes = [:]
  /// The target of what a reference column showed last, by column number.
  var targets: FieldHashes = [:]
  var state: RecordState = .empty
  /// Cells that the table does not show, or shows differently, by column number.
  var kept: [Int: Value] = [:]
  /// Its part of the digest; nil unless live.
  var hash: Hash32?
  /// The shown row, in the order of the table's columns.
  var values: [SQLiteValue]?
  /// Whether it was ever stamped or received: else it only has a name.
  var isStamped = false
  /// Whether it was counted as deleted when it was read or saved.
  var isDeletedBefore = false
  /// The key that it gets, while it is being shown.
  var reservedKey: [SQLiteValue]?
  /// What the table showed of a row that was just deleted.
  var formerShown: FieldHashes = [:]
  /// Why it is not shown, as noted in the file.
  var parking: Parking?
  /// The records for which it or one of its references waits, as noted in the file.
  var waits: Set<RecordName> = []
  /// Whether the table showed it when this pass began, or was made to since.
  var wasShown = false
  /// Whether the table's row was taken away for a moment, to let another pass.
  var isOff = false

  init(name: RecordName, table: SyncedTable) {
    self.name = name
    self.table = table
  }

  var born: Stamp? { state.newestBorn }
  var record: RecordID { RecordID(table: table.id, name: name) }

  /// Whether there are values that a column of the table should show and this file does not have.
  func lacksShownValue(in state: RecordState) -> Bool {
    state.cells.contains { $0.value.isMissing && table.indexByNumber[table.number(of: $0.column)] != nil }
  }

  /// Says what a cell's value is where the table shows another.
  func keep(_ value: Value, at column: SyncedColumn) {
    kept[column.number] = value
    guard let entry = state[.cell(column.wire)], entry.value != .cell(value) else { return }
    state = RecordState(
      state.registers.map { $0.register == entry.register ? RegisterEntry($0.register, $0.stamp, .cell(value)) : $0 })
  }
}

/// Why a live record is not shown.
enum Parking: Equatable {
  /// A row that it needs has not arrived, or is itself not shown.
  case waiting(target: RecordName)
  /// A row that it needs was deleted.
  case parentDeleted(target: RecordName)
  /// An older row has the same unique key.
  case unique(by: RecordName)
  /// The schema refuses it.
  case refused(String)
  /// The file has no such table, or keeps it to itself.
  case noTable
  /// A kind of value that this version does not know, in a column that must have one.
  case newerValue
  /// A value over the size that is sent; only rows of this device.
  case tooLarge
  /// The app threw the table's rows away with the table: their values are in the store only.
  case lost
  /// The app made its key NULL here, so that it cannot be told from other rows.
  case keyless
  /// The file's own rows have not been compared with the zone's yet.
  case pairing
  /// It is a duplicate of another record, which is shown.
  case merged(into: RecordName)

  var kind: Int64 {
    switch self {
    case .waiting: 1
    case .parentDeleted: 2
    case .unique: 3
    case .refused: 4
    case .noTable: 5
    case .newerValue: 6
    case .tooLarge: 7
    case .lost: 8
    case .keyless: 9
    case .pairing: 10
    case .merged: 11
    }
  }

  var target: RecordName? {
    switch self {
    case .waiting(let target), .parentDeleted(let target), .unique(let target), .merged(let target): target
    case .refused, .noTable, .newerValue, .tooLarge, .lost, .keyless, .pairing: nil
    }
  }

  init?(kind: Int64, detail: String?, target: RecordName?) {
    switch (kind, target) {
    case (1, let target?): self = .waiting(target: target)
    case (2, let target?): self = .parentDeleted(target: target)
    case (3, let target?): self = .unique(by: target)
    case (4, _): self = .refused(detail ?? "")
    case (5, _): self = .noTable
    case (6, _): self = .newerValue
    case (7, _): self = .tooLarge
    case (8, _): self = .lost
    case (9, _): self = .keyless
    case (10, _): self = .pairing
    case (11, let target?): self = .merged(into: target)
    default: return nil
    }
  }
}

/// How a row's stamps and hashes lie in `lk_row`: about twenty bytes for the first stamp and one byte a column, since most
/// fields of most rows have the same stamp.
///
/// meta: version, stamps (HLC, origin number × 2 + filled in, tie), index + 1 of born's and tombstone's, then per column
/// number index + 1 of its cell's, 0 for none.
/// shown: count, eight bytes per column number, then (column number, eight bytes) per reference.
struct RowCodec {
  struct Meta {
    var born: Stamp?
    var tombstone: Stamp?
    /// By column number.
    var cells: [Stamp?] = []
  }

  static func encode(_ state: RecordState, _ table: SyncedTable, _ number: (Origin) throws -> Int64) rethrows -> [UInt8]
  {
    var stamps: [Stamp] = []
    func index(_ stamp: Stamp?) -> UInt64 {
      guard let stamp else { return 0 }
      if let known = stamps.firstIndex(of: stamp) { return UInt64(known + 1) }
      stamps.append(stamp)
      return UInt64(stamps.count)
    }
    var born: UInt64 = 0
    var tombstone: UInt64 = 0
    var cells = [UInt64](repeating: 0, count: table.columnNames.count)
    for entry in state.registers {
      switch (entry.register, entry.value) {
      case (.born, .life(nil)): born = index(entry.stamp)
      case (.tombstone, .life(nil)): tombstone = index(entry.stamp)
      case (.cell(let name), _):
        let number = table.number(of: name)
        if number >= cells.count { cells.append(contentsOf: repeatElement(0, count: number + 1 - cells.count)) }
        cells[number] = index(entry.stamp)
      case (.born, _), (.tombstone, _), (.home, _), (.alias, _), (.lend, _), (.hide, _), (.additive, _), (.unknown, _):
        break
      }
    }
    var out: [UInt8] = [1]
    out.reserveCapacity(8 + 20 * stamps.count + cells.count)
    out.append(varint: UInt64(stamps.count))
    for stamp in stamps {
      out.append(word: stamp.hlc.rawValue)
      out.append(varint: UInt64(try number(stamp.origin)) << 1 | (stamp.isFilledIn ? 1 : 0))
      out.append(word: stamp.tie)
    }
    out.append(varint: born)
    out.append(varint: tombstone)
    out.append(varint: UInt64(cells.count))
    for cell in cells { out.append(varint: cell) }
    return out
  }

  static func decode(_ bytes: [UInt8], _ origin: (Int64) throws -> Origin) throws -> Meta {
    var reader = ByteReader(bytes)
    guard try reader.byte() == 1 else { throw TablesError.newerFormat(2) }
    var stamps: [Stamp] = []
    for _ in 0..<(try reader.varint()) {
      let hlc = HLC(rawValue: try reader.word())
      let flags = try reader.varint()
      stamps.append(
        Stamp(hlc: hlc, isFilledIn: flags & 1 == 1, origin: try origin(Int64(flags >> 1)), tie: try reader.word()))
    }
    func stamp(_ index: UInt64) throws -> Stamp? {
      if index == 0 { return nil }
      guard index <= UInt64(stamps.count) else { throw TablesError.corrupt("a row's stamps") }
      return stamps[Int(index) - 1]
    }
    var meta = Meta()
    meta.born = try stamp(try reader.varint())
    meta.tombstone = try stamp(try reader.varint())
    let count = Int(try reader.varint())
    guard count <= bytes.count else { throw TablesError.corrupt("a row's stamps") }
    meta.cells.reserveCapacity(count)
    for _ in 0..<count { meta.cells.append(try stamp(try reader.varint())) }
    return meta
  }

  static func encode(shown: FieldHashes, targets: FieldHashes) -> [UInt8] {
    let count = shown.end
    var out: [UInt8] = []
    out.reserveCapacity(2 + 8 * count + 9 * targets.end)
    out.append(varint: UInt64(count))
    for number in 0..<count { out.append(word: shown[number]?.value ?? 0) }
    for number in 0..<targets.end {
      guard let target = targets[number] else { continue }
      out.append(varint: UInt64(number))
      out.append(word: target.value)
    }
    return out
  }

  static func decode(shown bytes: [UInt8], into row: Row) throws {
    var reader = ByteReader(bytes)
    let count = Int(try reader.varint())
    guard count <= bytes.count else { throw TablesError.corrupt("a row's hashes") }
    for number in 0..<count {
      let word = try reader.word()
      if word != 0 { row.shown[number] = FieldHash(value: word) }
    }
    while !reader.isAtEnd {
      let number = Int(try reader.varint())
      guard number < 1 << 20 else { throw TablesError.corrupt("a row's hashes") }
      row.targets[number] = FieldHash(value: try reader.word())
    }
  }
}

/// Reads what ``RowCodec`` wrote. The bytes are this file's own; damage throws.
struct ByteReader {
  private let bytes: [UInt8]
  private var at = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { at >= bytes.count }

  mutating func byte() throws -> UInt8 {
    guard at < bytes.count else { throw TablesError.corrupt("a row's bookkeeping is cut") }
    defer { at += 1 }
    return bytes[at]
  }

  mutating func varint() throws -> UInt64 {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let next = try byte()
      value |= UInt64(next & 0x7f) << shift
      if next < 0x80 { return value }
      shift += 7
      if shift > 63 { throw TablesError.corrupt("a row's bookkeeping") }
    }
  }

  mutating func word() throws -> UInt64 {
    guard bytes.count - at >= 8 else { throw TablesError.corrupt("a row's bookkeeping is cut") }
    var value: UInt64 = 0
    for i in at..<at + 8 { value = value << 8 | UInt64(bytes[i]) }
    at += 8
    return value
  }
}

extension [UInt8] {
  mutating func append(varint value: UInt64) {
    var value = value
    while value >= 0x80 {
      append(UInt8(truncatingIfNeeded: value) | 0x80)
      value >>= 7
    }
    append(UInt8(value))
  }

  mutating func append(word value: UInt64) {
    for shift in stride(from: 56, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: value >> UInt64(shift))) }
  }
}

extension RegisterEntry {
  /// Whether this file no longer has its value.
  var isMissing: Bool {
    if case .cell(let value) = value { value.isMissing } else { false }
  }
}

extension RecordState {
  /// Without those values that this file does not have and the other state brings.
  func recovering(from other: RecordState) -> RecordState {
    guard registers.contains(where: \.isMissing) else { return self }
    return RecordState(registers.filter { !($0.isMissing && other[$0.register]?.stamp == $0.stamp) })
  }
}
