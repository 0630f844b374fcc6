public import LatchkeyEncoding

/// The epoch keys that a device can come by: what it holds, and all that follows from it in a roster's entries (format §8,
/// *Walking*).
///
/// It opens every box that opens, whoever wrote it: keys are walked first and judged afterwards, since one must read the
/// newest roster to judge the oldest `Next`. A key is kept under an epoch only if it fits the epoch's commitment. Rights,
/// and which epoch to write to, are for ``Roster`` to say.
public struct EpochRing: Sendable {
  public let household: HouseholdID
  /// Keys that fit their epochs' commitments.
  public private(set) var keys: [EpochID: EpochKey] = [:]
  /// Epochs in which the seal for a key at hand does not open, or opens to a key that the epoch does not commit to.
  public private(set) var unopenable: Set<EpochID> = []
  /// Keys that came under an epoch's name and do not fit it: they prove a `Next` wrong.
  private var strays: [EpochID: [EpochKey]] = [:]
  /// Of those, the ones that a seal for a key at hand opened to.
  private var sealedToMe: [EpochID: EpochKey] = [:]
  private var devices: [DeviceID: BoxKey] = [:]
  private var invites: [InviteID: BoxKey] = [:]
  /// Keys whose epoch's beginning has not been seen.
  private var loose: [EpochID: [EpochKey]] = [:]
  private var beginnings: [EpochID: Beginning] = [:]
  /// Outer epoch → boxes that open with its key; and inner epoch → boxes with its key.
  private var boxes: [EpochID: [Inner]] = [:]
  private var outers: [EpochID: [Outer]] = [:]
  private var seen: Set<EntryHash> = []

  private struct Beginning: Sendable {
    let parents: [EpochID]
    let commitment: Hash32
  }

  private struct Inner: Sendable {
    let epoch: EpochID
    let box: KeyBox
  }

  private struct Outer: Sendable {
    let epoch: EpochID
    let box: KeyBox
  }

  public init(household: HouseholdID) { self.household = household }

  /// A device or kit whose box key is at hand. Add it before the entries.
  public mutating func hold(_ box: BoxKey, of device: DeviceID) { devices[device] = box }

  /// A link whose box key is at hand. Add it before the entries.
  public mutating func hold(_ box: BoxKey, of invite: InviteID) { invites[invite] = box }

  /// A key that was kept, or came with a link or a kit.
  public mutating func hold(_ key: EpochKey, of epoch: EpochID) { found(key, of: epoch) }

  /// Opens what an entry gives, and all that then follows. Entries may come in any order, judged or not, waiting or not.
  ///
  /// - Returns: whether keys were found.
  @discardableResult
  public mutating func walk(_ entries: some Sequence<RosterEntry>) -> Bool {
    let before = keys.count
    for entry in entries where seen.insert(entry.hash).inserted { look(into: entry) }
    return keys.count > before
  }

  private mutating func look(into entry: RosterEntry) {
    switch entry.operation {
    case .genesis(let genesis):
      guard entry.hash == household else { return }
      begin(entry.hash, Beginning(parents: [], commitment: genesis.commitment))
      if let box = devices[genesis.chain.keys.id] { open(genesis.seal, with: box, of: entry.hash) }
    case .next(let next):
      guard next.form == .moved else { return }
      for former in next.formers {
        if let box = former.keyBox { wait(Inner(epoch: former.epoch, box: box), for: entry.hash) }
      }
      begin(entry.hash, Beginning(parents: next.parents, commitment: next.commitment))
      for recipient in next.recipients {
        let box =
          switch recipient.kind {
          case .device, .kit: DeviceID(recipient.id).flatMap { devices[$0] }
          case .invite: InviteID(recipient.id).flatMap { invites[$0] }
          }
        // Invites may share an id: a link's seal that does not open may be another's.
        if let box { open(recipient.seal, with: box, of: entry.hash, isOwn: recipient.kind != .invite) }
      }
    case .seal(let device, let epoch, let seal):
      if let box = devices[device], let key = seal.open(with: box) { found(key, of: epoch) }
    case .carryKey(let epoch, let outer, let box):
      wait(Inner(epoch: epoch, box: box), for: outer)
    default:
      return
    }
  }

  private mutating func open(_ seal: KeySeal, with box: BoxKey, of epoch: EpochID, isOwn: Bool = true) {
    guard let key = seal.open(with: box) else {
      if isOwn { unopenable.insert(epoch) }
      return
    }
    found(key, of: epoch)
    if isOwn && keys[epoch] != key {
      unopenable.insert(epoch)
      sealedToMe[epoch] = key
    }
  }

  private mutating func begin(_ epoch: EpochID, _ beginning: Beginning) {
    beginnings[epoch] = beginning
    for key in loose.removeValue(forKey: epoch) ?? [] { found(key, of: epoch) }
    for outer in outers[epoch] ?? [] {
      if let key = keys[outer.epoch], let inner = outer.box.open(epoch, under: key) { found(inner, of: epoch) }
    }
  }

  private mutating func wait(_ inner: Inner, for outer: EpochID) {
    boxes[outer, default: []].append(inner)
    outers[inner.epoch, default: []].append(Outer(epoch: outer, box: inner.box))
    if keys[inner.epoch] == nil, let key = keys[outer], let opened = inner.box.open(inner.epoch, under: key) {
      found(opened, of: inner.epoch)
    }
  }

  /// Walks on from a key, without recursion: a chain of thousands needs no deep stack.
  private mutating func found(_ key: EpochKey, of epoch: EpochID) {
    var open = [(key, epoch)]
    while let (key, epoch) = open.popLast() {
      guard keys[epoch] == nil else { continue }
      guard let beginning = beginnings[epoch] else {
        if loose[epoch]?.contains(key) != true { loose[epoch, default: []].append(key) }
        continue
      }
      guard key.commitment(parents: beginning.parents) == beginning.commitment else {
        if strays[epoch]?.contains(key) != true { strays[epoch, default: []].append(key) }
        continue
      }
      keys[epoch] = key
      for inner in boxes[epoch] ?? [] where keys[inner.epoch] == nil {
        if let next = inner.box.open(inner.epoch, under: key) { open.append((next, inner.epoch)) }
      }
    }
  }

  /// Keys that came for an epoch and do not fit it.
  var strayKeys: [(EpochID, EpochKey)] {
    strays.keys.sorted().flatMap { epoch in (strays[epoch] ?? []).map { (epoch, $0) } }
  }

  /// What an epoch's key makes: names and zone keys.
  public func keys(of epoch: EpochID) -> EpochKeys? {
    keys[epoch].map { EpochKeys(household: household, epoch: epoch, key: $0) }
  }

  /// A key that a seal for a key at hand opened to and that is not the one it commits to, if there is one: shown to others, it proves
  /// the `Next` wrong.
  public func stray(of epoch: EpochID) -> EpochKey? { sealedToMe[epoch] }

  /// Which of the `wanted` epochs' keys follow from this one's alone, itself included.
  func reach(from epoch: EpochID, wanted: Set<EpochID>) -> Set<EpochID> {
    var reached: Set<EpochID> = [epoch]
    var open = [epoch]
    while let outer = open.popLast(), !wanted.isSubset(of: reached) {
      guard let key = keys[outer] else { continue }
      for inner in boxes[outer] ?? [] where !reached.contains(inner.epoch) {
        guard let expected = keys[inner.epoch], inner.box.open(inner.epoch, under: key) == expected else { continue }
        reached.insert(inner.epoch)
        open.append(inner.epoch)
      }
    }
    return reached
  }
}
