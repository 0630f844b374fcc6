import LatchkeyEncoding
import LatchkeyStorage
import Testing

@Suite struct StoreMarkerTests {
  private let id = StoreID(raw: Bytes16(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff))

  @Test("the marker's bytes are fixed")
  func bytes() {
    let expected = "83" + "6e" + hex("latchkey-store".utf8) + "01" + "50" + "00112233445566778899aabbccddeeff"
    #expect(hex(StoreMarker(id: id).encoded) == expected)
    #expect(StoreMarker.judge(StoreMarker(id: id).encoded) == .store(StoreMarker(id: id)))
  }

  @Test("a marker that was made is found, made again it is a success, and another one is refused")
  func create() async throws {
    let store = MemoryStore()
    #expect(try await StoreMarker.create(in: store, id: id) == StoreMarker(id: id))
    #expect(try await StoreMarker.create(in: store, id: id) == StoreMarker(id: id))
    #expect(try await StoreMarker.read(store) == .store(StoreMarker(id: id)))
    await #expect { _ = try await StoreMarker.create(in: store, id: .zero) } throws: {
      ($0 as? StorageError)?.cause == .alreadyExists
    }
    #expect(try await StoreMarker.read(store) == .store(StoreMarker(id: id)))
  }

  @Test("an empty place and one that has lost its marker are told apart")
  func absent() async throws {
    let store = MemoryStore()
    #expect(try await StoreMarker.read(store) == .absent(empty: true))
    try await store.put(try name("p/h/1"), [1])
    #expect(try await StoreMarker.read(store) == .absent(empty: false))
  }

  @Test("a store that cannot be reached is an error, not an absent marker")
  func unreachable() async throws {
    let store = ScriptedStore([StorageError(.storeMissing, .get)])
    await #expect(throws: StorageError(.storeMissing, .get)) { _ = try await StoreMarker.read(store) }
  }

  @Test("a later format is named, whatever follows its version")
  func newer() {
    var writer = CBORWriter()
    writer.array(5)
    writer.text("latchkey-store")
    writer.uint(7)
    writer.bool(true)
    #expect(StoreMarker.judge(writer.bytes) == .newerFormat(7))
  }

  @Test("every shortened, lengthened or altered marker is judged without a trap, and none passes for another store's")
  func damaged() {
    let good = StoreMarker(id: id).encoded
    for count in 0..<good.count { #expect(StoreMarker.judge(Array(good.prefix(count))) == .notAStore) }
    #expect(StoreMarker.judge(good + [0]) == .notAStore)
    for index in good.indices {
      for value in 0...255 where UInt8(value) != good[index] {
        var bytes = good
        bytes[index] = UInt8(value)
        switch StoreMarker.judge(bytes) {
        case .notAStore: continue
        // Any sixteen bytes are an id.
        case .store(let marker): #expect(index >= 18 && marker.id != id)
        case .newerFormat: #expect(index == 16)
        case .absent: Issue.record("bytes are never absent")
        }
      }
    }
    for garbage in ["", "latchkey", "\u{0}", "<html>"] {
      #expect(StoreMarker.judge(Array(garbage.utf8)) == .notAStore)
    }
  }
}
