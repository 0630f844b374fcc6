public import LatchkeyEncoding
public import LatchkeyLog

/// What a device's rows come to: equal on two devices that have merged the same (format §9).
public struct ZoneFacts: Sendable {
  /// Of every log, the device's own ones included.
  public let vector: [Origin: Mark]
  public let digest: Hash32
  /// Entries that are merged when their time has come.
  public let unapplied: Set<Position>

  public struct Position: Hashable, Sendable {
    public let origin: Origin
    public let sequence: UInt64
    public init(origin: Origin, sequence: UInt64) { (self.origin, self.sequence) = (origin, sequence) }
  }

  public init(vector: [Origin: Mark], digest: Hash32, unapplied: Set<Position>) {
    (self.vector, self.digest, self.unapplied) = (vector, digest, unapplied)
  }

  /// What the author of a head says of itself.
  init(_ head: HeadBody) {
    var vector = head.vector
    vector[head.origin] = Mark(sequence: head.lastSequence, hash: head.lastHash)
    self.init(
      vector: vector, digest: head.digest,
      unapplied: Set(head.unapplied.map { Position(origin: $0.origin, sequence: $0.sequence) }))
  }

  /// Whether both have merged exactly the same and hold different rows: one of them is damaged, or not honest.
  func diverges(from other: ZoneFacts) -> Bool {
    vector == other.vector && unapplied == other.unapplied && digest != other.digest
  }
}
