internal import Foundation

/// Certificates of the tests' own, in a directory of their own: two authorities (`ca.pem`, `other.pem`), a server's for 127.0.0.1
/// and a client's, both of the first.
public final class Certificates: Sendable {
  public let directory: String

  struct Failure: Error {}

  /// Made once for the process, which waits for OpenSSL meanwhile; removed at its end.
  private static let made = Result {
    let certificates = try Certificates()
    atexit {
      if let certificates = try? Certificates.shared() {
        try? FileManager.default.removeItem(atPath: certificates.directory)
      }
    }
    return certificates
  }

  public static func shared() throws -> Certificates { try made.get() }

  private init() throws {
    directory = FileManager.default.temporaryDirectory.appendingPathComponent("lk-tls-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    for authority in ["ca", "other"] {
      try openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=\(authority)", "-keyout", "\(authority).key", "-out", "\(authority).pem")
    }
    try issue("server", "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    try issue("client", "basicConstraints=CA:FALSE\n")
  }

  public func file(_ name: String) -> String { directory + "/" + name }

  private func issue(_ name: String, _ extensions: String) throws {
    try Data(extensions.utf8).write(to: URL(fileURLWithPath: file(name + ".ext")))
    try openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
      "\(name).key", "-out", "\(name).csr")
    try openssl(
      "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
      "-extfile", "\(name).ext", "-out", "\(name).pem")
  }

  private func openssl(_ arguments: String...) throws {
    let command = self.command(arguments)
    command.standardOutput = FileHandle.nullDevice
    try command.run()
    command.waitUntilExit()
    guard command.terminationStatus == 0 else { throw Failure() }
  }

  /// OpenSSL's program, to be run in the directory.
  func command(_ arguments: [String]) -> Process {
    let command = Process()
    command.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    command.currentDirectoryURL = URL(fileURLWithPath: directory)
    command.arguments = ["openssl"] + arguments
    command.standardError = FileHandle.nullDevice
    return command
  }
}
