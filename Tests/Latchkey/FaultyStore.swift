import Latchkey
import LatchkeyEncoding
import LatchkeyFolder
import LatchkeyStorage
import Synchronization

/// Where a process "dies": at the n-th request to the store, before or after it took effect.
final class Fault: Sendable {
  enum Moment: CaseIterable, Sendable { case before, after }
  struct Plan {
    var countdown: Int?
    var moment = Moment.before
    var requests = 0
    var puts: [(ObjectName, [UInt8])] = []
  }
  let plan = Mutex(Plan())

  /// Fails the request after `count` others; nil never.
  func arm(after count: Int?, _ moment: Moment = .before) {
    plan.withLock {
      $0.countdown = count
      $0.moment = moment
      $0.requests = 0
    }
  }

  /// Whether this request is the one, and when it fails.
  func strike() -> Moment? {
    plan.withLock {
      $0.requests += 1
      guard let left = $0.countdown else { return nil }
      $0.countdown = left == 0 ? nil : left - 1
      return left == 0 ? $0.moment : nil
    }
  }
}

/// A folder whose requests can fail, and which remembers every byte it was given.
struct FaultyStore: ObjectStore {
  let inner: any ObjectStore
  let fault: Fault

  private func failing<T>(
    _ operation: StorageError.Operation, _ body: () async throws(StorageError) -> T
  ) async throws(StorageError) -> T {
    // A cause that is not retried: the process is gone.
    switch fault.strike() {
    case .before: throw StorageError(.cancelled, operation)
    case .after:
      _ = try await body()
      throw StorageError(.cancelled, operation, nil, effect: .unknown)
    case nil: return try await body()
    }
  }

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    fault.plan.withLock { $0.puts.append((name, bytes)) }
    try await failing(.put) { () async throws(StorageError) in try await inner.put(name, bytes) }
  }
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await failing(.get) { () async throws(StorageError) in try await inner.get(name, range: range) }
  }
  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await failing(.head) { () async throws(StorageError) in try await inner.head(name) }
  }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try await failing(.list) { () async throws(StorageError) in
      try await inner.list(prefix: prefix, after: after, limit: limit)
    }
  }
  func delete(_ name: ObjectName) async throws(StorageError) {
    try await failing(.delete) { () async throws(StorageError) in try await inner.delete(name) }
  }
  func probe() async throws(StorageError) -> Capabilities { try await inner.probe() }
}

extension Place {
  /// As ``home(_:)``, over a store that fails as `fault` says.
  func home(_ name: String, _ fault: Fault) -> Home {
    var stores = StoreRegistry()
    stores.register(scheme: "folder", form: "folder:PATH") { (locator, mode) async throws(StorageError) in
      var folders = StoreRegistry()
      folders.registerFolders()
      return FaultyStore(inner: try await folders.open(locator, mode), fault: fault)
    }
    let clock = clock
    return Home(
      directory: path(name), stores: stores, base: root,
      world: World(now: { clock.now }, random: { SystemWorld.random() }))
  }
}
