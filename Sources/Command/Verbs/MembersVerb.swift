import Latchkey
import LatchkeyKeys

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
          var outcome = Outcome(
            "\(report.household) has \(counted(report.members.count, "member")).", .lines(lines(report)),
            data: ["household": .text(report.household), "members": .array(report.members.map(json))])
          let owners = report.members.filter { $0.role == "owner" }
          if report.members.count > 1, owners.count == 1, let owner = owners.first {
            outcome.notes = [
              Line(
                .detail,
                "\(owner.you ? "You are" : "\(owner.name) is") the only owner: a second one can invite and remove, too."
              )
            ]
            if owner.you { outcome.next = ["latchkey members role NAME owner"] }
          }
          return outcome
        }),
      Verb(
        name: "role",
        summary: "change what somebody may do",
        details: [
          "Readers read; members write, too; owners decide about people. Whoever becomes a reader keeps what counted so far."
        ],
        arguments: [member, role],
        options: [.household],
        exits: [.notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .damageFound, .newerFormat],
        data: [Term("member", "the name"), Term("role", "the new role")],
        examples: ["latchkey members role Ben reader"],
        body: .runs { arguments, context throws(CommandError) in
          try context.refuseDryRun("members role", "it is sent at once")
          let given = try arguments.required(member)
          let name = try arguments.required(role)
          let role: Role = name == "owner" ? .owner : name == "member" ? .member : .reader
          let changed = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.setRole(role, of: given, household: arguments[.household])
          }
          let message = "\(changed) is \(name == "owner" ? "an owner" : "a \(name)") now."
          return Outcome(
            message, .lines([Line(.done, message)]), data: ["member": .text(changed), "role": .text(name)])
        }),
      Verb(
        name: "remove",
        summary: "remove somebody from the household, for good",
        details: [
          "The household goes on with a new key: the removed keep what they could read so far, and neither read nor find what is "
            + "written afterwards. What they wrote stays. Open invites end; people whom only they invited go along, unless --keep "
            + "names them.",
          "They may still hold the credential of the store, and can delete and count objects with it: change it where the store is.",
        ],
        arguments: [member],
        options: [.household, confirm, keep],
        exits: [
          .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused, .decisionNeeded,
          .damageFound,
          .newerFormat,
        ],
        data: [Term("removed", "[name], the one that was asked for first")],
        examples: ["latchkey members remove Ben", "latchkey members remove Ben --confirm Ben --keep Carla"],
        body: .runs { arguments, context throws(CommandError) in
          let given = try arguments.required(member)
          let household = arguments[.household]
          let kept = Set((arguments[keep] ?? "").split(separator: ",").map(String.init))
          let going = try await context.performing { () async throws(LatchkeyError) in
            try await context.library.removeMember(given, household: household, keeping: kept, isRehearsal: true)
          }
          let name = going.first ?? given
          if !context.globals.dryRun {
            try context.terminal.confirm(
              [Line(.warning, "This removes \(going.joined(separator: ", ")) for good.")], typing: name,
              given: arguments[confirm], next: ["latchkey members remove \(given) --confirm \(name)"])
            try await context.performing { () async throws(LatchkeyError) in
              _ = try await context.library.removeMember(given, household: household, keeping: kept)
            }
          }
          let verb = context.globals.dryRun ? "would be removed" : "removed"
          let message = "\(going.joined(separator: ", ")) \(verb)."
          var outcome = Outcome(
            message, .lines([Line(context.globals.dryRun ? .none : .done, message)]),
            data: ["removed": .array(going.map(JSON.text))])
          outcome.notes = [
            Line(
              .warning,
              "Change the store's credential, if there is one: they may still hold it, and can delete and count objects with it."
            )
          ]
          return outcome
        }),
    ]))

  private static let member = Argument("MEMBER", .text, "the name, or the first six characters of the id or more")
  private static let role = Argument("ROLE", .choice(["reader", "member", "owner"]), "reader, member or owner")
  private static let confirm = Option.taking("NAME", .text, "confirm", "the member's name, instead of typing it")
  private static let keep = Option.taking(
    "NAMES", .text, "keep", "people whom the member invited and who stay, separated by commas")

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
