import LatchkeyEncoding
import LatchkeyStorage
import Synchronization
import Testing

@Suite struct RetryTests {
  private let retryable: [StorageError.Cause] = [
    .conflict, .rateLimited(after: nil), .unavailable, .timeout, .truncated,
  ]
  private let permanent: [StorageError.Cause] = [
    .notFound, .storeMissing, .alreadyExists, .unauthorized, .forbidden, .readOnly, .quotaExceeded, .tooLarge,
    .clockSkew,
    .tls, .config, .protocolViolation, .unsupported, .cancelled, .invalidRange, .invalidArgument,
  ]

  @Test("what may pass is tried again, and what will not is thrown at once")
  func causes() async throws {
    for cause in retryable {
      let (store, clock) = (ScriptedStore([StorageError(cause, .put)]), JumpingClock())
      try await RetryingStore(store, clock: clock, jitter: { 0.5 }).put(try name("a"), [1])
      #expect(store.calls == 2)
    }
    for cause in permanent {
      let (store, clock) = (ScriptedStore([StorageError(cause, .put)]), JumpingClock())
      await #expect(throws: StorageError(cause, .put)) {
        try await RetryingStore(store, clock: clock, jitter: { 0.5 }).put(try name("a"), [1])
      }
      #expect(store.calls == 1)
      #expect(clock.waits.isEmpty)
    }
  }

  @Test("every operation is tried again")
  func operations() async throws {
    let error = StorageError(.timeout, .get)
    let (store, clock) = (ScriptedStore(Array(repeating: error, count: 4)), JumpingClock())
    let retrying = RetryingStore(store, clock: clock, jitter: { 0 })
    #expect(try await retrying.get(try name("a")) == [1, 2, 3])
    #expect(store.calls == 5)
    let each = ScriptedStore([error])
    #expect(try await RetryingStore(each, clock: clock, jitter: { 0 }).head(try name("a")) == 3)
    let lists = ScriptedStore([error])
    #expect(try await RetryingStore(lists, clock: clock, jitter: { 0 }).list(prefix: "", after: nil, limit: 1).isLast)
    let deletes = ScriptedStore([error])
    try await RetryingStore(deletes, clock: clock, jitter: { 0 }).delete(try name("a"))
    let probes = ScriptedStore([error])
    #expect(try await RetryingStore(probes, clock: clock, jitter: { 0 }).probe().conditionalCreate == .none)
    #expect([each.calls, lists.calls, deletes.calls, probes.calls] == [2, 2, 2, 2])
  }

  @Test("waits double from half a second to thirty, and are scaled by chance from nothing on")
  func backoff() async throws {
    let error = StorageError(.unavailable, .put, effect: .unknown)
    let (store, clock) = (ScriptedStore(Array(repeating: error, count: 20)), JumpingClock())
    let policy = RetryPolicy(maximumElapsed: .seconds(10_000))
    await #expect(throws: error) {
      try await RetryingStore(store, policy: policy, clock: clock, jitter: { 0.5 }).put(try name("a"), [1])
    }
    #expect(store.calls == 10)
    #expect(clock.waits == [0.25, 0.5, 1, 2, 4, 8, 15, 15, 15].map { .milliseconds(Int($0 * 1000)) })
    #expect(policy.delay(after: 3, asked: nil, jitter: 0) == .zero)
    #expect(policy.delay(after: .max, asked: nil, jitter: 0.999) < .seconds(30))
  }

  @Test("what the store asks to wait is honoured, but not beyond the cap, and never below nothing")
  func retryAfter() async throws {
    let errors = [2, 3600, -5].map { StorageError(.rateLimited(after: .seconds($0)), .list, prefix: "a/") }
    let (store, clock) = (ScriptedStore(errors), JumpingClock())
    _ = try await RetryingStore(store, clock: clock, jitter: { 0 }).list(prefix: "a/", after: nil, limit: 1)
    #expect(clock.waits == [.seconds(2), .seconds(30), .zero])
  }

  @Test("no attempt begins after three minutes, however slow the attempts are")
  func elapsed() async throws {
    let error = StorageError(.timeout, .get)
    let clock = JumpingClock()
    let slow = SlowStore(clock: clock, each: .seconds(50), error: error)
    await #expect(throws: error) {
      _ = try await RetryingStore(slow, clock: clock, jitter: { 0.5 }).get(try name("a"))
    }
    // Starts at 0, 50.25, 100.75 and 151.75 s; the next would be after 201.
    #expect(slow.calls == 4)
  }

  @Test("an attempt that may have written is not forgotten when a later one surely has not")
  func effect() async throws {
    let errors = [StorageError(.timeout, .put, effect: .unknown), StorageError(.quotaExceeded, .put)]
    let store = RetryingStore(ScriptedStore(errors), clock: JumpingClock(), jitter: { 0 })
    await #expect(throws: StorageError(.quotaExceeded, .put, effect: .unknown)) {
      try await store.put(try name("a"), [1])
    }
  }

  @Test("a wait that is cancelled throws cancelled, with what the last attempt may have done")
  func cancellation() async throws {
    let store = ScriptedStore([StorageError(.timeout, .put, effect: .unknown)])
    let retrying = RetryingStore(store, clock: JumpingClock(), jitter: { 0 })
    let object = try name("a")
    let task = Task { () -> StorageError? in
      withUnsafeCurrentTask { $0?.cancel() }
      do throws(StorageError) { try await retrying.put(object, [1]) } catch { return error }
      return nil
    }
    let error = await task.value
    #expect(error?.cause == .cancelled)
    #expect(error?.effect == .unknown)
    #expect(store.calls == 1)
  }
}

/// Takes its time, by a clock that jumps, and fails.
private final class SlowStore: ObjectStore {
  private let clock: JumpingClock
  private let each: Duration
  private let error: StorageError
  private let asked = Mutex(0)
  var calls: Int { asked.withLock { $0 } }

  init(clock: JumpingClock, each: Duration, error: StorageError) {
    self.clock = clock
    self.each = each
    self.error = error
  }

  private func fail() -> StorageError {
    asked.withLock { $0 += 1 }
    clock.advance(each)
    return error
  }

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) { throw fail() }
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] { throw fail() }
  func head(_ name: ObjectName) async throws(StorageError) -> Int { throw fail() }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage { throw fail() }
  func delete(_ name: ObjectName) async throws(StorageError) { throw fail() }
  func probe() async throws(StorageError) -> Capabilities { throw fail() }
}
