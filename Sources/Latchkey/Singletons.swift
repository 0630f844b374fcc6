internal import LatchkeyEngine
public import LatchkeySQLite
internal import LatchkeyTables

extension Home {
  /// The one row of a table that has one row (rule `singleton`): the row that is there, else a new one.
  ///
  /// Apps make such a row when they find none. On a device that has not seen the zone yet that would be one more, so this waits: the
  /// first time, all that the store has of the zone is read before a row is made. Should two devices make one all the same, the two show
  /// as one.
  ///
  /// - Parameters:
  ///   - path: an attached database.
  ///   - table: its name in the file.
  ///   - values: what the row gets if it is made, by column; the others get what the schema says.
  /// - Returns: the row's key, in the order of the key's columns.
  /// - Throws: ``LatchkeyError``: `usage` (the rules do not say that the table has one row), `unreachable` or `store` (nothing was read
  ///   from the zone yet, and it cannot be), `membership` (a reader cannot make it), `notAttached`, `database`, `busy`.
  public func ensureSingleton(
    _ path: String, _ table: String, values: [String: SQLiteValue] = [:]
  ) async throws(LatchkeyError) -> [SQLiteValue] {
    let path = absolute(path)
    return try await reporting(database: path) {
      let replica = try Replica(path: path)
      guard try replica.isSingleton(table) else {
        throw LatchkeyError(
          .usage, "no-singleton", "No rule says that \(table) has one row. Nothing was changed.",
          next: ["latchkey rules set \(path) FILE   (with \"\(table)\": \"singleton\")"])
      }
      if let key = try replica.singleton(table) { return key }
      if try replica.value(DatabasePerformer.Key.imported) == nil {
        _ = try await sync(path, untilSettled: true)
        guard try replica.value(DatabasePerformer.Key.imported) != nil else {
          throw LatchkeyError(
            .store, "first-import",
            "Not all that others have written has arrived yet, so \(table) gets no row of its own: it may have one.",
            next: ["latchkey sync \(path)", "latchkey status \(path)"])
        }
      }
      if try isReader(membership(of: replica.binding.household)) {
        if let key = try replica.singleton(table) { return key }
        throw LatchkeyError(
          .membership, "reader", "\(table) has no row yet, and what a reader makes counts for nobody else.")
      }
      return try replica.ensureSingleton(table, values)
    }
  }
}
