import Foundation
import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyS3
import LatchkeyStorage
import Testing

/// Stores on servers that `scripts/test servers` has started: their URLs, one a line, in `LATCHKEY_TEST_STORES`.
let realStores = (ProcessInfo.processInfo.environment["LATCHKEY_TEST_STORES"] ?? "")
  .split(separator: "\n").map(String.init)

@Suite("real servers", .enabled(if: !realStores.isEmpty), .serialized)
struct RealServerTests {
  private func open(_ url: String, _ mode: OpenMode = .existing) async throws -> any ObjectStore {
    var stores = StoreRegistry()
    stores.registerS3()
    return try await stores.open(stores.locator(url, relativeTo: ""), mode)
  }

  @Test("the adapter keeps the contract through two connections", arguments: realStores)
  func conformance(url: String) async throws {
    let first = try await open(url, .create)
    let capabilities = try await first.probe()
    print("\(url)\n\(capabilities)")
    let report = await runConformance(ConformanceFactory { try await open(url) })
    print(report)
    #expect(report.passed, "\(url)")
    // What it wrote is gone, trial objects included.
    #expect(try await first.listAll().isEmpty)
  }
}
