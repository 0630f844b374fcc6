public import LatchkeyEncoding

/// Counts the requests that reach a store. Inside a ``RetryingStore`` it counts attempts; outside, calls.
public struct CountingStore: ObjectStore {
  private let store: any ObjectStore
  public let counts: RequestCounts

  public init(_ store: any ObjectStore, counts: RequestCounts = RequestCounts()) {
    self.store = store
    self.counts = counts
  }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    counts.add {
      $0.puts += 1
      $0.bytesUp += bytes.count
    }
    try await store.put(name, bytes)
  }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    counts.add { $0.gets += 1 }
    let bytes = try await store.get(name, range: range)
    counts.add { $0.bytesDown += bytes.count }
    return bytes
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int {
    counts.add { $0.heads += 1 }
    return try await store.head(name)
  }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    counts.add { $0.lists += 1 }
    return try await store.list(prefix: prefix, after: after, limit: limit)
  }

  public func delete(_ name: ObjectName) async throws(StorageError) {
    counts.add { $0.deletes += 1 }
    try await store.delete(name)
  }

  public func probe() async throws(StorageError) -> Capabilities {
    counts.add { $0.probes += 1 }
    return try await store.probe()
  }

  public func changes() -> AsyncStream<Void>? { store.changes() }
}
