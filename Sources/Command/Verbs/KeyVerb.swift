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
        exits: [.notAttached, .notAMember],
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
        })
    ]))

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
