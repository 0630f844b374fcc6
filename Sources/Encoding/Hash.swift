internal import CLatchkeySodium

/// BLAKE2b (RFC 7693), keyed or not, over deterministic CBOR whose first element names the purpose (format §1).
///
/// No two purposes can share an input, so a hash made for one can never be taken for another.
public struct Blake2b: ~Copyable {
  /// libsodium's state is over-aligned, which Swift cannot hold by value.
  private let state: UnsafeMutableRawPointer
  private let length: Int

  /// - Parameters:
  ///   - length: bytes of output, 16...64.
  ///   - key: 0...64 bytes.
  public init(length: Int = 32, key: [UInt8] = []) {
    precondition((16...64).contains(length) && key.count <= 64, "BLAKE2b: 16 to 64 bytes out, a key of at most 64")
    self.length = length
    state = .allocate(byteCount: crypto_generichash_statebytes(), alignment: 64)
    _ = crypto_generichash_init(OpaquePointer(state), key.isEmpty ? nil : key, key.count, length)
  }

  public mutating func update(_ bytes: [UInt8]) {
    _ = crypto_generichash_update(OpaquePointer(state), bytes, UInt64(bytes.count))
  }

  public consuming func finish() -> [UInt8] {
    var out = [UInt8](repeating: 0, count: length)
    _ = crypto_generichash_final(OpaquePointer(state), &out, length)
    return out
  }

  deinit {
    sodium_memzero(state, crypto_generichash_statebytes())
    state.deallocate()
  }
}

/// BLAKE2b of `length` bytes over the CBOR array `["latchkey/1/" + purpose, parts…]`, each part already encoded.
///
/// - Parameters:
///   - purpose: names what the hash is for; a constant of the format (format §1, table of purposes).
///   - key: up to 64 bytes; empty for an unkeyed hash.
///   - parts: how many values `body` writes.
///   - body: writes exactly `parts` values.
public func blake2b(
  _ length: Int, _ purpose: String, key: [UInt8] = [], parts: Int, _ body: (inout CBORWriter) -> Void
) -> [UInt8] {
  var writer = CBORWriter()
  writer.array(parts + 1)
  writer.text("latchkey/1/" + purpose)
  body(&writer)
  var hasher = Blake2b(length: length, key: key)
  hasher.update(writer.bytes)
  return hasher.finish()
}

/// The 32-byte form of ``blake2b(_:_:key:parts:_:)``.
public func hash32(_ purpose: String, key: [UInt8] = [], parts: Int, _ body: (inout CBORWriter) -> Void) -> Hash32 {
  Hash32(blake2b(32, purpose, key: key, parts: parts, body)) ?? .zero
}

/// Whether two byte strings are equal, in time that depends on their lengths only.
public func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  a.count == b.count && sodium_memcmp(a, b, a.count) == 0
}

/// SipHash-2-4 (Aumasson, Bernstein 2012), a 64-bit number, with a key of sixteen bytes of which only the first may be
/// other than zero: for telling values apart that nobody has made to collide.
///
/// - Parameters:
///   - bytes: what is hashed.
///   - kind: the key's first byte, so that two kinds of bytes never share an input.
public func sipHash(_ bytes: UnsafeRawBufferPointer, kind: UInt8) -> UInt64 {
  var out: UInt64 = 0
  var key: (UInt64, UInt64) = (UInt64(kind).littleEndian, 0)
  withUnsafeMutableBytes(of: &out) { out in
    withUnsafeMutableBytes(of: &key) { key in
      guard let out = out.bindMemory(to: UInt8.self).baseAddress, let key = key.bindMemory(to: UInt8.self).baseAddress
      else { return }
      var none: UInt8 = 0
      let start = bytes.bindMemory(to: UInt8.self).baseAddress
      _ = withUnsafePointer(to: &none) { none in
        crypto_shorthash_siphash24(out, start ?? none, UInt64(bytes.count), key)
      }
    }
  }
  return UInt64(littleEndian: out)
}
