/// What must hold in every run. The name stands in the line that reports a failure.
enum Invariant: String {
  /// Devices in the same household show the same, and their digests are equal.
  case convergence
  /// What devices show is what the operations that were acknowledged amount to.
  case oracle
  /// What a device publishes is exactly what its app changed.
  case capture
  /// Once all is settled, syncing writes nothing and changes nothing.
  case quiescence
  /// No shown row refers to a row that is not shown; nothing waits for what is there.
  case references
  /// After the faults end, everything is sent and received within a bounded number of rounds.
  case progress
  /// One position in a log never holds two different entries.
  case fork
  /// One name in the store never has two contents.
  case overwrite
  /// Clocks, sequences and accepted positions never fall.
  case monotony
  /// Nothing of a household is readable in the store.
  case plaintext
  /// The database is sound, and the app's own tables and columns are untouched.
  case database
  /// Devices that were let in are in everybody's roster.
  case membership
  /// Whoever was removed can open nothing that came after.
  case secrecy
  /// Nothing is uploaded while somebody who was removed, or leaves, has the key.
  case hold
  /// Nobody takes more of a removed device's rows than counts.
  case limit
  /// What a device that is still in has accepted counts for all.
  case counted
  /// One seed, one trace.
  case determinism
  /// Something threw where nothing may.
  case defect
}

/// A failed invariant.
struct Violation: Error {
  let invariant: Invariant
  let detail: String

  init(_ invariant: Invariant, _ detail: String) {
    self.invariant = invariant
    self.detail = detail
  }
}
