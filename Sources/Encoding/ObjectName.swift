/// The name of an object in a store, and its grammar (format §3): the same tree on every adapter.
///
/// One to four segments of `[a-z0-9-]` joined by `/`, none empty, none starting or ending with `-`, 120 bytes at most.
/// So no name differs from another by case only, none is hidden, none needs escaping in a URL, and nothing that a
/// store's own software leaves behind (temporary files, conflicted copies, lock files) is a name.
public struct ObjectName: Hashable, Comparable, Sendable, CustomStringConvertible {
  public let text: String

  /// Nil unless `text` follows the grammar.
  public init?(_ text: String) {
    let utf8 = Array(text.utf8)
    guard utf8.count <= Self.maximumLength, ObjectName.isPath(utf8, segments: 1...4) else { return nil }
    self.text = text
  }

  /// Longest name, in bytes.
  public static let maximumLength = 120

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text.utf8.lexicographicallyPrecedes(b.text.utf8) }

  /// The name below a prefix, which is given without the `/` that follows it; nil if it is not below it.
  public func below(_ prefix: String) -> ObjectName? {
    guard text.hasPrefix(prefix + "/") else { return nil }
    return ObjectName(String(text.dropFirst(prefix.count + 1)))
  }

  /// Whether `text` may stand before a `/` in a listing: empty, or full segments each followed by `/`.
  public static func isListablePrefix(_ text: String) -> Bool {
    if text.isEmpty { return true }
    let utf8 = Array(text.utf8)
    guard utf8.last == 47, utf8.count <= maximumLength else { return false }
    return isPath(Array(utf8.dropLast()), segments: 1...3)
  }

  private static func isPath(_ utf8: [UInt8], segments: ClosedRange<Int>) -> Bool {
    let parts = utf8.split(separator: 47, omittingEmptySubsequences: false)
    guard segments.contains(parts.count) else { return false }
    return parts.allSatisfy { part in
      guard let first = part.first, let last = part.last, first != 45, last != 45 else { return false }
      return part.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    }
  }

  /// The store's marker object (format §3): tells a store from an empty or unmounted place.
  public static let marker = ObjectName(constant: "latchkey-store")

  private init(constant: String) { text = constant }
}
