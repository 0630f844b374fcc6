internal import Foundation
internal import Synchronization

/// A line to a server on this machine that breaks as real ones do: every connection is cut, reset or falls silent after
/// so many bytes in one direction, as its seed says.
///
/// A connection that is cut after the request and before the answer is a write that was done and whose reply was lost.
public final class FaultyLine: Sendable {
  public let port: Int
  private let listener: Listener
  private let state = Mutex((connections: 0, faults: 0))

  /// What happens to one connection.
  private struct Fate {
    enum Kind { case reset, close, stall }
    let kind: Kind
    let isUpstream: Bool
    let after: Int

    /// - Parameters:
    ///   - allowance: most bytes that pass before it happens.
    ///   - stalls: whether silence is among it.
    init(seed: UInt64, connection: Int, allowance: Int, stalls: Bool) {
      // Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
      var state = seed &+ UInt64(connection) &* 0x9e37_79b9_7f4a_7c15
      func next() -> UInt64 {
        state = state &+ 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
      }
      // A stall costs the client its patience, so that it is rare.
      let drawn = next() % 16
      kind = drawn < 7 ? .reset : drawn < 15 || !stalls ? .close : .stall
      isUpstream = next() % 2 == 0
      // Short lives are as likely as long ones: 2^0 to the allowance.
      let magnitude = next() % UInt64(max(1, Int.bitWidth - allowance.leadingZeroBitCount))
      after = Int(next() % (UInt64(1) << (magnitude + 1)))
    }
  }

  /// - Parameters:
  ///   - server: the port of the server on 127.0.0.1.
  ///   - allowance: about how many bytes a connection lives at most.
  public init(to server: Int, seed: UInt64, allowance: Int = 1 << 20, stalls: Bool = false) throws {
    listener = try Listener()
    port = listener.port
    listener.run { [weak self] connection in
      guard
        let number = self?.state.withLock({ (state) -> Int in
          state.connections += 1
          return state.connections
        }), let upstream = connectToLoopback(server)
      else { return }
      defer { close(upstream) }
      let fate = Fate(seed: seed, connection: number, allowance: allowance, stalls: stalls)
      let line = Passage(client: connection, server: upstream) { [weak self] in
        self?.state.withLock { $0.faults += 1 }
      }
      let up = DispatchGroup()
      up.enter()
      Thread.detachNewThread {
        line.pass(isUpstream: true, fate)
        up.leave()
      }
      line.pass(isUpstream: false, fate)
      up.wait()
    }
  }

  deinit { listener.end() }

  /// How many connections broke on purpose.
  public var faults: Int { state.withLock { $0.faults } }
  public var connections: Int { state.withLock { $0.connections } }

  /// One connection in both directions.
  private struct Passage: Sendable {
    let client: Int32
    let server: Int32
    let onFault: @Sendable () -> Void

    /// Passes bytes on until a side ends, or the connection's fate is fulfilled.
    func pass(isUpstream: Bool, _ fate: Fate) {
      let (from, to) = isUpstream ? (client, server) : (server, client)
      var left = fate.isUpstream == isUpstream ? fate.after : Int.max
      var chunk = [UInt8](repeating: 0, count: 32 << 10)
      while true {
        let count = recv(from, &chunk, chunk.count, 0)
        guard count > 0, sendAll(chunk[..<min(count, left)], to: to) else { break }
        left -= min(count, left)
        guard left > 0 else {
          onFault()
          if fate.kind == .stall {
            // Until the client has lost its patience.
            while recv(client, &chunk, chunk.count, 0) > 0 {}
          }
          if fate.kind == .reset { resetOnClose(client) }
          break
        }
      }
      for side in [client, server] { shutdown(side, Int32(SHUT_RDWR)) }
    }
  }
}
