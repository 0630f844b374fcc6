import LatchkeyEncoding
import Testing

private func bytes(_ text: String) -> [UInt8] { unhex(text) ?? [] }

private func failure<T>(_ text: String, _ read: (inout CBORReader) throws(CBORError) -> T) -> CBORError? {
  var reader = CBORReader(bytes(text))
  do throws(CBORError) {
    _ = try read(&reader)
    try reader.finish()
    return nil
  } catch {
    return error
  }
}

/// Why one value of any kind cannot be read.
private func rawFailure(_ text: String) -> CBORError? {
  failure(text) { reader throws(CBORError) in try reader.raw() }
}

/// Reads one value of any kind and writes it again.
private func copy(_ reader: inout CBORReader, to writer: inout CBORWriter, depth: Int = 32) throws(CBORError) {
  if depth == 0 { throw .limit("nesting too deep") }
  switch try reader.peek() {
  case .unsigned: writer.uint(try reader.uint())
  case .negative: writer.int(try reader.int())
  case .bytes: writer.byteString(try reader.byteString())
  case .text: writer.text(utf8: try reader.utf8())
  case .array:
    let count = try reader.array()
    writer.array(count)
    for _ in 0..<count { try copy(&reader, to: &writer, depth: depth - 1) }
  case .map: writer.raw(try reader.raw(depth: depth))
  case .tag:
    writer.tag(try reader.tag())
    try copy(&reader, to: &writer, depth: depth - 1)
  case .bool: writer.bool(try reader.bool())
  case .null:
    _ = try reader.null()
    writer.null()
  case .double: writer.double(try reader.double())
  }
}

@Suite("CBOR")
struct CBORTests {
  @Test(
    "integers are those of RFC 8949, appendix A",
    arguments: [
      ("00", 0), ("01", 1), ("0a", 10), ("17", 23), ("1818", 24), ("1819", 25), ("1864", 100), ("1903e8", 1000),
      ("1a000f4240", 1_000_000), ("1b000000e8d4a51000", 1_000_000_000_000), ("20", -1), ("29", -10), ("3863", -100),
      ("3903e7", -1000), ("18ff", 255), ("190100", 256), ("19ffff", 65_535), ("1a00010000", 65_536),
      ("1affffffff", 4_294_967_295), ("1b0000000100000000", 4_294_967_296), ("1b7fffffffffffffff", Int64.max),
      ("3b7fffffffffffffff", Int64.min),
    ])
  func integers(text: String, value: Int64) throws {
    var writer = CBORWriter()
    writer.int(value)
    #expect(hex(writer.bytes) == text)
    var reader = CBORReader(bytes(text))
    let read = try reader.int()
    #expect(read == value)
    #expect(reader.isAtEnd)
  }

  @Test("the whole range of unsigned integers is there, and does not fit into a signed one")
  func unsigned() throws {
    var reader = CBORReader(bytes("1bffffffffffffffff"))
    let read = try reader.uint()
    #expect(read == .max)
    #expect(failure("1bffffffffffffffff") { r throws(CBORError) in try r.int() } == .range)
    #expect(failure("3bffffffffffffffff") { r throws(CBORError) in try r.int() } == .range)
  }

  @Test("strings, arrays, maps, tags and simple values are those of RFC 8949, appendix A")
  func others() throws {
    var writer = CBORWriter()
    writer.byteString([1, 2, 3, 4])
    writer.text("IETF")
    writer.text("\u{fc}")
    writer.text("\u{10151}")
    writer.array(0)
    writer.array(25)
    writer.map(2)
    writer.tag(32)
    writer.bool(false)
    writer.bool(true)
    writer.null()
    writer.double(1.1)
    writer.double(-4.1)
    #expect(
      hex(writer.bytes)
        == "4401020304" + "6449455446" + "62c3bc" + "64f0908591" + "80" + "9819" + "a2" + "d820" + "f4" + "f5" + "f6"
        + "fb3ff199999999999a" + "fbc010666666666666")
  }

  @Test("a double is eight bytes, bit for bit, and no other floating form is read")
  func doubles() throws {
    let patterns: [UInt64] = [
      0, 0x8000_0000_0000_0000, 0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0000, 0x3ff0_0000_0000_0000,
    ]
    for bits in patterns {
      var writer = CBORWriter()
      writer.double(Double(bitPattern: bits))
      var reader = CBORReader(writer.bytes)
      let read = try reader.double()
      #expect(read.bitPattern == bits && writer.bytes.count == 9)
    }
    for text in ["f93c00", "fa3f800000"] {
      #expect(rawFailure(text) == .notDeterministic)
      #expect(failure(text) { r throws(CBORError) in try r.double() } != nil)
    }
  }

  @Test(
    "a head that is longer than needed is refused",
    arguments: [
      "1817", "1900ff", "1a0000ffff", "1b00000000ffffffff", "3817", "5800", "7800", "9800", "b800", "d805", "590001ff",
    ])
  func longHeads(text: String) {
    #expect(rawFailure(text) == .notDeterministic)
  }

  @Test(
    "indefinite lengths, breaks, reserved heads and other simple values are refused",
    arguments: [
      "5f4101ff", "7f6161ff", "9f01ff", "bf0101ff", "ff", "1c", "1d", "1e", "1f", "3f", "dc", "e0", "f7", "f800",
      "f8ff", "fc",
    ])
  func forbidden(text: String) {
    #expect(rawFailure(text) == .notDeterministic)
  }

  @Test(
    "text must be UTF-8: no overlong forms, surrogates, cut sequences or numbers beyond Unicode",
    arguments: ["c080", "e08080", "f0808080", "eda080", "edbfbf", "f4908080", "c3", "e282", "80", "ff", "f8888080"])
  func utf8(text: String) {
    let string = hex([0x60 + UInt8(text.utf8.count / 2)]) + text
    #expect(failure(string) { r throws(CBORError) in try r.utf8() } == .notUTF8)
    #expect(rawFailure(string) == .notUTF8)
    #expect(!isUTF8(bytes(text)))
  }

  @Test("well-formed UTF-8 is accepted up to the last scalar")
  func wellFormed() {
    for text in ["", "7f", "c280", "e0a080", "ed9fbf", "ee8080", "f0908080", "f48fbfbf", "efbbbf"] {
      #expect(isUTF8(bytes(text)), "\(text)")
    }
  }

  @Test(
    "a length beyond the end is truncation, however large it claims to be",
    arguments: [
      "", "18", "1901", "1b00000000000000", "41", "5bffffffffffffffff", "7b7fffffffffffffff", "9bffffffffffffffff",
      "bbffffffffffffffff", "9affffffff", "8201", "a101", "c1", "fb00", "82", "a1",
    ])
  func truncated(text: String) {
    #expect(rawFailure(text) == .truncated)
  }

  @Test("a value cut anywhere is truncated, and a byte more is trailing")
  func cuts() throws {
    let whole = bytes(
      "8701" + "3903e7" + "43010203" + "63616263" + "a20182f5f602fb3ff199999999999a" + "d8206161" + "1864")
    #expect(rawFailure(hex(whole)) == nil)
    for cut in 0..<whole.count { #expect(rawFailure(hex(whole.prefix(cut))) == .truncated) }
    #expect(rawFailure(hex(whole) + "00") == .trailing)
  }

  @Test("keys of a map ascend byte by byte, none twice")
  func maps() {
    for text in ["a0", "a10102", "a201010202", "a30001200161610b", "a20a010b01", "a261610162616101"] {
      #expect(rawFailure(text) == nil, "\(text)")
    }
    for text in ["a202010101", "a201010102", "a26161010a01", "a262616101616101", "81a2616201616101"] {
      #expect(rawFailure(text) == .notDeterministic, "\(text)")
    }
  }

  @Test("nesting has a bound")
  func depth() {
    let text = String(repeating: "81", count: 31) + "00"
    #expect(rawFailure(text) == nil)
    #expect(rawFailure("81" + text) == .limit("nesting too deep"))
    for head in ["81", "c1", "a100"] {
      #expect(rawFailure(String(repeating: head, count: 200_000) + "00") == .limit("nesting too deep"))
    }
  }

  @Test("bounds stated by the caller hold")
  func bounds() {
    #expect(failure("43010203") { r throws(CBORError) in try r.byteString(max: 2) } == .limit("string over 2 bytes"))
    #expect(failure("43010203") { r throws(CBORError) in try r.byteString(max: 3) } == nil)
    #expect(failure("63616263") { r throws(CBORError) in try r.text(max: 2) } == .limit("string over 2 bytes"))
    #expect(failure("83010203") { r throws(CBORError) in try r.array(max: 2) } == .limit("array over 2 elements"))
    #expect(
      failure("83010203") { r throws(CBORError) in try r.array(exactly: 2) } == .unexpected("array of 2"))
    #expect(failure("a201010202") { r throws(CBORError) in try r.map(max: 1) } == .limit("map over 1 pairs"))
    #expect(failure("05") { r throws(CBORError) in try r.uint(max: 4) } == .limit("integer over 4"))
    #expect(failure("05") { r throws(CBORError) in try r.uint(max: 5) } == nil)
  }

  @Test("another kind than the expected one is refused, and says which was expected")
  func kinds() {
    #expect(failure("6161") { r throws(CBORError) in try r.uint() } == .unexpected("unsigned integer"))
    #expect(failure("20") { r throws(CBORError) in try r.uint() } == .unexpected("unsigned integer"))
    #expect(failure("4161") { r throws(CBORError) in try r.text() } == .unexpected("text"))
    #expect(failure("00") { r throws(CBORError) in try r.bool() } == .unexpected("boolean"))
    let short = "4f" + String(repeating: "00", count: 15)
    #expect(failure(short) { r throws(CBORError) in try r.id(ZoneID.self) } == .unexpected("16 bytes"))
    let long = "51" + String(repeating: "00", count: 17)
    #expect(failure(long) { r throws(CBORError) in try r.id(ZoneID.self) } == .limit("string over 16 bytes"))
  }

  @Test("whatever is read is written again as the same bytes", arguments: 0..<4)
  func oneEncoding(seed: UInt64) {
    var random = Generator(seed: seed)
    let heads: [UInt8] = [
      0x00, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x20, 0x38, 0x40, 0x41, 0x58, 0x60, 0x61, 0x78, 0x80, 0x81, 0x82, 0x98, 0xa0,
      0xa1, 0xa2, 0xc1, 0xd8, 0xf4, 0xf5, 0xf6, 0xf9, 0xfa, 0xfb, 0xff,
    ]
    var accepted = 0
    for _ in 0..<20_000 {
      let input = (0..<(1 + random.below(12))).map { _ in
        random.below(3) > 0 ? heads[random.below(heads.count)] : UInt8(random.below(256))
      }
      var reader = CBORReader(input)
      var writer = CBORWriter()
      do throws(CBORError) { try copy(&reader, to: &writer) } catch { continue }
      accepted += 1
      if writer.bytes != Array(input.prefix(reader.position)) {
        Issue.record("\(hex(input)) was written again as \(hex(writer.bytes))")
      }
    }
    #expect(accepted > 1000)
  }
}
