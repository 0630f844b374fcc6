/// Where a store is: a parsed store URL.
///
/// `folder:PATH` or a bare path; `SCHEME://AUTHORITY/PATH?name=value&…`; or `SCHEME:TEXT` for an adapter that needs no
/// more. Parsing knows no adapter: an invite can name a store that this program cannot open, and still be shown.
/// Whether a scheme is known, and its options, is for the ``StoreRegistry``.
///
/// A locator travels in invites and is shown: it never holds a secret, and what looks like one is refused.
public struct Locator: Hashable, Sendable, CustomStringConvertible {
  /// Lower case.
  public let scheme: String
  public let place: Place

  public enum Place: Hashable, Sendable {
    /// A folder's path: absolute, without `.`, `..`, double or trailing slashes. `..` is resolved in the text, not on
    /// the disk.
    case folder(path: String)
    /// The parts of a URL; `path` is without slashes at its ends, `%XX` kept as written. Options in order of their
    /// names.
    case url(authority: String, path: String, options: [Option])
    /// What follows the colon, as written.
    case opaque(String)
  }

  /// An option of a URL; an option without `=` has the empty value.
  public struct Option: Hashable, Sendable {
    public let name: String
    /// Unescaped.
    public let value: String
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// The scheme of bare paths.
  public static let folderScheme = "folder"
  /// Longest locator, in bytes.
  public static let maximumLength = 4096

  /// Parses a store URL.
  ///
  /// - Parameters:
  ///   - text: what somebody typed, or what an invite says.
  ///   - base: the absolute path that relative folder paths are relative to. Empty for what comes from elsewhere, where
  ///     a relative path means nothing.
  public init(parsing text: String, relativeTo base: String) throws(LocatorError) {
    guard !text.isEmpty else { throw .empty }
    guard text.utf8.count <= Self.maximumLength else { throw .tooLong }
    guard !text.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 }) else { throw .invalidCharacter }
    guard let (scheme, rest) = Self.splitScheme(text) else {
      try self.init(folder: text, relativeTo: base)
      return
    }
    if scheme == Self.folderScheme {
      try self.init(folder: rest, relativeTo: base)
    } else if rest.hasPrefix("//") {
      try self.init(scheme: scheme, url: rest.dropFirst(2))
    } else {
      guard !rest.isEmpty else { throw .missingPlace(scheme: scheme) }
      guard !rest.contains("@") else { throw .credential }
      self.init(scheme: scheme, place: .opaque(rest))
    }
  }

  private init(scheme: String, place: Place) {
    self.scheme = scheme
    self.place = place
  }

  /// A folder.
  public init(folder path: String, relativeTo base: String) throws(LocatorError) {
    guard path.utf8.count <= Self.maximumLength else { throw .tooLong }
    guard !path.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 }) else { throw .invalidCharacter }
    guard !path.isEmpty else { throw .missingPlace(scheme: Self.folderScheme) }
    guard path != "~", !path.hasPrefix("~/") else { throw .tilde }
    if path.hasPrefix("//"), !path.hasPrefix("///") { throw .folderWithHost }
    if !path.hasPrefix("/"), !base.hasPrefix("/") { throw .relativePath }
    scheme = Self.folderScheme
    place = .folder(path: Self.normalized(path.hasPrefix("/") ? path : base + "/" + path))
  }

  private init(scheme: String, url: Substring) throws(LocatorError) {
    guard url.utf8.allSatisfy({ Self.mayStandInURL($0) }) else { throw .invalidCharacter }
    try Self.checkEscapes(url)
    let (location, query) = Self.split(url, at: "?")
    let (authority, path) = Self.split(location, at: "/")
    guard !authority.contains("@") else { throw .credential }
    guard !authority.isEmpty else { throw .missingPlace(scheme: scheme) }
    var trimmed = path ?? ""
    if trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    if let path, !path.isEmpty {
      for part in trimmed.split(separator: "/", omittingEmptySubsequences: false)
      where part.isEmpty || [".", ".."].contains(Self.unescaped(part)) {
        throw .invalidPathSegment
      }
    }
    self.scheme = scheme
    place = .url(authority: String(authority), path: String(trimmed), options: try Self.options(query))
  }

  /// The folder's path, if this is a folder.
  public var folderPath: String? {
    guard case .folder(let path) = place else { return nil }
    return path
  }

  /// The value of an option of a URL, or nil where it is not given.
  public func option(_ name: String) -> String? {
    guard case .url(_, _, let options) = place else { return nil }
    return options.first { $0.name == name }?.value
  }

  /// The canonical text: two locators are equal iff their texts are, and parsing it gives this locator again.
  public var text: String {
    switch place {
    case .folder(let path): return "\(scheme):\(path)"
    case .opaque(let rest): return "\(scheme):\(rest)"
    case .url(let authority, let path, let options):
      let query = options.map { option in
        option.value.isEmpty ? Self.escaped(option.name) : "\(Self.escaped(option.name))=\(Self.escaped(option.value))"
      }
      return "\(scheme)://\(authority)" + (path.isEmpty ? "" : "/\(path)")
        + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }
  }

  public var description: String { text }
}

extension Locator {
  /// Scheme, in lower case, and what follows its colon; nil for a bare path, which is whatever has a slash before its
  /// first colon, no colon, or before the colon something that is not a scheme (RFC 3986 §3.1).
  static func splitScheme(_ text: String) -> (scheme: String, rest: String)? {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let scheme = text[..<colon]
    guard let first = scheme.utf8.first, isLetter(first) else { return nil }
    guard scheme.utf8.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }) else { return nil }
    return (scheme.lowercased(), String(text[text.index(after: colon)...]))
  }

  private static func normalized(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/") {
      switch part {
      case ".": continue
      case "..": _ = parts.popLast()
      default: parts.append(part)
      }
    }
    return "/" + parts.joined(separator: "/")
  }

  private static func split(_ text: Substring, at separator: Character) -> (Substring, Substring?) {
    guard let index = text.firstIndex(of: separator) else { return (text, nil) }
    return (text[..<index], text[text.index(after: index)...])
  }

  private static func options(_ query: Substring?) throws(LocatorError) -> [Option] {
    guard let query, !query.isEmpty else { return [] }
    var options: [Option] = []
    for part in query.split(separator: "&", omittingEmptySubsequences: false) {
      let (rawName, rawValue) = split(part, at: "=")
      let (name, value) = (unescaped(rawName), unescaped(rawValue ?? ""))
      guard isOptionName(name) else { throw .invalidOption("") }
      guard !looksSecret(name), !holdsCredential(value) else { throw .credential }
      guard !(name + value).unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 }) else {
        throw .invalidCharacter
      }
      guard !options.contains(where: { $0.name == name }) else { throw .invalidOption(name) }
      options.append(Option(name: name, value: value))
    }
    return options.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  private static func isOptionName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy { isLetter($0) || isDigit($0) || "-_.".utf8.contains($0) }
  }

  /// Names under which people write secrets.
  private static func looksSecret(_ name: String) -> Bool {
    let name = name.lowercased()
    return [
      "password", "passwd", "passphrase", "secret", "token", "credential", "access-key", "accesskey", "access_key",
    ]
    .contains { name.contains($0) }
  }

  /// Whether a value is a URL with a user name in it.
  private static func holdsCredential(_ value: String) -> Bool {
    let parts = value.split(separator: "://", maxSplits: 1)
    guard parts.count == 2 else { return false }
    return parts[1].prefix { $0 != "/" && $0 != "?" }.contains("@")
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }
  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  /// The characters of a URL without a fragment (RFC 3986 §2).
  private static func mayStandInURL(_ byte: UInt8) -> Bool {
    isLetter(byte) || isDigit(byte) || "-._~:/?[]@!$&'()*+,;=%".utf8.contains(byte)
  }

  private static func checkEscapes(_ text: Substring) throws(LocatorError) {
    let utf8 = Array(text.utf8)
    for (index, byte) in utf8.enumerated() where byte == UInt8(ascii: "%") {
      guard index + 2 < utf8.count, hexValue(utf8[index + 1]) != nil, hexValue(utf8[index + 2]) != nil else {
        throw .invalidEscape
      }
    }
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 65...70: byte - 55
    case 97...102: byte - 87
    default: nil
    }
  }

  /// Escapes are known to be well formed; bytes that are not UTF-8 become U+FFFD.
  private static func unescaped(_ text: Substring) -> String {
    let utf8 = Array(text.utf8)
    var out: [UInt8] = []
    var index = 0
    while index < utf8.count {
      if utf8[index] == UInt8(ascii: "%"), index + 2 < utf8.count, let high = hexValue(utf8[index + 1]),
        let low = hexValue(utf8[index + 2])
      {
        out.append(high << 4 | low)
        index += 3
      } else {
        out.append(utf8[index])
        index += 1
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Escapes what would end an option or is not allowed in a query.
  private static func escaped(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var out: [UInt8] = []
    for byte in text.utf8 {
      if isLetter(byte) || isDigit(byte) || "-._~:/@!$'()*,;".utf8.contains(byte) {
        out.append(byte)
      } else {
        out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
