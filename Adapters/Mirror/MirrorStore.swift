public import LatchkeyEncoding
public import LatchkeyStorage
internal import Synchronization

/// One household on two stores: writes go to both, reads come from either, and what one of them lacks is known by name and
/// put back by ``heal(progress:)``.
///
/// Either store may be out of reach: then the other serves alone, and ``standing`` says so. So a write succeeds when one of the two
/// has acknowledged it; it is as durable as that one until the other has caught up. A deletion needs both, since what
/// only one of them forgot would come back.
///
/// Both hold the same objects, the marker included: to their devices they are one store. Two stores with markers of
/// their own are refused.
///
/// Give each side a ``RetryingStore`` of its own. Around both, a store that is down would be waited for again with every
/// write.
public struct MirrorStore: ObjectStore {
  /// One of the two.
  public enum Side: String, CaseIterable, Sendable {
    case first, second
    public var other: Side { self == .first ? .second : .first }
  }

  /// How one of the two stands, as far as its requests have shown.
  public struct Standing: Equatable, Sendable {
    /// Why its last request failed; nil if it did not.
    public var failure: StorageError?
    /// Objects that it lacks and the other has.
    public var behind: Set<ObjectName> = []
    /// Objects of which it has other bytes than were to be there: for `fsck`, which knows whose are right.
    public var different: Set<ObjectName> = []
    public init() {}
  }

  private let first: any ObjectStore
  private let second: any ObjectStore
  private let memory = Memory()

  private final class Memory: Sendable {
    let standing = Mutex<[Side: Standing]>([.first: Standing(), .second: Standing()])
  }

  /// Opens a mirror of two opened stores.
  ///
  /// - Throws: ``StorageError`` `.config` if both are stores, and not the same one; the second's failure if neither can be
  ///   read.
  public static func open(
    _ first: any ObjectStore, _ second: any ObjectStore
  ) async throws(StorageError) -> MirrorStore {
    let mirror = MirrorStore(first: first, second: second)
    let (one, two) = await mirror.both { (_, store) async throws(StorageError) in try await StoreMarker.read(store) }
    switch (one, two) {
    case (.success(.store(let mine)), .success(.store(let yours))):
      guard mine == yours else {
        throw StorageError(
          .config, .open, detail: "the two are different stores; a mirror's second one is empty to begin with")
      }
    case (.success(let finding), .success(let other)):
      let isUsable = [finding, other].allSatisfy {
        switch $0 {
        case .store, .absent: true
        case .newerFormat, .notAStore: false
        }
      }
      guard isUsable else {
        throw StorageError(.config, .open, detail: "one of the two is not a store that this version can use")
      }
    case (.failure, .failure(let error)): throw error
    case (.success, .failure), (.failure, .success): break
    }
    return mirror
  }

  /// Two stores whose markers somebody has looked at already, and found the same.
  public init(first: any ObjectStore, second: any ObjectStore) {
    self.first = first
    self.second = second
  }

  /// How the two stand: whether one is out of reach, behind or different.
  public var standing: [Side: Standing] { memory.standing.withLock { $0 } }

  private func store(_ side: Side) -> any ObjectStore { side == .first ? first : second }

  // MARK: Writing

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    let (one, two) = await both { (_, store) async throws(StorageError) in try await store.put(name, bytes) }
    let outcomes = [(Side.first, one), (.second, two)]
    for (side, outcome) in outcomes {
      switch outcome {
      case .success: note(side) { $0.behind.remove(name) }
      case .failure(let error) where error.cause == .alreadyExists: note(side) { $0.different.insert(name) }
      case .failure: continue
      }
    }
    switch (one, two) {
    case (.success, .success): return
    // What one of the two has under that name is not this; whoever asked must know, even though the other has it now.
    case (.failure(let error), _) where error.cause == .alreadyExists: throw error
    case (_, .failure(let error)) where error.cause == .alreadyExists: throw error
    case (.success, .failure(let error)):
      if error.cause == .cancelled { throw error }
      note(.second) { $0.behind.insert(name) }
    case (.failure(let error), .success):
      if error.cause == .cancelled { throw error }
      note(.first) { $0.behind.insert(name) }
    case (.failure(let error), .failure(let other)): throw Self.worse(error, other)
    }
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    let (one, two) = await both { (_, store) async throws(StorageError) in try await store.delete(name) }
    switch (one, two) {
    case (.success, .success): for side in Side.allCases { note(side) { $0.behind.remove(name) } }
    case (.failure(let error), .failure(let other)): throw Self.worse(error, other)
    case (.failure(let error), .success), (.success, .failure(let error)): throw error
    }
  }

  /// Of two failures the one that is worth another try, and says what may have happened.
  private static func worse(_ one: StorageError, _ two: StorageError) -> StorageError {
    if one.effect != two.effect { return one.effect == .unknown ? one : two }
    return one.isRetryable ? one : two
  }

  // MARK: Reading

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await either(name) { (store) async throws(StorageError) in try await store.get(name, range: range) }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await either(name) { (store) async throws(StorageError) in try await store.head(name) }
  }

  /// From the first, or where it fails or has nothing, from the second.
  private func either<T: Sendable>(
    _ name: ObjectName, _ body: (any ObjectStore) async throws(StorageError) -> T
  ) async throws(StorageError) -> T {
    let failure: StorageError
    do throws(StorageError) {
      let result = try await body(first)
      note(.first) { $0.failure = nil }
      return result
    } catch { failure = error }
    switch failure.cause {
    case .cancelled, .invalidRange, .invalidArgument: throw failure
    case .notFound: note(.first) { $0.failure = nil }
    default: note(.first) { $0.failure = failure }
    }
    do throws(StorageError) {
      let result = try await body(second)
      note(.second) { $0.failure = nil }
      if failure.cause == .notFound { note(.first) { $0.behind.insert(name) } }
      return result
    } catch {
      if error.cause == .notFound {
        note(.second) { $0.failure = nil }
        // Absent only if both say so: the one that cannot be asked may have it.
        throw failure
      }
      if error.cause != .cancelled, error.cause != .invalidRange { note(.second) { $0.failure = error } }
      throw error
    }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try StorageError.checkListing(prefix: prefix, limit: limit)
    let (one, two) = await both { (_, store) async throws(StorageError) in
      try await store.list(prefix: prefix, after: after, limit: limit)
    }
    switch (one, two) {
    case (.success(let first), .success(let second)): return merged(first, second, limit)
    case (.success(let page), .failure(let error)), (.failure(let error), .success(let page)):
      if error.cause == .cancelled { throw error }
      return page
    case (.failure(let error), .failure(let other)): throw Self.worse(error, other)
    }
  }

  /// Both pages in one, as far as both reach.
  private func merged(_ first: ListPage, _ second: ListPage, _ limit: Int) -> ListPage {
    // Behind the last name of a page that is not the last, that side may have more.
    let bound = [first.next, second.next].compactMap { $0 }.min()
    func isKnown(_ entry: ListPage.Entry) -> Bool { bound.map { entry.name <= $0 } ?? true }
    var entries: [ListPage.Entry] = []
    var (one, two) = (first.entries.filter(isKnown)[...], second.entries.filter(isKnown)[...])
    while let entry = [one.first, two.first].compactMap({ $0 }).min(by: { $0.name < $1.name }) {
      let (inFirst, inSecond) = (one.first?.name == entry.name, two.first?.name == entry.name)
      if inFirst, inSecond, one.first?.size != two.first?.size { note(.second) { $0.different.insert(entry.name) } }
      if !inFirst { note(.first) { $0.behind.insert(entry.name) } }
      if !inSecond { note(.second) { $0.behind.insert(entry.name) } }
      entries.append(entry)
      if inFirst { one.removeFirst() }
      if inSecond { two.removeFirst() }
    }
    let isLast = first.isLast && second.isLast && entries.count <= limit
    return ListPage(entries: Array(entries.prefix(limit)), isLast: isLast)
  }

  /// The weaker of both.
  public func probe() async throws(StorageError) -> Capabilities {
    let (one, two) = await both { (_, store) async throws(StorageError) in try await store.probe() }
    let (mine, yours) = (try one.get(), try two.get())
    let order: [Capabilities.ConditionalCreate] = [.none, .bestEffort, .atomic]
    let creation = order.first { $0 == mine.conditionalCreate || $0 == yours.conditionalCreate } ?? .none
    return Capabilities(
      // Two stores are not written at one moment: of two creations each may win on one side.
      conditionalCreate: creation == .atomic ? .bestEffort : creation,
      publish: mine.publish == .atomic && yours.publish == .atomic ? .atomic : .visiblePartial,
      listing: mine.listing == .strong && yours.listing == .strong ? .strong : .eventual,
      maximumObjectSize: min(mine.maximumObjectSize, yours.maximumObjectSize),
      maximumConcurrency: min(mine.maximumConcurrency, yours.maximumConcurrency), hints: mine.hints || yours.hints)
  }

  /// Those of the first that has any.
  public func changes() -> AsyncStream<Void>? { first.changes() ?? second.changes() }

  // MARK: Asking both

  private typealias Outcome<T> = Result<T, StorageError>

  /// Asks both at the same time, and notes who failed.
  private func both<T: Sendable>(
    _ body: @escaping @Sendable (Side, any ObjectStore) async throws(StorageError) -> T
  ) async -> (Outcome<T>, Outcome<T>) {
    async let one = outcome(.first, body)
    async let two = outcome(.second, body)
    return await (one, two)
  }

  private func outcome<T: Sendable>(
    _ side: Side, _ body: @Sendable (Side, any ObjectStore) async throws(StorageError) -> T
  ) async -> Outcome<T> {
    do throws(StorageError) {
      let result = try await body(side, store(side))
      note(side) { $0.failure = nil }
      return .success(result)
    } catch {
      // What is wrong with an object, or with the question, says nothing against the store.
      let isOfStore = ![.cancelled, .alreadyExists, .notFound, .invalidRange, .invalidArgument].contains(error.cause)
      if isOfStore { note(side) { $0.failure = error } }
      return .failure(error)
    }
  }

  private func note(_ side: Side, _ change: (inout Standing) -> Void) {
    memory.standing.withLock { standing in
      var changed = standing[side] ?? Standing()
      change(&changed)
      standing[side] = changed
    }
  }
}

extension MirrorStore {
  /// What was put back, and what could not be.
  public struct Healing: Equatable, Sendable {
    /// Objects that were copied to each side.
    public var copied: [Side: [ObjectName]] = [.first: [], .second: []]
    /// Objects of which the two hold different bytes of different sizes; neither was touched.
    public var different: [ObjectName] = []
    public init() {}
  }

  /// Compares the two completely and copies to each what only the other has, the marker first and in byte order of the
  /// names. Safe to end at any point and to begin again; what others write meanwhile does no harm.
  ///
  /// - Parameter progress: called after each object with how many are copied, of how many.
  /// - Throws: ``StorageError`` if either cannot be listed or does not take an object.
  public func heal(
    progress: (@Sendable (_ done: Int, _ total: Int) -> Void)? = nil
  ) async throws(StorageError) -> Healing {
    let (one, two) = await both { (_, store) async throws(StorageError) in try await store.listAll() }
    let sizes = (try Self.sizes(one), try Self.sizes(two))
    var healing = Healing()
    healing.different = sizes.0.keys.filter { name in sizes.1[name].map { $0 != sizes.0[name] } ?? false }.sorted()
    let missing: [(side: Side, name: ObjectName)] =
      (sizes.1.keys.filter { sizes.0[$0] == nil }.map { (.first, $0) }
      + sizes.0.keys.filter { sizes.1[$0] == nil }.map { (.second, $0) })
      .sorted { a, b in
        if (a.name == .marker) != (b.name == .marker) { return a.name == .marker }
        return a.name < b.name
      }
    for (index, lack) in missing.enumerated() {
      let bytes: [UInt8]
      do { bytes = try await store(lack.side.other).get(lack.name) } catch {
        // Deleted by somebody since it was listed.
        if error.cause == .notFound { continue }
        throw error
      }
      try await store(lack.side).put(lack.name, bytes)
      healing.copied[lack.side]?.append(lack.name)
      progress?(index + 1, missing.count)
    }
    let different = healing.different
    for side in Side.allCases {
      note(side) {
        $0.behind = []
        $0.different = Set(different)
      }
    }
    return healing
  }

  private static func sizes(
    _ listing: Result<[ListPage.Entry], StorageError>
  ) throws(StorageError) -> [ObjectName: Int] {
    Dictionary(uniqueKeysWithValues: try listing.get().map { ($0.name, $0.size) })
  }
}
