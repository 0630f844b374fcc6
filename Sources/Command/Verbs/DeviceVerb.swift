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
            + "once, for ten minutes."
        ],
        options: [.out],
        exits: [.notAttached, .storeUnavailable],
        data: [
          Term("id", "the invite's id"), Term("link", "the link, unless --out is given"),
          Term("file", "with --out, where it is"), Term("expires", "when, as UTC time"),
        ],
        examples: ["latchkey device add --out laptop.invite"],
        body: .runs(unwired)),
      Verb(
        name: "list",
        summary: "list your devices",
        exits: [.notAttached],
        data: [Term("devices", "[{name, id, this}]")],
        body: .runs(unwired)),
    ]))
}
