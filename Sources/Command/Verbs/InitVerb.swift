extension Verbs {
  static let initialise = Verb(
    name: "init",
    summary: "make an identity for you and this device, and your personal household",
    details: [
      "The identity and its keys stay in the home directory. The store is where your own devices meet; what is written "
        + "there is encrypted. If the directory does not exist it is made.",
      "With one device only, losing the device loses the keys: add a second one with \"latchkey device add\".",
    ],
    options: [Option.name.required, .device, Option.store.required],
    exits: [.storeUnavailable, .keyRefused],
    data: [
      Term("member", "your id"), Term("device", "this device's id"),
      Term("household", "your personal household's name"),
      Term("store", "where it is kept"),
    ],
    examples: ["latchkey init --name Ana --store ~/Dropbox/latchkey"],
    body: .runs(unwired))
}
