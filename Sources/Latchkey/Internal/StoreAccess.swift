internal import LatchkeyEncoding
internal import LatchkeyEngine
internal import LatchkeyKeys
internal import LatchkeyMirror
internal import LatchkeyStorage

/// A household's store, opened: with retries, and every request counted.
struct StoreAccess: Sendable {
  let store: any ObjectStore
  let counts: RequestCounts
  let locator: Locator
  /// Where the household is kept on two stores from here, and both can be reached.
  var mirror: Mirrored?
  /// What is wrong with one of the two.
  var notes: [Warning] = []

  /// The two stores of a mirror, and both as one.
  struct Mirrored: Sendable {
    let both: MirrorStore
    let first: any ObjectStore
    let second: any ObjectStore
  }

  /// Objects fetched at the same time.
  static let atOnce = 4

  /// Makes the place a store if it is empty; refuses a place that holds something else.
  func claimMarker(_ world: World) async throws {
    switch try await StoreMarker.read(store) {
    case .store: return
    case .absent(empty: true):
      var random = world.random()
      guard let id = StoreID(random.bytes(16)) else { return }
      _ = try await StoreMarker.create(in: store, id: id)
    case .absent(empty: false):
      throw LatchkeyError(
        .store, "store-marker-missing",
        "\(locator.text) holds objects, but no Latchkey marker: the marker was lost, or the place belongs to something else.",
        next: [
          "choose an empty place", "if it is a household's store, restore the object latchkey-store from a backup",
        ])
    case .newerFormat(let version):
      throw LatchkeyError(
        .newer, "newer-store", "\(locator.text) was made by a newer version of Latchkey (format \(version)).",
        next: ["update latchkey"])
    case .notAStore:
      throw LatchkeyError(
        .store, "not-a-store", "\(locator.text) holds a file latchkey-store that is not a store's marker.")
    }
  }

  /// Whole objects by name; absent ones are left out.
  func get(_ names: [ObjectName]) async throws -> [ObjectName: [UInt8]] {
    var out: [ObjectName: [UInt8]] = [:]
    try await withThrowingTaskGroup(of: (ObjectName, [UInt8]?).self) { group in
      var waiting = names[...]
      func start() {
        guard let name = waiting.popFirst() else { return }
        group.addTask {
          do throws(StorageError) { return (name, try await store.get(name)) } catch {
            if error.cause == .notFound { return (name, nil) }
            throw error
          }
        }
      }
      for _ in 0..<Self.atOnce { start() }
      while let (name, bytes) = try await group.next() {
        out[name] = bytes
        start()
      }
    }
    return out
  }

  /// Objects that anybody who may write the store may have put there: none beyond the size of its kind, and no more than
  /// ``strangersAtMost``.
  ///
  /// - Parameter prefix: 32 digits.
  /// - Returns: each with its name below the prefix; and how many were left aside unread.
  func strangers(
    _ kind: ObjectKind, below prefix: String
  ) async throws -> (objects: [(below: ObjectName, bytes: [UInt8])], left: Int) {
    let entries = try await store.listAll(prefix: "\(prefix)/\(kind.letter)/")
    let names = entries.filter { $0.size <= kind.maximumSize }.prefix(Self.strangersAtMost).map(\.name)
    let found = try await get(names)
    let objects = names.compactMap { name -> (below: ObjectName, bytes: [UInt8])? in
      guard let bytes = found[name], let below = name.below(prefix) else {
        return nil
      }
      return (below, bytes)
    }
    return (objects, entries.count - names.count)
  }

  private static let strangersAtMost = 1024

  func list(_ prefix: String) async throws -> [ObjectName] { try await store.listAll(prefix: prefix).map(\.name) }
}

extension Home {
  /// Fewer and shorter than for requests: a device without a network is to be told so soon.
  private static let opening = RetryPolicy(maximumAttempts: 4, base: .milliseconds(250), cap: .seconds(2))

  /// Opens a store with the credential that belongs to it: the one given, or the one that this device keeps for exactly this
  /// locator. Without either it is left to the adapter where it looks for one.
  func openStore(
    _ locator: Locator, mode: OpenMode = .existing, credential: StoreCredential? = nil,
    counts: RequestCounts = RequestCounts()
  ) async throws -> StoreAccess {
    let stores = stores
    let credential = try credential ?? keptCredential(for: locator)
    let opened = try await Self.opening.repeating { @Sendable () async throws(StorageError) in
      try await stores.open(locator, mode, credential: credential)
    }
    return StoreAccess(store: RetryingStore(CountingStore(opened, counts: counts)), counts: counts, locator: locator)
  }

  /// Opens a household's store; where this device keeps a mirror of it, both, or whichever can be reached.
  func openStore(of membership: Membership) async throws -> StoreAccess {
    let locator = try stores.locator(membership.locator, relativeTo: base)
    guard let other = try contents()[membership.id]?.mirror else { return try await openStore(locator) }
    return try await openMirrored(locator, stores.locator(other, relativeTo: base))
  }
}
