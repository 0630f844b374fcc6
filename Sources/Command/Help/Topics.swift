/// What is not about one verb: `latchkey help TOPIC`.
struct Topic: Sendable {
  let name: String
  /// In one line without a full stop.
  let summary: String
  let title: String
  let blocks: [Page.Block]
}

enum Topics {
  static let all = [
    Topic(
      name: "exit-codes", summary: "what the command can end with", title: "Exit codes",
      blocks: [
        .paragraph("A number that is not listed here is a failure."),
        .terms(Page.terms(ExitCode.allCases)),
        .paragraph(
          "Where a number covers several cases, the member code of the JSON answer (--json) says which one it is."),
      ]),
    Topic(
      name: "environment", summary: "the variables the command reads", title: "Environment",
      blocks: [.terms(Environment.documented)]),
    Topic(
      name: "files", summary: "what the command keeps, and where", title: "Files",
      blocks: [
        .paragraph(
          "Identity, keys and settings of this device are in the directory that --home or LATCHKEY_HOME names; without "
            + "either, settings are in $XDG_CONFIG_HOME/latchkey (~/.config/latchkey) and the rest in "
            + "$XDG_STATE_HOME/latchkey (~/.local/state/latchkey). Only their owner can read the files with keys in them; "
            + "who has them and the store can read what the household shares."),
        .paragraph(
          "An attached database holds tables, views and triggers whose names begin with lk_, which detach takes away again. "
            + "Copying a database file copies what it knows about its synchronisation too: attach copies one by one, and "
            + "never put an attached file itself into a folder that another program synchronises."),
        .paragraph(
          "Secrets are never taken from the command line. A file that holds one is read only if its owner alone can "
            + "read it (chmod 600)."),
      ]),
    Topic(
      name: "stores", summary: "where a household's data can be kept", title: "Stores",
      blocks: [
        .paragraph(
          "A store is storage that only stores: it sees encrypted objects with names that say nothing, their sizes and "
            + "times. It is named by a URL:"),
        .terms([
          Term("folder:PATH", "a directory: on a disk, a network share, or kept in step by another program"),
          Term("PATH", "the same, if it is a path (it holds a slash, or the directory exists)"),
        ]),
        .paragraph(
          "A directory that is missing, or was emptied, stops synchronisation with exit code 11. It is never taken for a "
            + "household that deleted everything."),
      ]),
  ]

  /// The shape of every JSON answer, for the documentation.
  static let answer: [Page.Block] = [
    .paragraph(
      "With --json, every verb writes exactly one object to standard output, also when it fails and when the command "
        + "line is wrong:"),
    .code([#"{"v":1,"ok":true,"code":"done","message":"…","next":["…"],"data":{…}}"#]),
    .terms([
      Term("v", "the version of this shape"),
      Term("ok", "whether what was asked for happened (exit codes 0 and 3)"),
      Term("code", "which case it is, for programs"),
      Term("message", "the same for people: what happened, and why"),
      Term("next", "commands that lead on"),
      Term("data", "the answer; its members are listed with each verb"),
    ]),
  ]
}
