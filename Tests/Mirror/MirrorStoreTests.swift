import LatchkeyConformance
import LatchkeyEncoding
import LatchkeyStorage
import Synchronization
import Testing

@testable import LatchkeyMirror

/// A store in memory that can be out of reach.
private struct Switched: ObjectStore {
  let memory = MemoryStore()
  let outage = Outage()

  final class Outage: Sendable {
    let cause = Mutex<StorageError.Cause?>(nil)
  }

  func fail(_ cause: StorageError.Cause?) { outage.cause.withLock { $0 = cause } }

  private func check(_ operation: StorageError.Operation) throws(StorageError) {
    if let cause = outage.cause.withLock({ $0 }) { throw StorageError(cause, operation) }
  }

  func put(_ name: ObjectName, _ bytes: [UInt8]) async throws(StorageError) {
    try check(.put)
    try await memory.put(name, bytes)
  }
  func get(_ name: ObjectName, range: Range<Int>?) async throws(StorageError) -> [UInt8] {
    try check(.get)
    return try await memory.get(name, range: range)
  }
  func head(_ name: ObjectName) async throws(StorageError) -> Int {
    try check(.head)
    return try await memory.head(name)
  }
  func list(prefix: String, after: ObjectName?, limit: Int) async throws(StorageError) -> ListPage {
    try check(.list)
    return try await memory.list(prefix: prefix, after: after, limit: limit)
  }
  func delete(_ name: ObjectName) async throws(StorageError) {
    try check(.delete)
    try await memory.delete(name)
  }
  func probe() async throws(StorageError) -> Capabilities { try await memory.probe() }
}

@Suite("a mirror of two stores")
struct MirrorStoreTests {
  private let one = Switched()
  private let two = Switched()
  private let names: [ObjectName]

  init() throws { names = try (0..<6).map { try #require(ObjectName("n/\($0)")) } }

  private func failure(_ body: () async throws -> Void) async -> StorageError? {
    await #expect(throws: StorageError.self) { try await body() }
  }

  @Test("it keeps the contract")
  func conformance() async throws {
    let report = await runConformance(
      ConformanceFactory(extent: .short) { try await MirrorStore.open(one, two) })
    #expect(report.passed, "\(report)")
    #expect(await one.memory.objects == two.memory.objects)
  }

  @Test("what is written is in both, and deleted from both")
  func writing() async throws {
    let mirror = try await MirrorStore.open(one, two)
    try await mirror.put(names[0], [1, 2])
    for store in [one, two] { #expect(try await store.get(names[0]) == [1, 2]) }
    try await mirror.delete(names[0])
    for store in [one, two] { #expect(await store.memory.objects.count == 0) }
  }

  @Test(
    "either may be out of reach: the other serves alone, and what the one lacks is known by name",
    arguments: MirrorStore.Side.allCases)
  func outage(side: MirrorStore.Side) async throws {
    let mirror = try await MirrorStore.open(one, two)
    let (down, up) = side == .first ? (one, two) : (two, one)
    try await mirror.put(names[0], [0])
    down.fail(.unavailable)
    try await mirror.put(names[1], [1])
    #expect(try await mirror.get(names[0]) == [0])
    #expect(try await mirror.head(names[1]) == 1)
    #expect(try await mirror.listAll().map(\.name) == [names[0], names[1]])
    #expect(mirror.standing[side]?.failure?.cause == .unavailable)
    #expect(mirror.standing[side]?.behind == [names[1]])
    #expect(mirror.standing[side.other] == MirrorStore.Standing())
    // A deletion that only one would remember is refused.
    #expect(await failure { try await mirror.delete(names[0]) }?.cause == .unavailable)
    // Nobody can say that something is absent which the other may have.
    #expect(await failure { _ = try await mirror.get(names[5]) }?.cause == .unavailable)

    down.fail(nil)
    try await down.put(names[2], [2])
    #expect(try await mirror.get(names[1]) == [1])
    let healing = try await mirror.heal()
    // The half of the deletion that was done is undone: whoever asked was told that it failed.
    #expect(healing.copied[side.other] == [names[0], names[2]])
    #expect(healing.copied[side]?.contains(names[1]) == true)
    #expect(mirror.standing == [.first: MirrorStore.Standing(), .second: MirrorStore.Standing()])
    #expect(await down.memory.objects == up.memory.objects)
    #expect(try await mirror.heal() == MirrorStore.Healing())
  }

  @Test("both out of reach is a failure, and of two the one that is worth another try")
  func bothDown() async throws {
    let mirror = try await MirrorStore.open(one, two)
    one.fail(.unavailable)
    two.fail(.forbidden)
    for operation in [
      { try await mirror.put(names[0], [1]) }, { _ = try await mirror.listAll() },
      { try await mirror.delete(names[0]) },
    ] as [() async throws -> Void] { #expect(await failure { try await operation() }?.cause == .unavailable) }
    #expect(await failure { _ = try await mirror.get(names[0]) }?.cause == .forbidden)
    #expect(await failure { _ = try await MirrorStore.open(one, two) }?.cause == .forbidden)
  }

  @Test("a store whose disk is gone is out of reach, and neither empty nor healed over")
  func missing() async throws {
    let mirror = try await MirrorStore.open(one, two)
    try await mirror.put(names[0], [1])
    two.fail(.storeMissing)
    #expect(try await mirror.listAll().count == 1)
    #expect(mirror.standing[.second]?.failure?.cause == .storeMissing)
    #expect(await failure { _ = try await mirror.heal() }?.cause == .storeMissing)
  }

  @Test("different bytes under one name are never overwritten nor chosen between: they are named")
  func different() async throws {
    let mirror = try await MirrorStore.open(one, two)
    try await two.put(names[0], [9, 9])
    #expect(await failure { try await mirror.put(names[0], [1]) }?.cause == .alreadyExists)
    #expect(mirror.standing[.second]?.different == [names[0]])
    let healing = try await mirror.heal()
    #expect(healing.different == [names[0]])
    #expect(try await one.get(names[0]) == [1])
    #expect(try await two.get(names[0]) == [9, 9])
  }

  @Test("a listing is both stores' in order, in pages of any size, whatever each of them lacks")
  func listing() async throws {
    let mirror = try await MirrorStore.open(one, two)
    for (index, name) in names.enumerated() {
      if index % 3 != 0 { try await one.put(name, [UInt8](repeating: 0, count: index)) }
      if index % 3 != 1 { try await two.put(name, [UInt8](repeating: 0, count: index)) }
    }
    for size in 1...7 {
      let listed = try await mirror.listAll(pageSize: size)
      #expect(listed.map(\.name) == names && listed.map(\.size) == [0, 1, 2, 3, 4, 5], "pages of \(size)")
    }
    #expect(mirror.standing[.first]?.behind == [names[0], names[3]])
    #expect(mirror.standing[.second]?.behind == [names[1], names[4]])
  }

  @Test("two stores of their own are refused; an empty second one is filled, its marker first")
  func markers() async throws {
    let id = StoreID(raw: Bytes16(high: 1, low: 2))
    _ = try await StoreMarker.create(in: one, id: id)
    try await one.put(names[0], [1])
    let mirror = try await MirrorStore.open(one, two)
    let order = Mutex<[Int]>([])
    let healing = try await mirror.heal { done, total in order.withLock { $0.append(done * 10 + total) } }
    #expect(healing.copied[.second] == [.marker, names[0]])
    #expect(order.withLock { $0 } == [12, 22])
    #expect(try await StoreMarker.read(two) == .store(StoreMarker(id: id)))

    let stranger = Switched()
    _ = try await StoreMarker.create(in: stranger, id: StoreID(raw: Bytes16(high: 1, low: 3)))
    #expect(await failure { _ = try await MirrorStore.open(one, stranger) }?.cause == .config)
    let photo = Switched()
    try await photo.put(.marker, [1, 2, 3])
    #expect(await failure { _ = try await MirrorStore.open(one, photo) }?.cause == .config)
  }
}
