import Latchkey
import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeys
import LatchkeyLog
import LatchkeySQLite
import LatchkeyTables

/// One device of the simulated world: its keys, its database, its clock, what it keeps, and the round it is in.
final class Device {
  let index: Int
  let keys: DeviceKeys
  let chain: CertificateChain
  /// What it opens epochs with.
  var secrets: HouseholdSecrets
  let clock: VirtualClock
  /// How much its clock is ahead of the true time, in milliseconds, and how fast it runs.
  var offset: Int64 = 0
  var drift = 0
  /// The app's file, in memory; the app and Latchkey use it through one connection. Nil until there is one.
  var connection: Connection?
  /// Whether that file has all of the app's tables.
  var hasTables = false
  /// Once attached.
  var replica: Replica?
  /// What is kept beside the keyring, as of the last time that it was kept.
  var kept: HouseholdState?
  /// Gives record names; survives crashes, as randomness does.
  var names: Stream
  /// Numbers the app's inserts.
  var serial = 0
  var baseline = Baseline()
  /// Columns whose values once went with the column: table and column.
  var lost: Set<[Int]> = []

  /// The round that is under way, and the effect that comes next. Lost in a crash.
  var round: SyncRound?
  var effect: Effect?
  var lastReport: RoundReport?
  /// Its link was of no use: somebody has to give it another one.
  var asksForLink = false

  /// Own logs that began with what a store had lost, and where that ends.
  var republished: [Origin: UInt64] = [:]
  /// Sent so far, and how far what was accepted has got: must never fall.
  var seen = Progress()

  /// Entries that were accepted from others.
  var accepted: Set<EntryPlace> = []
  struct Progress {
    var clock: UInt64 = 0
    var sequence: [Origin: UInt64] = [:]
    var accepted: [Origin: UInt64] = [:]
    /// The last row of the outbox that was looked at.
    var outbox: Int64 = 0
  }

  init(index: Int, keys: DeviceKeys, chain: CertificateChain, clock: VirtualClock, names: Stream) {
    self.index = index
    self.keys = keys
    secrets = HouseholdSecrets(device: keys)
    self.chain = chain
    self.clock = clock
    self.names = names
  }

  var name: String { "d\(index)" }
  /// Whether it reads the household, let in or not. One that asks for another link goes on with what it knows.
  var isMember: Bool { kept != nil && !asksForLink }
  /// What it may do, as far as it knows; nil while it is not in.
  var role: Role? { kept.flatMap { $0.roster.role(of: keys.id) } }
  /// Whether it knows that it was removed.
  var isRemoved: Bool { kept?.isRemoved == true || lastReport?.isRemoved == true }

  /// The keys that it keeps when it gives up a link.
  func held(with opened: [EpochKeys]) -> [EpochID: EpochKey] {
    var held = secrets.held
    for keys in (kept?.epochs ?? []) + opened { held[keys.epoch] = keys.key }
    return held
  }

  /// The process ends: what was not kept is gone.
  func loseRound() {
    round = nil
    effect = nil
  }

  /// Opens the file anew, as a new process does.
  func reopen(_ connection: Connection) throws {
    self.connection = connection
    let replica = try Replica(connection: connection)
    replica.randomName = { [unowned self] in
      RecordName(raw: Bytes16(high: self.names.next(), low: self.names.next()))
    }
    self.replica = replica
  }
}
