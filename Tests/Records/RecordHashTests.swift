import LatchkeyEncoding
import LatchkeyRecords
import Testing

@Suite("Record hashes")
struct RecordHashTests {
  private let key = [UInt8](repeating: 3, count: 32)
  private func stamp(_ ms: Int64, _ device: UInt64 = 1) -> Stamp {
    Stamp(hlc: at(ms), origin: origin(device), tie: UInt64(ms))
  }
  private func hash(_ entries: [RegisterEntry], table: String = "t", name: UInt64 = 1) -> Hash32? {
    recordHash(key: key, name: record(name), table: table, state: RecordState(entries))
  }

  @Test("says what the row says: not its stamps, its nulls, nor who added to a sum")
  func content() {
    let row = [RegisterEntry(.born, stamp(1), .life(nil)), RegisterEntry(.cell("x"), stamp(1), .cell(.integer(1)))]
    let same = [RegisterEntry(.born, stamp(1), .life(nil)), RegisterEntry(.cell("x"), stamp(9, 2), .cell(.integer(1)))]
    #expect(hash(row) == hash(same))
    #expect(hash(row) == hash(row + [RegisterEntry(.cell("y"), stamp(2), .cell(.null))]))
    #expect(hash(row) != hash(row + [RegisterEntry(.cell("y"), stamp(2), .cell(.integer(0)))]))
    #expect(hash(row) != hash(row, table: "u") && hash(row) != hash(row, name: 2))
    func add(_ device: UInt64, _ n: Int64) -> RegisterEntry {
      RegisterEntry(
        .additive(column: "n", origin(device)), stamp(2),
        .additive(Contribution(born: stamp(1), number: .integer(n))))
    }
    #expect(hash(row + [add(1, 2), add(2, 3)]) == hash(row + [add(1, 5)]))
    #expect(hash(row + [add(1, 5)]) != hash(row))
  }

  @Test("a record that is not live has none")
  func live() {
    #expect(hash([RegisterEntry(.cell("x"), stamp(1), .cell(.integer(1)))]) == nil)
    #expect(hash([RegisterEntry(.born, stamp(1), .life(nil)), RegisterEntry(.tombstone, stamp(2), .life(nil))]) == nil)
    #expect(hash([RegisterEntry(.born, stamp(1), .life(nil))]) != nil)
  }

  @Test("the hash is the one of the format")
  func definition() {
    let state = [
      RegisterEntry(.born, stamp(1), .life(nil)), RegisterEntry(.cell("name"), stamp(1), .cell(.text("Rex"))),
      RegisterEntry(.cell("id"), stamp(1), .cell(.integer(4))),
      RegisterEntry(
        .additive(column: "n", origin(1)), stamp(1), .additive(Contribution(born: stamp(1), number: .integer(2)))),
    ]
    var hasher = Blake2b(length: 32, key: key)
    hasher.update(
      unhex(
        "84" + "71" + hex("latchkey/1/record".utf8) + "50" + hex(record(1).bytes) + "6174" + "83"
          + "82626964" + "1b" + hex(Incarnation(Value.integer(4).fingerprint).bytes) + "82646e616d65" + "1b"
          + hex(Incarnation(Value.text("Rex").fingerprint).bytes) + "82" + "8206616e" + "1b"
          + hex(Incarnation(Value.integer(2).fingerprint).bytes)) ?? [])
    let expected = hasher.finish()
    #expect(hash(state)?.bytes == expected)
  }
}

@Suite("Fingerprints")
struct FingerprintTests {
  @Test("a fingerprint is SipHash-2-4 of the value's bytes, its kind in the key")
  func definition() {
    // The vectors are made by an independent program.
    #expect(Value.integer(4).fingerprint == 0x91f8_4b5f_768b_86b1)
    #expect(Value.real(0.5).fingerprint == 0x43b0_05d7_6f62_3248)
    #expect(Value.text("Rex").fingerprint == 0x5d9b_349a_be23_0d78)
    #expect(Value.text("").fingerprint == 0x31de_cb3e_5f9b_4dc1)
    #expect(Value.blob([0, 255]).fingerprint == 0x788e_a43c_ea3f_c137)
    #expect(Value.reference(record(1)).fingerprint == 0x0abe_5f38_053c_f6ba)
  }

  @Test("values of different kinds or bytes have different ones; none is zero")
  func kinds() {
    let values: [Value] = [
      .integer(0), .real(0), .real(-0.0), .text(""), .blob([]), .text("4"), .blob(Array("4".utf8)), .integer(4),
      .real(4),
      .reference(record(1)), .blob(record(1).bytes), .together([.integer(4)]), .text([0xff]), .blob([0xff]),
    ]
    #expect(Set(values.map(\.fingerprint)).count == values.count)
    #expect(!values.contains { $0.fingerprint == 0 })
  }
}

@Suite("Record names")
struct RecordNameTests {
  @Test("one key has one name: folded text, reals that are integers")
  func folding() {
    func name(_ value: Value, _ collation: Collation = .binary) -> RecordName? {
      keyedName(table: "t", values: [collation.fold(value)])
    }
    #expect(name(.text("Rex"), .noCase) == name(.text("rEX"), .noCase))
    #expect(name(.text("\u{c4}"), .noCase) != name(.text("\u{e4}"), .noCase))
    #expect(name(.text("Rex")) != name(.text("rex")))
    #expect(name(.text("Rex  "), .rightTrim) == name(.text("Rex"), .rightTrim))
    #expect(name(.text("   "), .rightTrim) == name(.text(""), .rightTrim))
    #expect(name(.text(" Rex"), .rightTrim) != name(.text("Rex"), .rightTrim))
    #expect(name(.text("Rex ")) != name(.text("Rex")))
    #expect(name(.real(4)) == name(.integer(4)) && name(.real(-0.0)) == name(.integer(0)))
    #expect(name(.real(4.5)) != name(.integer(4)))
    #expect(name(.text("4")) != name(.integer(4)) && name(.blob(Array("4".utf8))) != name(.text("4")))
    for large in [0x1p63, -0x1p64, .infinity, -.infinity, .nan] as [Double] { #expect(name(.real(large)) != nil) }
    #expect(name(.real(-0x1p63)) == name(.integer(.min)))
  }

  @Test("the name depends on the table and on the order of the key's columns; a null key has none")
  func parts() {
    let one = keyedName(table: "t", values: [.integer(1), .integer(2)])
    #expect(one != nil)
    #expect(one != keyedName(table: "u", values: [.integer(1), .integer(2)]))
    #expect(one != keyedName(table: "t", values: [.integer(2), .integer(1)]))
    #expect(keyedName(table: "t", values: [.integer(1), .null]) == nil)
  }

  @Test("the name is the one of the format")
  func definition() {
    var hasher = Blake2b(length: 16)
    hasher.update(unhex("83" + "76" + hex("latchkey/1/record-name".utf8) + "63646f67" + "81" + "63526578") ?? [])
    let expected = hasher.finish()
    #expect(keyedName(table: "dog", values: [.text("Rex")])?.bytes == expected)
  }

  @Test("a group's tie is made from its zone, origin, time and all its payloads in order")
  func tie() {
    let zone = ZoneID(raw: Bytes16(high: 1, low: 2))
    let hashes = [payloadHash([1]), payloadHash([2])]
    let tie = groupTie(zone: zone, origin: origin(1), hlc: at(1), payloadHashes: hashes)
    #expect(tie != groupTie(zone: .zero, origin: origin(1), hlc: at(1), payloadHashes: hashes))
    #expect(tie != groupTie(zone: zone, origin: origin(1, 2), hlc: at(1), payloadHashes: hashes))
    #expect(tie != groupTie(zone: zone, origin: origin(1), hlc: at(1, 1), payloadHashes: hashes))
    #expect(tie != groupTie(zone: zone, origin: origin(1), hlc: at(1), payloadHashes: hashes.reversed()))
    var hasher = Blake2b(length: 32)
    hasher.update(
      unhex(
        "86" + "70" + hex("latchkey/1/group".utf8) + "50" + hex(zone.bytes) + "50" + hex(device(1).bytes)
          + "480000000000000001" + "1a00010000" + "82" + "5820" + hex(hashes[0].bytes) + "5820" + hex(hashes[1].bytes))
        ?? [])
    let expected = hasher.finish()
    #expect(Array(expected.prefix(8)) == Incarnation(tie).bytes)
  }
}

@Suite("Values")
struct ValueTests {
  @Test("a value has one encoding, and equal values are those of equal bytes")
  func encoding() throws {
    var random = Generator(seed: 1)
    for _ in 0..<20_000 {
      let a = random.value()
      let b = random.value()
      #expect((a == b) == (a.encoded == b.encoded))
      var reader = CBORReader(a.encoded)
      let read = try Value.read(from: &reader)
      #expect(read == a)
      try reader.finish()
      #expect(a.encoded.count <= a.byteCount + 9)
    }
  }

  @Test("doubles keep every bit")
  func doubles() throws {
    for bits in [0x8000_0000_0000_0000, 0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0000, 1] as [UInt64] {
      let value = Value.real(Double(bitPattern: bits))
      var reader = CBORReader(value.encoded)
      let read = try Value.read(from: &reader)
      #expect(read == value)
    }
    #expect(Value.real(0.0) != .real(-0.0))
  }
}
