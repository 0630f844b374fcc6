extension Verbs {
  static let key = Verb(
    name: "key",
    summary: "your keys",
    body: .groups([
      Verb(
        name: "show",
        summary: "show your public identity and the keys at hand, never a secret",
        options: [.household],
        exits: [.notAttached],
        data: [
          Term("member", "{name, id}"), Term("device", "{name, id}"),
          Term("households", "[{name, id, epoch, role}]"),
        ],
        body: .runs(unwired))
    ]))
}
