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
        data: [Term("devices", "[{name, id, this}]")],
        body: .runs { _, context throws(CommandError) in
          let devices = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.devices()
          }
          let rows = devices.map { [$0.name, String($0.id.prefix(8)), $0.isThis ? "this device" : ""] }
          return Outcome(
            "You have \(counted(devices.count, "device")).", .lines(Columns(rows).lines.map { Line(.none, $0) }),
            data: [
              "devices": .array(
                devices.map { ["name": .text($0.name), "id": .text($0.id), "this": .bool($0.isThis), "kit": .bool($0.isKit)] })
            ])
        }),
    ]))
}
