public import LatchkeyStorage

/// What the conformance suite needs of an adapter.
///
/// ```swift
/// let report = await runConformance(ConformanceFactory { try await MyStore.open(url) })
/// print(report)
/// ```
public struct ConformanceFactory: Sendable {
  /// How much is asked of the store.
  public enum Extent: Sendable {
    /// Every case at its full size: a thousand objects, races of many rounds.
    case full
    /// Every case, each as small as it can be: for finding out whether a place will do.
    case short
  }

  /// Opens a new, independent connection to the same place each time: another session, another client, no shared cache.
  public var connect: @Sendable () async throws -> any ObjectStore
  /// Puts things that are not objects below a prefix, as other programs leave them there: names outside the grammar,
  /// directories, half-written files. Nil where the store cannot hold such things.
  public var plantDebris: (@Sendable (_ prefix: String) async throws -> Void)?
  /// Throws unless everything that `plantDebris` put below the prefix is still there.
  public var checkDebris: (@Sendable (_ prefix: String) async throws -> Void)?
  public var extent: Extent
  /// Cases that would begin later than this after the first are left out; nil for all of them.
  public var timeLimit: Duration?
  /// Called after each case with how many are done, of how many.
  public var progress: (@Sendable (_ done: Int, _ total: Int) -> Void)?
  /// Tells this run's names from those of other runs in the same place: `[a-z0-9]`, up to 16 of them.
  public var run: String

  public init(
    run: String = ConformanceFactory.randomRun(), extent: Extent = .full, timeLimit: Duration? = nil,
    connect: @escaping @Sendable () async throws -> any ObjectStore,
    plantDebris: (@Sendable (_ prefix: String) async throws -> Void)? = nil,
    checkDebris: (@Sendable (_ prefix: String) async throws -> Void)? = nil
  ) {
    self.run = run
    self.extent = extent
    self.timeLimit = timeLimit
    self.connect = connect
    self.plantDebris = plantDebris
    self.checkDebris = checkDebris
  }

  public static func randomRun() -> String { String(UInt64.random(in: .min ... .max), radix: 36) }
}
