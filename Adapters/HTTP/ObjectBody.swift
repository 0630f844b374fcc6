public import LatchkeyEncoding
public import LatchkeyStorage

extension HTTPResponse {
  /// The bytes of an object that a GET gave: exactly those that were asked for, whatever the server made of the range.
  ///
  /// - Parameter range: what was asked for; nil for the whole object.
  /// - Throws: ``StorageError``; `.invalidRange` where the object is shorter, `.protocolViolation` for anything that
  ///   might not be it: compressed, without a length, another part.
  public func object(_ range: Range<Int>?, _ name: ObjectName) throws(StorageError) -> [UInt8] {
    func violation(_ detail: String) -> StorageError { StorageError(.protocolViolation, .get, name, detail: detail) }
    if let encoding = headers["Content-Encoding"], encoding != "identity", !encoding.isEmpty {
      throw violation("the server sends it compressed")
    }
    guard isDelimited else { throw violation("the server does not say how long it is") }
    guard let range else {
      guard status == 200 else { throw violation("status \(status)") }
      return body
    }
    guard let given = headers["Content-Range"].flatMap(HTTPContentRange.init) else {
      // The whole object: the server knows no ranges.
      guard status == 200 else { throw violation("a part without saying which") }
      guard range.upperBound <= body.count else { throw StorageError(.invalidRange, .get, name) }
      return Array(body[range])
    }
    guard given.first == range.lowerBound, body.count == given.last - given.first + 1 else {
      throw violation("another part than was asked for")
    }
    // A part that goes past the end is cut by the server, and refused by us.
    if given.last + 1 < range.upperBound, given.total == nil || given.total == given.last + 1 {
      throw StorageError(.invalidRange, .get, name)
    }
    guard given.last + 1 == range.upperBound else { throw violation("another part than was asked for") }
    return body
  }
}

/// `Content-Range: bytes FIRST-LAST/TOTAL` (RFC 9110 §14.4).
public struct HTTPContentRange: Equatable, Sendable {
  public let first: Int
  /// The last byte, included.
  public let last: Int
  /// Nil where the server does not know.
  public let total: Int?

  public init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard halves.count == 2, ends.count == 2, let first = Int(ends[0]), let last = Int(ends[1]), first <= last,
      last < Int.max
    else { return nil }
    (self.first, self.last, total) = (first, last, Int(halves[1]))
  }
}
