/// What one run is made of, drawn from its seed: each kind of operation and fault is on or off for the whole run, so that
/// runs differ in kind and not only in order (Groce et al., "Swarm Testing", 2012).
struct Swarm {
  /// What the devices' clocks do.
  enum Clocks {
    /// All right, and time stands still for long: readings meet.
    case still
    case right
    /// Wrong by up to a few minutes, drifting.
    case loose
    /// Wrong by hours and days, jumping.
    case wild
  }

  /// No run has more devices.
  static let mostDevices = 7

  let devices: Int
  let steps: Int
  let operations: [AppOperation]
  let keys: Int
  let isWordy: Bool
  let clocks: Clocks
  let faults: StoreFaults
  /// Percent of effects after which, or in the transaction of which, the process dies.
  let crashes: Int
  /// Percent of steps that are the app's.
  let appShare: Int
  /// Most rows stamped in a pass.
  let stampLimit: Int
  /// Whether all devices are one person's.
  let isPrivate: Bool

  /// The versions of the app, in order: none for a schema that stays.
  let migrations: [AppSchema.Migration]
  /// Whether all devices have the app's last version in the end.
  let endsWithOneVersion: Bool

  /// How often somebody changes who may read and write, in steps of a hundred; 0: never.
  let memberShare: Int
  /// Whether the store is put back to an earlier state on the way.
  let isRestored: Bool
  /// Steps in which one of the devices is not used at all.
  let absence: Range<Int>?
  /// Whether somebody comes in when all is settled, and must get everything.
  let hasLatecomer: Bool

  /// - Parameter isCalm: without faults.
  init(seed: UInt64, isCalm: Bool) {
    var random = Stream(seed, "swarm")
    let few = random.pick(weighted: [(2, 6), (3, 3), (4, 1)]) ?? 2
    steps = 24 + random.below(80)
    let optional = AppOperation.allCases.filter { $0 != .insert && $0 != .update }
    operations = [.insert, .insert, .update] + optional.filter { _ in random.chance(50) }
    keys = 2 + random.below(8)
    isWordy = random.chance(20)
    clocks = random.pick(weighted: [(.still, 3), (.right, 3), (.loose, 3), (.wild, 2)]) ?? .right
    appShare = 15 + random.below(35)
    stampLimit = random.chance(40) ? 1 + random.below(4) : 20_000
    isPrivate = random.chance(25)
    let isFlaky = random.chance(90) && !isCalm
    func rate(_ most: Int) -> Int {
      let isOn = random.chance(50)
      let value = 1 + random.below(most)
      return isOn && isFlaky ? value : 0
    }
    crashes = rate(12)
    faults = StoreFaults(
      dropped: rate(15), lostReply: rate(15), late: rate(10), stale: rate(30), partial: rate(30), absent: rate(15))
    var chosen: [AppSchema.Migration] = []
    if random.chance(40) {
      for migration in AppSchema.Migration.allCases where random.chance(55) {
        if let needed = migration.needs, !chosen.contains(needed) { continue }
        chosen.append(migration)
      }
    }
    migrations = chosen
    endsWithOneVersion = random.chance(50)
    let changesMembers = random.chance(50)
    memberShare = changesMembers ? 6 + random.below(20) : 0
    isRestored = false
    let from = random.below(steps)
    absence = random.chance(changesMembers ? 40 : 10) ? from..<min(steps, from + 10 + random.below(60)) : nil
    hasLatecomer = random.chance(changesMembers || isRestored ? 60 : 5)
    devices = few + (changesMembers ? 1 + random.below(2) : 0) + (hasLatecomer ? 1 : 0)
  }
}
