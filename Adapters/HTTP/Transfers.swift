internal import CLatchkeyCurl

/// The transfers of one multi handle. Used by the loop's thread only.
struct Transfers {
  typealias Ended = (id: UInt64, reply: TransferLoop.Reply, to: CheckedContinuation<TransferLoop.Reply, Never>)

  private let multi: UnsafeMutableRawPointer
  private let configuration: HTTPConfiguration
  private var running: [UInt64: Transfer] = [:]
  /// Handles to be used again, the last used last. They keep what Digest authentication has negotiated, and would go on
  /// with it for another user or server: so each is for one of both.
  private var idle: [(handle: UnsafeMutableRawPointer, user: User)] = []

  private struct User: Equatable {
    let origin: HTTPURL
    let authentication: HTTPAuthentication

    init(_ request: HTTPRequest) { (origin, authentication) = (request.url.origin, request.authentication) }
  }

  init(multi: UnsafeMutableRawPointer, configuration: HTTPConfiguration) {
    self.multi = multi
    self.configuration = configuration
  }

  /// - Returns: why it could not begin.
  mutating func begin(_ start: TransferLoop.Start) -> HTTPError? {
    let used = takeIdle(User(start.request))
    guard let handle = used ?? curl_easy_init() else {
      return HTTPError(.configuration, detail: "libcurl gave no handle")
    }
    let transfer = Transfer(start, handle, configuration)
    let isUnfit = used == nil ? Transfer.setUp(handle, configuration) : nil
    if let failure = isUnfit ?? transfer.prepare(configuration) {
      curl_easy_cleanup(handle)
      return failure
    }
    guard curl_multi_add_handle(multi, handle) == CURLM_OK else {
      curl_easy_cleanup(handle)
      return HTTPError(.configuration, detail: "libcurl did not take the request")
    }
    running[start.id] = transfer
    return nil
  }

  private mutating func takeIdle(_ user: User) -> UnsafeMutableRawPointer? {
    idle.lastIndex { $0.user == user }.map { idle.remove(at: $0).handle }
  }

  /// Lets libcurl work.
  ///
  /// - Returns: what is finished.
  mutating func advance() -> [Ended] {
    var count: Int32 = 0
    _ = curl_multi_perform(multi, &count)
    var ended: [Ended] = []
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
        let context = lk_curl_get_private(handle)
      else { continue }
      // The message is gone once the handle is removed.
      let code = message.pointee.data.result
      let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
      if transfer.restart(after: code) {
        curl_multi_remove_handle(multi, handle)
        if curl_multi_add_handle(multi, handle) == CURLM_OK { continue }
      }
      let reply = transfer.finish(code)
      curl_multi_remove_handle(multi, handle)
      running[transfer.id] = nil
      transfer.detach()
      idle.append((handle, User(transfer.request)))
      if idle.count > max(1, configuration.maximumConnections) { curl_easy_cleanup(idle.removeFirst().handle) }
      ended.append((transfer.id, reply, transfer.reply))
    }
    return ended
  }

  /// Ends a transfer; nil if it is finished already.
  mutating func cancel(_ id: UInt64) -> Ended? {
    guard let transfer = running.removeValue(forKey: id) else { return nil }
    let error = HTTPError(.cancelled, mayHaveArrived: transfer.hasSent)
    curl_multi_remove_handle(multi, transfer.handle)
    curl_easy_cleanup(transfer.handle)
    return (id, .failure(error), transfer.reply)
  }

  mutating func cancelAll() -> [Ended] { running.keys.sorted().compactMap { cancel($0) } }

  /// Until something moves, libcurl wants to look after a time, or somebody wakes the thread.
  func wait() {
    var count: Int32 = 0
    _ = curl_multi_poll(multi, nil, 0, 60_000, &count)
  }

  mutating func free() {
    for entry in idle { curl_easy_cleanup(entry.handle) }
    idle = []
    curl_multi_cleanup(multi)
  }
}
