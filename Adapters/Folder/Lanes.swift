internal import Dispatch
internal import LatchkeyEncoding
internal import LatchkeyStorage
internal import Synchronization

/// Runs blocking work on threads of its own, one piece a lane at a time, so that Swift's cooperative threads never wait
/// for a disk. Work is dealt out in turn.
final class Lanes: Sendable {
  private let queues: [DispatchQueue]
  private let turn = Atomic(0)

  /// - Parameter count: at least 1.
  init(_ count: Int) {
    queues = (0..<max(1, count)).map { DispatchQueue(label: "latchkey.folder.\($0)") }
  }

  /// Performs `work`. A task that is cancelled before it begins throws `.cancelled`; after that it is finished.
  func run<T: Sendable>(
    _ operation: StorageError.Operation, _ name: ObjectName?,
    _ work: @escaping @Sendable () throws(StorageError) -> T
  ) async throws(StorageError) -> T {
    let turn = turn.wrappingAdd(1, ordering: .relaxed).oldValue
    let queue = queues[Int(UInt(bitPattern: turn) % UInt(queues.count))]
    let cancelled = Flag()
    let result: Result<T, StorageError> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        queue.async {
          continuation.resume(
            returning: cancelled.isSet ? .failure(StorageError(.cancelled, operation, name)) : Result(catching: work))
        }
      }
    } onCancel: {
      cancelled.set()
    }
    return try result.get()
  }
}

/// Set once, read from anywhere.
private final class Flag: Sendable {
  private let value = Atomic(false)
  var isSet: Bool { value.load(ordering: .relaxed) }
  func set() { value.store(true, ordering: .relaxed) }
}
