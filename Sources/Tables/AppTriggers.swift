internal import LatchkeySQLite

/// The app's own triggers, by what must become of them while rows from other devices are written.
///
/// A trigger that writes a table that syncs must not run again: what it did arrives as a record of its own. One that
/// only keeps local tables (an index for searching, an audit trail) must run, or they would miss those rows. Which is
/// which is found with SQLite's authorizer, not guessed from the text; a trigger that does both is left out.
struct AppTriggers: Equatable {
  struct Trigger: Equatable {
    let name: String
    let sql: String
    /// Its place in the schema, which a dump follows.
    let place: Int64
  }

  /// Those that must not run.
  var suppressed: [Trigger] = []
  /// Whether there are others, which must.
  var hasOthers = false

  static func read(_ connection: Connection, synced: Set<String>) throws -> AppTriggers {
    let all = try connection.rows(
      "SELECT name, sql, tbl_name, rowid FROM main.sqlite_schema WHERE type = 'trigger' AND name NOT GLOB 'lk_*' ORDER BY rowid"
    )
    if all.isEmpty { return AppTriggers() }
    var harmful: Set<String> = []
    var broken: Set<String> = []
    for table in try connection.listedTables() where table.kind == .table {
      guard let shape = try connection.shape(of: table.name) else { continue }
      let name = quoted(table.name)
      let sets = shape.columns.filter { !$0.isGenerated }.map { "\(quoted($0.name)) = \(quoted($0.name))" }.joined(
        separator: ", ")
      for sql in [
        "INSERT INTO main.\(name) DEFAULT VALUES", "UPDATE main.\(name) SET \(sets)", "DELETE FROM main.\(name)",
      ] {
        do {
          for write in try connection.writes(of: sql) {
            if let trigger = write.trigger, synced.contains(write.table.lowercased()) { harmful.insert(trigger) }
          }
        } catch { broken.insert(table.name) }
      }
    }
    var out = AppTriggers()
    for row in all {
      guard let name = row[0].string, let sql = row[1].string, let table = row[2].string, let place = row[3].integer
      else { continue }
      // What cannot even be prepared would make every row fail.
      if harmful.contains(name) || broken.contains(table) {
        out.suppressed.append(Trigger(name: name, sql: sql, place: place))
      } else {
        out.hasOthers = true
      }
    }
    return out
  }
}

extension Replica {
  /// Runs `body`, which writes the app's tables, so that nothing of it is captured and no app trigger repeats what
  /// arrives anyway. Inside a transaction.
  func withoutCapture(_ body: () throws -> Void) throws {
    let triggers: AppTriggers
    if let known = appTriggers {
      triggers = known
    } else {
      triggers = try AppTriggers.read(
        connection, synced: Set(tables.filter { $0.shape != nil }.map { $0.name.lowercased() }))
      appTriggers = triggers
    }
    try connection.run("UPDATE main.lk_gate SET applying = 1")
    if triggers.suppressed.isEmpty {
      try body()
    } else if !triggers.hasOthers {
      try connection.setTriggers(enabled: false)
      // Not undone by a rollback.
      defer { try? connection.setTriggers(enabled: true) }
      try body()
    } else {
      // Readers never see them missing: the schema changes back in the same transaction.
      for trigger in triggers.suppressed { try connection.execute("DROP TRIGGER main.\(quoted(trigger.name))") }
      try body()
      for trigger in triggers.suppressed { try connection.execute(trigger.sql) }
      try restorePlaces(triggers.suppressed)
      try rememberSchema()
    }
    try connection.run("UPDATE main.lk_gate SET applying = 0")
  }

  /// Puts triggers that were made again where they were in the schema, so that its dump stays the same. Only the order
  /// of the schema table's rows is touched.
  private func restorePlaces(_ triggers: [AppTriggers.Trigger]) throws {
    try connection.run("PRAGMA writable_schema = ON")
    defer { try? connection.run("PRAGMA writable_schema = OFF") }
    for trigger in triggers {
      try connection.run(
        "UPDATE main.sqlite_schema SET rowid = ? WHERE type = 'trigger' AND name = ? AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE rowid = ?)",
        [.integer(trigger.place), SQLiteValue(trigger.name), .integer(trigger.place)])
    }
  }
}
