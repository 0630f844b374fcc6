internal import CLatchkeySodium
internal import LatchkeyEncoding

/// Bytes that must not be printed, logged or left in memory: wiped when the last reference goes.
///
/// Wiping is best effort: whoever copies `bytes` into something else owns that copy.
///
/// `@unchecked Sendable`: `bytes` is written in `init` and in `deinit` only, and nobody else holds a reference then.
public final class SecretBytes: @unchecked Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The secret itself. Sharing it with a function that only reads it makes no copy.
  public private(set) var bytes: [UInt8]

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  deinit {
    bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
  }

  /// Compares in time that depends on the lengths only.
  public static func == (a: SecretBytes, b: SecretBytes) -> Bool { constantTimeEqual(a.bytes, b.bytes) }

  /// Hashes the length only: a hash table must not spread a function of the secret.
  public func hash(into hasher: inout Hasher) { hasher.combine(bytes.count) }

  public var description: String { "(secret)" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}
