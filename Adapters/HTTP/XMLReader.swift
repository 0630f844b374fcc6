/// Reads a small XML document into a tree: the replies of S3 and WebDAV.
///
/// It understands what such servers send and no more: elements, attributes and namespaces, character data and CDATA,
/// the five named entities and numeric references; comments and processing instructions are passed over. A document type
/// is refused, and with it every entity that a stranger could define ("billion laughs", external files). Size, depth
/// and number of elements are bounded before anything is kept.
///
/// It does not validate beyond that: it tells a reply from damage, since what it reads decides where bytes are looked
/// for and never whether they are believed.
///
/// Source: XML 1.0 (5th edition), Namespaces in XML 1.0.
public struct XMLReader {
  /// An element: what is in it, and where.
  public struct Element: Equatable, Sendable {
    /// The namespace's name, whatever prefix stands for it; empty for none.
    public let namespace: String
    /// Without the prefix.
    public let name: String
    public let attributes: [Attribute]
    /// The character data directly in it, joined.
    public let text: String
    public let children: [Element]

    /// The first child of that name; `namespace` nil takes any.
    public func first(_ name: String, in namespace: String? = nil) -> Element? {
      children.first { $0.name == name && (namespace == nil || $0.namespace == namespace) }
    }

    /// All children of that name.
    public func all(_ name: String, in namespace: String? = nil) -> [Element] {
      children.filter { $0.name == name && (namespace == nil || $0.namespace == namespace) }
    }

    /// The text of the first child of that name.
    public func text(_ name: String, in namespace: String? = nil) -> String? { first(name, in: namespace)?.text }
  }

  public struct Attribute: Equatable, Sendable {
    /// Empty for an attribute without a prefix.
    public let namespace: String
    public let name: String
    public let value: String
  }

  public struct Limits: Sendable {
    public var maximumBytes = 8 << 20
    public var maximumDepth = 32
    public var maximumElements = 200_000
    /// Of one element, namespaces included.
    public var maximumAttributes = 32
    public init() {}
  }

  /// - Returns: the root element.
  /// - Throws: ``XMLError``.
  public static func read(_ bytes: [UInt8], limits: Limits = Limits()) throws(XMLError) -> Element {
    guard bytes.count <= limits.maximumBytes else { throw .tooLarge }
    var reader = XMLReader(bytes, limits)
    return try reader.document()
  }

  private let bytes: [UInt8]
  private let limits: Limits
  private var position = 0
  private var elements = 0

  private init(_ bytes: [UInt8], _ limits: Limits) {
    self.bytes = bytes
    self.limits = limits
  }

  /// An element whose end has not come.
  private struct Open {
    let qualifiedName: ArraySlice<UInt8>
    let namespace: String
    let name: String
    let attributes: [Attribute]
    /// What its prefixes stand for, the innermost last; the empty one is the default.
    let scope: Scope
    var text: [UInt8] = []
    var children: [Element] = []

    var closed: Element {
      Element(
        namespace: namespace, name: name, attributes: attributes, text: String(decoding: text, as: UTF8.self),
        children: children)
    }
  }

  private typealias Scope = [(prefix: ArraySlice<UInt8>, namespace: String)]

  private mutating func document() throws(XMLError) -> Element {
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    try checkDeclaration()
    var open: [Open] = []
    var root: Element?
    while position < bytes.count {
      if bytes[position] != UInt8(ascii: "<") {
        let text = characterData()
        guard let last = open.indices.last else {
          guard text.allSatisfy(Self.isSpace) else { throw .malformed(at: position) }
          continue
        }
        // Without references, as nearly always, it is copied once.
        if text.contains(UInt8(ascii: "&")) { open[last].text += try decoded(text) } else { open[last].text += text }
      } else if starts("<!--") {
        position += 4
        try skip(past: "-->")
      } else if starts("<![CDATA[") {
        position += 9
        guard let last = open.indices.last else { throw .malformed(at: position) }
        let start = position
        try skip(past: "]]>")
        open[last].text += bytes[start..<position - 3]
      } else if starts("<?") {
        try skip(past: "?>")
      } else if starts("<!") {
        throw .documentType
      } else if starts("</") {
        position += 2
        guard let element = open.popLast(), name() == element.qualifiedName else { throw .malformed(at: position) }
        skipSpace()
        try take(">")
        Self.close(element.closed, in: &open, &root)
      } else {
        guard root == nil else { throw .malformed(at: position) }
        let (element, isEmpty) = try startTag(scope: open.last?.scope ?? [])
        if isEmpty {
          Self.close(element.closed, in: &open, &root)
        } else {
          open.append(element)
          guard open.count <= limits.maximumDepth else { throw .tooDeep }
        }
      }
    }
    guard open.isEmpty, let root else { throw .truncated }
    return root
  }

  private static func close(_ element: Element, in open: inout [Open], _ root: inout Element?) {
    if let parent = open.indices.last { open[parent].children.append(element) } else { root = element }
  }

  /// Anything but UTF-8 (of which ASCII is a part) is refused: no server of these protocols sends it.
  private mutating func checkDeclaration() throws(XMLError) {
    guard starts("<?xml"), position + 5 < bytes.count, Self.isSpace(bytes[position + 5]) else { return }
    let start = position
    try skip(past: "?>")
    let declaration = bytes[start..<position].map { (65...90).contains($0) ? $0 | 32 : $0 }
    func end(of word: StaticString, from index: Int = 0) -> Int? {
      word.withUTF8Buffer { word in
        (index..<max(index, declaration.count - word.count + 1)).first {
          declaration[$0..<$0 + word.count].elementsEqual(word)
        }.map { $0 + word.count }
      }
    }
    guard let name = end(of: "encoding") else { return }
    let isKnown =
      end(of: "utf-8", from: name) != nil || end(of: "utf8", from: name) != nil
      || end(of: "us-ascii", from: name) != nil
    guard isKnown else { throw .encoding }
  }

  private mutating func startTag(scope outer: Scope) throws(XMLError) -> (Open, isEmpty: Bool) {
    elements += 1
    guard elements <= limits.maximumElements else { throw .tooLarge }
    try take("<")
    let qualified = name()
    guard !qualified.isEmpty else { throw .malformed(at: position) }
    var raw: [(name: ArraySlice<UInt8>, value: String)] = []
    while true {
      let before = position
      skipSpace()
      if starts("/>") || starts(">") { break }
      guard position > before else { throw position < bytes.count ? .malformed(at: position) : .truncated }
      raw.append(try attribute())
      guard raw.count <= limits.maximumAttributes else { throw .tooLarge }
    }
    let isEmpty = starts("/>")
    position += isEmpty ? 2 : 1
    var scope = outer
    for (name, value) in raw {
      // "xmlns" or "xmlns:prefix"
      if Self.isDeclaration(name) { scope.append((name.dropFirst(6), value)) }
    }
    var attributes: [Attribute] = []
    for (name, value) in raw where !Self.isDeclaration(name) {
      let (prefix, local) = Self.split(name)
      attributes.append(
        Attribute(
          namespace: prefix.isEmpty ? "" : Self.namespace(prefix, scope),
          name: String(decoding: local, as: UTF8.self), value: value))
    }
    let (prefix, local) = Self.split(qualified)
    let element = Open(
      qualifiedName: qualified, namespace: Self.namespace(prefix, scope),
      name: String(decoding: local, as: UTF8.self), attributes: attributes, scope: scope)
    return (element, isEmpty)
  }

  private static func isDeclaration(_ name: ArraySlice<UInt8>) -> Bool {
    name.elementsEqual("xmlns".utf8) || name.starts(with: "xmlns:".utf8)
  }

  private mutating func attribute() throws(XMLError) -> (ArraySlice<UInt8>, String) {
    let attributeName = name()
    guard !attributeName.isEmpty else { throw .malformed(at: position) }
    skipSpace()
    try take("=")
    skipSpace()
    guard position < bytes.count else { throw .truncated }
    let quote = bytes[position]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { throw .malformed(at: position) }
    position += 1
    guard let end = bytes[position...].firstIndex(of: quote) else { throw .truncated }
    let value = try decoded(bytes[position..<end])
    position = end + 1
    return (attributeName, String(decoding: value, as: UTF8.self))
  }

  private static func namespace(_ prefix: ArraySlice<UInt8>, _ scope: Scope) -> String {
    if prefix.elementsEqual("xml".utf8) { return "http://www.w3.org/XML/1998/namespace" }
    // A prefix that nobody declared, as some servers forget to: the name is still worth something.
    return scope.last { $0.prefix.elementsEqual(prefix) }?.namespace ?? ""
  }

  private mutating func characterData() -> ArraySlice<UInt8> {
    let start = position
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") { position += 1 }
    return bytes[start..<position]
  }

  /// Resolves references. There are no others than these: entities cannot be declared without a document type.
  private func decoded(_ raw: ArraySlice<UInt8>) throws(XMLError) -> [UInt8] {
    guard raw.contains(UInt8(ascii: "&")) else { return Array(raw) }
    var out: [UInt8] = []
    out.reserveCapacity(raw.count)
    var index = raw.startIndex
    while index < raw.endIndex {
      guard raw[index] == UInt8(ascii: "&") else {
        out.append(raw[index])
        index += 1
        continue
      }
      guard let end = raw[index...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { throw .malformed(at: index) }
      let reference = String(decoding: raw[index + 1..<end], as: UTF8.self)
      switch reference {
      case "amp": out.append(UInt8(ascii: "&"))
      case "lt": out.append(UInt8(ascii: "<"))
      case "gt": out.append(UInt8(ascii: ">"))
      case "quot": out.append(UInt8(ascii: "\""))
      case "apos": out.append(UInt8(ascii: "'"))
      default:
        let number =
          reference.hasPrefix("#x") ? UInt32(reference.dropFirst(2), radix: 16) : UInt32(reference.dropFirst())
        guard reference.hasPrefix("#"), let number, number > 0, let scalar = Unicode.Scalar(number) else {
          throw .entity
        }
        out += Array(String(Character(scalar)).utf8)
      }
      index = end + 1
    }
    return out
  }

  private mutating func name() -> ArraySlice<UInt8> {
    let start = position
    while position < bytes.count, Self.isNameByte(bytes[position]) { position += 1 }
    return bytes[start..<position]
  }

  private func starts(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { expected in
      bytes.count - position >= expected.count && bytes[position..<position + expected.count].elementsEqual(expected)
    }
  }

  private mutating func take(_ text: StaticString) throws(XMLError) {
    guard starts(text) else { throw position < bytes.count ? .malformed(at: position) : .truncated }
    position += text.utf8CodeUnitCount
  }

  private mutating func skip(past text: StaticString) throws(XMLError) {
    while position < bytes.count {
      if starts(text) {
        position += text.utf8CodeUnitCount
        return
      }
      position += 1
    }
    throw .truncated
  }

  private mutating func skipSpace() {
    while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
  }

  private static func split(
    _ qualified: ArraySlice<UInt8>
  ) -> (prefix: ArraySlice<UInt8>, local: ArraySlice<UInt8>) {
    guard let colon = qualified.firstIndex(of: UInt8(ascii: ":")) else { return ([], qualified) }
    return (qualified[..<colon], qualified[(colon + 1)...])
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 10 || byte == 13 }

  /// Whatever cannot end a name; names are compared, not judged.
  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 9, 10, 13, 32: false
    // < > / = " ' & ; ! ?
    case 60, 62, 47, 61, 34, 39, 38, 59, 33, 63: false
    default: true
    }
  }
}

/// Why a text is not a document that ``XMLReader`` reads.
public enum XMLError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The end is missing: as good as an answer that broke off.
  case truncated
  case malformed(at: Int)
  /// A document type, which could define anything.
  case documentType
  /// A reference to something that is not defined.
  case entity
  /// Not UTF-8.
  case encoding
  case tooDeep
  /// Over one of ``XMLReader/Limits``.
  case tooLarge

  public var description: String {
    switch self {
    case .truncated: "the document breaks off"
    case .malformed(let position): "the document is not XML at byte \(position)"
    case .documentType: "the document has a document type, which is not read"
    case .entity: "the document refers to an entity that is not defined"
    case .encoding: "the document is not in UTF-8"
    case .tooDeep: "the document's elements are nested too deeply"
    case .tooLarge: "the document is too large"
    }
  }
}
