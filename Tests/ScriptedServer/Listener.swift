internal import Foundation
internal import Synchronization

/// A port on loopback, and a thread for each connection to it.
///
/// Each thread closes its own descriptor, so that nobody shuts down a number that is somebody else's by then.
final class Listener: Sendable {
  let port: Int
  private let descriptor: Int32
  private let open = Mutex<Set<Int32>?>([])

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  init() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failure(description: "socket: \(errno)") }
    var address = loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &length) == 0
          ? 0 : errno
      }
    }
    guard code == 0 else {
      close(descriptor)
      throw Failure(description: "a port could not be opened: \(code)")
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    self.descriptor = descriptor
  }

  /// Accepts connections until ``end()``.
  ///
  /// - Parameter serve: called on a thread of its own for each; the connection is closed when it returns.
  func run(_ serve: @escaping @Sendable (Int32) -> Void) {
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { break }
        guard open.withLock({ $0?.insert(connection) != nil }) else {
          close(connection)
          break
        }
        sendAtOnce(connection)
        Thread.detachNewThread { [self] in
          serve(connection)
          open.withLock {
            $0?.remove(connection)
            _ = close(connection)
          }
        }
      }
      close(descriptor)
    }
  }

  /// How many connections there are at the moment.
  var count: Int { open.withLock { $0?.count ?? 0 } }

  /// Ends the port and all connections.
  func end() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    open.withLock { connections in
      for connection in connections ?? [] { shutdown(connection, Int32(SHUT_RDWR)) }
      connections = nil
    }
  }
}

/// Connects to a port on 127.0.0.1; nil if nobody listens.
func connectToLoopback(_ port: Int) -> Int32? {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  guard descriptor >= 0 else { return nil }
  var address = loopback(port)
  let isConnected = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
    }
  }
  guard isConnected else {
    close(descriptor)
    return nil
  }
  sendAtOnce(descriptor)
  return descriptor
}

/// Makes the next `close` a reset: what the other side has not read yet is lost.
func resetOnClose(_ descriptor: Int32) {
  var linger = linger(l_onoff: 1, l_linger: 0)
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
}

/// Sends all bytes; false if the other side is gone.
func sendAll(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
  var rest = bytes
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard count > 0 else { return false }
    rest = rest.dropFirst(count)
  }
  return true
}

private func sendAtOnce(_ descriptor: Int32) {
  var on: Int32 = 1
  setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
}

private func loopback(_ port: Int) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = UInt16(port).bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return address
}
