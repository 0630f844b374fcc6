internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Turning what the app changed into push groups.
extension Replica {
  /// Edits with more time than this between them get stamps of their own, in milliseconds: else the later would
  /// re-date the earlier.
  static let clusterGap: Int64 = 2_000
  /// Most rows in a push group.
  static let maximumGroupRows = 20_000

  /// Stamps what was changed since the last time and gives it out, group by group.
  ///
  /// Inside ``transaction(_:)``. Each changed row is read once and compared with what the table showed; what did not
  /// change is not sent. What the app writes after this transaction began belongs to the next pass.
  ///
  /// - Parameters:
  ///   - now: the local time, in milliseconds since 1970-01-01 UTC; an edit is never dated later.
  ///   - limit: about how many rows to take at most; the report's `more` says whether there are others.
  ///   - emit: seals the group and keeps it until it is acknowledged, in the same transaction; returns the group's tie.
  @discardableResult
  public func stamp(now: Int64, limit: Int = 20_000, emit: (PendingGroup) throws -> UInt64) throws -> StampReport {
    precondition(connection.isInTransaction, "stamp inside transaction")
    // What the file holds may be what the zone has already.
    if try isPairing { return StampReport() }
    var pass = StampPass(replica: self, now: now, limit: max(limit, 1))
    isNaming = true
    namedNow = []
    defer { isNaming = false }
    pass.holdsDeletions = try holdsDeletions
    try pass.readDeferred()
    try pass.readLogs()
    try pass.readScans()
    try pass.retireDeleted()
    try pass.compareRows()
    try pass.emitGroups(emit)
    try pass.writeAliases(pass.regrouped, areEdited: false, at: now, emit)
    try pass.clearLogs()
    isNaming = false
    try pass.showConsequences()
    return pass.report
  }
}

/// One pass of ``Replica/stamp(now:limit:emit:)``.
struct StampPass {
  let replica: Replica
  let now: Int64
  let limit: Int
  var report = StampReport()

  /// A row of the table that may have changed.
  struct Candidate {
    let table: SyncedTable
    let key: [SQLiteValue]
    let milliseconds: Int64
    let order: Int
    /// The row, if it was read already.
    var values: [SQLiteValue]?
  }

  /// What will be stamped.
  struct Change {
    enum Kind { case insert, update, delete }
    let row: Row
    let kind: Kind
    var cells: [(index: Int, value: Value, isFilledIn: Bool)]
    let milliseconds: Int64
    let order: Int
  }

  var candidates: [Candidate] = []
  var deleted: [(id: Int64, milliseconds: Int64)] = []
  var changes: [Change] = []
  var logEnds: [Int64: Int64] = [:]
  var order = 0
  /// Records that were deleted or moved in this pass, by the hash under which referring rows know them.
  var gone: [FieldHash: RecordName] = [:]
  var goneRows: [Row] = []
  /// Records whose key the app changed, with the former one.
  var movedRows: [Row] = []
  var deletedRecords: Set<RecordID> = []
  /// Rows that the app deleted and inserted again: what they refer to, they refer to now.
  var rewritten: Set<Int64> = []
  /// Columns whose values the rules did not take for references before, by table.
  var newReferences: [Int64: Set<String>] = [:]
  var toShow: [RecordID] = []
  var touchedTables: Set<Int64> = []
  var waitersOf: [RecordName] = []
  /// Keys that rows had before they were moved, for tables whose keys are this device's own.
  var formerKeys: [Int64: SQLiteValue] = [:]

  /// Log entries to write again at the end: of rows that wait whole.
  var held: [(String, [SQLiteValue])] = []
  /// Records of tables in which there are duplicates, and all that may be shown otherwise for them.
  var regrouped: [RecordID] = []
  var affected: Set<RecordID> = []
  /// Whether an earlier pass left something.
  var hasDeferred = false
  /// Whether deletions by others wait for a person.
  var holdsDeletions = false

  init(replica: Replica, now: Int64, limit: Int) {
    self.replica = replica
    self.now = now
    self.limit = limit
  }

  var connection: Connection { replica.connection }
  var present: [SyncedTable] {
    replica.tables.filter { $0.shape != nil }.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) }
  }
}
