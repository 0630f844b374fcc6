import Latchkey
import LatchkeyTables

extension Verbs {
  static let trash = Verb(
    name: "trash",
    summary: "rows that were deleted in the last thirty days",
    body: .groups([listTrash, restoreTrash]))

  private static let listTrash = Verb(
    name: "list",
    summary: "list deleted rows, whoever deleted them, the last one first",
    details: [
      "A row that the app here deleted has left no values in the file: they are in the store, which \"trash restore\" asks for them."
    ],
    arguments: [.database],
    exits: [.unusableDatabase, .notAttached, .keyRefused],
    data: [
      Term(
        "trash",
        "[{id, deleted_at, by, device, table, record, key, values: [{name, value}]}], values null where they are in the store only; by and device: names, or null if no "
          + "household here knows them; values as in latchkey help records")
    ],
    examples: ["latchkey trash list budget.db"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      let entries = try await context.performing { () async throws(LatchkeyError) in
        try context.library.trash(path)
      }
      let names = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.deviceNames()
      }
      let rows = entries.map { entry in
        let author = names[entry.author.description]
        return [
          String(entry.id), Moment(entry.deletedAt).shown,
          "\(entry.table) \(entry.key ?? String(entry.record.description.prefix(8)))",
          "by \(author?.person ?? "?"), \(author?.device ?? entry.author.short)",
          entry.cells.map { cells in
            cells.map { "\($0.column) \(JSON($0.value).encoded())" }.joined(separator: ", ")
          } ?? "(its values are in the store)",
        ]
      }
      var outcome = Outcome(
        "\(counted(entries.count, "deleted row")) in the trash.",
        .lines(entries.isEmpty ? [Line(.none, "The trash is empty.")] : Columns(rows).lines.map { Line(.none, $0) }),
        data: [
          "trash": .array(
            entries.map { entry in
              let author = names[entry.author.description]
              return [
                "id": .integer(entry.id), "deleted_at": .moment(entry.deletedAt), "by": .text(author?.person),
                "device": .text(author?.device), "table": .text(entry.table),
                "record": .text(entry.record.description), "key": .text(entry.key),
                "values": entry.cells.map { cells in
                  .array(cells.map { ["name": .text($0.column), "value": JSON($0.value)] })
                } ?? .null,
              ]
            })
        ])
      if !entries.isEmpty { outcome.next = ["latchkey trash restore \(path.quotedForShell) ID"] }
      return outcome
    })

  private static let ids = Argument("ID", .text, "rows' numbers, as \"trash list\" shows them").repeated

  private static let restoreTrash = Verb(
    name: "restore",
    summary: "put deleted rows back, for everybody",
    details: [
      "Rows that were deleted together with them and refer to them come back, too, and so do rows that they cannot be without. "
        + "It becomes an insert of now, which every device takes with the next sync."
    ],
    arguments: [.database, ids],
    exits: [.unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused],
    data: [Term("restored", "how many rows came back")],
    examples: ["latchkey trash restore budget.db 12 13"],
    body: .runs { arguments, context throws(CommandError) in
      let path = try arguments.required(.database)
      var numbers: [Int64] = []
      for text in arguments.all(ids) {
        guard let number = Int64(text) else {
          throw .usage("bad-value", "ID is a row's number.", next: ["latchkey trash list \(path.quotedForShell)"])
        }
        numbers.append(number)
      }
      if context.globals.dryRun {
        let known = try await context.performing { () async throws(LatchkeyError) in
          Set(try context.library.trash(path).map(\.id))
        }
        guard numbers.allSatisfy(known.contains) else {
          throw .usage(
            "no-such-row", "The trash has no such row.", next: ["latchkey trash list \(path.quotedForShell)"])
        }
        let message = "\(counted(numbers.count, "row")) would come back, and what belongs to them."
        return Outcome(message, .lines([Line(.none, message)]), data: ["restored": 0])
      }
      let entries = numbers
      let restored = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.restoreTrash(path, entries: entries)
      }
      let message = "\(counted(restored, "row")) came back; the next sync tells the others."
      var outcome = Outcome(message, .lines([Line(.done, message)]), data: ["restored": .count(restored)])
      outcome.next = ["latchkey sync \(path.quotedForShell)"]
      return outcome
    })
}
