internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
public import LatchkeyStorage

/// Something that waits for a person.
public struct Decision: Equatable, Sendable {
  /// For ``Home/decide(_:_:)``.
  public let id: String
  /// What kind of question: `guard`, `reader`, `credential`, `frozen`, `store`.
  public let kind: String
  public let household: String
  /// What happened, and what is asked.
  public let message: String
  /// What may be answered.
  public let choices: [String]
}

extension Home {
  /// What waits for a person on this device, by what it knows already: the store is not asked.
  public func decisions() throws(LatchkeyError) -> [Decision] {
    do {
      return try memberships().flatMap { membership in
        try [storeQuestion(membership), credentialDecision(membership), frozenDecision(membership)].compactMap { $0 }
      } + rowDecisions()
    } catch { throw LatchkeyError(error) }
  }

  /// Answers a decision.
  ///
  /// - Parameters:
  ///   - id: as ``decisions()`` gave it, or the error of a sync that found no store.
  ///   - choice: one of its choices.
  ///   - credential: what the store asks for that is agreed to, or whose credential was changed; kept for later.
  /// - Throws: ``LatchkeyError`` of kind `usage`: no such decision, or not one of its choices; `store`.
  public func decide(
    _ id: String, _ choice: String, credential: StoreCredential? = nil
  ) async throws(LatchkeyError) {
    try await reporting {
      // What the store shows is not kept: whether it is lost is looked up when somebody says so.
      if let lost = try memberships().first(where: { Self.lostStoreID($0) == id }), choice == "republish" {
        return try await republish(lost)
      }
      guard let decision = try decisions().first(where: { $0.id == id }) else {
        throw LatchkeyError(
          .usage, "no-such-decision", "Nothing with the id \(id) waits to be decided.", next: ["latchkey status"])
      }
      guard decision.choices.contains(choice) else {
        throw LatchkeyError(
          .usage, "no-such-choice", "\(choice) does not answer that: \(decision.choices.joined(separator: ", ")).",
          next: decision.choices.map { "latchkey decide \(id) \($0)" })
      }
      if try await decideRows(id, choice) { return }
      for membership in try memberships() {
        if Self.credentialDecisionID(membership) == id {
          if let credential { try await setCredential(of: membership.id.description, credential) }
          let settled = try goneHash(membership)
          try keyring.update { $0[membership.id]?.credentialSettled = settled }
        } else if Self.storeQuestionID(membership) == id {
          if choice == "agree" {
            try await agreeToStore(household: membership.id.description, credential: credential)
          } else {
            try refuseStore(household: membership.id.description)
          }
        }
      }
      for membership in try memberships() where Self.frozenDecisionID(membership) == id {
        let ended = try await end(membership, keeping: choice == "keep")
        if let failure = ended.compactMap(\.failure).first { throw failure }
      }
    }
  }

  // MARK: Stores

  static func storeQuestionID(_ membership: Membership) -> String { "store-\(membership.id.short)" }

  private func storeQuestion(_ membership: Membership) throws -> Decision? {
    guard let moved = try storeDecision(membership) else { return nil }
    return Decision(
      id: Self.storeQuestionID(membership), kind: "store", household: membership.name,
      message:
        "\(moved.movedBy) has moved the household \(membership.name) from \(moved.from) to \(moved.to)"
        + (moved.isRefused
          ? ", which was refused here: nothing is sent or received." : ". May this device use that place?"),
      choices: ["agree", "refuse"])
  }

  // MARK: Households that one is not in any more

  static func frozenDecisionID(_ membership: Membership) -> String { "frozen-\(membership.id.short)" }

  /// Says that this device is not in a household any more, and what can be done about it.
  func removal(_ membership: Membership) throws -> LatchkeyError {
    let person = try contents().person
    return LatchkeyError(
      removedFrom: membership.name, decision: Self.frozenDecisionID(membership),
      personStays: try state(of: membership.id).roster.state.people.contains { $0.id == person })
  }

  /// Whoever was removed decides what becomes of the rows that are in its files.
  private func frozenDecision(_ membership: Membership) throws -> Decision? {
    guard !membership.isPrivate, try state(of: membership.id).isRemoved else { return nil }
    let files = try files(of: membership)
    let shown =
      files.isEmpty ? "No file on this device holds its rows" : "Its rows are still in \(files.joined(separator: ", "))"
    return Decision(
      id: Self.frozenDecisionID(membership), kind: "frozen", household: membership.name,
      message:
        "You are not in \(membership.name) any more. \(shown): keep them as your own, or drop them from the file.",
      choices: ["keep", "drop"])
  }

  // MARK: Credentials of stores

  private static func credentialDecisionID(_ membership: Membership) -> String { "credential-\(membership.id.short)" }

  /// Whoever was removed may still hold the credential of the store: said to owners until one says that it was changed.
  private func credentialDecision(_ membership: Membership) throws -> Decision? {
    guard let known = try contents()[membership.id], let gone = try goneHash(membership),
      known.credentialSettled != gone
    else { return nil }
    let state = try state(of: membership.id)
    guard state.roster.role(of: state.log.origin.device) == .owner else { return nil }
    return Decision(
      id: Self.credentialDecisionID(membership), kind: "credential", household: membership.name,
      message:
        "Somebody was removed from \(membership.name), or left, and may still hold the credential of its store (\(membership.locator)): with it, objects can be listed, counted and deleted, not read. Change it where the store is.",
      choices: ["done"])
  }

  /// Over the devices of others that were removed; nil if none was.
  private func goneHash(_ membership: Membership) throws -> Hash32? {
    let person = try contents().person
    let state = try state(of: membership.id)
    let gone = state.roster.state.limited.filter { $0.isRemoved && state.roster.person(ofAny: $0.device) != person }
      .map(\.device)
    guard !gone.isEmpty else { return nil }
    return hash32("removed", parts: gone.count) { writer in for device in gone { writer.id(device) } }
  }

  /// Somebody who comes in is not asked about those who went before.
  func settleCredential(_ membership: Membership) throws {
    let gone = try goneHash(membership)
    try keyring.update { $0[membership.id]?.credentialSettled = gone }
  }
}
