import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyStorage
import Testing

@Suite struct MemoryStoreTests {
  @Test("a store in memory follows the whole contract")
  func conformance() async {
    let store = MemoryStore()
    let report = await runConformance(ConformanceFactory(run: "memory") { store })
    for result in report.results where result.name != "debris" {
      #expect(result.outcome == .passed, "\(result.name): \(result.claim)")
    }
    #expect(
      report.results.first { $0.name == "debris" }?.outcome
        == .skipped("nothing but objects can be put there from here"))
    #expect(report.results.count == 24)
    #expect(await store.objects.count == 0, "the suite cleans up")
  }

  @Test("a copy of the objects is a past that the store can be rolled back to")
  func rollback() async throws {
    var objects = StoredObjects()
    try objects.put(try name("a/1"), [1])
    let past = objects
    try objects.put(try name("a/2"), [2])
    objects.delete(try name("a/1"))
    #expect(objects.all.map(\.name.text) == ["a/2"])
    #expect(past.all.map(\.name.text) == ["a/1"])
    objects.tamper(try name("a/2"), [3])
    #expect(try objects.get(try name("a/2")) == [3])
    #expect(try past.list() == ListPage(entries: [.init(name: try name("a/1"), size: 1)], isLast: true))
  }

  @Test("a listing that repeats or stands still is a protocol violation, not an endless loop")
  func endlessListing() async throws {
    for page in [
      ListPage(entries: [.init(name: try name("a/1"), size: 1)], isLast: false),
      ListPage(entries: [], isLast: false),
      ListPage(entries: [.init(name: try name("b"), size: 1), .init(name: try name("a"), size: 1)], isLast: true),
    ] {
      let store = ScriptedStore(page: page)
      await #expect { _ = try await store.listAll() } throws: { ($0 as? StorageError)?.cause == .protocolViolation }
    }
  }
}

func name(_ text: String) throws -> ObjectName { try #require(ObjectName(text)) }

@Suite struct ConformanceSuiteTests {
  /// Each breaks one promise; the suite must name it.
  @Test(
    "the suite catches a store that breaks its promise",
    arguments: [
      (Breach.overwrites, "create-different"), (.shortRead, "sizes"), (.ignoresRange, "ranges"),
      (.unordered, "list-order"),
      (.afterInclusive, "list-after"), (.deleteThrows, "absent"), (.partial, "whole-or-nothing"),
      (.doubled, "list-many"),
      (.losesPages, "list-many"), (.emptyWhenBad, "list-bad"), (.refusesSame, "create-same"),
    ])
  func breaches(_ breach: Breach, _ expected: String) async {
    let memory = MemoryStore()
    let report = await runConformance(
      ConformanceFactory(run: "breach") { BrokenStore(store: memory, breach: breach) })
    #expect(report.failures.contains { $0.name == expected }, "\(report)")
    #expect(report.description.contains("FAIL  \(expected)"))
  }
}

enum Breach: Sendable {
  case overwrites, shortRead, ignoresRange, unordered, afterInclusive, deleteThrows, partial, doubled, losesPages
  case emptyWhenBad, refusesSame
}

/// A store in memory with one fault.
struct BrokenStore: ObjectStore {
  let store: MemoryStore
  let breach: Breach

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    switch breach {
    case .overwrites: await store.change { $0.tamper(name, bytes) }
    case .refusesSame:
      if await store.objects.all.contains(where: { $0.name == name }) { throw StorageError(.alreadyExists, .put, name) }
      try await store.put(name, bytes)
    case .partial:
      await store.change { $0.tamper(name, Array(bytes.prefix(bytes.count / 2))) }
      for _ in 0..<200 { await Task.yield() }
      await store.change { $0.tamper(name, bytes) }
    default: try await store.put(name, bytes)
    }
  }

  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    switch breach {
    case .shortRead: Array(try await store.get(name, range: range).dropLast())
    case .ignoresRange: try await store.get(name, range: nil)
    default: try await store.get(name, range: range)
    }
  }

  func head(_ name: ObjectName) async throws(StorageError) -> Int { try await store.head(name) }

  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    if breach == .emptyWhenBad, !ObjectName.isListablePrefix(prefix) { return ListPage(entries: [], isLast: true) }
    let page = try await store.list(prefix: prefix, after: after, limit: limit)
    switch breach {
    case .unordered: return ListPage(entries: page.entries.reversed(), isLast: page.isLast)
    case .doubled: return ListPage(entries: page.entries + page.entries.suffix(1), isLast: page.isLast)
    case .losesPages: return ListPage(entries: page.entries, isLast: true)
    case .afterInclusive:
      guard let after, after.text.hasPrefix(prefix), let size = try? await store.head(after) else { return page }
      return ListPage(entries: [.init(name: after, size: size)] + page.entries, isLast: page.isLast)
    default: return page
    }
  }

  func delete(_ name: ObjectName) async throws(StorageError) {
    if breach == .deleteThrows { _ = try await store.head(name) }
    try await store.delete(name)
  }

  func probe() async throws(StorageError) -> Capabilities { try await store.probe() }
}
