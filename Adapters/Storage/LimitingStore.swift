public import LatchkeyEncoding

/// Lets only so many operations at a time through to a store; the others wait their turn, first come, first served.
public struct LimitingStore: ObjectStore {
  private let store: any ObjectStore
  private let slots: Slots

  /// - Parameter limit: at least 1; ``Capabilities/maximumConcurrency`` is a good one.
  public init(_ store: any ObjectStore, limit: Int) {
    self.store = store
    slots = Slots(max(1, limit))
  }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    try await limited(.put, name) { () async throws(StorageError) in try await store.put(name, bytes) }
  }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try await limited(.get, name) { () async throws(StorageError) in try await store.get(name, range: range) }
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try await limited(.head, name) { () async throws(StorageError) in try await store.head(name) }
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try await limited(.list, nil) { () async throws(StorageError) in
      try await store.list(prefix: prefix, after: after, limit: limit)
    }
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    try await limited(.delete, name) { () async throws(StorageError) in try await store.delete(name) }
  }

  public func probe() async throws(StorageError) -> Capabilities {
    try await limited(.probe, nil) { () async throws(StorageError) in try await store.probe() }
  }

  public func changes() -> AsyncStream<Void>? { store.changes() }

  private func limited<T: Sendable>(
    _ operation: StorageError.Operation, _ name: ObjectName?, _ body: () async throws(StorageError) -> T
  ) async throws(StorageError) -> T {
    guard await slots.take() else { throw StorageError(.cancelled, operation, name) }
    let result: Result<T, StorageError>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    await slots.giveBack()
    return try result.get()
  }
}

/// A counting semaphore that suspends instead of blocking.
actor Slots {
  private var free: Int
  private var waiting: [(ticket: Int, turn: CheckedContinuation<Bool, Never>)] = []
  private var lastTicket = 0

  init(_ count: Int) { free = count }

  /// Waits for a slot. False if the task was cancelled first; then there is nothing to give back.
  func take() async -> Bool {
    if Task.isCancelled { return false }
    if free > 0 {
      free -= 1
      return true
    }
    lastTicket += 1
    let ticket = lastTicket
    return await withTaskCancellationHandler {
      await withCheckedContinuation { turn in
        // Cancelled before it stood in the queue: nobody would find it there.
        if Task.isCancelled { turn.resume(returning: false) } else { waiting.append((ticket, turn)) }
      }
    } onCancel: {
      Task { await self.forget(ticket) }
    }
  }

  func giveBack() {
    if waiting.isEmpty { free += 1 } else { waiting.removeFirst().turn.resume(returning: true) }
  }

  private func forget(_ ticket: Int) {
    guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return }
    waiting.remove(at: index).turn.resume(returning: false)
  }
}
