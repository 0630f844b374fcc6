import LatchkeyEncoding
import LatchkeyStorage
import Synchronization
import Testing

@Suite struct CountingTests {
  @Test("every request and every byte is counted, failed ones too")
  func counts() async throws {
    let store = CountingStore(MemoryStore())
    try await store.put(try name("a/1"), [1, 2, 3])
    try await store.put(try name("a/1"), [1, 2, 3])
    await #expect(throws: StorageError.self) { try await store.put(try name("a/1"), [9]) }
    _ = try await store.get(try name("a/1"))
    _ = try await store.get(try name("a/1"), range: 1..<2)
    await #expect(throws: StorageError.self) { _ = try await store.get(try name("a/2")) }
    _ = try await store.head(try name("a/1"))
    _ = try await store.listAll()
    try await store.delete(try name("a/1"))
    _ = try await store.probe()
    var expected = RequestCounts.Snapshot()
    expected.puts = 3
    expected.gets = 3
    expected.heads = 1
    expected.lists = 1
    expected.deletes = 1
    expected.probes = 1
    expected.bytesUp = 7
    expected.bytesDown = 4
    #expect(store.counts.snapshot == expected)
    #expect(expected.total == 10)
    _ = try await store.listAll()
    #expect(store.counts.snapshot.since(expected).lists == 1)
    #expect(store.counts.snapshot.since(expected).total == 1)
  }

  @Test("inside a retry it counts attempts, outside it counts calls")
  func attempts() async throws {
    let (inner, outer) = (RequestCounts(), RequestCounts())
    let failing = ScriptedStore([StorageError(.timeout, .delete), StorageError(.conflict, .delete)])
    let store = CountingStore(
      RetryingStore(CountingStore(failing, counts: inner), clock: JumpingClock(), jitter: { 0 }), counts: outer)
    try await store.delete(try name("a"))
    #expect(inner.snapshot.deletes == 3)
    #expect(outer.snapshot.deletes == 1)
  }
}

@Suite struct LimitingTests {
  @Test("never more than the limit at a time, and everybody gets a turn")
  func limit() async throws {
    let gauge = GaugeStore()
    let store = LimitingStore(gauge, limit: 3)
    let object = try name("a")
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<40 { group.addTask { _ = try? await store.head(object) } }
    }
    #expect(gauge.done == 40)
    #expect(gauge.most <= 3)
    #expect(gauge.most >= 2)
  }

  @Test("who is cancelled while waiting leaves the queue, and the slot goes to the next")
  func cancellation() async throws {
    let (gate, object) = (GateStore(), try name("a"))
    let store = LimitingStore(gate, limit: 1)
    let first = Task { try await store.head(object) }
    while gate.waiting == 0 { await Task.yield() }
    let second = Task { try await store.head(object) }
    second.cancel()
    await #expect(throws: StorageError(.cancelled, .head, object)) { _ = try await second.value }
    let third = Task { try await store.head(object) }
    gate.open()
    #expect(try await first.value == 1)
    #expect(try await third.value == 1)
  }
}

/// Measures how many are inside at once.
private final class GaugeStore: ObjectStore {
  private let state = Mutex((inside: 0, most: 0, done: 0))
  var most: Int { state.withLock { $0.most } }
  var done: Int { state.withLock { $0.done } }

  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    state.withLock {
      $0.inside += 1
      $0.most = max($0.most, $0.inside)
    }
    for _ in 0..<20 { await Task.yield() }
    state.withLock {
      $0.inside -= 1
      $0.done += 1
    }
    return 0
  }
  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {}
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] { [] }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    ListPage(entries: [], isLast: true)
  }
  func delete(_ name: ObjectName) async throws(StorageError) {}
  func probe() async throws(StorageError) -> Capabilities { throw StorageError(.unsupported, .probe) }
}

/// Lets nobody out before it is opened.
private final class GateStore: ObjectStore {
  private let state = Mutex((isOpen: false, waiting: 0))
  var waiting: Int { state.withLock { $0.waiting } }
  func open() { state.withLock { $0.isOpen = true } }

  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    state.withLock { $0.waiting += 1 }
    while !state.withLock({ $0.isOpen }) { await Task.yield() }
    return 1
  }
  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {}
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] { [] }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    ListPage(entries: [], isLast: true)
  }
  func delete(_ name: ObjectName) async throws(StorageError) {}
  func probe() async throws(StorageError) -> Capabilities { throw StorageError(.unsupported, .probe) }
}
