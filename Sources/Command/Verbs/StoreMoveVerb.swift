import Latchkey

extension Verbs {
  static let move = Verb(
    name: "move",
    summary: "move a household to another store",
    details: [
      "Copies everything of the household, reads each object back, and tells the other devices, which stop until a person there has "
        + "agreed to the new place. Interrupted at any point, it goes on when it is run again with the same URL.",
      "Run again once every device has moved, it empties the former store. Only an owner moves a household.",
    ],
    arguments: [.storeURL],
    options: [.household, .credentialFile],
    exits: [
      .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
      .damageFound,
      .newerFormat,
    ],
    data: [
      Term("household", "its name"), Term("from", "the former store's URL"), Term("to", "the new one's"),
      Term("objects", "objects copied by this call"), Term("bytes", "their bytes"),
      Term("emptied", "whether the former store holds nothing of the household any more"),
      Term("waiting_for", "[names of devices that were not seen in the new store yet]"),
    ],
    examples: ["latchkey store move s3://bucket/smiths --household Smiths --credential-file bucket.credential"],
    body: .runs { arguments, context throws(CommandError) in
      let url = try arguments.required(.storeURL)
      try context.refuseDryRun("store move", "what has to be copied is known by copying it")
      let credential = try arguments.credential()
      try context.terminal.confirm(
        [
          "The household is copied to \(url), and every device uses that place afterwards.",
          Line(.detail, "Each of the others asks somebody there first."),
        ],
        "Move it?", next: [])
      let progress = context.terminal.progress
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.moveStore(to: url, household: arguments[.household], credential: credential) {
          progress.report(Progress.Step(phase: "copying", done: $0, total: $1, bytes: Int64($2)))
        }
      }
      var message = "\(report.household) is kept in \(report.to)"
      message += report.isEmptied ? "; the former store is empty" : ""
      var outcome = Outcome(
        message + ".",
        .lines([
          Line(.done, message + "."),
          Line(.detail, "\(counted(report.objects, "object")) copied, \(ByteCount(Int64(report.bytes)))"),
        ]),
        data: [
          "household": .text(report.household), "from": .text(report.from), "to": .text(report.to),
          "objects": .count(report.objects), "bytes": .count(report.bytes), "emptied": .bool(report.isEmptied),
          "waiting_for": .array(report.waitingFor.map(JSON.text)),
        ])
      if !report.waitingFor.isEmpty {
        outcome.notes = [
          Line(
            .warning,
            "The former store is kept for \(report.waitingFor.joined(separator: ", ")): not seen in the new one yet.")
        ]
        outcome.next = [
          "latchkey store move \(report.to.quotedForShell) --household \(report.household.quotedForShell)"
        ]
      }
      return outcome
    })

  private static let off = Option.flag("off", "keep the household on its own store only from now on")

  static let mirror = Verb(
    name: "mirror",
    summary: "keep a household on a second store, too",
    details: [
      "From this device: it writes to both stores and reads from either, and each sync brings over what only one of the two has. The "
        + "other devices go on with the household's own store.",
      "Run again with the same URL it compares the two completely.",
    ],
    arguments: [Argument.storeURL.optional],
    options: [.household, .credentialFile, off],
    exits: [
      .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded, .damageFound,
      .newerFormat,
    ],
    data: [
      Term("household", "its name; null with --off"), Term("store", "its store's URL; null with --off"),
      Term("mirror", "the second store's URL; null if there is none any more"),
      Term("objects", "objects copied"), Term("bytes", "their bytes"),
    ],
    examples: ["latchkey store mirror /mnt/stick/smiths --household Smiths", "latchkey store mirror --off"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("store mirror", "what has to be copied is known by copying it")
      if arguments.has(off) { return try await stopMirror(arguments, context) }
      let url = try arguments.required(.storeURL)
      let credential = try arguments.credential()
      let progress = context.terminal.progress
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.mirrorStore(to: url, household: arguments[.household], credential: credential) {
          progress.report(Progress.Step(phase: "copying", done: $0, total: $1, bytes: Int64($2)))
        }
      }
      let message = "\(report.household) is kept in \(report.store), and from this device in \(report.mirror), too."
      return Outcome(
        message,
        .lines([
          Line(.done, message),
          Line(.detail, "\(counted(report.objects, "object")) copied, \(ByteCount(Int64(report.bytes)))"),
        ]),
        data: [
          "household": .text(report.household), "store": .text(report.store), "mirror": .text(report.mirror),
          "objects": .count(report.objects), "bytes": .count(report.bytes),
        ])
    })

  private static func stopMirror(
    _ arguments: ParsedArguments, _ context: Context
  ) async throws(CommandError) -> Outcome {
    let former = try await context.performing { () async throws(LatchkeyError) in
      try await context.library.stopMirroring(household: arguments[.household])
    }
    let message = former.map { "\($0) is not kept in step any more; what lies there stays." } ?? "There is no mirror."
    return Outcome(
      message, .lines([Line(.done, message)]),
      data: ["household": .null, "store": .null, "mirror": .null, "objects": 0, "bytes": 0])
  }
}
