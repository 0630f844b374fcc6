import LatchkeyEncoding
import LatchkeySQLite

/// The kinds of things the app does. Each is switched on or off for a whole run, so that runs differ in more than order.
enum AppOperation: CaseIterable {
  case insert, update, edits, delete, reinsert, replace, moveKey, point, rewrite, touch
}

/// The app on one device: random transactions, in plain SQL on its own connection, as any program would write them.
///
/// It keeps its rows whole, as apps do: foreign keys are enforced, and the reference that is not declared is cleared when
/// its target goes.
struct App {
  let connection: Connection
  /// What its version calls things.
  let view: AppView
  /// Who inserts, for values that tell their origin.
  let device: Int
  let operations: [AppOperation]
  /// Keys are drawn from few, so that devices meet.
  let keys: Int
  /// Texts may be long, so that segments are needed.
  let isWordy: Bool
  /// Told each statement, for people who look at one run.
  var listener: ((String) -> Void)?

  private func run(_ sql: String, _ values: [SQLiteValue]) throws {
    listener?("\(sql) -- \(values.map(show).joined(separator: ", "))")
    try connection.run(sql, values)
  }

  /// One transaction. A statement that the schema refuses undoes it, which is the app's business and no failure.
  ///
  /// - Returns: whether it was committed.
  func run(_ random: inout Stream, serial: inout Int, _ marks: inout Marks) throws -> Bool {
    try connection.run("PRAGMA main.foreign_keys = ON")
    defer { try? connection.run("PRAGMA main.foreign_keys = OFF") }
    try connection.run("BEGIN")
    do {
      var done = false
      for _ in 0..<(random.chance(70) ? 1 : 2 + random.below(3)) {
        guard let operation = random.pick(operations) else { break }
        if try perform(operation, &random, &serial, &marks) { done = true }
      }
      try connection.run(
        """
        UPDATE zebrafinNote SET about = 0
        WHERE about IS NOT NULL AND about <> 0 AND about NOT IN (SELECT id FROM zebrafinEntry)
        """)
      try connection.run("COMMIT")
      if done { marks[.appTransactions] += 1 }
      return done
    } catch let error as SQLiteError {
      try connection.run("ROLLBACK")
      guard case .constraint = error else { throw error }
      marks[.refusedTransactions] += 1
      return false
    }
  }

  private func perform(
    _ operation: AppOperation, _ random: inout Stream, _ serial: inout Int, _ marks: inout Marks
  ) throws -> Bool {
    let index = random.below(AppSchema.tables.count)
    let table = AppSchema.tables[index]
    guard let name = view.tables[index]?.name else { return false }
    switch operation {
    case .insert:
      return try insert(index, verb: "INSERT", &random, &serial)
    case .replace:
      marks[.replaces] += 1
      return try insert(index, verb: "INSERT OR REPLACE", &random, &serial)
    case .update, .edits:
      for _ in 0..<(operation == .update ? 1 : 3) {
        guard let row = try someRow(index, &random) else { return false }
        let columns = plainColumns(index).filter { _ in random.chance(50) }
        guard !columns.isEmpty else { continue }
        let sets = columns.map { "\(local(index, $0)) = ?" }.joined(separator: ", ")
        let values = columns.map { value(index, $0, &random) }
        try run("UPDATE \(name) SET \(sets) WHERE \(keyIs(index))", values + key(table, row))
      }
      return true
    case .touch:
      guard let row = try someRow(index, &random) else { return false }
      try run(
        "UPDATE \(name) SET uid = uid WHERE \(keyIs(index))", key(table, row))
      return true
    case .rewrite:
      // A whole table in one statement.
      guard let column = random.pick(plainColumns(index)) else { return false }
      try run("UPDATE \(name) SET \(local(index, column)) = ?", [value(index, column, &random)])
      return true
    case .delete:
      guard let row = try someRow(index, &random) else { return false }
      try run("DELETE FROM \(name) WHERE \(keyIs(index))", key(table, row))
      return true
    case .reinsert:
      guard var row = try someRow(index, &random) else { return false }
      try run("DELETE FROM \(name) WHERE \(keyIs(index))", key(table, row))
      serial += 1
      row[table.uid] = uid(serial)
      if random.chance(50) {
        for column in plainColumns(index) { row[column] = value(index, column, &random) }
      }
      try put("INSERT", index, row)
      marks[.reinserts] += 1
      return true
    case .moveKey:
      guard let row = try someRow(index, &random) else { return false }
      guard let moved = try newKey(index, row, &random) else { return false }
      let sets = table.key.map { "\(local(index, $0)) = ?" }.joined(separator: ", ")
      try run("UPDATE \(name) SET \(sets) WHERE \(keyIs(index))", moved + key(table, row))
      if index == AppSchema.entry {
        try run("UPDATE zebrafinNote SET about = ? WHERE about = ?", moved + key(table, row))
      }
      marks[.keyMoves] += 1
      return true
    case .point:
      let columns = table.columns.indices.filter { table.columns[$0].reference != nil && !table.key.contains($0) }
      guard let column = random.pick(columns), let row = try someRow(index, &random) else { return false }
      guard let target = try reference(table.columns[column], &random) else { return false }
      try run(
        "UPDATE \(name) SET \(local(index, column)) = ? WHERE \(keyIs(index))", [target] + key(table, row))
      return true
    }
  }

  private func insert(_ index: Int, verb: String, _ random: inout Stream, _ serial: inout Int) throws -> Bool {
    let table = AppSchema.tables[index]
    var row: [SQLiteValue] = []
    for (column, declared) in table.columns.enumerated() {
      if column == table.uid {
        serial += 1
        row.append(uid(serial))
      } else if declared.reference != nil {
        guard let target = try reference(declared, &random) else { return false }
        row.append(target)
      } else if table.key.contains(column) {
        row.append(freshKey(index, &random))
      } else {
        row.append(value(index, column, &random))
      }
    }
    try put(verb, index, row)
    return true
  }

  private func put(_ verb: String, _ index: Int, _ row: [SQLiteValue]) throws {
    let columns = row.indices.filter { view.has(index, $0) }
    let names = columns.map { local(index, $0) }.joined(separator: ", ")
    try run(
      "\(verb) INTO \(view.tables[index]?.name ?? "") (\(names)) VALUES (\(marksFor(columns.count)))",
      columns.map { row[$0] })
  }

  /// What the app's version calls a column.
  private func local(_ table: Int, _ column: Int) -> String { view.tables[table]?.columns[column] ?? "" }

  /// Columns that hold neither key, nor uid, nor reference.
  private func plainColumns(_ index: Int) -> [Int] {
    let table = AppSchema.tables[index]
    return table.columns.indices.filter {
      view.has(index, $0) && !table.key.contains($0) && $0 != table.uid && table.columns[$0].reference == nil
    }
  }

  private func keyIs(_ index: Int) -> String {
    AppSchema.tables[index].key.map { "\(local(index, $0)) = ?" }.joined(separator: " AND ")
  }

  private func key(_ table: AppSchema.Table, _ row: [SQLiteValue]) -> [SQLiteValue] { table.key.map { row[$0] } }

  private func marksFor(_ count: Int) -> String { Array(repeating: "?", count: count).joined(separator: ", ") }

  private func someRow(_ index: Int, _ random: inout Stream) throws -> [SQLiteValue]? {
    let table = AppSchema.tables[index]
    guard let found = view.tables[index] else { return nil }
    let count = try connection.integer("SELECT count(*) FROM \(found.name)") ?? 0
    guard count > 0 else { return nil }
    // The first rows more often than the rest: devices meet there.
    let at = random.chance(60) ? random.below(min(Int(count), 3)) : random.below(Int(count))
    let order = table.key.map { local(index, $0) }.joined(separator: ", ")
    let names = found.columns.map { $0 ?? "NULL" }.joined(separator: ", ")
    return try connection.first(
      "SELECT \(names) FROM \(found.name) ORDER BY \(order) LIMIT 1 OFFSET ?", [.integer(Int64(at))])
  }

  /// Nil where something is required and there is nothing to refer to.
  private func reference(_ column: AppSchema.Column, _ random: inout Stream) throws -> SQLiteValue? {
    guard let reference = column.reference else { return nil }
    if !column.isRequired, random.chance(25) { return reference.none ?? .null }
    let target = AppSchema.tables[reference.table]
    if let row = try someRow(reference.table, &random) { return row[target.key[0]] }
    return column.isRequired ? nil : .null
  }

  private func freshKey(_ index: Int, _ random: inout Stream) -> SQLiteValue {
    guard AppSchema.tables[index].keyIsLocal else { return text("code\(random.below(keys))") }
    return random.chance(80) ? .null : .integer(Int64(1 + random.below(keys)))
  }

  private func newKey(_ index: Int, _ row: [SQLiteValue], _ random: inout Stream) throws -> [SQLiteValue]? {
    let table = AppSchema.tables[index]
    if index == AppSchema.link {
      guard let entry = try reference(table.columns[0], &random), let tag = try reference(table.columns[1], &random)
      else { return nil }
      return [entry, tag]
    }
    if table.keyIsLocal { return [.integer(Int64(1 + random.below(40)))] }
    return [text("code\(random.below(keys))")]
  }

  private func uid(_ serial: Int) -> SQLiteValue { text("d\(device)n\(serial)") }

  private func text(_ rest: String) -> SQLiteValue { SQLiteValue(AppSchema.canary + rest) }

  private func value(_ index: Int, _ column: Int, _ random: inout Stream) -> SQLiteValue {
    let few = random.below(6)
    switch (index, AppSchema.tables[index].columns[column].name) {
    case (_, "balance"), (_, "weight"), (_, "folded"), (_, "mood"):
      return random.chance(10) ? .null : .integer(random.chance(5) ? Int64.min : Int64(few))
    case (_, "amount"):
      return random.chance(10) ? .null : .real(random.chance(5) ? -0.0 : Double(few) / 4)
    case (_, "receipt"):
      if random.chance(40) { return .null }
      return .blob(bytes(random.below(isWordy ? 2_000 : 20), &random))
    case (_, "label"):
      return random.chance(15) ? .null : text("label\(random.below(8))")
    case (_, "colour"), (_, "shade"):
      // No declared type: anything stays what it is.
      switch random.below(5) {
      case 0: return .null
      case 1: return .integer(Int64(few))
      case 2: return .real(Double(few) + 0.5)
      case 3: return .blob(bytes(few, &random))
      default: return text("\(few)")
      }
    default:
      if random.chance(8) { return .null }
      if random.chance(4) { return .text(Array(AppSchema.canary.utf8) + [0xff, 0xfe, UInt8(few)]) }
      if random.chance(4) { return .text(Array(AppSchema.canary.utf8) + [0, 0x41]) }
      if isWordy, random.chance(20) { return text(String(repeating: "lorem \(random.below(1000)) ", count: 120)) }
      return text("\(few)")
    }
  }

  private func bytes(_ count: Int, _ random: inout Stream) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
  }
}
