import Foundation

/// Programs of others, which `scripts/test real` installs.
enum RealPrograms {
  static let areInstalled = ProcessInfo.processInfo.environment["LATCHKEY_REAL_PROGRAMS"] == "1"

  /// Scripts that drive them, beside this file.
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path
}
