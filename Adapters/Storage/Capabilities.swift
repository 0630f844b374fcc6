/// What a store really does, as found by ``ObjectStore/probe()``.
public struct Capabilities: Equatable, Sendable {
  /// Whether creating a name that exists is refused.
  public enum ConditionalCreate: String, Sendable {
    /// Of several creations of one name exactly one succeeds.
    case atomic
    /// Usually; two at the same moment may both be told that they succeeded.
    case bestEffort
    /// The store overwrites; the adapter can only look first.
    case none
  }

  /// Whether an object can be seen before it is complete.
  public enum Publish: String, Sendable {
    case atomic, visiblePartial
  }

  /// Whether a listing shows what has just been written.
  public enum Listing: String, Sendable {
    case strong, eventual
  }

  public var conditionalCreate: ConditionalCreate
  public var publish: Publish
  public var listing: Listing
  /// Largest object, in bytes.
  public var maximumObjectSize: Int
  /// How many operations at a time the store takes well; a ``LimitingStore`` keeps to it.
  public var maximumConcurrency: Int
  /// Whether ``ObjectStore/changes()`` gives hints.
  public var hints: Bool

  public init(
    conditionalCreate: ConditionalCreate, publish: Publish, listing: Listing,
    maximumObjectSize: Int = StorageLimits.maximumObjectSize, maximumConcurrency: Int, hints: Bool = false
  ) {
    self.conditionalCreate = conditionalCreate
    self.publish = publish
    self.listing = listing
    self.maximumObjectSize = maximumObjectSize
    self.maximumConcurrency = maximumConcurrency
    self.hints = hints
  }
}
