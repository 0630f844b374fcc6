/// The table of verbs: the one place that says what `latchkey` can do.
enum Verbs {
  /// In the order help shows them.
  static let all: [Verb] = [
    initialise, attach, detach, sync, run, share, invite, invites, requests, join, inbox, card, device, status, decide,
    counts, explain, members, leave, key, export, rules, recipe, conflicts, trash, log, restore, fsck, store, forget,
    completion, help,
  ]

  /// The verbs that only group actions.
  static var groups: [Verb] { all.filter { !$0.actions.isEmpty } }

  /// The path to everything that does something itself.
  static var leaves: [[Verb]] {
    all.flatMap { verb in verb.actions.isEmpty ? [[verb]] : verb.actions.map { [verb, $0] } }
  }

  /// Every option once, by name.
  static var options: [Option] {
    var seen: Set<String> = []
    let options = Globals.options + leaves.flatMap { $0.last?.options ?? [] }
    return options.filter { seen.insert($0.name).inserted }
  }
}
