import Dispatch
import LatchkeyEncoding
import LatchkeyStorage

/// A store in one file, `pack:/PATH`: objects one behind the other, as on a tape.
///
/// It is here to be read, and complete all the same: every promise of `ObjectStore` is kept, and `packstore-check` has
/// them checked. What it does not do is give back the room of deleted objects.
public struct PackStore: ObjectStore {
  private let pack: Pack
  /// File calls block, and Swift's own threads are few: they are made on threads of Dispatch's.
  private static let queue = DispatchQueue(label: "pack", attributes: .concurrent)

  /// - Parameters:
  ///   - path: absolute.
  ///   - mode: `.create` makes the file if it is not there. Without it, a file that is not there is a missing store and
  ///     never an empty one.
  public static func open(at path: String, _ mode: OpenMode = .existing) async throws(StorageError) -> PackStore {
    guard path.hasPrefix("/") else {
      throw StorageError(.config, .open, detail: "write pack:/PATH with a whole path")
    }
    let store = PackStore(pack: Pack(path: path))
    try await store.run(.open, nil) { pack throws(PackFailure) in try pack.open(creating: mode == .create) }
    return store
  }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    guard bytes.count <= StorageLimits.maximumObjectSize else { throw StorageError(.tooLarge, .put, name) }
    try await run(.put, name) { pack throws(PackFailure) in try pack.append(name.text, bytes) }
  }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await run(.get, name) { pack throws(PackFailure) in try pack.read(name.text, range) }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await run(.head, name) { pack throws(PackFailure) in
      guard let place = try pack.index()[name.text] else { throw .absent }
      return place.count
    }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    // What cannot be asked is refused before anything is done; every adapter calls this first.
    try StorageError.checkListing(prefix: prefix, limit: limit)
    let index = try await run(.list, nil) { pack throws(PackFailure) in try pack.index() }
    let entries = index.compactMap { text, place in
      ObjectName(text).map { ListPage.Entry(name: $0, size: place.count) }
    }
    .filter { entry in entry.name.text.hasPrefix(prefix) && (after.map { $0 < entry.name } ?? true) }
    .sorted { $0.name < $1.name }
    return ListPage(entries: Array(entries.prefix(limit)), isLast: entries.count <= limit)
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    try await run(.delete, name) { pack throws(PackFailure) in try pack.remove(name.text) }
  }

  public func probe() async throws(StorageError) -> Capabilities {
    // Nothing to try out: the lock is the file system's, and everything is under it.
    Capabilities(conditionalCreate: .atomic, publish: .atomic, listing: .strong, maximumConcurrency: 4)
  }

  /// Does something to the file on a thread that may block, and says what its failures mean: the one place where they
  /// become errors of the contract.
  private func run<T: Sendable>(
    _ operation: StorageError.Operation, _ name: ObjectName?,
    _ body: @escaping @Sendable (Pack) throws(PackFailure) -> T
  ) async throws(StorageError) -> T {
    if Task.isCancelled { throw StorageError(.cancelled, operation, name) }
    let result: Result<T, PackFailure> = await withCheckedContinuation { continuation in
      Self.queue.async { continuation.resume(returning: Result { () throws(PackFailure) in try body(pack) }) }
    }
    do { return try result.get() } catch {
      throw StorageError(error.cause, operation, name, effect: error.effect, detail: error.detail)
    }
  }
}

extension StoreRegistry {
  /// Makes `pack:/PATH` known: one line in the program that links this adapter.
  public mutating func registerPacks() {
    register(scheme: "pack", form: "pack:/PATH") { locator, mode throws(StorageError) in
      guard case .opaque(let path) = locator.place else {
        throw StorageError(.config, .open, detail: "write pack:/PATH")
      }
      return try await PackStore.open(at: path, mode)
    }
  }
}
