/// What a run did, as one number: two runs of one seed must agree in it.
///
/// Names, bytes, digests and decisions go in. Where the order of a set or dictionary leaks into any of them, the two
/// runs differ, because Swift orders equal sets differently.
struct Trace {
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  /// Prints each line.
  let isVerbose: Bool

  mutating func note(_ line: @autoclosure () -> String) {
    var text = line()
    if isVerbose { print(text) }
    text.withUTF8 { buffer in
      for byte in buffer { mix(UInt64(byte)) }
    }
    mix(0x0a)
  }

  mutating func note(bytes: [UInt8]) {
    mix(UInt64(bytes.count))
    bytes.withUnsafeBytes { buffer in
      var at = 0
      while at + 8 <= buffer.count {
        mix(buffer.loadUnaligned(fromByteOffset: at, as: UInt64.self))
        at += 8
      }
      while at < buffer.count {
        mix(UInt64(buffer[at]))
        at += 1
      }
    }
  }

  private mutating func mix(_ value: UInt64) {
    hash = (hash ^ value) &* 0x9fb2_1c65_1e98_df25
    hash ^= hash >> 29
  }
}
