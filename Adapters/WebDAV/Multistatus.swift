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
    /// When it was last changed, as the server writes it.
    let date: String?

    /// When it was last changed, in seconds since 1970.
    var modified: Int? { date.flatMap(HTTPDate.parse) }
    var isThere: Bool { status.map(Multistatus.isSuccess) ?? true }
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
    resources = root.children.filter { $0.name == "response" && Self.isDAV($0) }.flatMap(Self.resources)
  }

  private static func resources(_ response: XMLReader.Element) -> [Resource] {
    var (status, size): (Int?, Int?)
    var date: String?
    var isMarked = false
    for part in response.children where isDAV(part) {
      if part.name == "status", status == nil { status = code(part.text) }
      // A property that is not there has a part of its own (Seafile).
      guard part.name == "propstat", child("status", of: part).flatMap({ code($0.text) }).map(isSuccess) ?? true else {
        continue
      }
      for properties in part.children where properties.name == "prop" && isDAV(properties) {
        for property in properties.children where isDAV(property) {
          switch property.name {
          case "resourcetype": isMarked = isMarked || child("collection", of: property) != nil
          case "getcontentlength": size = size ?? number(trimmed(property.text))
          case "getlastmodified": date = date ?? String(trimmed(property.text))
          default: break
          }
        }
      }
    }
    return response.children.filter { $0.name == "href" && isDAV($0) }.map { reference in
      let href = trimmed(reference.text)
      return Resource(
        path: path(href), status: status, isCollection: isMarked || size == nil && href.hasSuffix("/"), size: size,
        date: date)
    }
  }

  private static func isSuccess(_ status: Int) -> Bool { (200...299).contains(status) }

  /// A name without a namespace is one whose prefix was not declared.
  private static func isDAV(_ element: XMLReader.Element) -> Bool {
    ["DAV:", "DAV", ""].contains(element.namespace)
  }

  private static func child(_ name: String, of element: XMLReader.Element) -> XMLReader.Element? {
    element.children.first { $0.name == name && isDAV($0) }
  }

  /// `HTTP/1.1 404 Not Found`.
  private static func code(_ text: String) -> Int? {
    text.utf8.split(whereSeparator: isSpace).dropFirst().first.flatMap { Int(Substring($0)) }
  }

  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int(text)
  }

  private static func trimmed(_ text: String) -> Substring {
    var rest = text.utf8.drop(while: isSpace)
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return Substring(rest)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }

  /// The parts of an address's path. Scheme and host are passed over: it is the answer of the server that was asked, and
  /// what stands behind a proxy knows itself by another name. Nothing is ever fetched from there.
  static func path(_ href: some StringProtocol) -> [String] {
    var rest = Array(href.utf8)[...]
    let scheme = rest.prefix { (65...90).contains($0 & ~32) }
    if rest[scheme.endIndex...].starts(with: "://".utf8) {
      rest = rest[scheme.endIndex...].dropFirst(3).drop { $0 != UInt8(ascii: "/") }
    }
    return rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
      .split(separator: UInt8(ascii: "/")).map(decoded)
  }

  /// `%XX` resolved; what is none stays.
  private static func decoded(_ part: ArraySlice<UInt8>) -> String {
    guard part.contains(UInt8(ascii: "%")) else { return String(decoding: part, as: UTF8.self) }
    var out: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2, let high = digit(rest[rest.startIndex]),
        let low = digit(rest[rest.startIndex + 1])
      {
        out.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        out.append(byte)
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 65...70: byte - 55
    case 97...102: byte - 87
    default: nil
    }
  }
}
