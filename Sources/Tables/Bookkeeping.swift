internal import LatchkeySQLite

/// The tables and triggers that attaching adds to an app's file, all named `lk_…`.
enum Bookkeeping {
  /// The layout's version, in `lk_state`.
  static let version: Int64 = 3

  /// What every attached file has. No column reached by a trigger has a constraint that could fail the app.
  static let schema = """
    CREATE TABLE lk_gate(one INTEGER PRIMARY KEY, applying INTEGER NOT NULL);
    INSERT INTO lk_gate VALUES (1, 0);
    CREATE TABLE lk_state(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE lk_value(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE lk_origin(id INTEGER PRIMARY KEY, device BLOB NOT NULL, incarnation BLOB NOT NULL, UNIQUE (device, incarnation));
    CREATE TABLE lk_table(
      id INTEGER PRIMARY KEY, wire TEXT NOT NULL UNIQUE, name TEXT, columns BLOB NOT NULL, names BLOB, present BLOB, refs BLOB, keys BLOB,
      scan BLOB, live INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0, digest BLOB NOT NULL);
    CREATE TABLE lk_row(
      id INTEGER PRIMARY KEY, record BLOB NOT NULL, tid INTEGER NOT NULL, key, meta BLOB NOT NULL, shown BLOB,
      kept BLOB, hash BLOB, UNIQUE (record, tid));
    CREATE TABLE lk_absent(tid INTEGER NOT NULL, key INTEGER NOT NULL, record BLOB NOT NULL UNIQUE, PRIMARY KEY (tid, key)) WITHOUT ROWID;
    CREATE TABLE lk_after(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, record BLOB NOT NULL, tid INTEGER NOT NULL, key, shown BLOB);
    CREATE TABLE lk_wait(target BLOB NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (target, row)) WITHOUT ROWID;
    CREATE TABLE lk_park(row INTEGER PRIMARY KEY, tid INTEGER NOT NULL, kind INTEGER NOT NULL, detail TEXT, target BLOB);
    CREATE TABLE lk_note(kind INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, stamp BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE TABLE lk_held(
      id INTEGER PRIMARY KEY, due INTEGER NOT NULL, zone BLOB NOT NULL, device BLOB NOT NULL, incarnation BLOB NOT NULL,
      hlc INTEGER NOT NULL, tie INTEGER NOT NULL, sequence INTEGER NOT NULL, payloads BLOB NOT NULL);
    CREATE TABLE lk_journal(
      id INTEGER PRIMARY KEY, at INTEGER NOT NULL, cause INTEGER NOT NULL, tid INTEGER NOT NULL, record BLOB NOT NULL,
      name TEXT, value BLOB NOT NULL, device BLOB, hlc INTEGER, winner BLOB, winner_device BLOB, winner_hlc INTEGER);
    CREATE TABLE lk_trash(
      id INTEGER PRIMARY KEY, at INTEGER NOT NULL, tid INTEGER NOT NULL, record BLOB NOT NULL, device BLOB NOT NULL,
      hlc INTEGER NOT NULL, key TEXT, cells BLOB, UNIQUE (record, tid));
    CREATE INDEX lk_trash_author ON lk_trash(tid, device, hlc);
    CREATE TABLE lk_guard(
      id INTEGER PRIMARY KEY, at INTEGER NOT NULL, tid INTEGER NOT NULL, record BLOB NOT NULL, author BLOB NOT NULL,
      registers BLOB NOT NULL, zone BLOB NOT NULL, device BLOB NOT NULL, incarnation BLOB NOT NULL, sequence INTEGER NOT NULL,
      UNIQUE (record, tid, author));
    CREATE TABLE lk_sent(hlc INTEGER PRIMARY KEY, at INTEGER NOT NULL);
    CREATE TABLE lk_duplicate(
      row INTEGER PRIMARY KEY, tid INTEGER NOT NULL, key BLOB, preferred INTEGER NOT NULL, live INTEGER NOT NULL, canonical BLOB,
      born INTEGER NOT NULL, maker BLOB);
    CREATE INDEX lk_duplicate_key ON lk_duplicate(tid, key) WHERE key IS NOT NULL;
    CREATE INDEX lk_duplicate_canonical ON lk_duplicate(tid, canonical) WHERE canonical IS NOT NULL;
    CREATE TABLE lk_outbox(
      id INTEGER PRIMARY KEY, household BLOB NOT NULL, zone BLOB NOT NULL, name TEXT NOT NULL, bytes BLOB NOT NULL,
      sequence INTEGER NOT NULL, rows BLOB NOT NULL, hlc INTEGER NOT NULL);
    """

  /// The map from a table's keys to records.
  static func map(_ id: Int64, _ shape: TableShape) -> String {
    let keys = shape.key
    // The key columns copy affinity and collation, so that they compare as the app's do and use the index.
    if shape.keyIsRowID {
      return "CREATE TABLE lk_map\(id)(k0 INTEGER PRIMARY KEY, row INTEGER NOT NULL)"
    }
    let columns = keys.enumerated().map { "k\($0) \($1.affinity.declaration) COLLATE \($1.collation)" }
    let primary = keys.indices.map { "k\($0)" }.joined(separator: ", ")
    return
      "CREATE TABLE lk_map\(id)(\(columns.joined(separator: ", ")), row INTEGER NOT NULL, PRIMARY KEY (\(primary))) WITHOUT ROWID"
  }

  /// What the triggers append to. Its columns have no affinity, so that a key stays as it is.
  static func log(_ id: Int64, _ shape: TableShape) -> String {
    let columns = shape.key.indices.map { "k\($0)" } + shape.key.indices.map { "o\($0)" }
    return
      "CREATE TABLE lk_log\(id)(id INTEGER PRIMARY KEY, op INTEGER, ms INTEGER, \(columns.joined(separator: ", ")))"
  }

  /// What a log row says.
  enum Operation: Int64 { case insert = 1, update = 2, delete = 3 }

  /// The triggers of a table begin with `lk_` and one of these: what notes names, inserts, updates, deletes.
  static let triggerLetters = ["c", "i", "u", "d"]

  /// The capture triggers of a table, by name. They name key columns only, so that the app can drop any other; they
  /// only insert, so that no OR clause of the app's statement can make them fail; and a NULL key passes.
  static func triggers(_ id: Int64, _ shape: TableShape) -> [(name: String, sql: String)] {
    let gate = "(SELECT applying FROM lk_gate) IS NOT 1"
    let now = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
    let keys = shape.key.map { quoted($0.name) }
    let table = quoted(shape.name)
    let k = keys.indices.map { "k\($0)" }.joined(separator: ", ")
    let o = keys.indices.map { "o\($0)" }.joined(separator: ", ")
    let new = keys.map { "NEW.\($0)" }.joined(separator: ", ")
    let old = keys.map { "OLD.\($0)" }.joined(separator: ", ")
    let moved = keys.map { "CASE WHEN OLD.\($0) IS NOT NEW.\($0) COLLATE BINARY THEN OLD.\($0) END" }.joined(
      separator: ", ")
    func trigger(_ letter: String, _ event: String, _ columns: String, _ values: String) -> (String, String) {
      let name = "lk_\(letter)\(id)"
      return (
        name,
        "CREATE TRIGGER \(name) AFTER \(event) ON \(table) WHEN \(gate) BEGIN INSERT INTO lk_log\(id)(op, ms, \(columns)) VALUES (\(values)); END"
      )
    }
    // Does nothing: SQLite keeps the list of columns up to date when the app renames one.
    let names = shape.columns.map { quoted($0.name) }.joined(separator: ", ")
    let witness = (
      "lk_c\(id)", "CREATE TRIGGER lk_c\(id) AFTER UPDATE OF \(names) ON \(table) WHEN 0 BEGIN SELECT 1; END"
    )
    return [
      witness,
      trigger("i", "INSERT", k, "\(Operation.insert.rawValue), \(now), \(new)"),
      trigger("u", "UPDATE", "\(k), \(o)", "\(Operation.update.rawValue), \(now), \(new), \(moved)"),
      trigger("d", "DELETE", k, "\(Operation.delete.rawValue), \(now), \(old)"),
    ]
  }
}

extension Affinity {
  var declaration: String {
    switch self {
    case .integer: "INTEGER"
    case .text: "TEXT"
    case .blob: "BLOB"
    case .real: "REAL"
    case .numeric: "NUMERIC"
    }
  }
}
