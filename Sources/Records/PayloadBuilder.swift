public import LatchkeyEncoding

/// One entry's worth of a push group, ready to be signed.
public struct PayloadPart: Sendable {
  /// The payload in plain form (format §6).
  public let bytes: [UInt8]
  /// Whether its tables may be compressed.
  public let compress: Bool
  /// How many rows it has of which table, in order of appearance.
  public let rowsByTable: [(table: String, count: Int)]
}

/// Collects what a push group says and writes it column by column.
///
/// Deterministic: the same calls give the same bytes.
///
///     var builder = PayloadBuilder(origin: origin, hlc: hlc)
///     builder.add(
///       table: "meal", record: name, [(.born, .life(nil), .own), (.cell("grams"), .cell(.integer(50)), .own)])
///     let parts = builder.finish()
///     let tie = groupTie(zone: zone, origin: origin, hlc: hlc, payloadHashes: parts.map { payloadHash($0.bytes) })
public struct PayloadBuilder: Sendable {
  public let origin: Origin
  public let hlc: HLC
  /// How many rows were added.
  public private(set) var rowCount = 0

  /// All stamps other than the group's own, which is 0; a part lists those it uses.
  private var stamps: [ListedStamp] = []
  private var stampNumbers: [ListedStamp: UInt32] = [:]
  /// The stamp that was looked up last: rows mostly have few.
  private var latest: (stamp: ListedStamp?, number: UInt32) = (nil, 0)
  private var blocks: [Block] = []
  private var blockNumbers: [BlockKey: Int] = [:]
  private var notes: [Note] = []
  private var sources: [Source] = []

  public init(origin: Origin, hlc: HLC) {
    self.origin = origin
    self.hlc = hlc
  }

  /// Whether nothing was added.
  public var isEmpty: Bool { rowCount == 0 && notes.isEmpty && sources.isEmpty }

  /// Adds one row.
  ///
  /// - Parameters:
  ///   - table: its wire name, 1...1,024 bytes.
  ///   - record: its record name.
  ///   - registers: what is written, each register once, in any order; without any there is nothing to add. An insert
  ///     has `born` and every column. Values are at most ``Value/maximumByteCount``.
  ///   - compress: false for a table whose text outsiders can place: its size must not tell how alike its rows are.
  public mutating func add(
    table: String, record: RecordName, _ registers: [(Register, RegisterValue, StampReference)], compress: Bool = true
  ) {
    guard !registers.isEmpty else { return }
    for (register, value, _) in registers {
      precondition(register.accepts(value), "a register holds a value of its own kind")
    }
    let isAscending = zip(registers, registers.dropFirst()).allSatisfy { $0.0 < $1.0 }
    let sorted = isAscending ? registers : registers.sorted { $0.0 < $1.0 }
    rowCount += 1
    // A payload is bounded, so a very large row is written as several, of different columns.
    var rest = sorted[...]
    var isContinued = false
    while !rest.isEmpty {
      var bytes = 0
      var end = rest.startIndex
      while end < rest.endIndex, end == rest.startIndex || bytes + rest[end].1.byteCount <= Value.maximumByteCount {
        bytes += rest[end].1.byteCount
        end += 1
      }
      let number = blockNumber(table, compress: compress, isContinued: isContinued, rest[..<end])
      add(rest[..<end], to: number, record)
      rest = rest[end...]
      isContinued = true
    }
  }

  /// Adds a note; its stamp is always the group's own.
  public mutating func add(note: Note) { notes.append(note) }

  /// Adds an entry that carried registers come from.
  public mutating func add(source: Source) { sources.append(source) }

  /// The group's parts, in order; none if nothing was added. Sources and notes are in the first.
  ///
  /// - Parameter maximumPartBytes: where a part ends; exceeded only by a single row that is larger.
  public func finish(maximumPartBytes: Int = 1 << 20) -> [PayloadPart] {
    if isEmpty { return [] }
    var plans = plans(compress: true, maximumPartBytes, Plan(compress: true, byteCount: firstOverhead))
    let isFirst = plans.isEmpty
    plans += self.plans(
      compress: false, maximumPartBytes, Plan(compress: false, byteCount: isFirst ? firstOverhead : Plan.overhead))
    if plans.isEmpty { plans.append(Plan(compress: true, byteCount: firstOverhead)) }
    return plans.enumerated().map { index, plan in part(plan, isFirst: index == 0) }
  }
}

// MARK: - Collecting

extension PayloadBuilder {
  /// A stamp as it is listed: nil means the group's.
  fileprivate struct ListedStamp: Hashable, Sendable {
    let hlc: HLC
    let isFilledIn: Bool
    let origin: Origin?
    let tie: UInt64?
    /// Upper bound of its bytes on the wire.
    static let byteCount = 48
  }

  fileprivate struct BlockKey: Hashable, Sendable {
    let table: [UInt8]
    let compress: Bool
    /// Further columns of rows that were counted already.
    let isContinued: Bool
    let registers: [Register]

    init(
      table: String, compress: Bool, isContinued: Bool,
      _ registers: ArraySlice<(Register, RegisterValue, StampReference)>
    ) {
      self.table = Array(table.utf8)
      self.compress = compress
      self.isContinued = isContinued
      self.registers = registers.map(\.0)
    }
  }

  fileprivate struct Column: Sendable {
    var values: [RegisterValue] = []
    var stamps: [UInt32] = []
  }

  fileprivate struct Block: Sendable {
    let key: BlockKey
    let table: String
    var names: [RecordName] = []
    /// Upper bound of each row's bytes on the wire.
    var sizes: [Int] = []
    var columns: [Column]
    /// Upper bound of the bytes that the block takes beside its rows.
    let overhead: Int

    init(_ key: BlockKey) {
      self.key = key
      table = String(decoding: key.table, as: UTF8.self)
      columns = Array(repeating: Column(), count: key.registers.count)
      overhead = 32 + key.table.count + key.registers.reduce(0) { $0 + $1.encoded.count + 20 }
    }
  }

  /// The block of rows with these registers. Rows mostly come in runs, so the newest block is tried first.
  private mutating func blockNumber(
    _ table: String, compress: Bool, isContinued: Bool,
    _ registers: ArraySlice<(Register, RegisterValue, StampReference)>
  ) -> Int {
    if let last = blocks.last, last.key.compress == compress, last.key.isContinued == isContinued,
      sameBytes(last.table, table), last.key.registers.elementsEqual(registers, by: { $0 == $1.0 })
    {
      return blocks.count - 1
    }
    let key = BlockKey(table: table, compress: compress, isContinued: isContinued, registers)
    if let known = blockNumbers[key] { return known }
    blockNumbers[key] = blocks.count
    blocks.append(Block(key))
    return blocks.count - 1
  }

  private mutating func add(
    _ registers: ArraySlice<(Register, RegisterValue, StampReference)>, to number: Int, _ record: RecordName
  ) {
    var size = 16
    for (column, (_, value, reference)) in registers.enumerated() {
      if case .additive(let contribution) = value { _ = self.number(of: .other(contribution.born)) }
      let stamp = self.number(of: reference)
      blocks[number].columns[column].values.append(value)
      blocks[number].columns[column].stamps.append(stamp)
      size += value.byteCount + 9 + (stamp == 0 ? 1 : 3)
    }
    blocks[number].names.append(record)
    blocks[number].sizes.append(size)
  }

  private func listed(_ reference: StampReference) -> ListedStamp? {
    switch reference {
    case .own: return nil
    case .filledIn(let hlc): return ListedStamp(hlc: hlc, isFilledIn: true, origin: nil, tie: nil)
    case .other(let stamp):
      if stamp.hlc == hlc, stamp.origin == origin, stamp.tie == 0, !stamp.isFilledIn { return nil }
      return ListedStamp(
        hlc: stamp.hlc, isFilledIn: stamp.isFilledIn, origin: stamp.origin == origin ? nil : stamp.origin,
        tie: stamp.tie)
    }
  }

  private mutating func number(of reference: StampReference) -> UInt32 {
    guard let stamp = listed(reference) else { return 0 }
    if stamp == latest.stamp { return latest.number }
    if let known = stampNumbers[stamp] {
      latest = (stamp, known)
      return known
    }
    stamps.append(stamp)
    let number = UInt32(stamps.count)
    stampNumbers[stamp] = number
    latest = (stamp, number)
    return number
  }
}

// MARK: - Writing

extension PayloadBuilder {
  /// Which rows a part has, and where its stamps stand.
  fileprivate struct Plan {
    let compress: Bool
    var runs: [(block: Int, rows: Range<Int>)] = []
    /// The stamps listed, in order: numbers of the builder's.
    var stamps: [UInt32] = []
    /// From the builder's number to the index in this part.
    var indexes: [UInt32: UInt64] = [:]
    /// Upper bound of its bytes on the wire.
    var byteCount: Int
    var registerCount = 0

    /// Upper bound of the bytes of an empty payload.
    static let overhead = 64

    init(compress: Bool, byteCount: Int) {
      self.compress = compress
      self.byteCount = byteCount
    }

    func index(_ number: UInt32) -> UInt64 { number == 0 ? 0 : indexes[number] ?? 0 }

    func continuesRun(_ number: Int) -> Bool {
      guard let last = runs.last else { return false }
      return last.block == number && last.rows.count < Payload.maximumRows
    }

    /// Whether a further row keeps the part within its bounds.
    func hasRoom(for number: Int, _ block: Block, _ row: Int, _ used: [UInt32], _ maximumPartBytes: Int) -> Bool {
      let unlisted = used.reduce(0) { indexes[$1] == nil ? $0 + 1 : $0 }
      let bytes = block.sizes[row] + unlisted * ListedStamp.byteCount + (continuesRun(number) ? 0 : block.overhead)
      return byteCount + bytes <= maximumPartBytes
        && registerCount + block.columns.count <= Payload.maximumRegisters
        && stamps.count + unlisted <= Payload.maximumStamps
    }

    mutating func add(_ number: Int, _ block: Block, _ row: Int, _ used: [UInt32]) {
      for stamp in used where indexes[stamp] == nil {
        stamps.append(stamp)
        indexes[stamp] = UInt64(stamps.count)
        byteCount += ListedStamp.byteCount
      }
      if continuesRun(number) {
        runs[runs.count - 1].rows = runs[runs.count - 1].rows.lowerBound..<row + 1
      } else {
        runs.append((number, row..<row + 1))
        byteCount += block.overhead
      }
      byteCount += block.sizes[row]
      registerCount += block.columns.count
    }
  }

  /// Upper bound of the bytes that the first part takes beside its rows.
  private var firstOverhead: Int {
    Plan.overhead + sources.count * 96 + notes.reduce(0) { $0 + 20 + $1.key.utf8.count + $1.value.count }
  }

  /// Cuts the blocks into parts by upper bounds, so that no part is larger than asked for.
  private func plans(compress: Bool, _ maximumPartBytes: Int, _ first: Plan) -> [Plan] {
    var plans: [Plan] = []
    var plan = first
    for (number, block) in blocks.enumerated() where block.key.compress == compress {
      let hasStamps = block.columns.contains { $0.stamps.contains { $0 != 0 } }
      let hasBorns = block.key.registers.contains { if case .additive = $0 { true } else { false } }
      for row in block.names.indices {
        let used = hasStamps || hasBorns ? stampNumbers(block, row) : []
        if !plan.runs.isEmpty, !plan.hasRoom(for: number, block, row, used, maximumPartBytes) {
          plans.append(plan)
          plan = Plan(compress: compress, byteCount: Plan.overhead)
        }
        plan.add(number, block, row, used)
      }
    }
    if !plan.runs.isEmpty { plans.append(plan) }
    return plans
  }

  /// The stamps that a row needs listed.
  private func stampNumbers(_ block: Block, _ row: Int) -> [UInt32] {
    var used: [UInt32] = []
    for column in block.columns {
      let stamp = column.stamps[row]
      if stamp != 0, used.last != stamp { used.append(stamp) }
      if let born = bornNumber(column.values[row]), born != 0 { used.append(born) }
    }
    return used
  }

  private func bornNumber(_ value: RegisterValue) -> UInt32? {
    guard case .additive(let contribution) = value else { return nil }
    return bornNumber(contribution.born)
  }

  private func bornNumber(_ stamp: Stamp) -> UInt32 {
    listed(.other(stamp)).flatMap { stampNumbers[$0] } ?? 0
  }

  private func part(_ plan: Plan, isFirst: Bool) -> PayloadPart {
    var writer = CBORWriter(reserving: plan.byteCount)
    writer.array(5)
    writer.uint(Payload.version)
    writer.array(plan.stamps.count)
    for stamp in plan.stamps { write(stamps[Int(stamp) - 1], to: &writer) }
    let sources = isFirst ? self.sources : []
    writer.array(sources.count)
    for source in sources {
      writer.array(5)
      writer.id(source.zone)
      writer.id(source.origin.device)
      writer.id(source.origin.incarnation)
      writer.uint(source.sequence)
      writer.id(source.hash)
    }
    writer.array(plan.runs.count)
    var rowsByTable: [(table: String, count: Int)] = []
    for run in plan.runs {
      write(blocks[run.block], run.rows, plan, to: &writer)
      if blocks[run.block].key.isContinued { continue }
      let table = blocks[run.block].table
      if let at = rowsByTable.firstIndex(where: { sameBytes($0.table, table) }) {
        rowsByTable[at].count += run.rows.count
      } else {
        rowsByTable.append((table, run.rows.count))
      }
    }
    let notes = isFirst ? self.notes : []
    writer.array(notes.count)
    for note in notes {
      writer.array(3)
      writer.uint(note.kind)
      writer.text(note.key)
      writer.raw(note.value)
    }
    return PayloadPart(bytes: writer.bytes, compress: plan.compress, rowsByTable: rowsByTable)
  }

  private func write(_ stamp: ListedStamp, to writer: inout CBORWriter) {
    writer.array(5)
    writer.uint(stamp.hlc.rawValue)
    writer.bool(stamp.isFilledIn)
    if let origin = stamp.origin {
      writer.id(origin.device)
      writer.id(origin.incarnation)
    } else {
      writer.null()
      writer.null()
    }
    if let tie = stamp.tie { writer.id(Incarnation(tie)) } else { writer.null() }
  }

  private func write(_ block: Block, _ rows: Range<Int>, _ plan: Plan, to writer: inout CBORWriter) {
    writer.array(3)
    writer.text(block.table)
    var names: [UInt8] = []
    names.reserveCapacity(16 * rows.count)
    for name in block.names[rows] { appendPacked(name.raw, to: &names) }
    writer.byteString(names)
    writer.array(block.columns.count)
    for (register, column) in zip(block.key.registers, block.columns) {
      writer.array(3)
      register.write(to: &writer)
      let stamps = column.stamps[rows]
      if let first = stamps.first, stamps.allSatisfy({ $0 == first }) {
        writer.uint(plan.index(first))
      } else {
        writer.array(rows.count)
        for stamp in stamps { writer.uint(plan.index(stamp)) }
      }
      write(column.values[rows], plan, to: &writer)
    }
  }

  private func write(_ values: ArraySlice<RegisterValue>, _ plan: Plan, to writer: inout CBORWriter) {
    let writeBorn = { (stamp: Stamp, writer: inout CBORWriter) in writer.uint(plan.index(bornNumber(stamp))) }
    writer.array(2)
    if values.count > 1, let first = values.first, values.allSatisfy({ $0 == first }) {
      writer.uint(PackedForm.same)
      first.write(to: &writer, born: writeBorn)
    } else if let (form, packed) = pack(values) {
      writer.uint(form)
      writer.byteString(packed)
    } else if values.count == 1, let only = values.first {
      writer.uint(PackedForm.same)
      only.write(to: &writer, born: writeBorn)
    } else {
      writer.uint(PackedForm.each)
      writer.array(values.count)
      for value in values { value.write(to: &writer, born: writeBorn) }
    }
  }

  /// All values as sixteen bytes each, where one form fits all.
  private func pack(_ values: ArraySlice<RegisterValue>) -> (form: UInt64, bytes: [UInt8])? {
    var form: UInt64?
    var out: [UInt8] = []
    for value in values {
      guard case .cell(let cell) = value, let packed = PackedForm.pack(cell), form == nil || form == packed.form else {
        return nil
      }
      if form == nil { out.reserveCapacity(16 * values.count) }
      form = packed.form
      appendPacked(packed.bytes, to: &out)
    }
    return form.map { ($0, out) }
  }
}
