import Latchkey
import LatchkeyConformance
import LatchkeyStorage

extension Argument {
  static let storeURL = Argument("URL", .store, "the store: folder:PATH, a path, s3://… or webdav+https://…")
}

extension Verbs {
  static let store = Verb(
    name: "store",
    summary: "look at the place where data is kept",
    body: .groups([
      Verb(
        name: "test",
        summary: "find out whether a place will do as a store, by using it for half a minute",
        details: [
          "Writes, reads, lists and deletes objects of its own under a name of its own, over two connections, and says what that "
            + "showed. What is there already is left alone, and nothing is left behind. Needs no identity.",
          "A place that breaks a promise which a household relies on ends it with 1 and the code \"store-unfit\".",
        ],
        arguments: [.storeURL],
        options: [.credentialFile],
        exits: [.storeUnavailable],
        data: [
          Term("store", "its URL"),
          Term("content", "store, empty, objects (without a marker), newer or not-a-store"),
          Term(
            "capabilities",
            "{conditional_create: atomic, bestEffort or none; publish: atomic or visiblePartial; listing: strong or eventual; "
              + "maximum_object_size, maximum_concurrency, hints}"),
          Term("passed", "how many claims hold"), Term("failed", "how many do not"),
          Term("skipped", "how many were not tried"),
          Term("cases", "[{name, claim, outcome: passed, failed or skipped, detail, consequence}]"),
        ],
        examples: ["latchkey store test /mnt/nas/latchkey", "latchkey store test s3://bucket/prefix --json"],
        body: .runs { arguments, context throws(CommandError) in
          let url = try arguments.required(.storeURL)
          try context.refuseDryRun("store test", "a store is tested by using it")
          let credential = try arguments.credential()
          let progress = context.terminal.progress
          let report = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.testStore(url, credential: credential) { done, total in
              progress.report(Progress.Step(phase: "testing", done: done, total: total, bytes: 0))
            }
          }
          return outcome(report)
        }),
      Verb(
        name: "ls",
        summary: "list the objects in a store",
        arguments: [.storeURL],
        options: [.credentialFile],
        exits: [.storeUnavailable],
        data: [Term("objects", "[{name, size}], in byte order of the names"), Term("bytes", "of all of them")],
        body: .runs { arguments, context throws(CommandError) in
          let url = try arguments.required(.storeURL)
          let credential = try arguments.credential()
          let entries = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.listStore(url, credential: credential)
          }
          let bytes = entries.reduce(0) { $0 + $1.size }
          let rows = Columns(entries.map { ["\($0.size)", $0.name.text] }, rightAligned: [0]).lines
          return Outcome(
            "\(counted(entries.count, "object")), \(ByteCount(Int64(bytes))).",
            .lines(rows.map { Line(.none, $0) } + [Line(.none, "\(counted(entries.count, "object")), \(bytes) bytes")]),
            data: [
              "objects": .array(entries.map { ["name": .text($0.name.text), "size": .count($0.size)] }),
              "bytes": .count(bytes),
            ])
        }),
      move, mirror, credential,
    ]))

  private static let credential = Verb(
    name: "credential",
    summary: "change what a household's store asks for on this device",
    details: [
      "Tries the credential out, and keeps it in the keyring for that store instead of the former one, which stays if the store "
        + "does not take it."
    ],
    options: [.household, Option.credentialFile.required],
    exits: [.notAttached, .storeUnavailable, .databaseBusy, .keyRefused],
    data: [Term("household", "its name"), Term("store", "its URL")],
    examples: ["latchkey store credential --household Smiths --credential-file smiths.credential"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("store credential", "a credential is tried out by using it")
      guard let credential = try arguments.credential() else {
        throw .usage("missing-option", "--credential-file is missing.", next: ["latchkey help store credential"])
      }
      let place = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.setCredential(of: arguments[.household], credential)
      }
      let message = "The store of \(place.household) takes the credential, which is kept on this device."
      return Outcome(
        message, .lines([Line(.done, message)]),
        data: ["household": .text(place.household), "store": .text(place.store)])
    })

  private static func outcome(_ report: StoreTestReport) -> Outcome {
    let results = report.conformance.results
    let skipped = results.count { if case .skipped = $0.outcome { true } else { false } }
    let failed = report.conformance.failures.count
    let verdict =
      failed == 0
      ? "\(report.store) will do as a store." : "\(report.store) breaks \(counted(failed, "promise")) of a store."
    var outcome = Outcome(
      verdict, .lines(lines(report, verdict)),
      data: [
        "store": .text(report.store), "content": .text(report.content.rawValue),
        "capabilities": json(report.capabilities), "passed": .count(results.count - failed - skipped),
        "failed": .count(failed), "skipped": .count(skipped), "cases": .array(results.map(json)),
      ])
    if failed > 0 {
      (outcome.exit, outcome.code) = (.other, "store-unfit")
      outcome.next = ["latchkey help stores"]
    } else if report.content == .empty {
      outcome.next = ["latchkey init --name NAME --store \(report.store.quotedForShell)"]
    }
    return outcome
  }

  private static func lines(_ report: StoreTestReport, _ verdict: String) -> [Line] {
    let content =
      switch report.content {
      case .store: "a Latchkey store"
      case .empty: "nothing"
      case .objects: "objects, and no marker of a store: it was lost, or the place belongs to something else"
      case .newer: "a store of a newer version of Latchkey"
      case .notAStore: "an object latchkey-store that is not a store's marker"
      }
    let capabilities = report.capabilities
    let creation =
      switch capabilities.conditionalCreate {
      case .atomic: "never overwrites, not even at the same moment"
      case .bestEffort: "does not overwrite; two at the same moment may both be told that they succeeded"
      case .none: "overwrites: the adapter looks first (nothing depends on more)"
      }
    var lines: [Line] = [
      Line(failed(report) ? .warning : .done, verdict),
      Line(.detail, "holds     \(content)"), Line(.detail, "creating  \(creation)"),
      Line(
        .detail,
        "reading   "
          + (capabilities.publish == .atomic ? "shows whole objects only" : "may show objects before they are complete")
      ),
      Line(
        .detail,
        "listing   "
          + (capabilities.listing == .strong ? "shows at once what was written" : "may show late what was written")),
      Line(.detail, "at once   \(counted(capabilities.maximumConcurrency, "operation"))"),
    ]
    for result in report.conformance.results {
      switch result.outcome {
      case .passed: lines.append(Line(.done, "\(result.name): \(result.claim)"))
      case .skipped(let why): lines.append(Line(.none, "  \(result.name): not tried, \(why)"))
      case .failed(let why):
        lines += [
          Line(.warning, "\(result.name): it does not hold that \(result.claim)"), Line(.detail, why),
          Line(.detail, result.consequence),
        ]
      }
    }
    return lines
  }

  private static func failed(_ report: StoreTestReport) -> Bool { !report.conformance.passed }

  private static func json(_ capabilities: Capabilities) -> JSON {
    [
      "conditional_create": .text(capabilities.conditionalCreate.rawValue),
      "publish": .text(capabilities.publish.rawValue), "listing": .text(capabilities.listing.rawValue),
      "maximum_object_size": .count(capabilities.maximumObjectSize),
      "maximum_concurrency": .count(capabilities.maximumConcurrency), "hints": .bool(capabilities.hints),
    ]
  }

  private static func json(_ result: ConformanceReport.Result) -> JSON {
    let (outcome, detail) =
      switch result.outcome {
      case .passed: ("passed", "")
      case .failed(let why): ("failed", why)
      case .skipped(let why): ("skipped", why)
      }
    return [
      "name": .text(result.name), "claim": .text(result.claim), "outcome": .text(outcome), "detail": .text(detail),
      "consequence": .text(result.consequence),
    ]
  }
}
