import LatchkeyEncoding

/// Reads one payload, column by column, into rows.
struct PayloadDecoder {
  private var reader: CBORReader
  /// Index 0 is the group's own.
  private var stamps: [Stamp]
  private var registersLeft = Payload.maximumRegisters

  init(_ bytes: [UInt8], own: Stamp) {
    reader = CBORReader(bytes)
    stamps = [own]
  }

  mutating func payload() throws -> Payload {
    let count = try reader.array()
    guard count >= 1 else { throw CBORError.unexpected("array of 5") }
    let version = try reader.uint()
    guard version <= Payload.version else { throw PayloadError.newer(version) }
    guard version == Payload.version, count == 5 else { throw CBORError.unexpected("array of 5") }
    try readStamps()
    let sources = try readSources()
    var changes: [RecordChange] = []
    for _ in 0..<(try reader.array()) { try readBlock(into: &changes) }
    let notes = try readNotes()
    try reader.finish()
    return Payload(
      changes: changes, notes: notes, sources: sources, newest: stamps.reduce(.zero) { max($0, $1.hlc) })
  }

  private mutating func readStamps() throws {
    let own = stamps[0]
    let count = try reader.array(max: Payload.maximumStamps)
    stamps.reserveCapacity(count + 1)
    for _ in 0..<count {
      try reader.array(exactly: 5)
      let hlc = HLC(rawValue: try reader.uint())
      let isFilledIn = try reader.bool()
      let device: DeviceID? = try reader.null() ? nil : try reader.id()
      let incarnation: Incarnation? = try reader.null() ? nil : try reader.id()
      let tie: UInt64? = try reader.null() ? nil : try reader.id(Incarnation.self).value
      let origin: Origin
      switch (device, incarnation) {
      case (nil, nil): origin = own.origin
      case (let device?, let incarnation?):
        guard tie != nil else { throw PayloadError.invalid("the group's tie at another origin's stamp") }
        origin = Origin(device: device, incarnation: incarnation)
      case (nil, _?), (_?, nil): throw PayloadError.invalid("half an origin")
      }
      stamps.append(Stamp(hlc: hlc, isFilledIn: isFilledIn, origin: origin, tie: tie ?? own.tie))
    }
  }

  private mutating func readSources() throws -> [Source] {
    var sources: [Source] = []
    for _ in 0..<(try reader.array(max: 65_536)) {
      try reader.array(exactly: 5)
      let zone: ZoneID = try reader.id()
      let origin = Origin(device: try reader.id(), incarnation: try reader.id())
      sources.append(Source(zone: zone, origin: origin, sequence: try reader.uint(), hash: try reader.id()))
    }
    return sources
  }

  private mutating func readNotes() throws -> [Note] {
    var notes: [Note] = []
    for _ in 0..<(try reader.array()) {
      try reader.array(exactly: 3)
      let kind = try reader.uint()
      let key = try reader.text(max: Register.maximumNameByteCount)
      notes.append(Note(kind: kind, key: key, value: try reader.raw(depth: Value.maximumDepth), stamp: stamps[0]))
    }
    return notes
  }

  private struct Column {
    let register: Register
    /// One for all rows, or one a row.
    let stamps: [Stamp]
    /// One for all rows, or one a row.
    let values: [RegisterValue]

    func entry(_ row: Int) -> RegisterEntry {
      RegisterEntry(register, stamps[stamps.count == 1 ? 0 : row], values[values.count == 1 ? 0 : row])
    }
  }

  private mutating func readBlock(into changes: inout [RecordChange]) throws {
    try reader.array(exactly: 3)
    let table = try reader.text(max: Register.maximumNameByteCount)
    if table.isEmpty { throw PayloadError.invalid("table without a name") }
    let names = try reader.byteString(max: 16 * Payload.maximumRows)
    guard !names.isEmpty, names.count % 16 == 0 else { throw PayloadError.invalid("record names") }
    let rows = names.count / 16
    let columnCount = try reader.array()
    guard columnCount >= 1 else { throw PayloadError.invalid("block without columns") }
    guard columnCount <= registersLeft / rows else {
      throw PayloadError.limit("more than \(Payload.maximumRegisters) registers")
    }
    registersLeft -= columnCount * rows

    var columns: [Column] = []
    columns.reserveCapacity(columnCount)
    for _ in 0..<columnCount {
      let column = try readColumn(rows)
      if let last = columns.last, !(last.register < column.register) {
        throw PayloadError.invalid("columns out of order")
      }
      columns.append(column)
    }
    changes.reserveCapacity(changes.count + rows)
    for row in 0..<rows {
      var entries: [RegisterEntry] = []
      entries.reserveCapacity(columns.count)
      for column in columns { entries.append(column.entry(row)) }
      changes.append(
        RecordChange(
          table: table, record: RecordName(raw: packedName(names, row)), state: RecordState(ascending: entries)))
    }
  }

  private mutating func readColumn(_ rows: Int) throws -> Column {
    try reader.array(exactly: 3)
    let register = try Register.read(from: &reader)
    let columnStamps: [Stamp]
    if try reader.peek() == .array {
      let count = try reader.array()
      guard count == rows else { throw PayloadError.invalid("one stamp a row") }
      var list: [Stamp] = []
      list.reserveCapacity(rows)
      for _ in 0..<rows { list.append(stamps[try reader.uint(max: stamps.count - 1)]) }
      columnStamps = list
    } else {
      columnStamps = [stamps[try reader.uint(max: stamps.count - 1)]]
    }
    return Column(register: register, stamps: columnStamps, values: try readValues(of: register, rows))
  }

  private mutating func readValues(of register: Register, _ rows: Int) throws -> [RegisterValue] {
    try reader.array(exactly: 2)
    let form = try reader.uint()
    switch form {
    case PackedForm.each:
      guard try reader.array() == rows else { throw PayloadError.invalid("one value a row") }
      var values: [RegisterValue] = []
      values.reserveCapacity(rows)
      for _ in 0..<rows { values.append(try RegisterValue.read(of: register, from: &reader, stamps: stamps)) }
      return values
    case PackedForm.same:
      return [try RegisterValue.read(of: register, from: &reader, stamps: stamps)]
    case PackedForm.references, PackedForm.hyphenated, PackedForm.hexadecimal:
      let packed = try reader.byteString(max: 16 * rows)
      guard packed.count == 16 * rows else { throw PayloadError.invalid("16 bytes a row") }
      let values = (0..<rows).map { PackedForm.value(form, packedName(packed, $0)) }
      switch register {
      case .cell: return values.map { .cell($0) }
      case .unknown: return values.map { .raw($0.encoded) }
      case .born, .tombstone, .home, .alias, .lend, .hide, .additive:
        throw PayloadError.invalid("packed values of this register")
      }
    default: throw PayloadError.invalid("form of values")
    }
  }
}
