public import LatchkeyEncoding

/// What has been accepted of every log in one zone (format §10). Stored in the transaction that applied what it covers.
public struct Belief: Equatable, Sendable {
  /// One author's log, as far as it is accepted.
  public struct Author: Equatable, Sendable {
    /// The tag under which this author's heads lie in the epoch.
    public var tag: String
    /// Newest head fully accepted; 0 if none was.
    public var counter: UInt64 = 0
    /// Last entry accepted.
    public var mark: Mark?
    /// Clock of the newest group accepted.
    public var hlc: UInt64 = 0
    /// Last segment read completely in this epoch.
    public var segment: UInt64 = 0
    /// A fork was seen: nothing more of this log counts here.
    public var isStopped = false

    public init(tag: String) { self.tag = tag }
  }

  public var authors: [Origin: Author] = [:]

  public init() {}

  /// The positions accepted, for heads.
  public var vector: [Origin: Mark] { authors.compactMapValues(\.mark) }

  /// Whether a head's tag and counter, as listed, are fully accepted already.
  public func covers(tag: String, counter: UInt64) -> Bool {
    authors.values.contains { $0.tag == tag && ($0.counter >= counter || $0.isStopped) }
  }

  // MARK: Kept form

  /// For the store of the caller; not a wire format.
  public func encoded() -> [UInt8] {
    var w = CBORWriter()
    w.array(authors.count)
    for (origin, author) in authors.sorted(by: { $0.key < $1.key }) {
      w.array(9)
      w.id(origin.device)
      w.id(origin.incarnation)
      w.text(author.tag)
      w.uint(author.counter)
      w.uint(author.mark?.sequence ?? 0)
      if let mark = author.mark { w.id(mark.hash) } else { w.null() }
      w.uint(author.hlc)
      w.uint(author.segment)
      w.bool(author.isStopped)
    }
    return w.bytes
  }

  public init(decoding bytes: [UInt8]) throws(LogError) {
    var r = CBORReader(bytes)
    do {
      for _ in 0..<(try r.array()) {
        try r.array(exactly: 9)
        let origin = Origin(device: try r.id(), incarnation: try r.id())
        var author = Author(tag: try r.text())
        author.counter = try r.uint()
        let sequence = try r.uint()
        if !(try r.null()) { author.mark = Mark(sequence: sequence, hash: try r.id()) }
        author.hlc = try r.uint()
        author.segment = try r.uint()
        author.isStopped = try r.bool()
        authors[origin] = author
      }
      try r.finish()
    } catch { throw .malformed("kept belief: \(error)") }
  }
}
