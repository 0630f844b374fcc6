internal import Foundation
internal import Synchronization

/// Something between a client and an HTTP server on this machine that passes requests on and answers back, and does to
/// some of them what gateways, proxies and radio do: loses them before or after they were done, cuts answers, says 500,
/// 502, 429 or 503 of its own, or says nothing more.
///
/// Each request goes over a connection of its own; which one fares how is decided by the seed.
public final class FaultyGateway: Sendable {
  /// What can happen to a request.
  public enum Fate: CaseIterable, Sendable {
    case dropped, reset
    /// Done, and the answer lost.
    case doneAndDropped, doneAndReset
    /// Done, and answered with an error.
    case doneAnd500, doneAnd502
    /// Half of the answer.
    case truncated
    case tooMany, busy
    /// Done, and silence.
    case stalled
  }

  private let server: ScriptedServer
  private let state: Mutex<State>

  private struct State {
    var random: UInt64
    var requests = 0
    var fates: [Fate: Int] = [:]
  }

  /// - Parameters:
  ///   - upstream: the server's port on 127.0.0.1; it speaks plain HTTP.
  ///   - percent: how many requests of a hundred fare badly.
  ///   - fates: what can happen to those.
  public init(to upstream: Int, seed: UInt64, percent: UInt64, fates: [Fate] = Fate.allCases) throws {
    let box = Box()
    server = try ScriptedServer { request in
      guard let gateway = box.gateway.withLock({ $0.gateway }) else { return .nothing(.close) }
      let fate = gateway.draw(percent, fates)
      return FaultyGateway.answer(request, upstream, fate)
    }
    state = Mutex(State(random: seed))
    box.gateway.withLock { $0 = Weak(gateway: self) }
  }

  /// Breaks the ring of server and gateway.
  private final class Box: Sendable {
    let gateway = Mutex(Weak(gateway: nil))
  }

  private struct Weak {
    weak var gateway: FaultyGateway?
  }

  public var port: Int { server.port }
  /// How many requests came.
  public var requests: Int { state.withLock { $0.requests } }
  /// How many of them fared badly.
  public var faults: Int { state.withLock { $0.fates.values.reduce(0, +) } }
  /// The kinds of faults that there were.
  public var met: Set<Fate> { state.withLock { Set($0.fates.keys) } }

  private func draw(_ percent: UInt64, _ fates: [Fate]) -> Fate? {
    state.withLock { state in
      state.requests += 1
      // Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
      func next() -> UInt64 {
        state.random = state.random &+ 0x9e37_79b9_7f4a_7c15
        var mixed = state.random
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
      }
      let (isBad, choice) = (next() % 100 < percent, next())
      guard isBad, !fates.isEmpty else { return nil }
      let fate = fates[Int(choice % UInt64(fates.count))]
      // A stall costs the client its patience, so that it is rare.
      if fate == .stalled, choice / 64 % 8 != 0 { return nil }
      state.fates[fate, default: 0] += 1
      return fate
    }
  }

  private static func answer(
    _ request: ScriptedServer.Request, _ upstream: Int, _ fate: Fate?
  ) -> ScriptedServer.Reply {
    switch fate {
    case .dropped: return .nothing(.close)
    case .reset: return .nothing(.reset)
    case .tooMany:
      // Wishes as they come: none, nonsense, a moment long past.
      let wishes = ["0", "-1", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"]
      return .answer(429, [("Retry-After", wishes[request.target.utf8.count % wishes.count])])
    case .busy: return .answer(503, request.target.utf8.count % 2 == 0 ? [("Retry-After", "0")] : [])
    default: break
    }
    guard let bytes = forward(request, to: upstream) else { return .answer(502) }
    switch fate {
    case .doneAndDropped: return .nothing(.close)
    case .doneAndReset: return .nothing(.reset)
    case .doneAnd500: return .answer(500)
    case .doneAnd502: return .answer(502, body: Array("<html>bad gateway</html>".utf8))
    case .stalled: return .nothing(.stall)
    case .truncated: return .raw(Array(bytes.prefix(bytes.count / 2)), .close)
    default: return .raw(bytes, .close)
    }
  }

  /// The whole answer as it came; nil if none did.
  private static func forward(_ request: ScriptedServer.Request, to port: Int) -> [UInt8]? {
    guard let upstream = connectToLoopback(port) else { return nil }
    defer { close(upstream) }
    var head = "\(request.method) \(request.target) HTTP/1.1\r\n"
    for (name, value) in request.headers where !["connection", "expect"].contains(name.lowercased()) {
      head += "\(name): \(value)\r\n"
    }
    guard sendAll((Array((head + "Connection: close\r\n\r\n").utf8) + request.body)[...], to: upstream) else {
      return nil
    }
    var answer: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = recv(upstream, &chunk, chunk.count, 0)
      guard count > 0 else { break }
      answer += chunk[..<count]
    }
    return answer.isEmpty ? nil : answer
  }
}
