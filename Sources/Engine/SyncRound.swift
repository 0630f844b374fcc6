public import LatchkeyEncoding
public import LatchkeyKeys
internal import LatchkeyLog

/// One round of sync as a state machine: ``step(_:)`` answers each event with the next effect.
///
/// Order of a round, and why:
/// 1. the roster's **listing**. Unless it shows what was believed before, the store's **marker** next: an unmounted folder or a
///    wrong bucket must not be taken for an empty one;
/// 2. the **roster**, walked to its newest epoch: whoever was let in or removed, or has ended a zone, decides what the rest means; then own duties
///    in it (admitting, rotating);
/// 3. **pull** the zone: heads, then the segments they need, applied log by log; epochs that were left first, where late writers may be;
/// 4. **seal** what was captured; unless the outbox is held because somebody has the current key who must not, **send** it in order, and
///    acknowledge each object once the store has confirmed it;
/// 5. delete own superseded heads, only after a head was sent: a round with nothing to do writes and deletes nothing.
///
/// The machine holds nothing that matters: a round that stops anywhere is started anew from what was kept.
public struct SyncRound {
  private enum Phase {
    case idle
    case listing
    case marker(listed: [ObjectName])
    case roster(RosterExchange)
    case zone(ZoneExchange)
    case done
  }

  private var phase = Phase.idle
  private var state: HouseholdState
  private let zone: ZoneID?
  private let device: DeviceKeys
  private let now: Int64
  private let random: any RandomSource & Sendable
  private var report = RoundReport()

  /// Segments fetched at a time: bounds memory to a few times 4 MiB.
  public static let segmentsAtOnce = 4
  /// More claims in one waiting room are not looked at: whoever holds a link can lay any number.
  public static let claimsInRoom = 64

  /// How many heads that do not hold are passed over in one round for the ones below them.
  static let headsPassedOver = 64

  /// - Parameters:
  ///   - state: the household's state as kept.
  ///   - zone: the attached database's zone; nil to bring only the roster up to date.
  ///   - device: this device's keys.
  ///   - now: milliseconds since 1970 by this device's clock.
  ///   - random: nonces of roster objects.
  public init(
    state: HouseholdState, zone: ZoneID?, device: DeviceKeys, now: Int64, random: any RandomSource & Sendable
  ) {
    self.state = state
    self.zone = zone
    self.device = device
    self.now = now
    self.random = random
  }

  /// The household's state as of the last effect.
  public var household: HouseholdState {
    if case .roster(let exchange) = phase { return exchange.state }
    return state
  }

  /// The next effect. After ``Effect/finish(_:)`` the round is over.
  ///
  /// - Throws: ``EngineError`` where the round cannot go on and a person must know why.
  public mutating func step(_ event: Event) throws(EngineError) -> Effect {
    switch (phase, event) {
    case (.idle, .start):
      phase = .listing
      return .list(try state.currentKeys().prefix(.roster) + "/")

    case (.listing, .listed(let names)):
      let keys = try state.currentKeys()
      let below = names.compactMap { $0.below(keys.prefix(.roster)) }
      if state.isFamiliar(below, keys: keys) { return try beginRoster(names) }
      phase = .marker(listed: names)
      return .get([.marker])

    case (.marker(let names), .got(let objects)):
      guard let marker = objects[.marker] else { throw .storeMissing }
      try state.check(marker: marker)
      return try beginRoster(names)

    case (.roster(var exchange), _):
      let effect = try exchange.step(event)
      return try goOn(exchange, effect)

    case (.zone(var exchange), _):
      let effect = try exchange.step(event)
      phase = .zone(exchange)
      if let effect { return effect }
      report.add(exchange.report)
      return finish()

    case (.idle, _), (.listing, _), (.marker, _), (.done, _):
      throw .outOfOrder("\(event)")
    }
  }

  private mutating func beginRoster(_ listed: [ObjectName]) throws(EngineError) -> Effect {
    var exchange = RosterExchange(
      state: state, device: device, keys: try state.currentKeys(), now: now, random: random)
    let effect = try exchange.step(.listed(listed))
    return try goOn(exchange, effect)
  }

  private mutating func goOn(_ exchange: RosterExchange, _ effect: Effect?) throws(EngineError) -> Effect {
    phase = .roster(exchange)
    if let effect { return effect }
    state = exchange.state
    report = exchange.report
    return try beginZone()
  }

  private mutating func beginZone() throws(EngineError) -> Effect {
    if state.roster.isNewer { throw .newerRoster }
    guard let zone else { return finish() }
    if let closing = state.roster.state.zone(zone)?.closing {
      report.closed = closing
      return finish()
    }
    var exchange = ZoneExchange(
      zone: zone, state: state, keys: try state.currentKeys(), now: now,
      mayUpload: state.mayUpload && report.unjudged.isEmpty && !report.isRemoved)
    let effect = exchange.begin()
    phase = .zone(exchange)
    return effect
  }

  private mutating func finish() -> Effect {
    phase = .done
    return .finish(report)
  }
}
