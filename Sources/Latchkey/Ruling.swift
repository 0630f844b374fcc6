internal import LatchkeyEngine
public import LatchkeyTables

/// The rules about an app's tables: what its schema does not say.
extension Home {
  /// The rules that hold in an attached database, for every device of its zone.
  ///
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`.
  public nonisolated func rules(_ path: String) throws(LatchkeyError) -> Rules {
    let path = absolute(path)
    do { return try Replica(path: path, mode: .readOnly).rules } catch { throw LatchkeyError(error, database: path) }
  }

  /// Puts other rules in place of those that hold. Every device of the zone follows them, from its next sync after this
  /// device's; of two devices that set rules for one table the later counts.
  ///
  /// - Returns: what becomes of each table now.
  /// - Throws: ``LatchkeyError``: `database`, `notAttached`, `busy`, `usage` (rules that do not fit), `membership` (a reader).
  @discardableResult
  public func setRules(_ path: String, _ rules: Rules) throws(LatchkeyError) -> Survey {
    let path = absolute(path)
    do {
      let replica = try Replica(path: path)
      if try isReader(membership(of: replica.binding.household)) {
        throw LatchkeyError(
          .membership, "reader", "A reader's rules count for nobody else, so they are not set. Nothing was changed.")
      }
      return try replica.setRules(rules)
    } catch { throw LatchkeyError(error, database: path) }
  }

  /// What names and rows of a database, attached or not, suggest about it. Reads only.
  ///
  /// - Throws: ``LatchkeyError``: `database`.
  public nonisolated func suggestRules(_ path: String) throws(LatchkeyError) -> Suggestions {
    let path = absolute(path)
    do { return try Replica.suggest(path: path) } catch { throw LatchkeyError(error, database: path) }
  }

  /// Those of some rules that are about tables and columns that a database has: of a recipe for several versions of an app.
  ///
  /// - Throws: ``LatchkeyError``: `database`.
  public nonisolated func fitting(_ rules: Rules, _ path: String) throws(LatchkeyError) -> Rules {
    let path = absolute(path)
    do { return try Replica.fitting(rules, path: path) } catch { throw LatchkeyError(error, database: path) }
  }
}
