import LatchkeyEncoding
import LatchkeyRecords
import LatchkeySQLite

/// A column's value in the checks: plain, or the record that it refers to.
enum Field: Hashable, CustomStringConvertible {
  case plain(SQLiteValue)
  case record(RecordName)

  var description: String {
    switch self {
    case .plain(let value): show(value)
    case .record(let name): "→\(name.short)"
    }
  }

  init(_ value: Value) throws {
    switch value {
    case .null: self = .plain(.null)
    case .integer(let x): self = .plain(.integer(x))
    case .real(let x): self = .plain(.real(x))
    case .text(let x): self = .plain(.text(x))
    case .blob(let x): self = .plain(.blob(x))
    case .reference(let name): self = .record(name)
    case .together, .unknown: throw Violation(.capture, "a kind of value that this app cannot have written")
    }
  }
}

/// Where an entry stands.
struct EntryPlace: Hashable, Comparable {
  let origin: Origin
  let sequence: UInt64

  static func < (a: Self, b: Self) -> Bool {
    a.origin == b.origin ? a.sequence < b.sequence : a.origin < b.origin
  }
}

/// One record's change, as it was published.
struct Publication {
  let table: Int
  let record: RecordName
  /// The group's own, or of what is carried the record's newest.
  var stamp: Stamp
  var born: Stamp?
  var deleted: Stamp?
  /// By column index.
  var cells: [Int: (stamp: Stamp, field: Field)] = [:]

  /// - Parameter isRepeated: whether it stands in what was published again because a store had lost it: registers with other stamps were
  ///   counted when they were published first. Nil if there are no others.
  /// - Throws: ``Violation`` for registers that the app's work cannot lead to.
  init?(_ change: RecordChange, own stamp: Stamp, isRepeated: Bool) throws {
    try self.init(change)
    self.stamp = stamp
    // What a migration wrote into its new column counts from the insert of its row.
    func isOwn(_ other: Stamp) throws -> Bool {
      if other == stamp || other.isFilledIn && other.origin == stamp.origin && other < stamp { return true }
      guard isRepeated else { throw Violation(.capture, "a stamp that is not the group's own") }
      return false
    }
    if let written = born, try !isOwn(written) { born = nil }
    if let written = deleted, try !isOwn(written) { deleted = nil }
    cells = try cells.filter { try isOwn($0.value.stamp) }
    if born == nil, deleted == nil, cells.isEmpty { return nil }
  }

  /// All of it, whoever wrote it.
  init(_ change: RecordChange) throws {
    guard let table = AppSchema.tables.firstIndex(where: { $0.name == change.table }) else {
      throw Violation(.capture, "rows of \(change.table) were published")
    }
    guard let newest = change.state.registers.map(\.stamp).max() else {
      throw Violation(.capture, "a change of nothing")
    }
    (stamp, self.table, record) = (newest, table, change.record)
    for entry in change.state.registers {
      switch (entry.register, entry.value) {
      case (.born, _): born = entry.stamp
      case (.tombstone, _): deleted = entry.stamp
      case (.cell(let name), .cell(let value)):
        guard let column = AppSchema.tables[table].columns.firstIndex(where: { $0.name == name }),
          !AppSchema.tables[table].columns[column].isLocal
        else { throw Violation(.capture, "\(change.table).\(name) was published") }
        cells[column] = (entry.stamp, try Field(value))
      case (.home, _), (.alias, _), (.lend, _), (.hide, _), (.additive, _), (.unknown, _), (.cell, _):
        throw Violation(.capture, "an unexpected register \(entry.register)")
      }
    }
  }
}

extension Publication: CustomStringConvertible {
  var description: String {
    let columns = AppSchema.tables[table].columns
    let fields = cells.sorted { $0.key < $1.key }.map {
      "\(columns[$0.key].name)=\($0.value.field)\($0.value.stamp == stamp ? "" : " filled in")"
    }
    let kind = born != nil ? "insert" : deleted != nil ? "delete" : "edit"
    return "\(kind) \(AppSchema.tables[table].name) \(record.short) at \(stamp) \(fields.joined(separator: " "))"
  }
}

/// What all acknowledged work amounts to: a plain fold over everything that was published, independent of the code that
/// merges and shows. (That what is published is what the app did is checked where it is published: ``Baseline``.)
struct Oracle {
  struct Record {
    let table: Int
    var born: Stamp?
    var tombstone: Stamp?
    /// The newest write of each column.
    var cells: [Int: (stamp: Stamp, field: Field)] = [:]

    var isLive: Bool { born.map { born in tombstone.map { born > $0 } ?? true } ?? false }
  }

  private(set) var records: [RecordName: Record] = [:]
  /// Everything that was ever written into one register, each with its stamp.
  private var writes: [Write: Field] = [:]
  /// What every entry says, in the order of sealing.
  private(set) var entries: [(place: EntryPlace, heads: [EntryHash], changes: [Publication])] = []

  private struct Write: Hashable {
    let record: RecordName
    /// Index of the column; -1 for the insert, -2 for the delete.
    let column: Int
    let stamp: Stamp
  }

  mutating func log(_ changes: [Publication], at place: EntryPlace, citing heads: [EntryHash]) {
    entries.append((place, heads, changes))
  }

  /// A change that says what was written before, by whomever: nil if any of it is new.
  ///
  /// - Throws: ``Violation`` if it says something else than was written.
  func carried(_ change: RecordChange) throws -> Publication? {
    let publication = try Publication(change)
    for (write, field) in Oracle.writes(publication) {
      guard let known = writes[write] else { return nil }
      guard known == field else { throw Violation(.fork, "carried otherwise than it was written: \(publication)") }
    }
    return publication
  }

  private static func writes(_ publication: Publication) -> [(Write, Field)] {
    var all: [(Write, Field)] = []
    func add(_ column: Int, _ stamp: Stamp, _ field: Field) {
      all.append((Write(record: publication.record, column: column, stamp: stamp), field))
    }
    if let stamp = publication.born { add(-1, stamp, .plain(.null)) }
    if let stamp = publication.deleted { add(-2, stamp, .plain(.null)) }
    for (column, cell) in publication.cells.sorted(by: { $0.key < $1.key }) { add(column, cell.stamp, cell.field) }
    return all
  }

  /// Whether something of a change is neither in this fold nor outdone by what is.
  func lacks(_ publication: Publication) -> Bool {
    guard let record = records[publication.record] else { return true }
    let floor = max(record.born?.hlc ?? .zero, record.tombstone?.hlc ?? .zero)
    return Oracle.writes(publication).contains { write, _ in
      if writes[write] != nil || floor > write.stamp.hlc { return false }
      switch write.column {
      case -1: return record.born.map { $0 < write.stamp } ?? true
      case -2: return record.tombstone.map { $0 < write.stamp } ?? true
      default: return record.cells[write.column].map { $0.stamp < write.stamp } ?? true
      }
    }
  }

  /// The same for the entries that count alone.
  func counting(_ counts: (EntryPlace, [EntryHash]) throws -> Bool) throws -> Oracle {
    var out = Oracle()
    var marks = Marks()
    for entry in entries where try counts(entry.place, entry.heads) {
      for change in entry.changes { try out.add(change, &marks) }
    }
    return out
  }

  mutating func add(_ publication: Publication, _ marks: inout Marks) throws {
    for (write, field) in Oracle.writes(publication) { writes[write] = field }
    var record = records[publication.record] ?? Record(table: publication.table)
    guard record.table == publication.table else { throw Violation(.capture, "one record in two tables") }
    if let stamp = publication.born {
      if let other = record.born, other.origin != stamp.origin { marks[.sameKeyInserts] += 1 }
      record.born = max(record.born ?? stamp, stamp)
    }
    if let stamp = publication.deleted {
      if record.cells.values.contains(where: { $0.stamp.origin != stamp.origin && $0.stamp > (record.born ?? stamp) }) {
        marks[.deletesAgainstEdits] += 1
      }
      record.tombstone = max(record.tombstone ?? stamp, stamp)
    }
    for (column, (stamp, field)) in publication.cells {
      if stamp.isFilledIn { marks[.filledIn] += 1 }
      if let other = record.cells[column] {
        if other.stamp.origin != stamp.origin { marks[.conflicts] += 1 }
        if other.stamp.hlc == stamp.hlc, other.stamp.origin != stamp.origin { marks[.equalClocks] += 1 }
        if other.stamp > stamp { continue }
        if other.stamp == stamp, other.field != field { throw Violation(.fork, "one stamp, two values") }
      }
      record.cells[column] = (stamp, field)
    }
    records[publication.record] = record
  }

  /// What every device must show: by record, the fields of its row.
  ///
  /// A row is hidden if a row that it requires is hidden, or if an older row (by newest insert, then by name) has its
  /// unique key; a reference that need not be is shown as NULL while its target is hidden.
  func shown() -> [RecordName: (table: Int, fields: [Field?])] {
    var out: [RecordName: (table: Int, fields: [Field?])] = [:]
    for (index, table) in AppSchema.tables.enumerated() {
      var candidates = records.filter { $0.value.table == index && $0.value.isLive }.map { ($0.key, $0.value) }
      candidates.sort { a, b in
        guard let x = a.1.born, let y = b.1.born, x != y else { return a.0 < b.0 }
        return x < y
      }
      let inTable = Set(candidates.map(\.0))
      var taken = table.unique.map { _ in Set<[Field]>() }
      candidates: for (name, record) in candidates {
        // What was written before the newest insert or delete is void.
        let floor = max(record.born?.hlc ?? .zero, record.tombstone?.hlc ?? .zero)
        // Nil where nobody has written: what is shown there is the schema's affair.
        var fields: [Field?] = []
        for (column, declared) in table.columns.enumerated() {
          let cell = record.cells[column]
          var field = cell.flatMap { $0.stamp.hlc >= floor ? $0.field : nil }
          if case .record(let target) = field, let reference = declared.reference {
            let isShown = reference.table == index ? inTable.contains(target) : out[target] != nil
            if !isShown {
              if declared.isRequired { continue candidates }
              field = .plain(.null)
            }
          }
          fields.append(field)
        }
        let uniques = table.unique.map { $0.map { fields[$0] ?? .plain(.null) } }
        let blocked = uniques.enumerated().contains { at, key in
          !key.contains(.plain(.null)) && taken[at].contains(key)
        }
        if blocked { continue }
        for (at, key) in uniques.enumerated() { taken[at].insert(key) }
        out[name] = (index, fields)
      }
    }
    return out
  }
}

/// What one device's tables showed when Latchkey last looked, by record: whatever differs since is the app's work, and
/// exactly that must be published.
struct Baseline {
  /// A field is nil if the file does not have the column, or only since Latchkey last looked.
  private var rows: [RecordName: (table: Int, fields: [Field?])] = [:]
  private var view: AppView?

  /// Nothing shown.
  init(view: AppView? = nil) { self.view = view }

  /// - Throws: ``Violation`` where a row has no record, or refers to a row that is not there.
  init(_ snapshot: Snapshot) throws {
    view = snapshot.view
    var keys: [[SQLiteValue: RecordName]] = []
    for (index, table) in AppSchema.tables.enumerated() {
      var known: [SQLiteValue: RecordName] = [:]
      for row in snapshot.tables[index] ?? [] where table.key.count == 1 {
        known[row[table.key[0]]] = row.record
      }
      keys.append(known)
    }
    for (index, table) in AppSchema.tables.enumerated() {
      for row in snapshot.tables[index] ?? [] {
        guard let record = row.record else {
          throw Violation(.capture, "\(table.name) \(show(row[table.uid])) has no record after a pass")
        }
        var fields: [Field?] = []
        for (column, declared) in table.columns.enumerated() {
          guard let value = row.values[column] else {
            fields.append(nil)
            continue
          }
          guard let reference = declared.reference, !value.isNull, value != reference.none else {
            fields.append(.plain(value))
            continue
          }
          guard let target = keys[reference.table][value] else {
            throw Violation(.references, "\(table.name).\(declared.name) shows \(show(value)), which is not there")
          }
          fields.append(.record(target))
        }
        if rows.updateValue((index, fields), forKey: record) != nil {
          throw Violation(.capture, "one record in two rows of \(table.name)")
        }
      }
    }
  }

  /// Takes in what was published of the difference.
  ///
  /// - Throws: ``Violation`` for what nobody wrote: a delete of what was not shown, a field that has not changed.
  mutating func publish(_ publication: Publication) throws {
    let table = AppSchema.tables[publication.table]
    if publication.deleted != nil, publication.born == nil {
      guard rows.removeValue(forKey: publication.record) != nil else {
        throw Violation(.capture, "the delete of a row of \(table.name) that was not shown")
      }
      return
    }
    if publication.born != nil {
      var fields = [Field?](repeating: .plain(.null), count: table.columns.count)
      for column in fields.indices where view?.has(publication.table, column) == false { fields[column] = nil }
      for (column, cell) in publication.cells { fields[column] = cell.field }
      rows[publication.record] = (publication.table, fields)
      return
    }
    guard var row = rows[publication.record] else {
      throw Violation(.capture, "an edit of a row of \(table.name) that was not shown")
    }
    for (column, field) in publication.cells.map({ ($0.key, $0.value.field) }).sorted(by: { $0.0 < $1.0 }) {
      if row.fields[column] == field {
        throw Violation(.capture, "\(table.name).\(table.columns[column].name) was published, and nobody changed it")
      }
      row.fields[column] = field
    }
    rows[publication.record] = row
  }

  /// Takes in what Latchkey itself changed in the tables while the app's other changes are still to be published: rows
  /// that became free to be shown, rows that gave way, references that are shown otherwise.
  mutating func follow(from before: Snapshot, to after: Snapshot) throws {
    var keys: [[SQLiteValue: RecordName]] = []
    for (index, table) in AppSchema.tables.enumerated() {
      var known: [SQLiteValue: RecordName] = [:]
      for row in after.tables[index] ?? [] where table.key.count == 1 { known[row[table.key[0]]] = row.record }
      keys.append(known)
    }
    for (index, table) in AppSchema.tables.enumerated() {
      var former: [SQLiteValue: Snapshot.Row] = [:]
      for row in before.tables[index] ?? [] { former[row[table.uid]] = row }
      for row in after.tables[index] ?? [] {
        let old = former.removeValue(forKey: row[table.uid])
        guard let record = row.record, old?.values != row.values else { continue }
        var fields = rows[record]?.fields ?? [Field?](repeating: nil, count: table.columns.count)
        for (column, declared) in table.columns.enumerated() where old?.values[column] != row.values[column] {
          guard let value = row.values[column] else { continue }
          fields[column] = .plain(value)
          if let reference = declared.reference, !value.isNull, let target = keys[reference.table][value] {
            fields[column] = .record(target)
          }
        }
        rows[record] = (index, fields)
      }
      for row in former.values { if let record = row.record { rows[record] = nil } }
    }
  }

  /// What the app's next version does to the rows: columns go, and what stands in new ones is not looked at before
  /// Latchkey has.
  mutating func migrate(to view: AppView) {
    let former = self.view
    self.view = view
    rows = rows.mapValues { table, fields in
      (
        table,
        fields.enumerated().map { column, field in
          view.has(table, column) && former?.has(table, column) != false ? field : nil
        }
      )
    }
  }

  /// What is shown of another device's row is compared by record.
  /// - Parameter lost: columns whose values went with the column, once: they may be as nobody has written them.
  func difference(from shown: [RecordName: (table: Int, fields: [Field?])], lost: Set<[Int]>) -> String? {
    for (record, row) in rows.sorted(by: { $0.key < $1.key }) {
      let table = AppSchema.tables[row.table]
      guard let wanted = shown[record] else {
        return "\(table.name) \(words(row.fields)) is shown and should not be"
      }
      for (column, declared) in table.columns.enumerated() {
        if declared.isLocal || (table.keyIsLocal && table.key.contains(column)) { continue }
        let unwritten = Field.plain(declared.defaultValue)
        guard let field = row.fields[column], field != wanted.fields[column] ?? unwritten else { continue }
        if lost.contains([row.table, column]), field == unwritten { continue }
        return "\(table.name).\(declared.name) of \(words(row.fields)) should be \(words([wanted.fields[column]]))"
      }
    }
    for (record, row) in shown.sorted(by: { $0.key < $1.key })
    where rows[record] == nil && view?.tables[row.table] != nil {
      return "\(AppSchema.tables[row.table].name) \(words(row.fields)) is not shown"
    }
    return nil
  }

  private func words(_ fields: [Field?]) -> String {
    fields.map { $0?.description ?? "-" }.joined(separator: "|")
  }

  /// What the rows say, in the form in which a snapshot says it. A reference to what is gone says nothing.
  func meaning() -> Meaning {
    var out = Meaning()
    for table in AppSchema.tables.indices where view.map({ $0.tables[table] == nil }) ?? false {
      out.leaveOut(table: table)
    }
    for row in rows.values {
      let table = AppSchema.tables[row.table]
      guard case .plain(let uid) = row.fields[table.uid] else { continue }
      var fields: [SQLiteValue?] = []
      for (column, declared) in table.columns.enumerated() {
        if declared.isLocal || (table.keyIsLocal && table.key.contains(column)) { continue }
        switch row.fields[column] {
        case nil: fields.append(nil)
        case .plain(let value)?: fields.append(value)
        case .record(let name)?:
          guard let target = rows[name], case .plain(let value) = target.fields[AppSchema.tables[target.table].uid]
          else {
            fields.append(.null)
            continue
          }
          fields.append(value)
        }
      }
      out.add(table: row.table, uid: uid, fields)
    }
    return out
  }
}
