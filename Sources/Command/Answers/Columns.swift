/// Rows whose cells stand under each other, for people.
struct Columns {
  private var rows: [[String]]
  /// Columns whose cells end at the same place: numbers.
  private let rightAligned: Set<Int>

  init(_ rows: [[String]], rightAligned: Set<Int> = []) {
    self.rows = rows.map { $0.map(\.printable) }
    self.rightAligned = rightAligned
  }

  /// One line a row, two spaces between cells.
  var lines: [String] {
    let count = rows.map(\.count).max() ?? 0
    let widths = (0..<count).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        let isLast = column == row.count - 1
        line += rightAligned.contains(column) ? space + cell : isLast ? cell : cell + space
        if !isLast { line += "  " }
      }
      return line
    }
  }
}

/// `1 row`, `2 rows`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
