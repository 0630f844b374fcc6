import LatchkeySQLite
import LatchkeyTables

/// The app of the simulated world: what it declares, and what the checks know of it.
///
/// Every name that could show in a store carries ``AppSchema/canary``; so does every text value.
enum AppSchema {
  /// Eight bytes that stand in all texts and names, and that no ciphertext contains but by a chance of 2^-64 a byte.
  static let canary = "zebrafin"

  /// Where a column's values point.
  struct Reference {
    /// Index in ``tables``.
    let table: Int
    /// What "none" is written as, beside NULL.
    var none: SQLiteValue?
  }

  struct Column {
    /// The first name, which it has between devices.
    let name: String
    /// What later versions of the app call it.
    var laterName: String?
    var reference: Reference?
    var isRequired = false
    /// Stays on the device.
    var isLocal = false
    /// What a row without a value for it shows.
    var defaultValue: SQLiteValue = .null
  }

  struct Table {
    /// The first name, which it has between devices.
    let name: String
    /// What later versions of the app call it.
    var laterName: String?
    /// Whether only later versions of the app have it.
    var isLater = false
    let columns: [Column]
    /// Indexes of the key's columns.
    let key: [Int]
    /// Whether the key is an integer of each device's own, which is no part of what a row says.
    var keyIsLocal: Bool
    /// Index of the column that no two inserts share.
    let uid: Int
    /// Sets of columns that are unique, the key of rows named by key included.
    let unique: [[Int]]
  }

  static let account = 0
  static let category = 1
  static let entry = 2
  static let tag = 3
  static let link = 4
  static let note = 5
  static let extra = 6

  /// Parents before children.
  static let tables: [Table] = [
    Table(
      name: "zebrafinAccount",
      columns: [
        Column(name: "id"), Column(name: "uid"), Column(name: "name"), Column(name: "balance"),
        Column(name: "parent", reference: Reference(table: account)), Column(name: "folded", isLocal: true),
        Column(name: "mood", defaultValue: .integer(7)),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
    Table(
      name: "zebrafinCategory",
      columns: [
        Column(name: "code"), Column(name: "uid"), Column(name: "title", laterName: "caption"), Column(name: "colour"),
      ],
      key: [0], keyIsLocal: false, uid: 1, unique: [[0]]),
    Table(
      name: "zebrafinEntry",
      columns: [
        Column(name: "id"), Column(name: "uid"),
        Column(name: "account", laterName: "owner", reference: Reference(table: account), isRequired: true),
        Column(name: "category", reference: Reference(table: category)), Column(name: "memo"),
        Column(name: "amount"), Column(name: "receipt"),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
    Table(
      name: "zebrafinTag", laterName: "zebrafinLabel",
      columns: [Column(name: "id"), Column(name: "uid"), Column(name: "label"), Column(name: "shade")],
      key: [0], keyIsLocal: true, uid: 1, unique: [[2]]),
    Table(
      name: "zebrafinLink",
      columns: [
        Column(name: "entry", reference: Reference(table: entry), isRequired: true),
        Column(name: "tag", reference: Reference(table: tag), isRequired: true), Column(name: "uid"),
        Column(name: "weight"),
      ],
      key: [0, 1], keyIsLocal: false, uid: 2, unique: [[0, 1]]),
    Table(
      name: "zebrafinNote",
      columns: [
        Column(name: "id"), Column(name: "uid"),
        Column(name: "about", reference: Reference(table: entry, none: .integer(0))), Column(name: "body"),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
    Table(
      name: "zebrafinExtra", isLater: true,
      columns: [
        Column(name: "id"), Column(name: "uid"), Column(name: "entry", reference: Reference(table: entry)),
        Column(name: "body"),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
  ]

  /// As an app declares it; the last table never syncs.
  static let sql = """
    CREATE TABLE zebrafinAccount(
      id INTEGER PRIMARY KEY, uid TEXT NOT NULL, name TEXT, balance INTEGER,
      parent INTEGER REFERENCES zebrafinAccount(id) ON UPDATE CASCADE ON DELETE SET NULL, folded INTEGER DEFAULT 0);
    CREATE TABLE zebrafinCategory(code TEXT PRIMARY KEY NOT NULL, uid TEXT NOT NULL, title TEXT, colour);
    CREATE TABLE zebrafinEntry(
      id INTEGER PRIMARY KEY, uid TEXT NOT NULL,
      account INTEGER NOT NULL REFERENCES zebrafinAccount(id) ON UPDATE CASCADE ON DELETE CASCADE,
      category TEXT REFERENCES zebrafinCategory(code) ON UPDATE CASCADE ON DELETE SET NULL,
      memo TEXT, amount REAL, receipt BLOB);
    CREATE TABLE zebrafinTag(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL, label TEXT UNIQUE, shade);
    CREATE TABLE zebrafinLink(
      entry INTEGER NOT NULL REFERENCES zebrafinEntry(id) ON UPDATE CASCADE ON DELETE CASCADE,
      tag INTEGER NOT NULL REFERENCES zebrafinTag(id) ON UPDATE CASCADE ON DELETE CASCADE,
      uid TEXT NOT NULL, weight INTEGER, PRIMARY KEY (entry, tag)) WITHOUT ROWID;
    CREATE TABLE zebrafinNote(id INTEGER PRIMARY KEY, uid TEXT NOT NULL, about INTEGER, body TEXT);
    CREATE TABLE zebrafinLocal(id INTEGER PRIMARY KEY, secret TEXT);
    """

  /// What the app's later versions do to the schema, one after the other.
  enum Migration: CaseIterable {
    case add, fill, renameColumn, drop, create, renameTable, rebuild, renameReference, addAgain

    var sql: String {
      switch self {
      case .add: "ALTER TABLE zebrafinAccount ADD COLUMN mood INTEGER DEFAULT 7"
      case .fill: "UPDATE zebrafinAccount SET mood = 3 WHERE balance IS NULL"
      case .renameColumn: "ALTER TABLE zebrafinCategory RENAME COLUMN title TO caption"
      case .drop: "ALTER TABLE zebrafinEntry DROP COLUMN receipt"
      case .create:
        """
        CREATE TABLE zebrafinExtra(
          id INTEGER PRIMARY KEY, uid TEXT NOT NULL,
          entry INTEGER REFERENCES zebrafinEntry(id) ON UPDATE CASCADE ON DELETE SET NULL, body TEXT)
        """
      case .renameTable: "ALTER TABLE zebrafinTag RENAME TO zebrafinLabel"
      case .rebuild:
        """
        CREATE TABLE zebrafinNew(id INTEGER PRIMARY KEY, body TEXT, about INTEGER, uid TEXT NOT NULL);
        INSERT INTO zebrafinNew SELECT id, body, about, uid FROM zebrafinNote;
        DROP TABLE zebrafinNote;
        ALTER TABLE zebrafinNew RENAME TO zebrafinNote
        """
      case .renameReference: "ALTER TABLE zebrafinEntry RENAME COLUMN account TO owner"
      case .addAgain: "ALTER TABLE zebrafinEntry ADD COLUMN receipt BLOB"
      }
    }

    /// What must have gone before.
    var needs: Migration? {
      switch self {
      case .fill: .add
      case .addAgain: .drop
      case .add, .renameColumn, .drop, .create, .renameTable, .rebuild, .renameReference: nil
      }
    }
  }

  static let rules = Rules(tables: [
    "zebrafinAccount": TableRules(localColumns: ["folded"]),
    "zebrafinNote": TableRules(references: [
      "about": ReferenceRule(table: "zebrafinEntry", onDelete: .null, none: [.integer(0)])
    ]),
    "zebrafinLocal": TableRules(isLocal: true),
  ])
}
