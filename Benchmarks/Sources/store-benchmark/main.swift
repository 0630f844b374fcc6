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

// usage: store-benchmark URL put|get SIZE AT_ONCE COUNT   writes objects below the URL, or reads those that an earlier call
// wrote, and prints the operations a second. The store is opened, and the first objects are done, before the clock runs.

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

private struct Work {
  let url: String
  let verb: String
  let size: Int
  let atOnce: Int
  let count: Int

  init?(_ arguments: ArraySlice<String>) {
    let words = Array(arguments)
    guard words.count == 5, ["put", "get"].contains(words[1]), let size = Int(words[2]), let atOnce = Int(words[3]),
      let count = Int(words[4])
    else { return nil }
    (url, verb, self.size, self.atOnce, self.count) = (words[0], words[1], size, atOnce, count)
  }

  func name(_ index: Int) throws -> ObjectName {
    guard let name = ObjectName("\(size)-\(atOnce)/\(index)") else {
      throw StorageError(.invalidArgument, .put, detail: "sizes and counts are numbers")
    }
    return name
  }

  func run() async throws -> Double {
    let store = try await open(url)
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let warmUp = 5..<9
    switch verb {
    case "put":
      // The directory is made, and it is known whether the store overwrites.
      for index in warmUp { try await store.put(try name(1_000_000 + index), bytes) }
      return try await perform(count, atOnce: atOnce) { try await store.put(try name($0), bytes) }
    default:
      for index in warmUp where try await store.get(try name(index)) != bytes {
        throw StorageError(.protocolViolation, .get, detail: "other bytes")
      }
      return try await perform(count, atOnce: atOnce) { index in
        guard try await store.get(try name(index)).count == size else {
          throw StorageError(.truncated, .get, detail: "another size")
        }
      }
    }
  }
}

guard let work = Work(CommandLine.arguments.dropFirst()) else {
  print("usage: store-benchmark URL put|get SIZE AT_ONCE COUNT")
  exit(64)
}
do { print((try await work.run() * 10).rounded() / 10) } catch {
  print("\(error)")
  exit(1)
}
