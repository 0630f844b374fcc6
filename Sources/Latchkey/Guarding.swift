internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyRecords
internal import LatchkeyTables

/// Questions about the rows of a file: many deletions, many rows that vanished, what was written as a reader.
extension Home {
  /// What one decision about a file's rows is about.
  private enum RowQuestion {
    case deletions(HeldDeletions)
    case lost([(table: String, rows: Int)])
    case keptHere(rows: Int)
  }

  /// A question about the rows of one file, with its path.
  private struct AskedAbout {
    let path: String
    let question: RowQuestion
    let decision: Decision
  }

  /// What waits in the files of this device for a person. Files that cannot be read ask nothing.
  func rowDecisions(_ path: String? = nil) throws -> [Decision] {
    try asked(path).map(\.decision)
  }

  private func asked(_ path: String? = nil) throws -> [AskedAbout] {
    try (path.map { [$0] } ?? databases()).flatMap { path -> [AskedAbout] in
      guard let replica = try? Replica(path: path, mode: .readOnly),
        let membership = try? membership(of: replica.binding.household)
      else { return [] }
      return try questions(replica, membership).map { question in
        AskedAbout(path: path, question: question, decision: try decision(question, path, replica, membership))
      }
    }
  }

  private func questions(_ replica: Replica, _ membership: Membership) throws -> [RowQuestion] {
    var out: [RowQuestion] = try replica.heldDeletions().map { .deletions($0) }
    let lost = try replica.lostRows()
    if !lost.isEmpty { out.append(.lost(lost)) }
    let kept = try replica.rowsKeptHere()
    if kept > 0 { out.append(.keptHere(rows: kept)) }
    return out
  }

  private func decision(
    _ question: RowQuestion, _ path: String, _ replica: Replica, _ membership: Membership
  ) throws -> Decision {
    let file = lastComponent(path)
    let isReader = try isReader(membership)
    func id(_ kind: String, _ facts: String) -> String {
      let hash = hash32("row decision", parts: 3) { writer in
        writer.id(replica.binding.zone)
        writer.text(path)
        writer.text(facts)
      }
      return "\(kind)-\(String(hash.description.prefix(8)))"
    }
    func counted(_ tables: [(String, Int)]) -> String {
      tables.map { "\($0.1) \($0.1 == 1 ? "row" : "rows") of \($0.0)" }.joined(separator: ", ")
    }
    switch question {
    case .deletions(let held):
      // Whoever decides does so for what was shown: with more, it is another question.
      let facts = "\(held.author) " + held.tables.map { "\($0.name) \($0.rows)" }.joined(separator: " ")
      let names = try state(of: membership.id).roster.names(ofAny: held.author)
      let who = names.map { "\($0.person) (\($0.device))" } ?? "Device \(held.author.short)"
      return Decision(
        id: id("guard", facts), kind: "guard", household: membership.name,
        message:
          "\(who) has deleted \(counted(held.tables.map { ($0.name, $0.rows) })) of \(file) within a day. They are still shown here: let them go, or insert them again for everybody.",
        choices: isReader ? ["allow"] : ["allow", "restore"])
    case .lost(let tables):
      let facts = tables.map { "\($0.table) \($0.rows)" }.joined(separator: " ")
      return Decision(
        id: id("guard", "lost " + facts), kind: "guard", household: membership.name,
        message:
          "\(counted(tables.map { ($0.table, $0.rows) })) of \(file) went when the app made the table anew, and nobody deleted them. The others still have them: delete them for everybody, or bring them back here.",
        choices: isReader ? ["restore"] : ["allow", "restore"])
    case .keptHere(let rows):
      return Decision(
        id: id("reader", "\(rows)"), kind: "reader", household: membership.name,
        message:
          "What you changed in \(rows) \(rows == 1 ? "row" : "rows") of \(file) as a reader is here only"
          + (isReader
            ? ": you can take it back." : ": take it back, or publish it for everybody, since you may write now."),
        choices: isReader ? ["revert"] : ["revert", "publish"])
    }
  }

  /// Answers a question about rows; false if there is no such question.
  func decideRows(_ id: String, _ choice: String) async throws -> Bool {
    guard let asked = try asked().first(where: { $0.decision.id == id }) else { return false }
    let replica = try Replica(path: asked.path)
    let membership = try membership(of: replica.binding.household)
    switch (asked.question, choice) {
    case (.deletions(let held), _):
      try settle(held.author, isAllowed: choice == "allow", replica, membership)
    case (.lost, "allow"):
      var performer = try performer(replica, membership)
      _ = try performer.write { replica, now, emit in try replica.deleteLostRows(now: now, emit: emit) }
    case (.lost, _):
      let zone = try await zoneStates(of: try replica.lostRecords(), replica)
      var performer = try performer(replica, membership)
      let left = try performer.write { replica, now, emit in
        _ = try replica.recoverLostRows(from: zone, now: now, emit: emit)
        return try replica.lostRows()
      }
      if !left.isEmpty {
        throw LatchkeyError(
          .store, "rows-not-shown", "The store does not show the values of \(counted(left)) now. The others are back.",
          next: ["latchkey sync \(asked.path)", "latchkey decide \(id) restore"])
      }
    case (.keptHere, "publish"):
      var performer = try performer(replica, membership)
      _ = try performer.write { replica, now, emit in
        let rows = try replica.publishKeptHere(now: now, emit: emit)
        try replica.setValue(DatabasePerformer.Key.keptHere, nil)
        return rows
      }
    case (.keptHere, _):
      let zone = try await zoneStates(of: try replica.recordsKeptHere(), replica)
      var performer = try performer(replica, membership)
      _ = try performer.write { replica, now, emit in
        let rows = try replica.revertKeptHere(to: zone, now: now, emit: emit)
        try replica.setValue(DatabasePerformer.Key.keptHere, nil)
        return rows
      }
    }
    return true
  }

  private func counted(_ tables: [(table: String, rows: Int)]) -> String {
    tables.map { "\($0.rows) \($0.rows == 1 ? "row" : "rows") of \($0.table)" }.joined(separator: ", ")
  }

  /// What the zone has of some records, from the store.
  private func zoneStates(
    of records: [(table: String, record: RecordName)], _ replica: Replica
  ) async throws -> (String, RecordName) -> RecordState {
    let history = try await wholeHistory(of: replica)
    let states = try history.states(of: Set(records.map { ZoneHistory.RecordKey($0.table, $0.record) }))
    return { table, record in states[ZoneHistory.RecordKey(table, record)] ?? .empty }
  }

  private func settle(
    _ author: DeviceID, isAllowed: Bool, _ replica: Replica, _ membership: Membership
  ) throws {
    var performer = try performer(replica, membership)
    _ = try performer.write { replica, now, emit in
      try replica.settleDeletions(by: author, isAllowed: isAllowed, now: now, emit: emit)
    }
  }

  /// Lets deletions that wait go if they are at most so many.
  func allowDeletions(atMost limit: Int, _ replica: Replica, _ membership: Membership) throws {
    let held = try replica.heldDeletions()
    guard !held.isEmpty, held.reduce(0, { $0 + $1.rows }) <= limit else { return }
    for one in held { try settle(one.author, isAllowed: true, replica, membership) }
  }
}
