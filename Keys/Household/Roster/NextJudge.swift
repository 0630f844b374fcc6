internal import LatchkeyEncoding

/// Judging `Next` (format §8): what can be told without the new key, then what its key shows.
extension Roster {
  /// - Returns: what it does, and the least role that suffices for that.
  func judge(
    _ next: Next, _ author: RosterAuthor, _ own: RosterFacts.Enrolment, _ role: Role, _ facts: RosterFacts
  ) throws(RosterRefusal) -> (RosterFacts.Succession, needs: Role) {
    let leaving = facts.leaving
    let listed = next.removals.map(\.device)
    guard listed.allSatisfy(facts.isIn) else { throw .next(.removals) }
    let removes = removed(by: next, in: facts)
    let isOnlyOwn = removes.allSatisfy { leaving.contains($0) || facts.person(of: $0) == own.chain.person }
    let least: Role =
      next.form == .closed || next.store != nil || !next.roles.isEmpty || !isOnlyOwn ? .owner : .member
    if role < least { throw .role }
    guard next.parents == facts.heads(household) else { throw .next(.parents) }
    let rank = SuccessionRank(
      paper: own.paper, role: role, enrolment: own.source.depth, device: author.origin.device,
      hash: author.hash ?? .zero)
    switch next.form {
    case .closed:
      guard next == .closing(parents: next.parents) else { throw .next(.form) }
      let succession = RosterFacts.Succession(
        next: next, rank: rank, removes: [], roles: [:], holders: [], shut: [])
      return (succession, least)
    case .moved:
      break
    }
    guard next.roles.allSatisfy({ facts.role(of: $0.person) != nil }) else { throw .next(.roles) }
    guard leaving.isSubset(of: removes) else { throw .next(.leaving) }
    let roles = Dictionary(next.roles.map { ($0.person, $0.role) }) { $1 }
    let staying = facts.devices.filter { !removes.contains($0) }
    guard
      staying.contains(where: { device in
        facts.person(of: device).map { (roles[$0] ?? facts.role(of: $0)) == .owner } ?? false
      })
    else { throw .next(.lastOwner) }
    // An owner answers for all whom the removed brought in, a member for its own.
    let unanswered = facts.introduced(by: removes.subtracting(leaving)).filter {
      !removes.contains($0) && !next.confirmed.contains($0)
        && (role == .owner || facts.person(of: $0) == own.chain.person)
    }
    if !unanswered.isEmpty { throw .next(.introduced(unanswered.sorted())) }
    let holders = try recipients(of: next, staying: staying, isRemoving: !removes.isEmpty, facts)
    guard next.formers.allSatisfy({ isEpoch($0.epoch, in: author.past) }) else { throw .next(.unknownFormer) }
    let shut = facts.invites.values.joined().filter { !removes.isEmpty || !$0.isOpen }.map(\.source.hash)
    let succession = RosterFacts.Succession(
      next: next, rank: rank, removes: removes, roles: roles, holders: holders, shut: Set(shut))
    return (succession, least)
  }

  /// The devices that a `Next` removes: those listed whose person does not get a role by it.
  func removed(by next: Next, in facts: RosterFacts) -> Set<DeviceID> {
    let narrowed = next.narrowed
    return Set(
      next.removals.map(\.device).filter { device in facts.person(of: device).map { !narrowed.contains($0) } ?? true })
  }

  /// Recipients are determined, not chosen: leaving one out would be a removal, one more would be a ghost. Open invites may
  /// be left out, and are when somebody is removed.
  private func recipients(
    of next: Next, staying: [DeviceID], isRemoving: Bool, _ facts: RosterFacts
  ) throws(RosterRefusal) -> Set<RosterFacts.Holder> {
    var missing = Set(staying)
    var holders: Set<RosterFacts.Holder> = []
    for recipient in next.recipients {
      switch recipient.kind {
      case .device, .kit:
        #if LATCHKEY_MUTATIONS
          if Mutation.isOn(.sealRemoved), let device = DeviceID(recipient.id), !staying.contains(device) { continue }
        #endif
        guard let device = DeviceID(recipient.id), missing.remove(device) != nil,
          facts.enrolment(of: device).map({ ($0.paper != .none) == (recipient.kind == .kit) }) == true
        else { throw .next(.recipients) }
        holders.insert(.device(device))
      case .invite:
        guard !isRemoving, let id = InviteID(recipient.id), let invite = facts.recipient(id) else {
          throw .next(.recipients)
        }
        holders.insert(.invite(invite.source.hash))
      }
    }
    guard missing.isEmpty else { throw .next(.recipients) }
    return holders
  }

  /// What everybody who holds the key recomputes. Nil if all is right.
  ///
  /// - Parameter facts: what the ancestors of the `Next` amount to.
  func flaw(of next: Next, key: EpochKey, in facts: RosterFacts) -> NextRefusal? {
    guard key.commitment(parents: next.parents) == next.commitment else { return .commitment }
    for recipient in next.recipients {
      guard let box = boxKey(of: recipient, in: facts), key.sealOrNone(to: box) == recipient.seal else { return .seal }
    }
    for former in next.formers {
      guard let opened = former.keyBox?.open(former.epoch, under: key), isKey(opened, of: former.epoch) else {
        return .former
      }
    }
    return nil
  }

  /// What is known of a `Next` that its author was entitled to.
  func form(of next: Next, _ epoch: EpochID, in facts: RosterFacts) -> NextForm {
    if next.form == .closed || knowledge.trusted.contains(epoch) { return .wellFormed }
    if let key = knowledge.keys[epoch], key.commitment(parents: next.parents) == next.commitment {
      return flaw(of: next, key: key, in: facts).map { .flawed($0) } ?? .wellFormed
    }
    // A key that is sealed in it and is not the one it commits to.
    for key in knowledge.strays[epoch] ?? [] where key.commitment(parents: next.parents) != next.commitment {
      let isSealed = next.recipients.contains { recipient in
        boxKey(of: recipient, in: facts).map { key.seal(to: $0) == recipient.seal } ?? false
      }
      if isSealed { return .flawed(.commitment) }
    }
    if knowledge.unopenable.contains(epoch) { return .flawed(.seal) }
    return knowledge.isDenied(epoch) ? .flawed(.denied) : .unproven
  }

  private func boxKey(of recipient: Next.Recipient, in facts: RosterFacts) -> BoxPublicKey? {
    switch recipient.kind {
    case .device, .kit: DeviceID(recipient.id).flatMap { facts.enrolments[$0]?.first?.chain.keys.box }
    case .invite: InviteID(recipient.id).flatMap { facts.recipient($0)?.terms.boxKey }
    }
  }

  /// Whether somebody may say of a `Next` that its seal does not open: a recipient other than its author.
  func isWitness(_ device: DeviceID, of epoch: EpochID) -> Bool {
    guard let at = graph[epoch], let next = next(of: epoch) else { return false }
    return graph.nodes[at].entry.origin.device != device
      && next.recipients.contains { $0.kind != .invite && $0.id == device.bytes }
  }

  // MARK: Epochs by their ids

  /// The `Next` that began an epoch; nil for the first one.
  func next(of epoch: EpochID) -> Next? {
    guard let at = graph[epoch], case .next(let next) = graph.nodes[at].entry.operation else { return nil }
    return next
  }

  /// Whether an epoch with a key of its own began among these entries.
  func isEpoch(_ epoch: EpochID, in past: Past) -> Bool {
    guard let at = graph[epoch], graph.isIn(past, at) else { return false }
    return epoch == household || next(of: epoch)?.form == .moved
  }

  /// Whether a key fits what an epoch's beginning commits to.
  func isKey(_ key: EpochKey, of epoch: EpochID) -> Bool {
    guard let at = graph[epoch] else { return false }
    switch graph.nodes[at].entry.operation {
    case .genesis(let genesis): return key.commitment(parents: []) == genesis.commitment
    case .next(let next): return next.form == .moved && key.commitment(parents: next.parents) == next.commitment
    default: return false
    }
  }

  /// An epoch's key, if it was learnt.
  func key(of epoch: EpochID) -> EpochKey? {
    knowledge.keys[epoch].flatMap { isKey($0, of: epoch) ? $0 : nil }
  }
}

extension EpochKey {
  /// The seal to a recipient; 80 zero bytes for a box key of small order, which nobody can open. Such a device must not
  /// keep the others from going on.
  func sealOrNone(to recipient: BoxPublicKey) -> KeySeal? {
    seal(to: recipient) ?? KeySeal([UInt8](repeating: 0, count: KeySeal.byteCount))
  }
}
