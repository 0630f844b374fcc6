import Latchkey

extension Verbs {
  static let initialise = Verb(
    name: "init",
    summary: "make an identity for you and this device, and your personal household",
    details: [
      "The identity and its keys stay in the home directory. The store is where your own devices meet; what is written "
        + "there is encrypted. If the directory does not exist it is made.",
      "With one device only, losing the device loses the keys: add a second one with \"latchkey device add\".",
    ],
    options: [Option.name.required, .device, Option.store.required, .credentialFile],
    exits: [.storeUnavailable, .databaseBusy, .keyRefused, .newerFormat],
    data: [
      Term("member", "your id"), Term("device", "this device's id"),
      Term("household", "your personal household's name"),
      Term("store", "where it is kept"),
    ],
    examples: ["latchkey init --name Ana --store ~/Dropbox/latchkey"],
    body: .runs { arguments, context throws(CommandError) in
      let name = try arguments.required(.name)
      let store = try arguments.required(.store)
      try context.refuseDryRun("init", "identity and keys are random")
      let credential = try arguments.credential()
      let identity = try await context.performing { () async throws(LatchkeyError) in
        try await context.library.initialize(
          name: name, device: arguments[.device], store: store, credential: credential)
      }
      let own = identity.households.first(where: \.isPrivate)
      var outcome = Outcome(
        "The identity of \(identity.name) was made on this device.",
        .lines([
          Line(.done, "\(identity.name) on \(identity.device): identity and personal household made."),
          Line(.detail, "store  \(own?.store ?? "")"), Line(.detail, "keys   \(context.home.state)"),
        ]),
        data: [
          "member": .text(identity.person), "device": .text(identity.deviceID), "household": .text(own?.name),
          "store": .text(own?.store),
        ])
      outcome.notes = [
        Line(
          .warning, "This is your only device: if it is lost, so are the keys. \"latchkey device add\" adds another.")
      ]
      outcome.next = ["latchkey attach DB"]
      return outcome
    })
}
