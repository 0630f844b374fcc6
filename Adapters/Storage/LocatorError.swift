/// Why a text is not the URL of a store. No case repeats anything that could be a secret.
public enum LocatorError: Error, Equatable, Sendable, CustomStringConvertible {
  case empty
  /// Over ``Locator/maximumLength`` bytes.
  case tooLong
  /// Nobody registered the scheme.
  case unknownScheme(String, registered: [String])
  /// Nothing, or nothing but slashes, after the scheme.
  case missingPlace(scheme: String)
  /// `folder://host/path`: a folder has no host.
  case folderWithHost
  /// A path that begins with `~`, which only a shell expands.
  case tilde
  /// A relative path, and the base to resolve it against is not absolute.
  case relativePath
  /// A user name, password, key or token in the URL.
  case credential
  /// A character that may not stand there: a control character, a space or a `#` in a URL.
  case invalidCharacter
  /// `%` without two hexadecimal digits.
  case invalidEscape
  /// `//`, `/./` or `/../` inside the path of a URL.
  case invalidPathSegment
  /// An option without a name, or given twice.
  case invalidOption(String)
  /// An option that this scheme does not have.
  case unknownOption(String, scheme: String, known: [String])

  public var description: String {
    switch self {
    case .empty: "There is no store URL. Write a folder's path, for instance folder:/mnt/share/latchkey."
    case .tooLong: "The store URL is over \(Locator.maximumLength) bytes. Check that it was pasted as a whole and once."
    case .unknownScheme(let scheme, let registered): Self.unknown(scheme, registered)
    case .missingPlace(let scheme): "The store URL names no place after \"\(scheme):\". Add a path, bucket or host."
    case .folderWithHost:
      "A folder has no host: write folder:/PATH with one slash. A folder on another machine has to be mounted first."
    case .tilde: "\"~\" is not expanded in a store URL. Write the whole path (or ./~ for a folder of that name)."
    case .relativePath:
      "The folder's path is relative, and there is nothing to resolve it against. Write the whole path."
    case .credential:
      "The store URL holds a user name, password, key or token. Leave it out: it would be shown and copied with the "
        + "URL. Credentials come from the keyring, a file or the environment."
    case .invalidCharacter:
      "The store URL has a character that cannot stand there (a control character, or in a URL a space, \"#\", "
        + "quotation mark or a letter with an accent). Write it as %XX, or check that it was pasted as a whole."
    case .invalidEscape:
      "The store URL has a \"%\" that is not followed by two hexadecimal digits. Write %25 for \"%\"."
    case .invalidPathSegment: "The path of the store URL has an empty, \".\" or \"..\" part. Write it without."
    case .invalidOption(let name):
      name.isEmpty
        ? "The store URL has an option without a name after \"?\". Options are written name=value, joined by \"&\"."
        : "The store URL has the option \"\(name)\" twice. Write it once."
    case .unknownOption(let name, let scheme, let known):
      known.isEmpty
        ? "\"\(name)\" is not an option: \(scheme) stores have none."
        : "\"\(name)\" is not an option of \(scheme) stores. There are: \(known.joined(separator: ", "))."
    }
  }

  private static func unknown(_ scheme: String, _ registered: [String]) -> String {
    let known =
      registered.isEmpty ? "none is registered" : "there are: " + registered.map { $0 + ":" }.joined(separator: ", ")
    let meant =
      switch scheme {
      case "file", "dir", "path": "folder"
      case "http", "https", "dav", "davs", "webdav": "webdav+https"
      case "aws", "minio": "s3"
      default: ""
      }
    let hint =
      registered.contains(meant) ? " Perhaps \(meant): is meant." : " A path with a colon is written folder:PATH."
    return "There is no adapter for \"\(scheme):\" stores; \(known).\(hint)"
  }
}
