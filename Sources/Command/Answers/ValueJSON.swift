import LatchkeyRecords

extension JSON {
  /// A value as it travels: the format of `latchkey help records`, which other programs write too.
  init(_ value: LatchkeyRecords.Value) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = value.isFinite ? .real(value) : ["real": .text("\(value)")]
    case .text(let bytes):
      self = String(validating: bytes, as: UTF8.self).map(JSON.text) ?? ["text": .text(base64(bytes))]
    case .blob(let bytes): self = ["blob": .text(base64(bytes))]
    case .reference(let record): self = ["ref": .text(record.description)]
    case .together(let values): self = ["together": .array(values.map { JSON($0) })]
    case .unknown(let bytes): self = ["unknown": .text(base64(bytes))]
    }
  }
}
