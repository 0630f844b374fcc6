public import LatchkeyConformance
internal import LatchkeyEncoding
public import LatchkeyStorage

/// What was found out about a place by using it.
public struct StoreTestReport: Sendable {
  /// What lies there.
  public enum Content: String, Sendable {
    case store
    case empty
    /// Objects without a marker: the marker was lost, or the place belongs to something else.
    case objects
    /// A store of a later format.
    case newer
    /// Something with the marker's name that is none.
    case notAStore = "not-a-store"
  }

  /// The store's URL as it is written in invites.
  public let store: String
  public let content: Content
  public let capabilities: Capabilities
  public let conformance: ConformanceReport
}

extension Home {
  /// Finds out whether a place will do as a store, by using it: writes, reads, lists and deletes objects of its own under a
  /// prefix of its own, through two connections. What is there already is left alone, and nothing is left behind.
  ///
  /// Needs no identity, and tries nothing again: what fails for a while is a finding, too.
  ///
  /// - Parameters:
  ///   - url: the store's.
  ///   - credential: what the store asks for; not kept.
  ///   - timeLimit: no case begins later than this after the first; nil for all of them.
  ///   - progress: how many cases are done, of how many.
  /// - Throws: ``LatchkeyError`` of kind `usage` or `store` where the place cannot be opened at all.
  public func testStore(
    _ url: String, credential: StoreCredential? = nil, timeLimit: Duration? = .seconds(30),
    progress: (@Sendable (_ done: Int, _ total: Int) -> Void)? = nil
  ) async throws(LatchkeyError) -> StoreTestReport {
    try await reporting {
      let locator = try stores.locator(url, relativeTo: base)
      let stores = stores
      let credential = try credential ?? keptCredential(for: locator)
      let store = try await stores.open(locator, credential: credential)
      let content: StoreTestReport.Content =
        switch try await StoreMarker.read(store) {
        case .store: .store
        case .absent(let isEmpty): isEmpty ? .empty : .objects
        case .newerFormat: .newer
        case .notAStore: .notAStore
        }
      let capabilities = try await store.probe()
      var factory = ConformanceFactory(extent: .short, timeLimit: timeLimit) {
        try await stores.open(locator, credential: credential)
      }
      factory.progress = progress
      let conformance = await runConformance(factory)
      try Task.checkCancellation()
      return StoreTestReport(
        store: locator.text, content: content, capabilities: capabilities, conformance: conformance)
    }
  }

  /// Every object of a store, in byte order of the names.
  ///
  /// - Parameters:
  ///   - prefix: whole segments each followed by `/`; empty for everything.
  ///   - credential: what the store asks for; not kept.
  public func listStore(
    _ url: String, prefix: String = "", credential: StoreCredential? = nil
  ) async throws(LatchkeyError) -> [ListPage.Entry] {
    try await reporting {
      let locator = try stores.locator(url, relativeTo: base)
      return try await openStore(locator, credential: credential).store.listAll(prefix: prefix)
    }
  }
}
