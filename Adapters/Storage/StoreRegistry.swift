/// Which adapters a program has: opens stores by their URL.
///
/// ```swift
/// var stores = StoreRegistry()
/// stores.registerFolders()                                      // LatchkeyFolder
/// let locator = try stores.locator("folder:share", relativeTo: currentDirectory)
/// let store = try await stores.open(locator)
/// ```
///
/// A value without global state: an app decides what it links and what it allows.
public struct StoreRegistry: Sendable {
  /// Opens a store; adapters check the place and throw ``StorageError``.
  public typealias Open = @Sendable (Locator, OpenMode) async throws(StorageError) -> any ObjectStore

  /// Opens a store that may ask for a credential. Nil leaves it to the adapter where it finds one: in the environment.
  public typealias OpenWithCredential =
    @Sendable (Locator, OpenMode, StoreCredential?) async throws(StorageError) -> any ObjectStore

  private struct Scheme {
    let form: String
    let options: [String]
    let credential: [String]
    let open: OpenWithCredential
  }

  private var schemes: [String: Scheme] = [:]

  public init() {}

  /// Makes an adapter known; the last one registered for a scheme is used.
  ///
  /// - Parameters:
  ///   - scheme: what stands before the first colon; lower case, RFC 3986 §3.1.
  ///   - form: how such a URL is written, for messages: `s3://BUCKET/PREFIX?region=R`.
  ///   - options: the names that may stand after `?`. Another one is refused by name.
  ///   - open: opens the store.
  public mutating func register(scheme: String, form: String, options: [String] = [], open: @escaping Open) {
    schemes[scheme] = Scheme(form: form, options: options, credential: []) {
      locator, mode, _ throws(StorageError) in try await open(locator, mode)
    }
  }

  /// Makes an adapter known whose stores may ask for a credential.
  ///
  /// - Parameter credential: the names of the values that one may have. Another one is refused by name.
  public mutating func register(
    scheme: String, form: String, options: [String] = [], credential: [String], open: @escaping OpenWithCredential
  ) {
    schemes[scheme] = Scheme(form: form, options: options, credential: credential, open: open)
  }

  /// The schemes that can be opened, in order.
  public var registered: [String] { schemes.keys.sorted() }

  /// How the URLs that can be opened are written, in order of their schemes; for help and messages.
  public var forms: [String] { registered.compactMap { schemes[$0]?.form } }

  /// Parses a store URL and checks that it can be opened here.
  ///
  /// - Parameter base: the absolute path that relative folder paths are relative to.
  public func locator(_ text: String, relativeTo base: String) throws(LocatorError) -> Locator {
    // Before anything else is found wrong with it: the rest is the adapter's business.
    if let (scheme, _) = Locator.splitScheme(text), schemes[scheme] == nil {
      throw .unknownScheme(scheme, registered: registered)
    }
    let locator = try Locator(parsing: text, relativeTo: base)
    try check(locator)
    return locator
  }

  /// Throws unless the locator's scheme is registered and knows its options.
  public func check(_ locator: Locator) throws(LocatorError) {
    guard let scheme = schemes[locator.scheme] else {
      throw .unknownScheme(locator.scheme, registered: registered)
    }
    guard case .url(_, _, let options) = locator.place else { return }
    for option in options where !scheme.options.contains(option.name) {
      throw .unknownOption(option.name, scheme: locator.scheme, known: scheme.options)
    }
  }

  /// Whether stores of the locator's kind may ask for a credential.
  public func takesCredential(_ locator: Locator) -> Bool { schemes[locator.scheme]?.credential.isEmpty == false }

  /// Opens a store.
  ///
  /// - Parameter credential: this store's, and no other's; nil where the adapter is to look for one.
  /// - Throws: ``StorageError``; `.unsupported` without an adapter, `.storeMissing` where there is nothing, `.unauthorized`
  ///   for a credential of another kind.
  public func open(
    _ locator: Locator, _ mode: OpenMode = .existing, credential: StoreCredential? = nil
  ) async throws(StorageError) -> any ObjectStore {
    do { try check(locator) } catch {
      throw StorageError(.unsupported, .open, detail: error.description)
    }
    guard let scheme = schemes[locator.scheme] else { throw StorageError(.unsupported, .open) }
    if let credential, let unknown = credential.names.first(where: { !scheme.credential.contains($0) }) {
      throw StorageError(
        .unauthorized, .open,
        detail: scheme.credential.isEmpty
          ? "a store of the kind \(locator.scheme): takes no credential"
          : "the credential has a value \(unknown), which means nothing here; known: "
            + scheme.credential.joined(separator: ", "))
    }
    return try await scheme.open(locator, mode, credential)
  }
}

/// Whether opening a store may make the place that holds it.
public enum OpenMode: Equatable, Sendable {
  /// The folder, bucket or collection must be there.
  case existing
  /// It is made if it is not there. The marker is not: that is ``StoreMarker/create(in:id:)``.
  case create
}
