import LatchkeyEncoding
import LatchkeyHTTP
import LatchkeyS3
import LatchkeyStorage
import LatchkeyWebDAV

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

// usage: store-benchmark URL RUN   writes and reads objects and prints a line "put 600 16 1234.5" a measurement: what,
// bytes, operations in flight, operations a second.

/// How many objects of a size, at how many in flight.
private let plan: [(size: Int, count: Int, atOnce: Int)] = [
  (600, 400, 1), (600, 1600, 16), (4 << 20, 12, 1), (4 << 20, 48, 16),
]

private func open(_ url: String) async throws -> any ObjectStore {
  let locator = try Locator(parsing: url, relativeTo: "")
  if locator.scheme == "s3" {
    return try await S3Store.open(
      S3Configuration(locator),
      credentials: { () throws(StorageError) in try AWSEnvironment().credentials(profile: nil) }, .create)
  }
  var configuration = try WebDAVConfiguration(locator)
  // As many as the others are given.
  configuration.http.maximumConnections = 16
  let root = configuration.root
  return try await WebDAVStore.open(
    configuration, credential: { () throws(StorageError) in try WebDAVEnvironment().credential(for: root) }, .create)
}

/// Does something for each index, so many at a time.
private func perform(
  _ count: Int, atOnce: Int, _ body: @escaping @Sendable (Int) async throws -> Void
) async throws -> Double {
  let clock = ContinuousClock()
  let time = try await clock.measure {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        if index >= atOnce { try await group.next() }
        group.addTask { try await body(index) }
      }
      try await group.waitForAll()
    }
  }
  return Double(count) / (time / .seconds(1))
}

private func measure(_ url: String, _ run: String) async throws {
  let store = try await open(url)
  _ = try await store.probe()
  @Sendable func name(_ size: Int, _ atOnce: Int, _ index: Int) throws -> ObjectName {
    guard let name = ObjectName("\(run)/\(size)-\(atOnce)/\(index)") else {
      throw StorageError(.invalidArgument, .put, detail: "the run's name is letters and digits")
    }
    return name
  }
  for (size, count, atOnce) in plan {
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    // The directory is made, and the connections are open.
    for index in 0..<2 { try await store.put(try name(size, atOnce, 1_000_000 + index), bytes) }
    func report(_ what: String, _ rate: Double) { print("\(what) \(size) \(atOnce) \((rate * 10).rounded() / 10)") }
    report("put", try await perform(count, atOnce: atOnce) { try await store.put(try name(size, atOnce, $0), bytes) })
    report(
      "get",
      try await perform(count, atOnce: atOnce) { index in
        guard try await store.get(try name(size, atOnce, index)) == bytes else {
          throw StorageError(.protocolViolation, .get, detail: "other bytes")
        }
      })
  }
}

let arguments = CommandLine.arguments.dropFirst()
guard arguments.count == 2, let url = arguments.first, let run = arguments.last else {
  print("usage: store-benchmark URL RUN")
  exit(64)
}
do { try await measure(url, run) } catch {
  print("\(error)")
  exit(1)
}
