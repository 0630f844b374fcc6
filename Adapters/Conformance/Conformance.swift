internal import LatchkeyEncoding
internal import LatchkeyStorage

/// Checks an adapter, and the store behind it, against the contract of `ObjectStore`.
///
/// Every case runs through two independent connections, under a prefix of its own (`lkc-RUN-…/`), and deletes what it
/// made. What the store says about itself (`probe`) decides what is asked of it: of a store whose creations are not
/// atomic no single winner is demanded, only that everybody agrees in the end.
///
/// - Returns: one result a case; a case that fails does not stop the others.
public func runConformance(_ factory: ConformanceFactory) async -> ConformanceReport {
  var results: [ConformanceReport.Result] = []
  let start = ContinuousClock.now
  for (number, test) in conformanceCases.enumerated() {
    if let limit = factory.timeLimit, start.duration(to: .now) > limit {
      let outcome = ConformanceReport.Outcome.skipped("no time was left")
      results.append(ConformanceReport.Result(name: test.name, claim: test.claim, outcome: outcome))
      continue
    }
    let outcome = await outcome(of: test, prefix: "lkc-\(factory.run)-\(number)/", factory)
    results.append(ConformanceReport.Result(name: test.name, claim: test.claim, outcome: outcome))
    factory.progress?(number + 1, conformanceCases.count)
  }
  return ConformanceReport(results: results)
}

private func outcome(
  of test: ConformanceCase, prefix: String, _ factory: ConformanceFactory
) async -> ConformanceReport.Outcome {
  do {
    let bench = Bench(
      one: try await factory.connect(), other: try await factory.connect(), prefix: prefix, factory: factory)
    let outcome: ConformanceReport.Outcome
    do {
      try await test.run(bench)
      outcome = .passed
    } catch let skip as Skip {
      outcome = .skipped(skip.why)
    } catch {
      outcome = .failed("\(error)")
    }
    try await bench.clean()
    return outcome
  } catch {
    return .failed("\(error)")
  }
}

/// One claim about a store.
struct ConformanceCase: Sendable {
  let name: String
  let claim: String
  let run: @Sendable (Bench) async throws -> Void

  init(_ name: String, _ claim: String, _ run: @escaping @Sendable (Bench) async throws -> Void) {
    self.name = name
    self.claim = claim
    self.run = run
  }
}

/// A claim that does not hold.
struct Violation: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A case that asks for what there is not.
struct Skip: Error {
  let why: String
}

/// What a case works with.
struct Bench: Sendable {
  let one: any ObjectStore
  let other: any ObjectStore
  /// Ends with a slash; all names of the case are below it.
  let prefix: String
  let factory: ConformanceFactory

  /// A number of rounds or objects: the first in full, the second in short.
  func count(_ full: Int, _ short: Int) -> Int { factory.extent == .full ? full : short }

  func name(_ rest: String) throws -> ObjectName {
    guard let name = ObjectName(prefix + rest) else { throw Violation("\(prefix + rest) is not a name") }
    return name
  }

  /// Bytes that are different for every seed and never repeat (Marsaglia's xorshift64).
  func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    return [UInt8](unsafeUninitializedCapacity: count + 8) { buffer, initialized in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      for offset in stride(from: 0, to: count, by: 8) {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        raw.storeBytes(of: state.littleEndian, toByteOffset: offset, as: UInt64.self)
      }
      initialized = count
    }
  }

  func expect(_ condition: Bool, _ complaint: @autoclosure () -> String) throws {
    if !condition { throw Violation(complaint()) }
  }

  func expect(_ cause: StorageError.Cause, _ what: String, _ body: () async throws -> Void) async throws {
    do { try await body() } catch let error as StorageError {
      try expect(error.cause == cause, "\(what): expected \(cause), got \(error.cause) (\(error.detail))")
      return
    }
    throw Violation("\(what): expected \(cause), but it succeeded")
  }

  func expectContent(_ name: ObjectName, _ bytes: [UInt8], _ store: any ObjectStore, _ what: String) async throws {
    let found = try await store.get(name)
    try expect(found == bytes, "\(what): \(found.count) bytes were read that are not the \(bytes.count) written")
    let size = try await store.head(name)
    try expect(size == bytes.count, "\(what): head says \(size) bytes instead of \(bytes.count)")
  }

  /// Deletes everything below the prefix.
  func clean() async throws {
    for entry in try await one.listAll(prefix: prefix) { try await one.delete(entry.name) }
    let left = try await other.listAll(prefix: prefix)
    try expect(left.isEmpty, "\(left.count) objects are still listed after they were deleted")
    if let directories = one as? any DirectoryStore { try await directories.removeEmptyDirectories(under: prefix) }
  }
}
