internal import LatchkeyEncoding
internal import LatchkeyRecords
internal import LatchkeySQLite

/// Eight bytes that tell whether a field still is what the table showed last time: the fingerprint of its value
/// (format §9), so that what a lost value adds to the digest is still known.
struct FieldHash: Hashable, Sendable {
  let value: UInt64

  /// Of a field that was never shown.
  static let unknown = FieldHash(value: 0)

  init(value: UInt64) { self.value = value }

  init(_ value: SQLiteValue) { self.init(Value(value)) }

  init(_ value: Value) { self.init(value: value.lostFingerprint ?? value.fingerprint) }

  /// Of a reference's target.
  init(target: RecordName) { self.init(value: Value.reference(target).fingerprint) }
}

/// The hashes of a row's fields, by column number.
struct FieldHashes: Equatable, Sendable, ExpressibleByDictionaryLiteral {
  /// Zero for none.
  private var words: [UInt64] = []

  init(dictionaryLiteral elements: (Int, FieldHash)...) {
    for (number, hash) in elements { self[number] = hash }
  }

  subscript(number: Int) -> FieldHash? {
    get { number < words.count && words[number] != 0 ? FieldHash(value: words[number]) : nil }
    set {
      if number >= words.count {
        if newValue == nil { return }
        words.append(contentsOf: repeatElement(0, count: number + 1 - words.count))
      }
      words[number] = newValue?.value ?? 0
    }
  }

  var isEmpty: Bool { !words.contains { $0 != 0 } }
  /// One more than the greatest number that may have a hash.
  var end: Int { words.count }
}
