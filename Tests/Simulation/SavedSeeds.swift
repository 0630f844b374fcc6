/// Seeds that once found something, each with what it was: `--saved` runs them all.
///
/// A seed says the same only while what is drawn from it stays in order.
enum SavedSeeds {
  static let all: [(seed: UInt64, found: String)] = [
    (
      60,
      "a newcomer who changed its link lost the key of an epoch that only the first link opened, where its rows waited"
    ),
    (153, "two owners narrowed and removed at once: one of them has to look into an epoch that it only walked through"),
    (
      202,
      "somebody who was not in carried what was accepted of a removed device, and did not do it again once it was in"
    ),
    (273, "a device that was let in by somebody who had no right to by then could not be let in by anybody else"),
    (338, "a device that was let in beside the household's history hears of that, or says that nobody is heard"),
  ]
}
