#if os(Linux)
  internal import Dispatch
  internal import LatchkeyEncoding
  internal import Synchronization

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// Hints that something has changed in a folder, from the kernel: inotify(7).
  ///
  /// It knows of what this machine does: not of another one's writes to a network share. Events get lost where there are too many,
  /// and directories stay unwatched where the system allows no more. So these are hints, and whoever takes them lists from time to
  /// time all the same.
  enum FolderChanges {
    /// - Returns: nil where the system has no more watches to give, or none for this folder.
    static func stream(_ root: String) -> AsyncStream<Void>? {
      let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
      guard descriptor >= 0 else { return nil }
      let watches = Watches(descriptor)
      guard watches.add(root) else {
        close(descriptor)
        return nil
      }
      let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      // Sources may be cancelled from any thread (dispatch_source_cancel(3)); nothing else is done with it afterwards.
      nonisolated(unsafe) let source = DispatchSource.makeReadSource(
        fileDescriptor: descriptor, queue: DispatchQueue(label: "latchkey.folder.changes"))
      source.setEventHandler { if watches.drain() { continuation.yield() } }
      source.setCancelHandler { close(descriptor) }
      continuation.onTermination = { _ in source.cancel() }
      source.resume()
      return stream
    }
  }

  /// The directories that are watched: the folder, and those in it that can hold objects.
  private final class Watches: Sendable {
    private let descriptor: Int32
    private let paths = Mutex<[Int32: (path: String, depth: Int)]>([:])

    /// Objects appear by a link or a rename, and vanish by either; a directory that is made may hold some already.
    private static let events = UInt32(
      IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR | IN_DONT_FOLLOW)
    /// Names have up to four parts.
    private static let maximumDepth = 3
    private static let maximumWatches = 4096

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Watches a directory, and those in it.
    @discardableResult
    func add(_ path: String, depth: Int = 0) -> Bool {
      guard paths.withLock({ $0.count }) < Self.maximumWatches else { return false }
      let watch = inotify_add_watch(descriptor, path, Self.events)
      guard watch >= 0 else { return false }
      paths.withLock { $0[watch] = (path, depth) }
      guard depth < Self.maximumDepth, let directory = opendir(path) else { return true }
      defer { closedir(directory) }
      while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let kind = Int(entry.pointee.d_type)
        guard kind == Int(DT_DIR) || kind == Int(DT_UNKNOWN), ObjectName.isListablePrefix(name + "/") else { continue }
        add(path + "/" + name, depth: depth + 1)
      }
      return true
    }

    /// Takes what the kernel has to say.
    ///
    /// - Returns: whether something changed that may be an object.
    func drain() -> Bool {
      var hasChanged = false
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return hasChanged }
        buffer.withUnsafeBytes { bytes in
          var offset = 0
          let header = MemoryLayout<inotify_event>.size
          while offset + header <= count {
            let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let end = min(count, offset + header + Int(event.len))
            let name = String(decoding: bytes[(offset + header)..<end].prefix { $0 != 0 }, as: UTF8.self)
            offset = end
            if note(event, name) { hasChanged = true }
          }
        }
      }
    }

    private func note(_ event: inotify_event, _ name: String) -> Bool {
      if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
      if event.mask & UInt32(IN_IGNORED) != 0 {
        paths.withLock { $0[event.wd] = nil }
        return true
      }
      // Staging files and other programs' are no objects.
      guard ObjectName.isListablePrefix(name + "/"), let place = paths.withLock({ $0[event.wd] }) else { return false }
      if event.mask & UInt32(IN_ISDIR) != 0, event.mask & UInt32(IN_CREATE | IN_MOVED_TO) != 0,
        place.depth < Self.maximumDepth
      {
        add(place.path + "/" + name, depth: place.depth + 1)
      }
      return true
    }
  }
#endif
