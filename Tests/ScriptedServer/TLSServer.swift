internal import Foundation

/// OpenSSL's own server on loopback: a page for every GET.
public final class TLSServer {
  private let process: Process
  public private(set) var port = 0
  public let certificates: Certificates

  struct Failure: Error {}

  /// - Parameter asksForCertificate: refuse clients without a certificate of the same authority.
  public init(asksForCertificate: Bool = false) throws {
    certificates = try Certificates.shared()
    process = certificates.command(
      ["s_server", "-accept", "127.0.0.1:0", "-www", "-cert", "server.pem", "-key", "server.key"]
        + (asksForCertificate ? ["-Verify", "1", "-verify_return_error", "-CAfile", "ca.pem"] : []))
    let output = Pipe()
    process.standardOutput = output
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
  }

  public func file(_ name: String) -> String { certificates.file(name) }
}
