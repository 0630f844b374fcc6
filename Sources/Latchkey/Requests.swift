internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys

/// Somebody who wants into a household and waits for a person.
public struct RequestReport: Equatable, Sendable {
  /// Of the device that asks.
  public let id: String
  /// As it calls itself: unproven until the words were compared.
  public let name: String
  public let device: String
  public let role: String
  public let invite: String
  /// `words`, `rivals` or `rights`.
  public let reason: String
  /// Ten words that this device and the newcomer's both show.
  public let words: [String]
}

/// Letting people in by hand: invites that ask for compared words, and invites that several devices hold.
extension Home {
  /// Who waits for a person, by what the store shows now.
  ///
  /// - Parameter household: its name; nil for the only shared one.
  public func requests(household: String? = nil) async throws(LatchkeyError) -> [RequestReport] {
    try await reporting { try await openRequests(household).requests.map(report) }
  }

  /// Lets somebody in after a person has compared the words.
  ///
  /// - Parameters:
  ///   - id: the request's id, or the beginning of it: six characters or more.
  ///   - words: the ten words that the newcomer's screen shows, as heard or read.
  /// - Throws: ``LatchkeyError`` of kind `usage` (no such request), `key` (the words differ, or one of them is none), `membership` (not an
  ///   owner's device), `store`.
  public func approve(_ id: String, words: String, household: String? = nil) async throws(LatchkeyError)
    -> RequestReport
  {
    try await reporting {
      let (membership, requests) = try await openRequests(household)
      let request = try chosen(id, requests)
      try request.words.require(words)
      let access = try await openStore(of: membership)
      let admitter = try contents().personName
      try change(membership.id) { state, random in
        try state.admit(request, admitter: admitter, now: world.now(), random: &random)
      }
      if request.epoch == nil {
        try await refuseOthers(request.terms, except: request.claim.device.id, membership, access)
      }
      _ = try await round(membership, access: access)
      return report(request)
    }
  }

  /// Refuses somebody: the invite is withdrawn, so nobody is let in with that link any more.
  ///
  /// - Throws: as ``approve(_:words:household:)``.
  public func deny(_ id: String, household: String? = nil) async throws(LatchkeyError) -> RequestReport {
    try await reporting {
      let (membership, requests) = try await openRequests(household)
      let request = try chosen(id, requests)
      try write([.revokeInvite(request.terms.id)], into: membership)
      let access = try await openStore(of: membership)
      try await refuseOthers(request.terms, except: nil, membership, access)
      _ = try await round(membership, access: access)
      return report(request)
    }
  }

  /// Tells those who wait in an invite's room that it lets nobody in any more; sent with the next round.
  ///
  /// - Parameter device: who was let in.
  func refuseOthers(
    _ terms: OpenInvite, except device: DeviceID?, _ membership: Membership, _ access: StoreAccess
  ) async throws {
    guard terms.confirm else { return }
    let room = WaitingRoom(invite: terms.id, claimKey: terms.claimKey)
    let names = try await access.list(room.prefix + "/c/").sorted().prefix(SyncRound.claimsInRoom)
    var waiting: [DeviceID] = []
    for (name, bytes) in try await access.get(Array(names)).sorted(by: { $0.key < $1.key }) {
      guard let below = name.below(room.prefix),
        let content = try? Envelope.open(bytes, at: room.place(.claim, below), key: room.key),
        let claim = try? Claim(decoding: content), room.claimName(claim.device.id) == below, claim.device.id != device
      else { continue }
      waiting.append(claim.device.id)
    }
    guard !waiting.isEmpty else { return }
    let name = try contents().personName
    try change(membership.id) { state, random in
      for device in waiting where state.roster.role(of: device) == nil {
        try state.refuse(device, terms, by: name, random: &random)
      }
    }
  }

  private func openRequests(_ household: String?) async throws -> (household: Membership, requests: [ClaimRequest]) {
    let membership = try membership(named: household)
    let report = try await round(membership, access: try await openStore(of: membership))
    if report.isRemoved { throw try removal(membership) }
    return (membership, report.requests)
  }

  private func chosen(_ id: String, _ requests: [ClaimRequest]) throws -> ClaimRequest {
    let matches = requests.filter { $0.claim.device.id.description.hasPrefix(id) && id.count >= 6 }
    guard let request = matches.first, matches.count == 1 else {
      throw LatchkeyError(
        .usage, matches.isEmpty ? "no-such-request" : "ambiguous-request",
        matches.isEmpty ? "Nobody waits under the id \(id)." : "Several requests begin with \(id).",
        next: ["latchkey requests list"])
    }
    return request
  }

  private func report(_ request: ClaimRequest) -> RequestReport {
    RequestReport(
      id: request.claim.device.id.description, name: request.claim.personName, device: request.claim.deviceName,
      role: request.terms.role.name, invite: request.terms.id.description, reason: "\(request.reason)",
      words: request.words.words)
  }
}

/// Ten words over a household's roster.
public struct WordsReport: Equatable, Sendable {
  public let household: String
  public let words: [String]
}

extension Home {
  /// What two members read to each other to make sure that the store shows them the same household (format §8, *Words*).
  ///
  /// - Parameter typed: what the other screen shows; nil to be told only.
  /// - Throws: ``LatchkeyError`` of kind `key` if the words differ, or one of them is none.
  public func verifyWords(
    household: String? = nil, against typed: String? = nil
  ) throws(LatchkeyError) -> WordsReport {
    do {
      let membership = try membership(named: household)
      let words = ComparisonWords(household: membership.id, roster: try state(of: membership.id).roster.heads)
      if let typed { try words.require(typed) }
      return WordsReport(household: membership.name, words: words.words)
    } catch { throw LatchkeyError(error) }
  }
}

extension ComparisonWords {
  /// Throws unless what somebody typed or heard are these words.
  func require(_ typed: String) throws(LatchkeyError) {
    let again = ["read the words once more, and run it again"]
    switch compare(typed) {
    case .same: return
    case .different:
      throw LatchkeyError(
        .key, "words-differ",
        "The words are others than here: the two devices do not see the same. Somebody may be in between. Nothing was changed.",
        next: ["compare them once more, over a channel where you know each other's voice"])
    case .count(let count):
      throw LatchkeyError(
        .key, "words-incomplete", "There are ten words to compare, not \(count). Nothing was changed.",
        next: again)
    case .unknownWord(let position, let word, let suggestions):
      let perhaps = suggestions.isEmpty ? "" : " Perhaps: \(suggestions.joined(separator: ", "))."
      throw LatchkeyError(
        .key, "word-unknown", "Word \(position), \(word), is none of the list.\(perhaps) Nothing was changed.",
        next: again)
    case .slip(let positions):
      throw LatchkeyError(
        .key, "words-mistyped",
        "The words do not belong together: one was misheard or mistyped (see word \(positions.map(String.init).joined(separator: ", "))). Nothing was changed.",
        next: again)
    }
  }
}
