internal import LatchkeyEncoding

/// Which of concurrent `Next`s is taken first: the smaller (format §8). Taken in the state of the entry's own ancestors, so
/// nobody changes it later, and of nothing that its author can grind: the hash decides only between entries of one device,
/// and that is a fork.
struct SuccessionRank: Hashable, Comparable, Sendable {
  /// 0 an owner's kit, 1 an owner's device, 2 a member's kit, 3 a member's device.
  let seniority: Int
  /// Causal depth at which the author was enrolled.
  let enrolment: UInt64
  let device: DeviceID
  let hash: EntryHash

  init(paper: RosterFacts.Paper, role: Role, enrolment: UInt64, device: DeviceID, hash: EntryHash) {
    seniority = (paper == .foundingKit ? 0 : 1) + (role == .owner ? 0 : 2)
    self.enrolment = enrolment
    self.device = device
    self.hash = hash
  }

  static func < (a: Self, b: Self) -> Bool {
    (a.seniority, a.enrolment, a.device, a.hash) < (b.seniority, b.enrolment, b.device, b.hash)
  }
}
