public import LatchkeyEncoding

/// Tries again what failed for a while: the only place in Latchkey that repeats a request to a store.
///
/// Every operation of ``ObjectStore`` is idempotent, so everything ``StorageError/isRetryable`` is repeated with the
/// same arguments. When the policy is exhausted, the last error is thrown. A cancelled wait throws `.cancelled` with
/// the last attempt's effect.
public struct RetryingStore<C: Clock>: ObjectStore where C.Duration == Duration {
  private let store: any ObjectStore
  private let policy: RetryPolicy
  private let clock: C
  private let jitter: @Sendable () -> Double

  /// - Parameters:
  ///   - clock: what waits; a test passes one that does not.
  ///   - jitter: random numbers in `0..<1`.
  public init(
    _ store: any ObjectStore, policy: RetryPolicy = RetryPolicy(), clock: C,
    jitter: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) {
    self.store = store
    self.policy = policy
    self.clock = clock
    self.jitter = jitter
  }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    try await repeated { () async throws(StorageError) in try await store.put(name, bytes) }
  }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await repeated { () async throws(StorageError) in try await store.get(name, range: range) }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await repeated { () async throws(StorageError) in try await store.head(name) }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try await repeated { () async throws(StorageError) in
      try await store.list(prefix: prefix, after: after, limit: limit)
    }
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    try await repeated { () async throws(StorageError) in try await store.delete(name) }
  }

  public func probe() async throws(StorageError) -> Capabilities {
    try await repeated { () async throws(StorageError) in try await store.probe() }
  }

  public func changes() -> AsyncStream<Void>? { store.changes() }

  private func repeated<T: Sendable>(
    _ operation: () async throws(StorageError) -> T
  ) async throws(StorageError) -> T {
    try await policy.repeating(clock: clock, jitter: jitter, operation)
  }
}

extension RetryPolicy {
  /// Tries something again for as long as its failures may pass and the policy allows: what ``RetryingStore`` does with every
  /// request, for what is none, such as opening a store.
  ///
  /// - Throws: the last failure; `.cancelled` with its effect if the task was cancelled while it waited.
  public func repeating<T: Sendable, C: Clock>(
    clock: C = ContinuousClock(), jitter: @Sendable () -> Double = { Double.random(in: 0..<1) },
    _ operation: () async throws(StorageError) -> T
  ) async throws(StorageError) -> T where C.Duration == Duration {
    let start = clock.now
    var attempt = 1
    // Once an attempt may have changed something, the whole call may have.
    var effect = StorageError.Effect.notApplied
    while true {
      let failure: StorageError
      do { return try await operation() } catch { failure = error }
      if failure.effect == .unknown { effect = .unknown }
      guard failure.isRetryable, attempt < maximumAttempts else { throw failure.with(effect) }
      var asked: Duration?
      if case .rateLimited(let after) = failure.cause { asked = after }
      let delay = delay(after: attempt, asked: asked, jitter: jitter())
      guard start.duration(to: clock.now) + delay <= maximumElapsed else { throw failure.with(effect) }
      do { try await clock.sleep(until: clock.now.advanced(by: delay), tolerance: nil) } catch {
        throw failure.with(effect, cause: .cancelled)
      }
      attempt += 1
    }
  }
}

extension RetryingStore where C == ContinuousClock {
  public init(_ store: any ObjectStore, policy: RetryPolicy = RetryPolicy()) {
    self.init(store, policy: policy, clock: ContinuousClock())
  }
}

extension StorageError {
  func with(_ effect: Effect, cause: Cause? = nil) -> Self {
    Self(
      cause: cause ?? self.cause, operation: operation, subject: subject, effect: effect, detail: detail,
      advice: advice)
  }
}
