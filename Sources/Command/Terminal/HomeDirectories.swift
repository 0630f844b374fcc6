#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Where identity, keys, settings and state of this device are.
struct HomeDirectories: Sendable, Equatable {
  /// Settings a person may edit.
  let config: String
  /// Identity, keyring and state: written by the command alone.
  let state: String

  /// From `--home`, else `LATCHKEY_HOME`, else the XDG base directories (freedesktop.org Base Directory Specification,
  /// which takes absolute paths only).
  ///
  /// - Throws: exit code 64 if none of these says where.
  init(option: String?) throws(CommandError) {
    if let given = option ?? Environment.value("LATCHKEY_HOME") {
      let home = given.hasPrefix("/") ? given : "\(HomeDirectories.current)/\(given)"
      config = home
      state = home
      return
    }
    config = try HomeDirectories.base("XDG_CONFIG_HOME", ".config")
    state = try HomeDirectories.base("XDG_STATE_HOME", ".local/state")
  }

  private static var current: String {
    guard let buffer = getcwd(nil, 0) else { return "." }
    defer { free(buffer) }
    return String(cString: buffer)
  }

  private static func base(_ variable: String, _ fallback: String) throws(CommandError) -> String {
    if let base = Environment.value(variable), base.hasPrefix("/") { return base + "/latchkey" }
    guard let home = Environment.value("HOME") else {
      throw .usage(
        "no-home", "There is no place for keys and settings: neither LATCHKEY_HOME nor HOME is set.",
        next: ["latchkey help environment"])
    }
    return "\(home)/\(fallback)/latchkey"
  }
}
