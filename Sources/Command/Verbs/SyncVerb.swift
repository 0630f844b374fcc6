extension Verbs {
  private static let untilSettled = Option.flag(
    "until-settled", "repeat until there is nothing left to send or receive")

  static let sync = Verb(
    name: "sync",
    summary: "receive what others changed, apply it, and send what changed here",
    details: [
      "One round for one file, or for every attached file. It can be killed at any point: the next round goes on where it "
        + "stopped."
    ],
    arguments: [Argument.database.optional],
    options: [untilSettled],
    exits: [
      .unusableDatabase, .setAside, .notAttached, .storeUnavailable, .databaseBusy, .notAMember, .keyRefused,
      .decisionNeeded, .damageFound, .newerFormat,
    ],
    data: [
      Term("sent", "rows sent"), Term("received", "rows received"),
      Term("waiting", "changes not acknowledged by the store"),
      Term("parked", "rows received that cannot be shown fully yet"),
      Term("requests", "{verb: count} to the store"),
      Term("bytes_up", "bytes sent"), Term("bytes_down", "bytes received"),
      Term("warnings", "[text]"),
    ],
    examples: ["latchkey sync", "latchkey sync budget.db --until-settled"],
    body: .runs(unwired))
}
