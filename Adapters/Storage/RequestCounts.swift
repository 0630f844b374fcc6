internal import Synchronization

/// How many requests of each kind were made, and how many bytes went each way. Shared and thread-safe.
public final class RequestCounts: Sendable {
  /// The numbers at one moment.
  public struct Snapshot: Equatable, Sendable {
    public var puts = 0
    public var gets = 0
    public var heads = 0
    public var lists = 0
    public var deletes = 0
    public var probes = 0
    /// Bytes of objects handed to the store, failed attempts included.
    public var bytesUp = 0
    /// Bytes of objects that arrived.
    public var bytesDown = 0
    public init() {}
    /// All requests together.
    public var total: Int { puts + gets + heads + lists + deletes + probes }

    /// What was added since an earlier snapshot.
    public func since(_ earlier: Self) -> Self {
      var difference = Self()
      for path in Self.all { difference[keyPath: path] = self[keyPath: path] - earlier[keyPath: path] }
      return difference
    }

    private static var all: [WritableKeyPath<Self, Int>] {
      [\.puts, \.gets, \.heads, \.lists, \.deletes, \.probes, \.bytesUp, \.bytesDown]
    }
  }

  private let numbers = Mutex(Snapshot())

  public init() {}

  public var snapshot: Snapshot { numbers.withLock { $0 } }

  func add(_ body: (inout Snapshot) -> Void) { numbers.withLock { body(&$0) } }
}
