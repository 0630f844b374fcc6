import Foundation
import LatchkeyS3
import LatchkeyStorage
import LatchkeyWebDAV
import Testing

/// Stores on servers that `scripts/test servers` has started.
enum RealServers {
  /// URLs, one a line, in `LATCHKEY_TEST_STORES`.
  static let urls = (ProcessInfo.processInfo.environment["LATCHKEY_TEST_STORES"] ?? "")
    .split(separator: "\n").map(String.init)
  static let s3 = urls.filter { $0.hasPrefix("s3:") }
  static let webDAV = urls.filter { $0.hasPrefix("webdav+") }

  static var stores: StoreRegistry {
    var stores = StoreRegistry()
    stores.registerS3()
    stores.registerWebDAV()
    return stores
  }

  static func open(_ url: String, _ mode: OpenMode = .existing) async throws -> any ObjectStore {
    try await stores.open(stores.locator(url, relativeTo: ""), mode)
  }

  /// The port that a URL's server listens on.
  static func port(of url: String) throws -> Int? {
    let locator = try Locator(parsing: url, relativeTo: "")
    if locator.scheme == "s3" { return try S3Configuration(locator).endpoint.port }
    return try WebDAVConfiguration(locator).root.port
  }

  /// The file of an authority that another of the servers has.
  static func otherAuthority(than file: String?) throws -> String {
    let files = urls.compactMap { $0.split(separator: "ca=", maxSplits: 1).dropFirst().first.map(String.init) }
    return try #require(files.first { $0 != file })
  }

  /// The URL of a place beside another: what one test leaves there is nothing to the next.
  static func beside(_ url: String, _ name: String) throws -> String {
    let parts = url.split(separator: "?", maxSplits: 1)
    let above = parts[0].prefix(through: parts[0].lastIndex(of: "/") ?? parts[0].startIndex)
    return "\(above)\(name)" + (parts.count == 2 ? "?\(parts[1])" : "")
  }

  /// Opens a store over a line that breaks: what is worth another try gets one.
  static func retrying<T: Sendable>(
    _ policy: RetryPolicy, _ body: () async throws(StorageError) -> T
  ) async throws -> T {
    for attempt in 1... {
      do { return try await body() } catch {
        guard error.isRetryable, attempt < policy.maximumAttempts else { throw error }
      }
    }
    throw StorageError(.unavailable, .open)
  }
}
