import Foundation

/// OpenSSL's own server on loopback, with certificates made for the occasion.
final class TLSServer {
  private let process = Process()
  private(set) var port = 0
  let directory: String

  struct Failure: Error {}

  /// - Parameter asksForCertificate: refuse clients without a certificate of the same authority.
  init(asksForCertificate: Bool = false) throws {
    directory = FileManager.default.temporaryDirectory.appendingPathComponent("lk-tls-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    for authority in ["ca", "other"] {
      try openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=\(authority)", "-keyout", "\(authority).key", "-out", "\(authority).pem")
    }
    try issue("server", "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    try issue("client", "basicConstraints=CA:FALSE\n")
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.arguments =
      ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", "server.pem", "-key", "server.key"]
      + (asksForCertificate ? ["-Verify", "1", "-verify_return_error", "-CAfile", "ca.pem"] : [])
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // "ACCEPT 127.0.0.1:PORT" once it listens.
    var said = ""
    while !said.contains("ACCEPT") || !said.hasSuffix("\n") {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw Failure() }
      said += String(decoding: more, as: UTF8.self)
    }
    let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT") }
    guard let text = line?.split(separator: ":").last, let port = Int(text) else { throw Failure() }
    self.port = port
  }

  deinit {
    // Not SIGTERM: a child is born with the signals blocked that are blocked in the thread that starts it.
    kill(process.processIdentifier, SIGKILL)
    try? FileManager.default.removeItem(atPath: directory)
  }

  func file(_ name: String) -> String { directory + "/" + name }

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
    let command = Process()
    command.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    command.currentDirectoryURL = URL(fileURLWithPath: directory)
    command.arguments = ["openssl"] + arguments
    command.standardError = FileHandle.nullDevice
    command.standardOutput = FileHandle.nullDevice
    try command.run()
    command.waitUntilExit()
    guard command.terminationStatus == 0 else { throw Failure() }
  }
}
