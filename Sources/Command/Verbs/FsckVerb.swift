import Latchkey

extension Verbs {
  private static let evidence = Option.taking(
    "FILE", .file, "evidence", "write signed contradictions to this new file, for others to verify: no rows, no secrets"
  )

  static let fsck = Verb(
    name: "fsck",
    summary: "read and verify everything in the store, and say what is wrong with it",
    details: [
      "With a file: every epoch of its household, the roster and all zones, each object's envelope, place, signatures and chain, and whether what "
        + "was read before is still there. Without: the rosters of all households. Nothing is changed, here or in the store.",
      "What is found is listed by the object's name, with what it means. Where a device has signed two histories, --evidence writes both "
        + "statements; anybody can verify them with Tests/Vectors/reader.py --evidence FILE, without keys and without seeing rows.",
    ],
    arguments: [Argument.database.optional],
    options: [evidence],
    exits: [
      .unusableDatabase, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound,
      .newerFormat,
    ],
    data: [
      Term("households", "names of the households that were read"), Term("objects", "objects read"),
      Term("bytes", "their bytes"),
      Term("foreign", "objects in the same store that this check does not open: other households', invites, cards"),
      Term(
        "findings",
        "[{code, object, message, damage}]: code is damaged, missing, fork, rollback, unknown-object, unknown-author or newer; object is null for "
          + "what concerns a whole log; damage is whether the command ends with 16 for it"),
      Term("evidence", "{contradictions, file}: file is null unless one was written"),
    ],
    examples: ["latchkey fsck budget.db", "latchkey fsck budget.db --evidence fork.json"],
    body: .runs { arguments, context throws(CommandError) in
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.check(arguments[.database])
      }
      var file: String?
      if let path = arguments[evidence], let text = report.evidence, !context.globals.dryRun {
        try SmallFile.Reserved(path).fill(text)
        file = path
      }
      return answer(report, file)
    })

  private static func answer(_ report: CheckReport, _ file: String?) -> Outcome {
    let read =
      "\(counted(report.objects, "object")) of \(report.households.joined(separator: ", ")) read (\(ByteCount(Int64(report.bytes))))"
    let message =
      report.findings.isEmpty ? "\(read): all in order." : "\(read): \(counted(report.findings.count, "finding"))."
    var lines = [Line(report.hasDamage ? .warning : .done, message)]
    for finding in report.findings {
      lines.append(Line(.detail, "\(finding.code)  \(finding.object ?? "-")"))
      lines.append(Line(.detail, "  \(finding.message)"))
    }
    if let file {
      lines.append(Line(.done, "Both statements of \(counted(report.contradictions, "contradiction")): \(file)"))
    }
    var outcome = Outcome(message, .lines(lines), data: json(report, file))
    if report.hasDamage {
      outcome.exit = .damageFound
      outcome.code = "damage"
      if report.contradictions > 0, file == nil { outcome.next = ["latchkey fsck DB --evidence FILE"] }
    } else if report.findings.contains(where: { $0.code == "newer" }) {
      outcome.exit = .newerFormat
      outcome.code = "newer"
      outcome.next = ["update latchkey"]
    }
    return outcome
  }

  private static func json(_ report: CheckReport, _ file: String?) -> JSON {
    [
      "households": .array(report.households.map(JSON.text)), "objects": .count(report.objects),
      "bytes": .count(report.bytes), "foreign": .count(report.foreign),
      "findings": .array(
        report.findings.map {
          [
            "code": .text($0.code), "object": $0.object.map(JSON.text) ?? .null, "message": .text($0.message),
            "damage": .bool($0.isDamage),
          ]
        }),
      "evidence": ["contradictions": .count(report.contradictions), "file": file.map(JSON.text) ?? .null],
    ]
  }
}
