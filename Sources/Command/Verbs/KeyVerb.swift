import Latchkey

extension Verbs {
  static let key = Verb(
    name: "key",
    summary: "your keys",
    body: .groups([
      Verb(
        name: "show",
        summary: "show your public identity and the keys at hand, never a secret",
        details: [
          "The fingerprint is over the household's roster: two devices that show the same one know the same members, devices "
            + "and invites."
        ],
        options: [Option.household.saying("only this household")],
        exits: [.notAttached, .notAMember, .keyRefused],
        data: [
          Term("member", "{name, id}"), Term("device", "{name, id}"),
          Term("households", "[{name, id, epoch, fingerprint: [text]}], fingerprint: ten groups of four digits"),
        ],
        body: .runs { arguments, context throws(CommandError) in
          let identity = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.identity()
          }
          let report = try await context.performing { () async throws(LatchkeyError) in try await context.library.keys()
          }
          let households = try chosen(report.households, arguments[.household])
          return Outcome(
            "Keys of \(identity.name) on \(identity.device).", .lines(lines(identity, households)),
            data: [
              "member": ["name": .text(identity.name), "id": .text(report.person)],
              "device": ["name": .text(identity.device), "id": .text(report.device)],
              "households": .array(
                households.map {
                  [
                    "name": .text($0.name), "id": .text($0.id), "epoch": .text($0.epoch),
                    "fingerprint": .array($0.fingerprint.map(JSON.text)),
                  ]
                }),
            ])
        }),
      Verb(
        name: "rotate",
        summary: "go on with a new household key",
        details: [
          "For when a key may have been seen by somebody: what is written from now on is sealed with a new one. Everybody who is in "
            + "gets it with the next sync."
        ],
        options: [.household],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [Term("epoch", "the beginning of the new epoch's id")],
        examples: ["latchkey key rotate"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("key rotate", "a key is random")
          let epoch = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.rotateKey(household: arguments[.household])
          }
          let message = "The household goes on in epoch \(epoch)."
          return Outcome(message, .lines([Line(.done, message)]), data: ["epoch": .text(epoch)])
        }),
      verifyKeys, recoveryKit, recover, passphrase,
    ]))

  private static let action = Argument("ACTION", .choice(["set", "remove"]), "set (also changes it), or remove")
  private static let newFile = Option.taking(
    "FILE", .file, "new-file", "set: a file, which only you can read, with the new passphrase in its first line")

  private static let passphrase = Verb(
    name: "passphrase",
    summary: "seal this device's keys with a passphrase",
    details: [
      "Without one, whoever can read your files has your keys. With one, they are sealed with what Argon2id makes of it: every "
        + "command then asks for it and takes about a second longer.",
      "The passphrase that there is comes from the file that LATCHKEY_PASSPHRASE_FILE names, or is asked for; the new one comes "
        + "from --new-file, from standard input, or is asked for. Copies of the keys made before stay as they were. Databases are "
        + "not sealed.",
      "Nobody can recover a forgotten passphrase: another device of yours still works, and can let this one in anew.",
    ],
    arguments: [action],
    options: [newFile],
    exits: [.databaseBusy, .notAttached, .keyRefused, .newerFormat],
    data: [Term("passphrase", "whether there is one now"), Term("changed", "whether this changed it")],
    examples: ["latchkey key passphrase set"],
    body: .runs { arguments, context throws(CommandError) in
      let isSetting = try arguments.required(action) == "set"
      if !isSetting, arguments[newFile] != nil {
        throw .usage(
          "unexpected-option", "--new-file is for \"set\": nothing replaces a passphrase that is removed.",
          next: ["latchkey key passphrase remove"])
      }
      let had = try await context.performing { () async throws(LatchkeyError) in
        // Who has to be asked for the old one is asked first.
        _ = try await context.library.identity()
        return try await context.library.hasPassphrase()
      }
      let isDry = context.globals.dryRun
      if isSetting {
        let new = try context.terminal.newPassphrase(
          file: arguments[newFile], next: ["latchkey key passphrase set --new-file FILE"])
        if !isDry {
          try await context.performing { () async throws(LatchkeyError) in try await context.library.setPassphrase(new)
          }
        }
      } else if had, !isDry {
        _ = try await context.performing { () async throws(LatchkeyError) in
          try await context.library.removePassphrase()
        }
      }
      let isChanged = isSetting || had
      let message =
        switch (isSetting, isDry) {
        case (true, false): had ? "The passphrase is changed." : "Your keys are sealed with the passphrase."
        case (true, true): "Your keys would be sealed with the passphrase."
        case (false, false): had ? "Your keys lie open to whoever can read your files." : "There was no passphrase."
        case (false, true): had ? "The passphrase would be removed." : "There is no passphrase."
        }
      return Outcome(
        message, .lines([isDry || !isChanged ? Line(.none, message) : Line(.done, message)]),
        data: ["passphrase": .bool(isDry ? had : isSetting), "changed": .bool(isChanged && !isDry)])
    })

  private static func chosen(
    _ households: [KeyReport.Household], _ name: String?
  ) throws(CommandError) -> [KeyReport.Household] {
    guard let name else { return households }
    let chosen = households.filter { $0.name == name }
    guard !chosen.isEmpty else {
      throw .usage(
        "no-such-household", "There is no household \(name.printable) on this device.",
        next: households.map { "--household \($0.name.quotedForShell)" })
    }
    return chosen
  }

  private static func lines(_ identity: Latchkey.Identity, _ households: [KeyReport.Household]) -> [Line] {
    let identityRows = Columns([
      ["person", identity.name, identity.person], ["device", identity.device, identity.deviceID],
    ])
    return identityRows.lines.map { Line(.none, $0) }
      + households.flatMap { household -> [Line] in
        [
          "household \(household.name), epoch \(household.epoch)",
          Line(.detail, household.fingerprint.joined(separator: " ")),
        ]
      }
  }
}
