import LatchkeyEncoding
import LatchkeyStorage
import Synchronization

/// A store that fails as it is told, then succeeds; it remembers how often it was asked.
final class ScriptedStore: ObjectStore {
  private let failures: Mutex<[StorageError]>
  private let asked = Mutex(0)
  let page: ListPage

  init(_ failures: [StorageError] = [], page: ListPage = ListPage(entries: [], isLast: true)) {
    self.failures = Mutex(failures)
    self.page = page
  }

  var calls: Int { asked.withLock { $0 } }

  private func next() throws(StorageError) {
    asked.withLock { $0 += 1 }
    if let failure = failures.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { throw failure }
  }

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) { try next() }
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try next()
    return [1, 2, 3]
  }
  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try next()
    return 3
  }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try next()
    return page
  }
  func delete(_ name: ObjectName) async throws(StorageError) { try next() }
  func probe() async throws(StorageError) -> Capabilities {
    try next()
    return Capabilities(conditionalCreate: .none, publish: .atomic, listing: .strong, maximumConcurrency: 1)
  }
}

/// A clock that jumps instead of waiting, and writes down how far.
final class JumpingClock: Clock {
  struct Instant: InstantProtocol {
    var offset: Duration
    func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }
    func duration(to other: Self) -> Duration { other.offset - offset }
    static func < (a: Self, b: Self) -> Bool { a.offset < b.offset }
  }

  private let state = Mutex((now: Duration.zero, waits: [Duration]()))

  var now: Instant { Instant(offset: state.withLock { $0.now }) }
  var minimumResolution: Duration { .nanoseconds(1) }
  var waits: [Duration] { state.withLock { $0.waits } }

  func advance(_ duration: Duration) { state.withLock { $0.now += duration } }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try Task.checkCancellation()
    state.withLock {
      $0.waits.append(deadline.offset - $0.now)
      $0.now = deadline.offset
    }
  }
}
