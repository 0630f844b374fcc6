extension Verbs {
  private static let db = Option.taking(
    "DB", .database, "db", "the database file; made from the zone's schema if there is none")
  private static let inviteFile = Option.taking(
    "FILE", .file, "invite-file", "read the invite from this file, which only you can read (default: standard input)")
  private static let personalStore = Option.taking(
    "URL", .store, "personal-store", "where your own household is kept, if you have none yet")
  private static let template = Option.taking(
    "FILE", .file, "template", "an empty database of the app, copied for the new file")

  static let join = Verb(
    name: "join",
    summary: "join a household, or add this device to your own, with an invite",
    details: [
      "The invite is read from --invite-file, from what is piped to standard input, or typed without being shown; never "
        + "from the command line.",
      "With --name an identity is made if this device has none. An invite made by \"latchkey device add\" adds this device to "
        + "the person who made it, and needs no --db.",
    ],
    options: [
      db, inviteFile, .zone.saying("which zone of the household, if it has several"),
      .name.saying("your name, if this device has no identity yet"), .device, personalStore,
      .store.saying("where the household's store is reached from here"), template,
    ],
    exits: [
      .unusableDatabase, .setAside, .cancelled, .notAttached, .storeUnavailable, .databaseBusy, .notAMember,
      .keyRefused,
      .decisionNeeded, .newerFormat,
    ],
    data: [
      Term("household", "its name"), Term("zone", "the zone's name"), Term("role", "your role"),
      Term("path", "the database file"), Term("received", "rows received"),
      Term("parked", "rows that cannot be shown fully yet"),
    ],
    examples: [
      "latchkey join --db budget.db --invite-file ben.invite",
      "latchkey join --db budget.db --name Ben --personal-store ~/latchkey < ben.invite",
    ],
    body: .runs(unwired))
}
