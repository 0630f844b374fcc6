import Latchkey
import LatchkeyKeys

extension Verbs {
  static let recoveryKit = Verb(
    name: "recovery-kit",
    summary: "make a recovery kit: 24 words on paper that bring you back",
    details: [
      "The words are a device of yours, on paper: whoever has them and can reach the store is you. Write them down or print the page, "
        + "and keep it where you keep your papers; no file, no photograph. They are shown once.",
      "A kit that you made before stays good until you revoke it (latchkey device revoke \"recovery kit\").",
    ],
    options: [.out],
    exits: [
      .setAside, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat,
    ],
    data: [
      Term("words", "[text], unless --out is given"), Term("file", "with --out, where the page is"),
      Term("households", "[name]: what it opens"), Term("stores", "[URL]: where to look"),
      Term("missing", "[{household, code, message}]: what it does not open yet"),
    ],
    examples: ["latchkey key recovery-kit --out kit.txt"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("key recovery-kit", "the words are random")
      var file: SmallFile.Reserved?
      if let out = arguments[.out] { file = try SmallFile.Reserved(out) }
      let kit: RecoveryKit
      do throws(LatchkeyError) { kit = try await context.library.makeRecoveryKit() } catch {
        file?.discard()
        throw CommandError(error)
      }
      let page = KitPage(kit).text
      try file?.fill(page)
      let message =
        "A recovery kit for \(kit.households.joined(separator: ", ")) was made"
        + (arguments[.out].map { " and written to \($0)." } ?? ".")
      var outcome = Outcome(
        message, file == nil ? .text(page) : .lines([Line(.done, message)]),
        data: .object([
          arguments[.out].map { JSON.Member(name: "file", value: .text($0)) }
            ?? JSON.Member(name: "words", value: .array(kit.words.map(JSON.text))),
          JSON.Member(name: "households", value: .array(kit.households.map(JSON.text))),
          JSON.Member(name: "stores", value: .array(kit.stores.map(JSON.text))),
          JSON.Member(name: "missing", value: .failures(kit.missing)),
        ]))
      outcome.notes = [
        Line(.warning, "Whoever has these words is you: on paper only, and nowhere else.")
      ]
      outcome.note(kit.missing, "", code: "households-missing")
      outcome.next = ["print or copy it by hand" + (file == nil ? "" : ", then remove the file")]
      return outcome
    })

  private static let wordsFile = Option.taking(
    "FILE", .file, "words-file", "read the words from this file, which only you can read (default: standard input)")

  static let recover = Verb(
    name: "recover",
    summary: "become yourself again on a new device, from a recovery kit and the store",
    details: [
      "The 24 words are read from --words-file, from what is piped to standard input, or typed without being shown. Case, "
        + "line breaks and the numbers of the page do not matter.",
      "Your other devices stay until you revoke those that are lost. Files are made anew from the store: latchkey attach NEW-FILE "
        + "--zone ZONE.",
    ],
    options: [
      .store.required.saying("the store of any household that the kit opens, yours first"), wordsFile, .device,
    ],
    exits: [
      .setAside, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat,
    ],
    data: [
      Term("person", "your name"), Term("device", "this device's name"), Term("households", "[name]"),
      Term("zones", "[{household, zone}]"),
      Term("missing", "[{household, code, message}]: households that could not be entered"),
    ],
    examples: ["latchkey key recover --store folder:/mnt/nas/latchkey --words-file kit.txt"],
    body: .runs { arguments, context throws(CommandError) in
      try context.refuseDryRun("key recover", "what is there only the words tell")
      let typed = try context.terminal.readSecretText(
        "the 24 words", file: arguments[wordsFile],
        next: ["latchkey key recover --store URL --words-file FILE", "latchkey key recover --store URL < FILE"])
      let phrase: RecoveryPhrase
      do throws(RecoveryPhraseError) { phrase = try RecoveryPhrase(parsing: KitPage.words(in: typed)) } catch {
        throw CommandError(error)
      }
      let store = try arguments.required(.store)
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.recover(phrase, store: store, device: arguments[.device])
      }
      let message = "This device is \(report.person)'s again: \(report.households.joined(separator: ", "))."
      var outcome = Outcome(
        message, .lines([Line(.done, message)]),
        data: [
          "person": .text(report.person), "device": .text(report.device),
          "households": .array(report.households.map(JSON.text)),
          "zones": .array(report.zones.map { ["household": .text($0.household), "zone": .text($0.zone)] }),
          "missing": .failures(report.missing),
        ])
      outcome.note(report.missing, "", code: "households-missing")
      if !report.isComplete {
        outcome.notes.append(
          Line(
            .warning,
            "Your personal household was not found there. If you had one, run this again with its store: it leads to all others."
          ))
      }
      outcome.next =
        report.zones.map { "latchkey attach NEW-FILE --zone \($0.zone.quotedForShell)   (household \($0.household))" }
        + ["latchkey device revoke NAME   (a lost device)"]
      return outcome
    })

  static let verifyKeys = Verb(
    name: "verify",
    summary: "compare ten words with another member: do you see the same household?",
    details: [
      "Sync both devices, then read the words to each other. They are over the whole roster: a store that hides a member, a device or a "
        + "removal from one of you makes them differ. So does a device that has not synced yet."
    ],
    options: [.household, .words],
    exits: [.notAttached, .notAMember, .keyRefused],
    data: [
      Term("household", "its name"), Term("words", "[text]"),
      Term("same", "true if --words was given and is the same; null without"),
    ],
    examples: ["latchkey key verify", "latchkey key verify --words \"…\""],
    body: .runs { arguments, context throws(CommandError) in
      let given = arguments[.words]
      let report = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.verifyWords(household: arguments[.household], against: given)
      }
      let message =
        given == nil
        ? "The words of \(report.household) on this device: \(report.words.joined(separator: " "))."
        : "Both devices know the same members, devices and invites of \(report.household)."
      return Outcome(
        message, .lines(given == nil ? [Line(.none, report.words.joined(separator: " "))] : [Line(.done, message)]),
        data: [
          "household": .text(report.household), "words": .array(report.words.map(JSON.text)),
          "same": given == nil ? .null : .bool(true),
        ])
    })
}

extension CommandError {
  /// Why words are not a recovery phrase: exit code 14, and which word it is.
  init(_ error: RecoveryPhraseError) {
    switch error {
    case .count(let count):
      self.init(
        .keyRefused, "words-incomplete", "A recovery kit has 24 words, not \(count). Nothing was tried with them.",
        next: ["type all words of the sheet"])
    case .unknownWord(let position, let word, let suggestions):
      let perhaps = suggestions.isEmpty ? "" : " Perhaps: \(suggestions.joined(separator: ", "))."
      self.init(
        .keyRefused, "word-unknown",
        "Word \(position), \(word), is none of the list.\(perhaps) Nothing was tried with them.",
        next: ["check word \(position) on the sheet"])
    case .checksum:
      self.init(
        .keyRefused, "words-mistyped",
        "All are words of the list, but they do not belong together: two or more are wrong, or stand in another order. Nothing was tried with them.",
        next: ["compare the order with the numbers on the sheet"])
    }
  }
}

/// The page to print: what it is, how it is used, and the words with their numbers.
struct KitPage {
  private let kit: RecoveryKit
  init(_ kit: RecoveryKit) { self.kit = kit }

  private static let columns = 3

  var text: String {
    let rows = (kit.words.count + Self.columns - 1) / Self.columns
    let lines = (0..<rows).map { row in
      (0..<Self.columns).map { row + $0 * rows }.filter { $0 < kit.words.count }.map { index in
        let number = "\(index + 1)."
        let cell = String(repeating: " ", count: 4 - number.count) + number + " " + kit.words[index]
        return cell + String(repeating: " ", count: max(0, 18 - cell.count))
      }.joined().trimmedRight
    }
    return """
      RECOVERY KIT OF \(kit.person.printable)
      Households: \(kit.households.map(\.printable).joined(separator: ", "))
      Kept in: \(kit.stores.map(\.printable).joined(separator: ", "))

      Whoever has these words and can reach the store is this person. Keep the
      sheet with your papers; make no photograph and no copy on a computer.

      \(lines.joined(separator: "\n"))

      On a new device: latchkey key recover --store URL
      It asks for the words. Afterwards revoke what was lost:
      latchkey device list, latchkey device revoke NAME

      """
  }

  /// The words in what somebody gave: of a page those behind the numbers 1 to 24, in the order of the numbers; anything else is taken whole.
  static func words(in text: String) -> String {
    let tokens = text.split(whereSeparator: \.isWhitespace)
    var numbered: [Int: Substring] = [:]
    for (token, word) in zip(tokens, tokens.dropFirst()) where token.last == "." {
      guard let number = Int(token.dropLast()), (1...RecoveryPhrase.count).contains(number), numbered[number] == nil
      else {
        continue
      }
      numbered[number] = word
    }
    guard numbered.count == RecoveryPhrase.count else { return text }
    return numbered.sorted { $0.key < $1.key }.map { String($0.value) }.joined(separator: " ")
  }
}

extension String {
  fileprivate var trimmedRight: String {
    var rest = self[...]
    while rest.last == " " { rest.removeLast() }
    return String(rest)
  }
}
