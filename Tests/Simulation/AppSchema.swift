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
    let name: String
    var reference: Reference?
    var isRequired = false
    /// Stays on the device.
    var isLocal = false
  }

  struct Table {
    let name: String
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

  /// Parents before children.
  static let tables: [Table] = [
    Table(
      name: "zebrafinAccount",
      columns: [
        Column(name: "id"), Column(name: "uid"), Column(name: "name"), Column(name: "balance"),
        Column(name: "parent", reference: Reference(table: account)), Column(name: "folded", isLocal: true),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
    Table(
      name: "zebrafinCategory",
      columns: [Column(name: "code"), Column(name: "uid"), Column(name: "title"), Column(name: "colour")],
      key: [0], keyIsLocal: false, uid: 1, unique: [[0]]),
    Table(
      name: "zebrafinEntry",
      columns: [
        Column(name: "id"), Column(name: "uid"),
        Column(name: "account", reference: Reference(table: account), isRequired: true),
        Column(name: "category", reference: Reference(table: category)), Column(name: "memo"),
        Column(name: "amount"), Column(name: "receipt"),
      ],
      key: [0], keyIsLocal: true, uid: 1, unique: []),
    Table(
      name: "zebrafinTag",
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

  static let rules = Rules(tables: [
    "zebrafinAccount": TableRules(localColumns: ["folded"]),
    "zebrafinNote": TableRules(references: [
      "about": ReferenceRule(table: "zebrafinEntry", onDelete: .null, none: [.integer(0)])
    ]),
    "zebrafinLocal": TableRules(isLocal: true),
  ])
}
