internal import LatchkeyEncoding

/// Whether a `Next` is what it says: commitment, every seal and every former key are the ones its key makes.
enum NextForm: Hashable, Sendable {
  /// Recomputed, and right.
  case wellFormed
  /// Recomputed, and wrong; or a seal in it does not open.
  case flawed(NextRefusal)
  /// Nobody has shown its key here: taken as right (format §8).
  case unproven

  var isFlawed: Bool {
    if case .flawed = self { return true }
    return false
  }
}

/// What is known of the keys that `Next`s hand out. It only grows.
struct EpochKnowledge: Sendable {
  /// Found well-formed before, by this device.
  let trusted: Set<EpochID>
  /// Keys said to be an epoch's; whether one fits is for its commitment to say.
  private(set) var keys: [EpochID: EpochKey] = [:]
  /// Keys that came for an epoch and do not fit it: one that its `Next` seals proves that `Next` wrong.
  private(set) var strays: [EpochID: [EpochKey]] = [:]
  /// The own seal in it does not open.
  private(set) var unopenable: Set<EpochID> = []
  /// One of its recipients, not its author, says that its seal does not open.
  private var denied: Set<EpochID> = []
  /// One of its recipients, not its author, has sealed its key to others, or begun an epoch that follows it.
  private var affirmed: Set<EpochID> = []
  /// Enough for every witness, too few to keep a reader busy.
  private static let straysPerEpoch = 1024

  init(trusted: Set<EpochID>) { self.trusted = trusted }

  /// Whether that was new.
  mutating func learn(_ key: EpochKey, of epoch: EpochID) -> Bool {
    if keys[epoch] == key { return false }
    keys[epoch] = key
    return true
  }

  /// Whether that was new.
  mutating func learn(stray key: EpochKey, of epoch: EpochID) -> Bool {
    let list = strays[epoch] ?? []
    guard !list.contains(key), list.count < Self.straysPerEpoch else { return false }
    strays[epoch, default: []].append(key)
    return true
  }

  mutating func refuse(_ epoch: EpochID) -> Bool { unopenable.insert(epoch).inserted }

  mutating func deny(_ epoch: EpochID) -> Bool { denied.insert(epoch).inserted }

  mutating func affirm(_ epoch: EpochID) -> Bool { affirmed.insert(epoch).inserted }

  /// Believed by those who hold no key of it.
  func isDenied(_ epoch: EpochID) -> Bool { denied.contains(epoch) && !affirmed.contains(epoch) }
}
