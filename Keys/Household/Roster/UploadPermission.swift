public import LatchkeyEncoding

/// Whether a device may upload now, and into which epoch.
public enum UploadPermission: Hashable, Sendable {
  case into(EpochID)
  /// The outbox is held, for all of these reasons.
  case held([UploadHold])
}

/// Why nothing may be uploaded.
public enum UploadHold: Hashable, Sendable {
  /// The roster needs a newer version.
  case newer
  /// Genesis, or some of what was cited, has not arrived.
  case incomplete
  /// The device is not in: not yet, or not any more.
  case notEnrolled
  /// An owner has ended the household.
  case closed
  /// The key of the current epoch is not at hand: somebody has to seal it.
  case noKey(EpochID)
  /// It cannot be told yet whether these `Next`s are right, and the current epoch does not build on them; ascending.
  case unproven([EpochID])
  /// These were given the current key and are removed, on their way out, or never were in; ascending.
  case strangers([DeviceID])
  /// These links closed since the current epoch began: somebody who has not heard may send them its key.
  case closedInvites([InviteID])
}

extension Roster {
  /// Whether `device` may upload, and where to: only if everyone who was given the key, its maker included, is a present
  /// device or an open invite (format §8, *Holding the outbox*).
  ///
  /// - Parameter ring: has walked this roster's entries, and this roster has learnt from it.
  public func upload(by device: DeviceID, ring: EpochRing) -> UploadPermission {
    var holds: [UploadHold] = []
    if isNewer { holds.append(.newer) }
    if whole.isClosed { return .held(holds + [.closed]) }
    guard let current = whole.current(household) else { return .held(holds + [.incomplete]) }
    if !whole.isIn(device) { holds.append(.notEnrolled) }
    if ring.keys[current] == nil { holds.append(.noKey(current)) }
    let unproven = unprovenInTheWay
    if !unproven.isEmpty { holds.append(.unproven(unproven)) }
    holds += dirt(of: current)
    return holds.isEmpty ? .into(current) : .held(holds)
  }

  /// `Next`s that nobody has proven and on which the current epoch does not build. Whoever began an epoch after one has
  /// judged it, with its key or, after a grace time, without.
  var unprovenInTheWay: [EpochID] {
    let best = whole.best?.source.node
    return forms.keys.filter { epoch in
      guard forms[epoch] == .unproven, let at = graph[epoch] else { return false }
      return best.map { !graph.isBefore(at, $0) } ?? true
    }
    .sorted()
  }

  /// Why an epoch that could be written to is not fit for it: whom a `Next` has to leave behind.
  func dirt(of epoch: EpochID) -> [UploadHold] {
    var holds: [UploadHold] = []
    let strangers = whole.holders(of: epoch, key: key(of: epoch)).filter { !whole.isEntitled($0) }
    let devices = strangers.compactMap { if case .device(let device) = $0 { device } else { nil } }
    if !devices.isEmpty { holds.append(.strangers(devices.sorted())) }
    let holding = whole.invites.values.joined().filter { strangers.contains(.invite($0.source.hash)) }
    let closed = Set((holding + whole.closedSince()).map(\.terms.id))
    if !closed.isEmpty { holds.append(.closedInvites(closed.sorted())) }
    return holds
  }
}
