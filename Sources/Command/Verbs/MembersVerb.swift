import Latchkey

extension Verbs {
  static let members = Verb(
    name: "members",
    summary: "the people of a household",
    body: .groups([
      Verb(
        name: "list",
        summary: "list the people of a household, with their roles and devices",
        options: [.household],
        exits: [.notAttached, .notAMember, .keyRefused],
        data: [
          Term("household", "its name"),
          Term("members", "[{name, id, role, status, you, devices: [{name, id}]}]"),
        ],
        body: .runs { arguments, context throws(CommandError) in
          let report = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.members(household: arguments[.household])
          }
          return Outcome(
            "\(report.household) has \(counted(report.members.count, "member")).", .lines(lines(report)),
            data: ["household": .text(report.household), "members": .array(report.members.map(json))])
        })
    ]))

  private static func lines(_ report: MembersReport) -> [Line] {
    let rows = report.members.map { member in
      [
        member.name + (member.you ? " (you)" : ""), member.role, String(member.id.prefix(8)),
        member.devices.map { $0.name + ($0.isThis ? " (this device)" : "") }.joined(separator: ", "),
      ]
    }
    return [Line(.none, report.household)] + Columns(rows).lines.map { Line(.detail, $0) }
  }

  private static func json(_ member: MembersReport.Member) -> JSON {
    [
      "name": .text(member.name), "id": .text(member.id), "role": .text(member.role), "status": .text(member.status),
      "you": .bool(member.you),
      "devices": .array(member.devices.map { ["name": .text($0.name), "id": .text($0.id)] }),
    ]
  }
}
