import Latchkey

extension Verbs {
  static let device = Verb(
    name: "device",
    summary: "your devices",
    body: .groups([
      Verb(
        name: "add",
        summary: "make an invite for another device of yours",
        details: [
          "The other device runs \"latchkey join\" with it, and is you from then on: keep the link to yourself. It is good "
            + "once, for ten minutes. Afterwards, \"latchkey sync\" here and then there brings it into all your households."
        ],
        options: [.out],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [
          Term("id", "the invite's id"), Term("link", "the link, unless --out is given"),
          Term("file", "with --out, where it is"), Term("household", "your personal household's name"),
          Term("role", "mine"), Term("expires", "when, as UTC time"),
        ],
        examples: ["latchkey device add --out laptop.invite"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("device add", "an invite is random")
          return try await InviteAnswer.make(out: arguments[.out], joining: "latchkey join", context) {
            () async throws(LatchkeyError) in
            try await context.library.addDevice()
          }
        }),
      Verb(
        name: "list",
        summary: "list your devices",
        exits: [.notAttached, .keyRefused],
        data: [Term("devices", "[{name, id, this, kit}], kit: a recovery kit, on paper")],
        body: .runs { _, context throws(CommandError) in
          let devices = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.devices()
          }
          let rows = devices.map {
            [$0.name, String($0.id.prefix(8)), $0.isThis ? "this device" : $0.isKit ? "on paper" : ""]
          }
          return Outcome(
            "You have \(counted(devices.count, "device")).", .lines(Columns(rows).lines.map { Line(.none, $0) }),
            data: [
              "devices": .array(
                devices.map {
                  ["name": .text($0.name), "id": .text($0.id), "this": .bool($0.isThis), "kit": .bool($0.isKit)]
                })
            ])
        }),
      Verb(
        name: "rename",
        summary: "call this device something else",
        arguments: [newName],
        exits: [
          .setAside, .notAttached, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat,
        ],
        data: [
          Term("name", "the new one"),
          Term("pending", "[{household, code, message}]: those that hear of it with the next sync"),
        ],
        examples: ["latchkey device rename \"Ana's laptop\""],
        body: .runs { arguments, context throws(CommandError) in
          let name = try arguments.required(newName)
          var pending: [HouseholdFailure] = []
          if !context.globals.dryRun {
            pending = try await context.performing { () async throws(LatchkeyError) in
              try await context.library.renameDevice(name)
            }
          }
          let message =
            context.globals.dryRun ? "This device would be called \(name)." : "This device is called \(name)."
          var outcome = Outcome(
            message, .lines([Line(context.globals.dryRun ? .none : .done, message)]),
            data: ["name": .text(name), "pending": .failures(pending)])
          outcome.note(pending, "Not done yet in ", code: "households-pending", next: ["latchkey sync"])
          return outcome
        }),
      Verb(
        name: "revoke",
        summary: "shut out a device of yours that was lost, stolen or sold",
        details: [
          "It reads nothing that is written from now on, in any household, and what it writes counts for nobody. No owner is needed. "
            + "What it has read it keeps. Devices that it added go along, unless --keep names them: whoever found it may have added one.",
          "Whoever has the device may have the credential of the store, too: change it where the store is.",
        ],
        arguments: [deviceName],
        options: [keep],
        exits: [
          .setAside, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
          .decisionNeeded, .damageFound, .newerFormat,
        ],
        data: [
          Term("revoked", "[name], the one that was asked for first"),
          Term(
            "pending",
            "[{household, code, message}]: where it still is; the next sync of any device of yours tries again"),
        ],
        examples: ["latchkey device revoke phone", "latchkey device revoke phone --keep watch --yes"],
        body: .runs { arguments, context throws(CommandError) in
          let device = try arguments.required(deviceName)
          let kept = Set((arguments[keep] ?? "").split(separator: ",").map(String.init))
          let going = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.revokeDevice(device, keeping: kept, isRehearsal: true).devices
          }
          if context.globals.dryRun {
            let message = "\(going.joined(separator: ", ")) would be revoked."
            return Outcome(
              message, .lines([Line(.none, message)]),
              data: ["revoked": .array(going.map(JSON.text)), "pending": []])
          }
          try context.terminal.confirm(
            [Line(.warning, "This shuts out \(going.joined(separator: ", ")) for good.")], "Go on?",
            next: ["latchkey device revoke \(device.quotedForShell) --yes"])
          let report = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.revokeDevice(device, keeping: kept)
          }
          let message = "\(report.devices.joined(separator: ", ")) revoked."
          var outcome = Outcome(
            message, .lines([Line(.done, message)]),
            data: [
              "revoked": .array(report.devices.map(JSON.text)),
              "pending": .failures(report.pending),
            ])
          outcome.notes = [
            Line(.warning, "Change the store's credential, if there is one: the device may hold it.")
          ]
          outcome.note(report.pending, "Not done yet in ", code: "households-pending", next: ["latchkey sync"])
          return outcome
        }),
    ]))

  private static let newName = Argument("NAME", .text, "the new name")
  private static let deviceName = Argument("DEVICE", .text, "the name, or the first six characters of the id or more")
  private static let keep = Option.taking(
    "NAMES", .text, "keep", "devices that the revoked one added and that stay, separated by commas")
}
