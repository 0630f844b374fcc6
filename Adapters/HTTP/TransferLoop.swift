internal import CLatchkeyCurl
internal import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The thread that owns a client's multi handle, and what other threads tell it.
///
/// libcurl's handles may be used by one thread at a time: all of them are made, driven and freed on this one. Others
/// leave requests in ``inbox`` and wake it up, which is the one call that libcurl allows from anywhere.
final class TransferLoop: Sendable {
  typealias Reply = Result<HTTPResponse, HTTPError>

  struct Start {
    let id: UInt64
    let request: HTTPRequest
    let reply: CheckedContinuation<Reply, Never>
  }

  struct Inbox {
    var lastID: UInt64 = 0
    var starts: [Start] = []
    var cancels: [UInt64] = []
    /// Handed in and not answered yet.
    var live: Set<UInt64> = []
    /// Cancelled before they were handed in.
    var cancelledEarly: Set<UInt64> = []
    var isClosed = false
    /// The thread waits, or is about to: only then somebody has to wake it up, and only once.
    var isWaiting = false
    /// Nil once the thread has freed it.
    var multi: UnsafeMutableRawPointer?
  }

  private let inbox: Mutex<Inbox>
  let configuration: HTTPConfiguration

  /// libcurl's own state, once for the process; safe from any thread because Swift initialises statics once.
  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  init(_ configuration: HTTPConfiguration) throws(HTTPError) {
    guard Self.isReady, let multi = curl_multi_init() else {
      throw HTTPError(.configuration, detail: "libcurl could not be set up")
    }
    for file in [configuration.caFile, configuration.clientCertificateFile, configuration.clientKeyFile] {
      guard let file, access(file, R_OK) != 0 else { continue }
      curl_multi_cleanup(multi)
      throw HTTPError(.unusableFile, detail: "\(file) cannot be read: \(String(cString: strerror(errno)))")
    }
    let connections = max(1, configuration.maximumConnections)
    _ = lk_curl_multi_set_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections)
    _ = lk_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, connections)
    self.configuration = configuration
    inbox = Mutex(Inbox(multi: multi))
    try startThread()
  }

  /// Runs a request on the loop's thread.
  func perform(_ request: HTTPRequest) async -> Reply {
    let id = inbox.withLock { inbox in
      inbox.lastID += 1
      return inbox.lastID
    }
    let reply = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in submit(Start(id: id, request: request, reply: continuation)) }
    } onCancel: {
      cancel(id)
    }
    // A cancellation that came after the answer.
    _ = inbox.withLock { $0.cancelledEarly.remove(id) }
    return reply
  }

  /// Ends the thread; requests that still run are cancelled.
  func close() {
    inbox.withLock { inbox in
      inbox.isClosed = true
      Self.wake(&inbox)
    }
  }

  private func submit(_ start: Start) {
    let isAccepted = inbox.withLock { inbox in
      if inbox.cancelledEarly.contains(start.id) || inbox.isClosed { return false }
      inbox.live.insert(start.id)
      inbox.starts.append(start)
      Self.wake(&inbox)
      return true
    }
    if !isAccepted { start.reply.resume(returning: .failure(HTTPError(.cancelled))) }
  }

  private func cancel(_ id: UInt64) {
    inbox.withLock { inbox in
      if inbox.live.contains(id) {
        inbox.cancels.append(id)
        Self.wake(&inbox)
      } else {
        inbox.cancelledEarly.insert(id)
      }
    }
  }

  /// Called with the inbox locked, so that the handle cannot be freed meanwhile.
  private static func wake(_ inbox: inout Inbox) {
    guard inbox.isWaiting, let multi = inbox.multi else { return }
    inbox.isWaiting = false
    curl_multi_wakeup(multi)
  }

  private func startThread() throws(HTTPError) {
    let context = Unmanaged.passRetained(self)
    #if canImport(Darwin)
      var thread: pthread_t?
      let code = pthread_create(&thread, nil, { TransferLoop.threadMain($0) }, context.toOpaque())
      if code == 0, let thread { pthread_detach(thread) }
    #else
      var thread = pthread_t()
      let code = pthread_create(&thread, nil, { TransferLoop.threadMain($0) }, context.toOpaque())
      if code == 0 { pthread_detach(thread) }
    #endif
    guard code == 0 else {
      context.release()
      let multi = inbox.withLock { inbox in
        defer { inbox.multi = nil }
        return inbox.multi
      }
      if let multi { curl_multi_cleanup(multi) }
      throw HTTPError(.configuration, detail: "no thread could be started: \(String(cString: strerror(code)))")
    }
  }

  private static func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let loop = Unmanaged<TransferLoop>.fromOpaque(context).takeRetainedValue()
    // A peer that closes while OpenSSL writes raises SIGPIPE in the writing thread: blocked here, and here only.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    loop.run()
    return nil
  }

  private func run() {
    guard let multi = inbox.withLock({ $0.multi }) else { return }
    var transfers = Transfers(multi: multi, configuration: configuration)
    while true {
      let (starts, cancels, isClosed) = inbox.withLock { inbox in
        defer { (inbox.starts, inbox.cancels, inbox.isWaiting) = ([], [], false) }
        return (inbox.starts, inbox.cancels, inbox.isClosed)
      }
      var done: [(id: UInt64, reply: Reply, to: CheckedContinuation<Reply, Never>)] = []
      for start in starts {
        if let failed = transfers.begin(start) { done.append((start.id, .failure(failed), start.reply)) }
      }
      for id in cancels { if let ended = transfers.cancel(id) { done.append(ended) } }
      if isClosed { done += transfers.cancelAll() } else { done += transfers.advance() }
      if !done.isEmpty {
        inbox.withLock { inbox in for ended in done { inbox.live.remove(ended.id) } }
        for ended in done { ended.to.resume(returning: ended.reply) }
      }
      if isClosed { break }
      let mayWait = inbox.withLock { inbox in
        inbox.isWaiting = inbox.starts.isEmpty && inbox.cancels.isEmpty && !inbox.isClosed
        return inbox.isWaiting
      }
      if mayWait { transfers.wait() }
    }
    // Nobody may wake a handle that is gone.
    inbox.withLock { $0.multi = nil }
    transfers.free()
  }
}
