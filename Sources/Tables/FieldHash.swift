internal import LatchkeyEncoding
internal import LatchkeySQLite

/// Eight bytes that tell whether a field still is what the table showed last time.
///
/// Not a cryptographic hash: it guards against nobody, and only ever meets values of this file. Two different values of
/// one field collide with probability 2^-64.
struct FieldHash: Hashable, Sendable {
  let value: UInt64

  /// Of a field that was never shown.
  static let unknown = FieldHash(value: 0)

  init(value: UInt64) { self.value = value }

  init(_ value: SQLiteValue) {
    var hash: UInt64
    switch value {
    case .null: hash = Self.mix(1, 0)
    case .integer(let x): hash = Self.mix(2, UInt64(bitPattern: x))
    case .real(let x): hash = Self.mix(3, x.bitPattern)
    case .text(let x): hash = Self.bytes(4, x)
    case .blob(let x): hash = Self.bytes(5, x)
    }
    hash = hash == 0 ? 1 : hash
    self.init(value: hash)
  }

  /// Of a reference's target. A record name is random or a hash already.
  init(target: RecordName) { self.init(value: target.raw.high == 0 ? 1 : target.raw.high) }

  private static func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = (a ^ 0x9e37_79b9_7f4a_7c15).multipliedFullWidth(by: b ^ 0xd6e8_feb8_6659_fd93)
    var x = product.high ^ product.low ^ a
    x = (x ^ (x >> 32)) &* 0xd6e8_feb8_6659_fd93
    return x ^ (x >> 29)
  }

  private static func bytes(_ seed: UInt64, _ bytes: [UInt8]) -> UInt64 {
    var hash = mix(seed, UInt64(bytes.count))
    bytes.withUnsafeBytes { buffer in
      var i = 0
      while i + 8 <= buffer.count {
        hash = mix(hash, UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: i, as: UInt64.self)))
        i += 8
      }
      var last: UInt64 = 0
      while i < buffer.count {
        last = last << 8 | UInt64(buffer[i])
        i += 1
      }
      hash = mix(hash, last)
    }
    return hash
  }
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
