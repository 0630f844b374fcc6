internal import LatchkeyRecords
internal import LatchkeySQLite

/// A column whose values travel.
struct SyncedColumn: Sendable {
  /// Where the reference's values point, in this file.
  struct Reference: Sendable {
    let table: Int64
    /// The parent's column that the values equal; nil for its key.
    let column: String?
    let action: DeleteAction
    /// Values that mean "none".
    let none: [SQLiteValue]
    /// The parent's: by it a value is compared with the parent's key.
    let collation: Collation
  }

  let name: String
  /// Its name on the wire (format §5).
  let wire: String
  /// The column's number in this file's metadata; never reused.
  let number: Int
  let affinity: Affinity
  let collation: Collation
  /// Whether NULL cannot be shown.
  let isRequired: Bool
  let isKey: Bool
  /// What a row without a cell for it shows; nil for an expression that SQLite must evaluate.
  let defaultValue: SQLiteValue?
  /// Where its values point, if that is one table.
  var reference: Reference?
  /// Where they point, if another column of the row says so.
  var choice: Choice?

  /// References that go to the table which another column names.
  struct Choice: Sendable {
    /// Where that column is among the table's.
    let by: Int
    let targets: [(value: SQLiteValue, reference: Reference)]
  }

  var isReference: Bool { reference != nil || choice != nil }

  /// All that its values may point to, each table once.
  var references: [Reference] {
    guard let choice else { return reference.map { [$0] } ?? [] }
    var seen: Set<Int64> = []
    return choice.targets.map(\.reference).filter { seen.insert($0.table).inserted }
  }

  /// Where the value points in a row of the table.
  func reference(in values: [SQLiteValue]) -> Reference? {
    guard let choice else { return reference }
    return choice.targets.first { $0.value == values[choice.by] }?.reference
  }

  /// How it refers to a table's rows, if it may.
  func reference(to table: Int64) -> Reference? { references.first { $0.table == table } }
}

/// A table of a zone as this file knows it.
final class SyncedTable {
  let id: Int64
  /// Its name on the wire (format §5).
  let wire: String
  /// Nil where this file has no such table, or keeps it to itself: records are kept and not shown.
  let shape: TableShape?
  /// All columns that the zone or this table ever had, by number: their names on the wire.
  var columnNames: [String]
  private var numbers: [String: Int] = [:]
  /// How many of them are written down.
  var savedColumnCount = 0
  /// The columns that travel, in declared order.
  var columns: [SyncedColumn]
  /// Where in ``columns`` the key's columns are, in the key's order.
  let key: [Int]
  /// How many columns the key has, also of a table that the app dropped.
  var keyCount: Int
  /// Where in ``columns`` those are that name a record; nil for generated names.
  let identity: [Int]?
  /// Whether the key is an integer of this device only; the origin's travels as a hint (format §5).
  let keyIsLocal: Bool
  let compress: Bool
  /// By what its rows are duplicates; nil if they are not.
  var duplicates: DuplicateRule?
  /// Parents before children, as far as there is an order.
  var rank = 0
  /// Columns of other tables that refer to this one: (table, index of the column).
  var referrers: [(table: SyncedTable, column: Int)] = []

  var name: String { shape?.name ?? wire }

  init(
    id: Int64, wire: String, shape: TableShape?, columnNames: [String], columns: [SyncedColumn], identity: Identity,
    compress: Bool
  ) {
    self.id = id
    self.wire = wire
    self.shape = shape
    self.columnNames = columnNames
    self.columns = columns
    self.compress = compress
    let keyNames = shape?.key.map(\.name) ?? []
    key = keyNames.compactMap { name in columns.firstIndex { $0.name == name } }
    keyCount = key.count
    switch identity {
    case .generated:
      self.identity = nil
      keyIsLocal = shape?.key.count == 1 && shape?.key[0].affinity == .integer
    case .primaryKey:
      self.identity = key
      keyIsLocal = false
    case .columns(let names):
      self.identity = names.compactMap { name in columns.firstIndex { $0.name.lowercased() == name.lowercased() } }
      keyIsLocal =
        shape?.key.count == 1 && shape?.key[0].affinity == .integer
        && !names.contains { $0.lowercased() == keyNames.first?.lowercased() }
    }
  }

  /// The column's number, given if it has none yet.
  func number(of column: String) -> Int {
    // Equal strings need not be equal bytes: the cache may only help to find, never decide.
    if let known = numbers[column], columnNames[known].utf8.elementsEqual(column.utf8) { return known }
    if let known = columnNames.firstIndex(where: { $0.utf8.elementsEqual(column.utf8) }) {
      numbers[column] = known
      return known
    }
    columnNames.append(column)
    numbers[column] = columnNames.count - 1
    return columnNames.count - 1
  }

  /// Where a column's reference points in a record.
  func reference(of column: SyncedColumn, in state: RecordState) -> SyncedColumn.Reference? {
    guard let choice = column.choice else { return column.reference }
    guard let value = state.cell(columns[choice.by].wire)?.plain else { return nil }
    return choice.targets.first { $0.value == value }?.reference
  }

  lazy var indexByNumber: [Int: Int] = Dictionary(uniqueKeysWithValues: columns.enumerated().map { ($1.number, $0) })

  /// Unique keys other than the primary key, and the primary key.
  lazy var uniqueIndexes: [IndexShape] = shape?.indexes.filter(\.isUnique) ?? []
  /// Whether REPLACE can delete a row with another key without a trigger firing.
  lazy var hasSecondaryUnique: Bool = uniqueIndexes.contains { $0.origin != .primaryKey }

  // MARK: Statements

  private var table: String { "main.\(quoted(name))" }
  private var list: String { columns.map { quoted($0.name) }.joined(separator: ", ") }
  private var keyIs: String { key.map { "\(quoted(columns[$0].name)) = ?" }.joined(separator: " AND ") }
  private var keyList: String { key.map { quoted(columns[$0].name) }.joined(separator: ", ") }
  private var mapKeys: [String] { key.indices.map { "k\($0)" } }

  /// One row by key: all travelling columns.
  lazy var selectRow = "SELECT \(list) FROM \(table) WHERE \(keyIs)"
  lazy var selectFirstPage = "SELECT \(list) FROM \(table) ORDER BY \(keyList) LIMIT ?"
  lazy var selectNextPage =
    "SELECT \(list) FROM \(table) WHERE (\(keyList)) > (\(Array(repeating: "?", count: key.count).joined(separator: ", "))) ORDER BY \(keyList) LIMIT ?"
  lazy var deleteRow = "DELETE FROM \(table) WHERE \(keyIs)"
  lazy var mapLookup =
    "SELECT row FROM main.lk_map\(id) WHERE \(mapKeys.map { "\($0) = ?" }.joined(separator: " AND "))"
  lazy var mapInsert =
    "INSERT INTO main.lk_map\(id)(\((mapKeys + ["row"]).joined(separator: ", "))) VALUES (\(Array(repeating: "?", count: key.count + 1).joined(separator: ", ")))"
  lazy var mapDelete = "DELETE FROM main.lk_map\(id) WHERE \(mapKeys.map { "\($0) = ?" }.joined(separator: " AND "))"
  /// The record that a single key stands for.
  lazy var recordByKey = "SELECT r.record FROM main.lk_map\(id) m JOIN main.lk_row r ON r.id = m.row WHERE m.k0 = ?"
  lazy var countRows =
    "SELECT count(*) FROM \(table)"
    + (keyMayBeNull ? " WHERE \(key.map { "\(quoted(columns[$0].name)) IS NOT NULL" }.joined(separator: " AND "))" : "")
  /// Mapped rows that the table no longer has.
  lazy var lostRows =
    "SELECT m.row FROM main.lk_map\(id) m WHERE NOT EXISTS (SELECT 1 FROM \(table) t WHERE \(key.indices.map { "t.\(quoted(columns[key[$0]].name)) = m.k\($0)" }.joined(separator: " AND ")))"
  /// Keys of rows that have no map entry.
  lazy var foundRows =
    "SELECT \(key.map { "t.\(quoted(columns[$0].name))" }.joined(separator: ", ")) FROM \(table) t WHERE NOT EXISTS (SELECT 1 FROM main.lk_map\(id) m WHERE \(key.indices.map { "m.k\($0) = t.\(quoted(columns[key[$0]].name))" }.joined(separator: " AND ")))"

  var keyMayBeNull: Bool { shape.map { !$0.keyIsRowID && !$0.isWithoutRowID } ?? false }

  private var updates: [[Int]: String] = [:]
  private var inserts: [[Int]: String] = [:]

  /// Sets some columns of the row with a key.
  func update(_ indexes: [Int]) -> String {
    if let known = updates[indexes] { return known }
    let sets = indexes.map { "\(quoted(columns[$0].name)) = ?" }.joined(separator: ", ")
    let sql = "UPDATE \(table) SET \(sets) WHERE \(keyIs)"
    updates[indexes] = sql
    return sql
  }

  /// Inserts a row with some columns.
  func insert(_ indexes: [Int]) -> String {
    if let known = inserts[indexes] { return known }
    let names = indexes.map { quoted(columns[$0].name) }.joined(separator: ", ")
    let marks = Array(repeating: "?", count: indexes.count).joined(separator: ", ")
    let sql = "INSERT INTO \(table) (\(names)) VALUES (\(marks))"
    inserts[indexes] = sql
    return sql
  }

  /// Keys of the rows whose column has a value.
  func selectKeys(where column: Int) -> String {
    "SELECT \(keyList) FROM \(table) WHERE \(compared(column)) = ?"
  }
  /// A reference column as it is compared with its parent's key.
  func compared(_ column: Int) -> String {
    let name = quoted(columns[column].name)
    switch columns[column].references.first?.collation {
    case .noCase: return "\(name) COLLATE NOCASE"
    case .rightTrim: return "\(name) COLLATE RTRIM"
    case .binary, nil: return name
    }
  }
  func selectKeysAndValue(_ column: Int) -> String {
    "SELECT \(keyList), \(quoted(columns[column].name)) FROM \(table) WHERE \(quoted(columns[column].name)) IS NOT NULL"
  }

  // MARK: Keys

  func keyValues(_ row: [SQLiteValue]) -> [SQLiteValue] { key.map { row[$0] } }

  /// A key in the form in which SQLite takes two spellings of it for one.
  func folded(_ key: [SQLiteValue]) -> [SQLiteValue] {
    zip(self.key, key).map { index, value in
      switch value {
      case .text(let bytes):
        guard case .text(let folded) = columns[index].collation.fold(.text(bytes)) else { return value }
        return .text(folded)
      case .real(let x): return Int64(exactly: x).map { .integer($0) } ?? value
      case .null, .integer, .blob: return value
      }
    }
  }
}

extension Collation {
  init(name: String) {
    switch name.uppercased() {
    case "NOCASE": self = .noCase
    case "RTRIM": self = .rightTrim
    default: self = .binary
    }
  }
}

extension Affinity {
  /// What a column of this affinity makes of a literal.
  func apply(to value: SQLiteValue) -> SQLiteValue {
    switch (self, value) {
    case (.text, .integer(let x)): return SQLiteValue(String(x))
    case (.text, .real(let x)): return SQLiteValue("\(x)")
    case (.real, .integer(let x)): return .real(Double(x))
    case (.integer, .real(let x)), (.numeric, .real(let x)): return Int64(exactly: x).map { .integer($0) } ?? value
    case (.integer, .text(let bytes)), (.numeric, .text(let bytes)), (.real, .text(let bytes)):
      let text = String(decoding: bytes, as: UTF8.self)
      if self != .real, let integer = Int64(text) { return .integer(integer) }
      guard let real = Double(text), real.isFinite else { return value }
      if self != .real, let integer = Int64(exactly: real) { return .integer(integer) }
      return .real(real)
    case (.blob, _), (_, .null), (_, .blob), (.integer, .integer), (.numeric, .integer), (.real, .real), (.text, .text):
      return value
    }
  }
}
