/// Seeds that once found something, each with what it was: `--saved` runs them all.
///
/// A seed says the same only while what is drawn from it stays in order: what it found has a unit test of its own besides.
enum SavedSeeds {
  static let all: [(seed: UInt64, found: String)] = [
    (10, "a newcomer whose link led into an epoch that was left found no Genesis where the store had lost it"),
    (78, "the same, where the loss was noticed in the round that went on from that epoch"),
  ]
}
