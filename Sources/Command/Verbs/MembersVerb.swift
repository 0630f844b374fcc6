extension Verbs {
  static let members = Verb(
    name: "members",
    summary: "the people of a household",
    body: .groups([
      Verb(
        name: "list",
        summary: "list the people of a household, with their roles and devices",
        options: [.household],
        exits: [.notAttached, .notAMember],
        data: [
          Term("household", "its name"),
          Term("members", "[{name, id, role, status, you, devices: [{name, id}]}]"),
        ],
        body: .runs(unwired))
    ]))
}
