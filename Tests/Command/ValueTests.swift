import LatchkeyEncoding
import LatchkeyRecords
import Testing

@testable import LatchkeyCommand

@Suite struct ValueTests {
  @Test(
    "a value is printed as the documentation of exported records says",
    arguments: [
      (Value.null, "null"), (.integer(-7), "-7"), (.integer(.max), "9223372036854775807"), (.real(5), "5.0"),
      (.real(-0.0), "-0.0"), (.real(0.0001), "0.0001"), (.real(0.00001), "1e-05"), (.real(1e15), "1000000000000000.0"),
      (.real(9_007_199_254_740_994), "9007199254740994.0"), (.real(9_999_999_999_999_998), "9999999999999998.0"),
      (.real(1e16), "1e+16"), (.real(1.5e300), "1.5e+300"), (.real(.infinity), #"{"real":"inf"}"#),
      (.real(-.infinity), #"{"real":"-inf"}"#), (.text("a\"\\\n\t\u{7}é"), #""a\"\\\n\t\u0007é""#),
      (.text([0x61, 0xFF]), #"{"text":"Yf8="}"#), (.text([]), #""""#), (.blob([]), #"{"blob":""}"#),
      (.blob([1, 2, 3]), #"{"blob":"AQID"}"#),
      (
        .reference(RecordName(raw: Bytes16(high: 1, low: 255))), #"{"ref":"000000000000000100000000000000ff"}"#
      ), (.together([.integer(1), .null]), #"{"together":[1,null]}"#), (.unknown([0xC1]), #"{"unknown":"wQ=="}"#),
    ])
  func printed(value: Value, text: String) { #expect(JSON(value).encoded() == text) }

  @Test(
    "base64 is RFC 4648's",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func encoding(plain: String, text: String) { #expect(base64(Array(plain.utf8)) == text) }

  @Test("columns are in byte order of their names, whatever order they came in")
  func order() {
    let record = ExportedRecord(
      table: "t", record: RecordName(raw: Bytes16(high: 0, low: 1)),
      cells: [("é", .null), ("b", .integer(1)), ("B", .integer(2)), ("ba", .integer(3))])
    #expect(
      record.json.encoded()
        == #"{"table":"t","record":"00000000000000000000000000000001","values":{"B":2,"b":1,"ba":3,"é":null}}"#)
  }

  @Test("CSV tells NULL from an empty text, and quotes what needs it")
  func csv() {
    let name = RecordName(raw: Bytes16(high: 0, low: 1))
    let records = [
      ExportedRecord(table: "t", record: name, cells: [("a", .null), ("b", .text(""))]),
      ExportedRecord(table: "t", record: name, cells: [("a", .text("x,\"y\"\r\nz")), ("c", .real(2))]),
    ]
    #expect(
      CSV(records).text == """
        lk_record,a,b,c\r
        \(name),,"",\r
        \(name),"x,""y""\r
        z",,2.0\r

        """)
  }

  @Test(
    "moments are UTC, with milliseconds for programs",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1_772_366_405_250, "2026-03-01T12:00:05.250Z"),
      (-1, "1969-12-31T23:59:59.999Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ])
  func moments(milliseconds: Int64, text: String) {
    #expect(Moment(milliseconds).text == text)
    #expect(Moment(milliseconds).shown == text.prefix(10) + " " + text.dropFirst(11).prefix(8) + " UTC")
  }
}
