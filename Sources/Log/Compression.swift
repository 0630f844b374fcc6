internal import CLatchkeyZstd

/// Zstandard (RFC 8878), one frame with its content size.
enum Compression {
  static let level: Int32 = 3

  /// The frame, or nil where it would not be smaller.
  static func compress(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count > 64 else { return nil }
    let bound = ZSTD_compressBound(bytes.count)
    var size = 0
    let out = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
      size = ZSTD_compress(buffer.baseAddress, bound, bytes, bytes.count, level)
      count = ZSTD_isError(size) != 0 ? 0 : size
    }
    return ZSTD_isError(size) == 0 && out.count < bytes.count ? out : nil
  }

  /// The content of a frame that must be exactly `length` bytes; nil for anything else. Allocates `length`, which the caller has bounded.
  static func decompress(_ frame: [UInt8], length: Int) -> [UInt8]? {
    guard ZSTD_getFrameContentSize(frame, frame.count) == UInt64(length),
      ZSTD_findFrameCompressedSize(frame, frame.count) == frame.count
    else { return nil }
    var size = 0
    let out = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
      size = ZSTD_decompress(buffer.baseAddress, length, frame, frame.count)
      count = ZSTD_isError(size) != 0 ? 0 : min(size, length)
    }
    return ZSTD_isError(size) == 0 && out.count == length ? out : nil
  }
}
