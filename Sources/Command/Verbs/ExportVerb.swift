import Latchkey
import LatchkeyRecords

extension Verbs {
  private static let format = Option.taking(
    "FORMAT", .choice(["jsonl", "csv"]), "format", "jsonl (default): a JSON object per record; csv: one table")
  private static let table = Option.taking("TABLE", .text, "table", "only this table; csv needs it")

  static let export = Verb(
    name: "export",
    summary: "print every record that is synchronised",
    details: [
      "What the household holds as this device knows it: rows that wait to be shown are printed, rows deleted are not, nor "
        + "are changes that no sync has seen yet. \"latchkey help records\" describes the lines exactly.",
      "With --json the records are in the one object of the answer.",
    ],
    arguments: [.database],
    options: [format, table],
    exits: [.unusableDatabase, .notAttached, .databaseBusy, .newerFormat],
    data: [Term("records", "[{table, record, values: {column: value}}]; with --format csv: csv, the text")],
    examples: ["latchkey export budget.db > budget.jsonl", "latchkey export budget.db --format csv --table accounts"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let only = arguments[table]
      let isCSV = arguments[format] == "csv"
      if isCSV, only == nil {
        throw .usage(
          "missing-option",
          "--format csv writes one table, and --table TABLE is missing: tables differ in their columns.",
          next: ["latchkey counts \(path.quotedForShell)   (lists them)"])
      }
      if let only { try await check(only, path, context) }
      let export = Export(path: path, table: only, library: context.library)
      if isCSV { return try export.csv() }
      return context.globals.json ? try export.collected() : try export.streamed(ascii: context.globals.ascii)
    })

  private static func check(_ table: String, _ path: String, _ context: Context) async throws(CommandError) {
    let counts = try await context.performing { () async throws(LatchkeyError) in try await context.library.counts(path)
    }
    let names = counts.tables.map(\.name)
    guard names.contains(table) else {
      throw .usage(
        "no-such-table",
        "No table \(table.printable) is synchronised. There are: \(names.joined(separator: ", ").printable).",
        next: ["latchkey counts \(path.quotedForShell)"])
    }
  }
}

/// Prints what a file's zone holds.
private struct Export {
  let path: String
  /// Nil for all.
  let table: String?
  let library: Home

  func collected() throws(CommandError) -> Outcome {
    var records: [JSON] = []
    try forEach { record throws(LatchkeyError) in records.append(record.json) }
    return Outcome("\(counted(records.count, "record")).", .streamed, data: ["records": .array(records)])
  }

  /// Holds no more than a page of it at a time.
  func streamed(ascii: Bool) throws(CommandError) -> Outcome {
    var page = ""
    var count = 0
    func flush() throws(LatchkeyError) {
      guard Descriptor.output.write(page) else {
        throw LatchkeyError(.other, "output-failed", "The records could not be written to standard output.")
      }
      page = ""
    }
    try forEach { record throws(LatchkeyError) in
      page += record.json.encoded(ascii: ascii) + "\n"
      count += 1
      if page.utf8.count > 1 << 16 { try flush() }
    }
    do throws(LatchkeyError) { try flush() } catch { throw CommandError(error) }
    return Outcome("\(counted(count, "record")).", .streamed, data: [:])
  }

  func csv() throws(CommandError) -> Outcome {
    var records: [ExportedRecord] = []
    try forEach { record throws(LatchkeyError) in records.append(record) }
    let text = CSV(records).text
    return Outcome("\(counted(records.count, "record")).", .text(text), data: ["csv": .text(text)])
  }

  private func forEach(_ body: (ExportedRecord) throws(LatchkeyError) -> Void) throws(CommandError) {
    do throws(LatchkeyError) {
      try library.export(path) { table, record, cells in
        if self.table == nil || self.table == table {
          try body(ExportedRecord(table: table, record: record, cells: cells))
        }
      }
    } catch { throw CommandError(error) }
  }
}
