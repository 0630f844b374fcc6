public import LatchkeyEncoding

/// A store in memory, for tests and examples. Everybody who holds the actor is a connection to the same store.
public actor MemoryStore: ObjectStore {
  /// What is in it. Assign to roll it back, or to show it a different past.
  public var objects: StoredObjects

  public init(_ objects: StoredObjects = StoredObjects()) { self.objects = objects }

  public func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) { try objects.put(name, bytes) }

  public func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try objects.get(name, range: range)
  }

  public func head(_ name: ObjectName) async throws(StorageError) -> Int { try objects.head(name) }

  public func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try objects.list(prefix: prefix, after: after, limit: limit)
  }

  public func delete(_ name: ObjectName) async throws(StorageError) { objects.delete(name) }

  public func probe() async throws(StorageError) -> Capabilities {
    Capabilities(conditionalCreate: .atomic, publish: .atomic, listing: .strong, maximumConcurrency: 64)
  }

  /// Changes what is in it, from outside the actor.
  public func change(_ body: @Sendable (inout StoredObjects) -> Void) { body(&objects) }
}
