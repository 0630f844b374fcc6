/// What a store asks for before it lets somebody in: values by name, as its adapter understands them.
///
/// Written as lines `name = value`, which is what a file for `--credential-file` holds: `user` and `password` for WebDAV,
/// `access-key`, `secret-key` and, for temporary keys, `session-token` for S3. Empty lines, lines that begin with `#` or
/// `;`, and headings in brackets are passed over, so that a section of a shared credentials file will do.
///
/// Belongs to one store, and is never given to another. Never printed.
public struct StoreCredential: Hashable, Sendable {
  private let values: [String: String]

  /// Parses lines.
  ///
  /// - Parameter source: what the text is called in errors.
  public init(parsing text: String, source: String = "the credential") throws(StoreCredentialError) {
    var values: [String: String] = [:]
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let line = Self.trimmed(line)
      if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") || line.hasPrefix("[") && line.hasSuffix("]") {
        continue
      }
      guard let equals = line.firstIndex(of: "=") else { throw .malformed(source: source, line: index + 1) }
      let name = Self.trimmed(line[..<equals]).lowercased()
      let value = Self.trimmed(line[line.index(after: equals)...])
      guard Self.isName(name), !value.isEmpty,
        !value.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 })
      else { throw .malformed(source: source, line: index + 1) }
      guard values.updateValue(String(value), forKey: name) == nil else { throw .twice(source: source, name: name) }
    }
    guard !values.isEmpty else { throw .empty(source: source) }
    self.values = values
  }

  /// Reads a file that only its owner can read.
  public init(file path: String) throws(StoreCredentialError) {
    let text: String
    do { text = try PrivateFile.read(path) } catch { throw .file(error) }
    try self.init(parsing: text, source: path)
  }

  /// The value of that name, or nil.
  public subscript(name: String) -> String? { values[name] }

  /// The names there are, in order.
  public var names: [String] { values.keys.sorted() }

  /// The same as lines, in the order of the names. A secret.
  public var text: String { names.map { "\($0) = \(values[$0] ?? "")\n" }.joined() }

  private static func isName(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || "-_".utf8.contains($0) }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var rest = text.drop(while: \.isWhitespace)
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return rest
  }
}

extension StoreCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(credential)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Why a credential could not be read. Never holds any of it.
public enum StoreCredentialError: Error, Equatable, Sendable, CustomStringConvertible {
  case file(PrivateFile.Failure)
  /// Not `name = value`. Lines count from 1.
  case malformed(source: String, line: Int)
  case twice(source: String, name: String)
  case empty(source: String)

  public var description: String {
    switch self {
    case .file(let failure): failure.description
    case .malformed(let source, let line): "line \(line) of \(source) is not \"name = value\""
    case .twice(let source, let name): "\(source) has \(name) twice"
    case .empty(let source): "\(source) holds no credential: write lines \"name = value\" into it"
    }
  }
}
