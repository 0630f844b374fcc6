internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeyring
internal import LatchkeyKeys
internal import LatchkeyStorage
internal import LatchkeyTables

/// A store that was lost: the place answers, and holds nothing.
///
/// That is not taken for an empty household: a folder that is not mounted looks the same. Only a person can tell.
extension Home {
  static func lostStoreID(_ membership: Membership) -> String { "lost-\(membership.id.short)" }

  /// Says that there is no store where the household's was, and what a person may decide.
  func lostStore(_ membership: Membership) -> LatchkeyError {
    let error = LatchkeyError(EngineError.storeMissing)
    return LatchkeyError(
      error.kind, error.code, error.message,
      next: error.next + [
        "latchkey decide \(Self.lostStoreID(membership)) republish   (only if the store is lost for good: publishes anew what this device has; everybody who writes does it on a device)"
      ])
  }

  /// Publishes a household anew into a place that holds nothing: the same store by its marker, the roster, and all rows of this device's files,
  /// whoever wrote them. Other devices that write do the same: their logs go on from what was lost, which newcomers could not read.
  ///
  /// - Throws: ``LatchkeyError`` of kind `usage` where something lies in the place, `store`, `membership`.
  func republish(_ membership: Membership) async throws {
    let former = try state(of: membership.id)
    guard let marker = former.marker, former.roster.role(of: former.log.origin.device) ?? .reader >= .member else {
      throw LatchkeyError(
        .membership, "not-a-member", "Only a device of an owner or member publishes \(membership.name) anew.",
        next: ["do it on another device"])
    }
    let access = try await openStore(stores.locator(membership.locator, relativeTo: base), mode: .create)
    switch try await StoreMarker.read(access.store) {
    case .absent(empty: true): try await access.store.put(.marker, marker)
    // Called again after it was interrupted.
    case .store(let found) where found.encoded == marker: break
    default:
      throw LatchkeyError(
        .usage, "store-not-empty",
        "\(membership.locator) is not empty: nothing is published anew over what lies there. Nothing was changed.",
        next: ["latchkey store ls \(membership.locator)", "latchkey sync"])
    }
    try change(membership.id) { state, random in
      try state.restore(shown: [], random: &random)
      try state.seal(now: world.now(), random: &random)
    }
    _ = try await round(membership, access: access)
    for path in try files(of: membership) {
      let replica = try Replica(path: path)
      var performer = try performer(replica, membership)
      try performer.publish(
        under: try newBinding(membership, replica.binding.zone, replica.binding.zoneName),
        household: try state(of: membership.id))
      _ = try await round(membership, access: access, replica: replica)
    }
  }
}
