public import LatchkeyEncoding

/// A part of a listing, in byte order of the names.
public struct ListPage: Equatable, Sendable {
  /// An object as a listing shows it.
  public struct Entry: Equatable, Sendable {
    public let name: ObjectName
    /// Bytes.
    public let size: Int
    public init(name: ObjectName, size: Int) {
      self.name = name
      self.size = size
    }
  }

  public let entries: [Entry]
  /// Whether the listing ends with this page. A page that is not the last is not empty.
  public let isLast: Bool

  public init(entries: [Entry], isLast: Bool) {
    self.entries = entries
    self.isLast = isLast
  }

  /// What to pass as `after` for the next page, or nil if there is none.
  public var next: ObjectName? { isLast ? nil : entries.last?.name }
}
