import LatchkeyEncoding
import LatchkeyRecords

/// A record as `latchkey export` prints it; `latchkey help records` says the same in words.
struct ExportedRecord {
  let table: String
  let record: RecordName
  /// In byte order of the columns' names.
  let cells: [(column: String, value: Value)]

  init(table: String, record: RecordName, cells: [(column: String, value: Value)]) {
    self.table = table
    self.record = record
    self.cells = cells.sorted { $0.column.utf8.lexicographicallyPrecedes($1.column.utf8) }
  }

  var json: JSON {
    [
      "table": .text(table), "record": .text(record.description),
      "values": .object(cells.map { JSON.Member(name: $0.column, value: JSON($0.value)) }),
    ]
  }
}

/// Records of one table as a spreadsheet reads them (RFC 4180). Types are lost: `export --format jsonl` keeps them.
struct CSV {
  /// The heading, then a line a record; every line ends with CR and LF.
  let text: String

  init(_ records: [ExportedRecord]) {
    let columns = Set(records.flatMap { $0.cells.map(\.column) }).sorted {
      $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
    var text = CSV.line(["lk_record"] + columns)
    for record in records {
      // `together` makes names that stand for several columns; names within a record are unique.
      let cells = Dictionary(record.cells.map { ($0.column, CSV.text($0.value)) }) { first, _ in first }
      text += CSV.line([record.record.description] + columns.map { cells[$0] ?? nil })
    }
    self.text = text
  }

  /// NULL is an empty field, an empty text is a quoted one.
  private static func line(_ fields: [String?]) -> String {
    fields.map { field in
      guard let field else { return "" }
      let isPlain =
        !field.isEmpty && !field.unicodeScalars.contains { ",\"\r\n".unicodeScalars.contains($0) }
      return isPlain
        ? field : "\"" + field.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }.joined(separator: ",") + "\r\n"
  }

  private static func text(_ value: Value) -> String? {
    switch value {
    case .null: nil
    case .integer(let value): String(value)
    case .real: JSON(value).encoded()
    case .text(let bytes): String(validating: bytes, as: UTF8.self) ?? base64(bytes)
    case .blob(let bytes), .unknown(let bytes): base64(bytes)
    case .reference(let record): record.description
    case .together: JSON(value).encoded()
    }
  }
}
