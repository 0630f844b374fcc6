internal import Foundation
internal import Synchronization

/// Speaks TLS in front of a server of this machine that does not, and lets connections break where a test says.
///
/// Each connection is deciphered by an OpenSSL server of its own.
public final class TLSFront: Sendable {
  /// How a connection ends before its time.
  public struct Break: Sendable {
    /// Bytes of the client's that pass, its handshake's included.
    public let after: Int
    /// A reset rather than an orderly end.
    public let isReset: Bool

    public init(after: Int, isReset: Bool) { (self.after, self.isReset) = (after, isReset) }
  }

  public let port: Int
  private let listener: Listener
  private let count = Mutex(0)

  /// - Parameters:
  ///   - server: the port of the server on 127.0.0.1.
  ///   - breaks: asked for each connection, counted from 1.
  public init(
    to server: Int, _ certificates: Certificates, breaks: @escaping @Sendable (Int) -> Break? = { _ in nil }
  ) throws {
    listener = try Listener()
    port = listener.port
    listener.run { [weak self] client in
      guard
        let number = self?.count.withLock({ (count) -> Int in
          count += 1
          return count
        }), let upstream = connectToLoopback(server)
      else { return }
      defer { close(upstream) }
      try? Passage(client: client, upstream: upstream, end: breaks(number)).run(certificates)
    }
  }

  deinit { listener.end() }

  /// How many connections there have been.
  public var connections: Int { count.withLock { $0 } }

  private struct Passage: Sendable {
    let client: Int32
    let upstream: Int32
    let end: Break?

    func run(_ certificates: Certificates) throws {
      // Not its whole path: OpenSSL has 31 bytes for what it takes for a port's name.
      let socket = "\(UUID().uuidString.prefix(8)).sock"
      let place = certificates.file(socket)
      let process = certificates.command(
        ["s_server", "-quiet", "-naccept", "1", "-unix", socket, "-cert", "server.pem", "-key", "server.key"])
      let (input, output) = (Pipe(), Pipe())
      process.standardInput = input
      process.standardOutput = output
      try process.run()
      defer {
        kill(process.processIdentifier, SIGKILL)
        try? FileManager.default.removeItem(atPath: place)
      }
      guard let ciphered = connect(place) else { return }
      defer { close(ciphered) }
      let others = DispatchGroup()
      func beside(_ body: @escaping @Sendable () -> Void) {
        others.enter()
        Thread.detachNewThread {
          body()
          others.leave()
        }
      }
      let (plainIn, plainOut) = (input.fileHandleForWriting.fileDescriptor, output.fileHandleForReading.fileDescriptor)
      beside { [self] in
        pass(ciphered, client)
        shutdown(client, Int32(SHUT_RDWR))
      }
      beside { [self] in
        pass(plainOut, upstream)
        shutdown(upstream, Int32(SHUT_RDWR))
      }
      beside { [self] in
        pass(upstream, plainIn)
        // What is in the pipe is still sent.
        usleep(20_000)
        shutdown(ciphered, Int32(SHUT_RDWR))
      }
      pass(client, ciphered, end)
      shutdown(ciphered, Int32(SHUT_RDWR))
      kill(process.processIdentifier, SIGKILL)
      shutdown(upstream, Int32(SHUT_RDWR))
      others.wait()
      if end?.isReset == true { resetOnClose(client) }
    }

    /// Passes bytes on until a side ends, or the connection is to break.
    private func pass(_ from: Int32, _ to: Int32, _ end: Break? = nil) {
      // Whoever writes to a pipe that nobody reads any more would be killed for it.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
      var left = end?.after ?? .max
      var chunk = [UInt8](repeating: 0, count: 16 << 10)
      while left > 0 {
        let count = read(from, &chunk, min(chunk.count, left))
        guard count > 0 else { return }
        left -= count
        var sent = 0
        while sent < count {
          let more = chunk[sent..<count].withUnsafeBytes { write(to, $0.baseAddress, $0.count) }
          guard more > 0 else { return }
          sent += more
        }
      }
    }

    /// Connects to a socket that is about to be there.
    private func connect(_ path: String) -> Int32? {
      for _ in 0..<500 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let isConnected = withUnsafePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
          }
        }
        if isConnected { return descriptor }
        close(descriptor)
        usleep(10_000)
      }
      return nil
    }
  }
}
