import LatchkeyEncoding
import LatchkeyEngine
import LatchkeyKeyring
import LatchkeyKeys
import LatchkeyLog
import LatchkeyTables
import Testing

@testable import Latchkey

/// A device whose rounds run over a store that is a dictionary, from what its home and file held at some moment: a value, so that
/// thousands of rounds can start from the same state.
struct Bystander {
  let device: DeviceKeys
  private let secrets: HouseholdSecrets
  var state: HouseholdState
  let zone: ZoneID
  private(set) var belief: Belief
  private let own: OwnLog
  /// Hashes of the last entries of the groups that were applied, by log, in order.
  private(set) var applied: [Origin: [EntryHash]] = [:]
  /// Names that the last round looked up.
  private(set) var fetched: Set<ObjectName> = []

  init(_ resident: Resident) throws {
    let keyring = FileKeyring(home: resident.directory)
    let contents = try keyring.load()
    let household = try #require(contents.households.first { !$0.isPrivate })
    device = contents.device
    secrets = HouseholdSecrets(
      device: device,
      held: Dictionary(household.epochs.map { ($0.id, $0.key) }, uniquingKeysWith: { first, _ in first }))
    state = try HouseholdState(decoding: try #require(try keyring.state(of: household.id)), secrets: secrets)
    let replica = try Replica(path: resident.file)
    zone = replica.binding.zone
    belief = try replica.value(DatabasePerformer.Key.belief(zone)).map { try Belief(decoding: $0) } ?? Belief()
    own =
      try replica.value(DatabasePerformer.Key.log(zone)).map { try OwnLog(decoding: $0) }
      ?? OwnLog(household: household.id, epoch: state.epoch, zone: zone, origin: replica.binding.origin)
  }

  /// One round. What it writes goes nowhere.
  mutating func round(_ store: [ObjectName: [UInt8]], now: Int64) throws -> RoundReport {
    fetched = []
    var engine = SyncRound(state: state, zone: zone, device: device, now: now, random: SeededRandom("\(now)"))
    var event = Event.start
    while true {
      switch try engine.step(event) {
      case .get(let names):
        fetched.formUnion(names)
        event = .got(store.filter { names.contains($0.key) })
      case .list(let prefix): event = .listed(store.keys.filter { $0.text.hasPrefix(prefix) }.sorted())
      case .put, .send: event = .put
      case .delete: event = .deleted
      case .keep(let state):
        self.state = state
        event = .kept
      case .database(let request): event = .database(perform(request))
      case .finish(let report): return report
      }
    }
  }

  private mutating func perform(_ request: DatabaseRequest) -> DatabaseReply {
    switch request {
    case .load, .renew, .republish, .announce: return .loaded(belief: belief, own: own)
    case .apply(let groups, let origin, let author):
      applied[origin, default: []] += groups.map(\.lastHash)
      belief.authors[origin] = author
      return .applied(rows: groups.count, refused: nil)
    case .seal: return .sealed(rows: 0, released: 0, more: false)
    case .outbox: return .outbox([])
    case .acknowledge: return .acknowledged(rows: 0)
    case .supersededHeads: return .superseded([])
    case .facts: return .facts(ZoneFacts(vector: [:], digest: .zero, unapplied: []))
    case .carry, .probed, .forgetHeads: return .done
    }
  }

  /// All that it has come to believe.
  var beliefs: [Set<EntryHash>] {
    [Set(state.roster.entries.map(\.hash))] + applied.sorted { $0.key < $1.key }.map { Set($0.value) }
  }
}
