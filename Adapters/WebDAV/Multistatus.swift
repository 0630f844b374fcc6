internal import LatchkeyHTTP

/// The answer to a PROPFIND, and to whatever else was done to several resources at once (RFC 4918 §13).
///
/// Read with tolerance for what servers really send: any prefix or none for the namespace, addresses as paths or in
/// full, properties that are not there in a `propstat` of their own.
struct Multistatus {
  /// One resource of it.
  struct Resource: Equatable {
    /// The parts of its path, decoded.
    let path: [String]
    /// Its own status, where it has one; else it is there.
    let status: Int?
    let isCollection: Bool
    /// Bytes; nil where the server does not say.
    let size: Int?
    /// When it was last changed, in seconds since 1970.
    let modified: Int?

    var isThere: Bool { status.map { (200...299).contains($0) } ?? true }
  }

  let resources: [Resource]

  /// Elements of a resource: about ten.
  private static var limits: XMLReader.Limits {
    var limits = XMLReader.Limits()
    limits.maximumBytes = maximumBytes
    limits.maximumElements = 1_000_000
    return limits
  }

  /// A listing of some fifty thousand files.
  static let maximumBytes = 32 << 20

  /// What is asked for: no more than is used, since some servers read files to answer.
  static let question = Array(
    """
    <?xml version="1.0" encoding="utf-8"?>
    <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>
    """.utf8)

  /// - Throws: ``XMLError``; nil for a document of another kind.
  init?(_ body: [UInt8]) throws(XMLError) {
    let root = try XMLReader.read(body, limits: Self.limits)
    guard root.name == "multistatus", Self.isDAV(root) else { return nil }
    resources = Self.children("response", of: root).flatMap(Self.resources)
  }

  private static func resources(_ response: XMLReader.Element) -> [Resource] {
    let status = children("status", of: response).first.flatMap { code($0.text) }
    let properties = children("propstat", of: response).filter { part in
      // A property that is not there has a part of its own (Seafile).
      children("status", of: part).first.flatMap { code($0.text) }.map { (200...299).contains($0) } ?? true
    }
    .flatMap { children("prop", of: $0) }
    func text(_ name: String) -> String? { properties.lazy.compactMap { children(name, of: $0).first?.text }.first }
    let isMarked = properties.contains { property in
      children("resourcetype", of: property).contains { !children("collection", of: $0).isEmpty }
    }
    let size = text("getcontentlength").map(trimmed).flatMap(number)
    let modified = text("getlastmodified").map(trimmed).flatMap(HTTPDate.parse)
    return children("href", of: response).map { reference in
      let href = trimmed(reference.text)
      return Resource(
        path: path(href), status: status, isCollection: isMarked || size == nil && href.hasSuffix("/"), size: size,
        modified: modified)
    }
  }

  /// A name without a namespace is one whose prefix was not declared.
  private static func isDAV(_ element: XMLReader.Element) -> Bool {
    ["DAV:", "DAV", ""].contains(element.namespace)
  }

  private static func children(_ name: String, of element: XMLReader.Element) -> [XMLReader.Element] {
    element.children.filter { $0.name == name && isDAV($0) }
  }

  /// `HTTP/1.1 404 Not Found`.
  private static func code(_ text: String) -> Int? {
    text.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
  }

  private static func number(_ text: String) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int(text)
  }

  private static func trimmed(_ text: String) -> String {
    var rest = Substring(text).drop(while: \.isWhitespace)
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }

  /// The parts of an address's path. Scheme and host are passed over: it is the answer of the server that was asked, and
  /// what stands behind a proxy knows itself by another name. Nothing is ever fetched from there.
  static func path(_ href: String) -> [String] {
    var rest = Substring(href)
    if let mark = rest.firstRange(of: "://"), rest[..<mark.lowerBound].allSatisfy({ $0.isASCII && $0.isLetter }) {
      let authority = rest[mark.upperBound...]
      rest = authority.firstIndex(of: "/").map { authority[$0...] } ?? "/"
    }
    if let query = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[..<query] }
    return rest.split(separator: "/").map(decoded)
  }

  /// `%XX` resolved; what is none stays.
  private static func decoded(_ part: Substring) -> String {
    var out: [UInt8] = []
    var rest = Array(part.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2, !digits.contains(UInt8(ascii: "+")),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        out.append(value)
        rest = rest.dropFirst(2)
      } else {
        out.append(byte)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
