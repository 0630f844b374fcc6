public import LatchkeySQLite

/// What the schema does not say about an app's tables: which rows are the same on two devices, which columns refer to
/// other rows, what stays on this device. Rules are data; the command reads them from a recipe.
public struct Rules: Equatable, Sendable {
  /// By table, as declared in the schema (compared without regard to case, as SQLite does).
  public var tables: [String: TableRules]
  /// Whether rows of others are shown only while no app has the file open: for apps that hold it in memory and write all of it back.
  public var appliesWhenClosed: Bool

  public init(tables: [String: TableRules] = [:], appliesWhenClosed: Bool = false) {
    self.tables = tables
    self.appliesWhenClosed = appliesWhenClosed
  }

  /// No rules: everything is taken from the schema.
  public static let none = Rules()

  subscript(table: String) -> TableRules {
    if let exact = tables[table] { return exact }
    let folded = table.lowercased()
    return tables.keys.sorted().first { $0.lowercased() == folded }.flatMap { tables[$0] } ?? TableRules()
  }
}

/// The rules of one table.
public struct TableRules: Equatable, Sendable {
  /// Nil: by primary key for keys that are not integers, else generated.
  public var identity: Identity?
  /// By column: references that the schema does not declare, or more about those that it does.
  public var references: [String: ReferenceRule]
  /// Whether the table stays on this device.
  public var isLocal: Bool
  /// Columns that stay on this device.
  public var localColumns: [String]
  /// False for tables whose text outsiders can place: their length must not tell what else is in them.
  public var compress: Bool
  /// Columns that a migration which makes the table anew gave another name: former name to name. A hint for this file; what
  /// others know of it they know from the names on the wire.
  public var renamed: [String: String]
  /// Whether the table's rows are such that rows of any zone refer to: currencies, units. Used where part of a file is shared.
  public var isLookup: Bool
  /// The column that refers to the row that a row belongs to. Used where part of a file is shared.
  public var ownedBy: String?
  /// The key by which rows are the same: duplicates show as one row. Rows with NULL in it are nobody's duplicate.
  public var dedup: [DedupColumn]
  /// The column that says which of several duplicates survives: one where it is true; else the one of lowest record name.
  public var preferred: String?
  /// Whether the table has one row, the same on every device: all rows are duplicates.
  public var isSingleton: Bool
  /// Rules of a newer version, as they came: kept and handed on.
  var newer: [String: [UInt8]] = [:]

  public init(
    identity: Identity? = nil, references: [String: ReferenceRule] = [:], isLocal: Bool = false,
    localColumns: [String] = [], compress: Bool = true, renamed: [String: String] = [:], isLookup: Bool = false,
    ownedBy: String? = nil, dedup: [DedupColumn] = [], preferred: String? = nil, isSingleton: Bool = false
  ) {
    self.dedup = dedup
    self.preferred = preferred
    self.isSingleton = isSingleton
    self.identity = identity
    self.references = references
    self.isLocal = isLocal
    self.localColumns = localColumns
    self.compress = compress
    self.renamed = renamed
    self.isLookup = isLookup
    self.ownedBy = ownedBy
  }

  /// The names of rules that came from a newer version and are not followed here, ascending.
  public var rulesOfNewerVersion: [String] { newer.keys.sorted() }
}

/// One column of a key by which rows are duplicates.
public struct DedupColumn: Equatable, Sendable {
  /// How texts are compared. Other values are compared as they are.
  public enum Fold: String, Equatable, Sendable {
    /// Byte by byte.
    case exact
    /// Without white space at both ends.
    case trim
    /// The same, and without regard to case.
    case nocase
  }

  public var column: String
  public var fold: Fold

  public init(_ column: String, fold: Fold = .nocase) {
    self.column = column
    self.fold = fold
  }
}

/// What makes two devices' rows the same record (format §5, record name).
public enum Identity: Equatable, Sendable {
  /// A random name at the first insert, mapped to a key that may differ per device.
  case generated
  /// The primary key's values.
  case primaryKey
  /// The values of these columns.
  case columns([String])
}

/// Where a column's values point.
public struct ReferenceRule: Equatable, Sendable {
  public var target: ReferenceTarget
  /// Nil: what the schema declares, else ``DeleteAction/null`` for a column that may be NULL and ``DeleteAction/keep`` for one that may not.
  public var onDelete: DeleteAction?
  /// Values that mean "none" and travel as they are, such as 0 or -1.
  public var none: [SQLiteValue]

  public init(table: String, onDelete: DeleteAction? = nil, none: [SQLiteValue] = []) {
    self.init(target: .table(table), onDelete: onDelete, none: none)
  }

  public init(target: ReferenceTarget, onDelete: DeleteAction? = nil, none: [SQLiteValue] = []) {
    self.target = target
    self.onDelete = onDelete
    self.none = none
  }
}

/// To which table a reference goes.
public enum ReferenceTarget: Equatable, Sendable {
  case table(String)
  /// To the table that goes with what another column of the same row says; to none if it says anything else.
  case chosen(by: String, [Choice])

  /// One of the tables that a reference may go to.
  public struct Choice: Equatable, Sendable {
    /// What the other column says.
    public var value: SQLiteValue
    public var table: String

    public init(_ value: SQLiteValue, table: String) {
      self.value = value
      self.table = table
    }
  }

  /// The tables, in the order of the rule.
  public var tables: [String] {
    switch self {
    case .table(let table): [table]
    case .chosen(_, let choices): choices.map(\.table)
    }
  }
}

/// What a row shows once the row that it refers to is deleted.
public enum DeleteAction: String, Equatable, Sendable {
  /// The row is hidden with its parent.
  case cascade
  /// The column shows NULL.
  case null
  /// The row waits for its parent: shown NULL if it may be, hidden if not.
  case keep
}
