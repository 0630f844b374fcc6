internal import LatchkeySQLite

extension Replica {
  /// Detaches a file and takes the rows that were synced with it out of it, in one transaction. What is in other tables stays.
  ///
  /// The app's triggers behave as when a row that another device deleted goes. Nothing is captured: no other device hears of it.
  ///
  /// - Returns: how many rows went.
  /// - Throws: ``TablesError/wouldLose(rows:)`` while rows wait that no store has confirmed; nothing is changed then.
  public static func detachAndEmpty(path: String) throws(TablesError) -> Int {
    let replica = try Replica(path: path)
    do { return try replica.emptied() } catch { throw TablesError(error, path: path) }
  }

  private func emptied() throws -> Int {
    try connection.run("BEGIN IMMEDIATE")
    do {
      try refresh()
      try followSchema()
      let waiting = try counts().reduce(0) { $0 + $1.waiting }
      guard waiting == 0 else { throw TablesError.wouldLose(rows: waiting) }
      var gone = 0
      try withoutCapture {
        for table in tables where table.shape != nil {
          try connection.run("DELETE FROM main.\(quoted(table.name))")
          gone += Int(try connection.integer("SELECT changes()") ?? 0)
        }
      }
      try Replica.detach(connection)
      try connection.run("COMMIT")
      return gone
    } catch {
      if connection.isInTransaction { try? connection.run("ROLLBACK") }
      throw error
    }
  }
}
