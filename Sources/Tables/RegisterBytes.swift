internal import LatchkeyEncoding
internal import LatchkeyRecords

/// Registers of one record as bytes of this file: the payloads that would carry them, with their own stamps.
enum RegisterBytes {
  private static let nobody = Origin(device: .zero, incarnation: Incarnation(0))

  /// - Parameter entries: each register once; values that this file does not have are left out.
  static func encode(_ entries: [RegisterEntry], of table: String, _ record: RecordName) -> [UInt8] {
    var builder = PayloadBuilder(origin: nobody, hlc: .zero)
    builder.add(
      table: table, record: record,
      entries.filter { !$0.isMissing }.map { ($0.register, $0.value, .other($0.stamp)) })
    // A row with very large values is several.
    let parts = builder.finish()
    var writer = CBORWriter()
    writer.array(parts.count)
    for part in parts { writer.byteString(part.bytes) }
    return writer.bytes
  }

  static func decode(_ bytes: [UInt8]) throws -> RecordState {
    var reader = CBORReader(bytes)
    var state = RecordState.empty
    for _ in 0..<(try reader.array()) {
      let payload = try Payload.decode(try reader.byteString(), origin: nobody, hlc: .zero, tie: 0)
      state = payload.changes.reduce(state) { $0.merging($1.state) }
    }
    return state
  }
}
