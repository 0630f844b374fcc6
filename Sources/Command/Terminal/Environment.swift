#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The environment variables the command reads.
enum Environment {
  /// Described in `latchkey help environment`.
  static let documented = [
    Term("LATCHKEY_HOME", "directory of identity, keys and settings; --home comes before it"),
    Term("XDG_CONFIG_HOME", "without LATCHKEY_HOME, settings are in latchkey/ under it (default: ~/.config)"),
    Term(
      "XDG_STATE_HOME",
      "without LATCHKEY_HOME, identity, keys and state are in latchkey/ under it (default: ~/.local/state)"),
    Term(
      "LATCHKEY_PASSPHRASE_FILE",
      "file with the passphrase of your keys in its first line, which only you can read; without it you are asked"),
    Term(
      "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
      "keys for stores in buckets; \"latchkey help stores\" says which others there are"),
    Term("NO_COLOR", "set to anything: no colours (https://no-color.org)"),
    Term("TERM", "\"dumb\": no colours, no line that is redrawn"),
  ]

  /// - Returns: nil if it is not set, or empty.
  static func value(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }
}
