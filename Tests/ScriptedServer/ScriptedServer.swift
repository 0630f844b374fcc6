internal import Foundation
internal import Synchronization

/// An HTTP/1.1 server on this machine's loopback that does what a test says, also what no server should.
///
/// ```swift
/// let server = try ScriptedServer { request in .answer(200, body: Array("hello".utf8)) }
/// … server.url …
/// #expect(server.requests.count == 1)
/// ```
///
/// One thread a connection. It ends, and all its connections with it, when the last reference goes.
public final class ScriptedServer: Sendable {
  /// A request as it arrived.
  public struct Request: Sendable {
    public let method: String
    /// Path and query as they stood in the request line.
    public let target: String
    public let headers: [(name: String, value: String)]
    public let body: [UInt8]
    /// Which connection it came on, counted from 1.
    public let connection: Int

    public var path: String { String(target.prefix { $0 != "?" }) }
    public var query: String { String(target.drop { $0 != "?" }.dropFirst()) }

    /// The value of a header field, or nil.
    public func header(_ name: String) -> String? {
      headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The value of a query's parameter, decoded; empty where it has no `=`.
    public func parameter(_ name: String) -> String? {
      for part in query.split(separator: "&") {
        let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if pair[0].removingPercentEncoding == name {
          return pair.count == 2 ? (pair[1].removingPercentEncoding ?? "") : ""
        }
      }
      return nil
    }

    /// Everything that a listener on the line would see, as one text.
    public var everything: String {
      "\(method) \(target)\n" + headers.map { "\($0.name): \($0.value)\n" }.joined()
        + String(decoding: body, as: UTF8.self)
    }
  }

  /// What a connection does after a reply.
  public enum Ending: Sendable {
    case keep
    /// An orderly end.
    case close
    /// A reset: what has not been read yet is lost.
    case reset
    /// Silence until the client gives up.
    case stall
  }

  public enum Reply: Sendable {
    /// A proper reply; `Content-Length` is added unless it is given.
    case answer(Int, [(String, String)] = [], body: [UInt8] = [])
    /// These bytes and nothing else.
    case raw([UInt8], Ending)
    /// Not a byte.
    case nothing(Ending)
  }

  public typealias Handler = @Sendable (Request) -> Reply

  public let port: Int
  private let listener: Listener
  private let state = Mutex(State())

  private struct State {
    var requests: [Request] = []
    var connections = 0
    /// Reset a connection once this many bytes of a body have arrived.
    var resetsUploadAfter: Int?
    var answersExpect = true
  }

  /// - Parameter handler: called once for every complete request, on the connection's thread.
  public init(_ handler: @escaping Handler) throws {
    listener = try Listener()
    port = listener.port
    // The threads hold the server weakly: it ends when the test is done with it.
    listener.run { [weak self] connection in
      guard
        let number = self?.state.withLock({ (state) -> Int in
          state.connections += 1
          return state.connections
        })
      else { return }
      var wire = Wire(descriptor: connection)
      while let request = self?.receive(&wire, number) {
        self?.state.withLock { $0.requests.append(request) }
        guard wire.send(handler(request), method: request.method) else { break }
      }
    }
  }

  deinit { listener.end() }

  public var url: String { "http://127.0.0.1:\(port)" }
  public var requests: [Request] { state.withLock { $0.requests } }
  /// How many connections there have been.
  public var connections: Int { state.withLock { $0.connections } }

  /// How many of them are open: a client that is gone has closed its own.
  public var openConnections: Int { listener.count }

  /// Resets a connection once so many bytes of a request's body have arrived; nil: never.
  public func resetUploads(after count: Int?) { state.withLock { $0.resetsUploadAfter = count } }

  /// Whether `Expect: 100-continue` is answered.
  public func answerExpect(_ answers: Bool) { state.withLock { $0.answersExpect = answers } }

  /// The next request; nil when the client has closed, or sends what is no request.
  private func receive(_ wire: inout Wire, _ number: Int) -> Request? {
    guard let head = wire.readHead() else { return nil }
    let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count == 3 else { return nil }
    let headers = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }
    func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
    let (resetsAfter, answersExpect) = state.withLock { ($0.resetsUploadAfter, $0.answersExpect) }
    if header("expect") != nil, answersExpect { wire.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
    let length = Int(header("content-length") ?? "0") ?? 0
    if let resetsAfter, length > resetsAfter {
      _ = wire.readBody(resetsAfter)
      wire.end(.reset)
      return nil
    }
    guard let body = wire.readBody(length) else { return nil }
    return Request(
      method: String(words[0]), target: String(words[1]), headers: headers, body: body, connection: number)
  }
}

/// The bytes of one connection.
private struct Wire {
  let descriptor: Int32
  private var buffer: [UInt8] = []

  init(descriptor: Int32) { self.descriptor = descriptor }

  /// Everything up to the empty line.
  mutating func readHead() -> [UInt8]? {
    var searched = 0
    while true {
      if buffer.count >= 4 {
        for index in max(0, searched - 3)..<(buffer.count - 3)
        where buffer[index] == 13 && buffer[index + 1] == 10 && buffer[index + 2] == 13 && buffer[index + 3] == 10 {
          let head = Array(buffer[..<index])
          buffer.removeFirst(index + 4)
          return head
        }
      }
      // A handshake of TLS has no lines; a server that speaks none hangs up.
      if let first = buffer.first, first < 32 { return nil }
      searched = buffer.count
      guard buffer.count < 1 << 20, fill() else { return nil }
    }
  }

  mutating func readBody(_ count: Int) -> [UInt8]? {
    buffer.reserveCapacity(count)
    while buffer.count < count { guard fill() else { return nil } }
    let body = Array(buffer[..<count])
    buffer.removeFirst(count)
    return body
  }

  private mutating func fill() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &chunk, chunk.count, 0)
    guard count > 0 else { return false }
    buffer += chunk[..<count]
    return true
  }

  /// - Returns: whether the connection goes on.
  func send(_ reply: ScriptedServer.Reply, method: String) -> Bool {
    switch reply {
    case .answer(let status, let headers, let body):
      var head = "HTTP/1.1 \(status) Scripted\r\n"
      for (name, value) in headers { head += "\(name): \(value)\r\n" }
      if !headers.contains(where: { $0.0.lowercased() == "content-length" }) {
        head += "Content-Length: \(body.count)\r\n"
      }
      return write(Array((head + "\r\n").utf8) + (method == "HEAD" ? [] : body))
    case .raw(let bytes, let ending):
      return write(bytes) && end(ending)
    case .nothing(let ending):
      return end(ending)
    }
  }

  @discardableResult
  func write(_ bytes: [UInt8]) -> Bool { sendAll(bytes[...], to: descriptor) }

  /// - Returns: whether the connection goes on.
  @discardableResult
  func end(_ ending: ScriptedServer.Ending) -> Bool {
    switch ending {
    case .keep: return true
    case .close: return false
    case .reset:
      resetOnClose(descriptor)
      return false
    case .stall:
      // Until the client hangs up.
      var chunk = [UInt8](repeating: 0, count: 4096)
      while recv(descriptor, &chunk, chunk.count, 0) > 0 {}
      return false
    }
  }
}
