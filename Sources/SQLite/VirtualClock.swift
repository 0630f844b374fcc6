internal import CLatchkeySQLite
internal import Synchronization

/// A clock that is set by hand and that SQL's `'now'` reads, for simulations and tests.
///
/// SQLite asks its virtual file system for the time. This registers a copy of the default one that answers with
/// ``milliseconds``; give it to every ``Connection`` that should live by it. Most programs do not need it.
public final class VirtualClock: Sendable {
  /// The name under which SQLite knows the file system.
  let name: String
  private let block: Block

  /// The file system with the time behind it, so that the callback finds the time from the pointer that it is given.
  private struct Block: @unchecked Sendable {
    // The pointers are set once and freed in deinit; the time behind `time` is only touched as an atomic.
    let vfs: UnsafeMutablePointer<sqlite3_vfs>
    let name: UnsafeMutablePointer<CChar>
    let time: UnsafeMutablePointer<Int64>
  }

  private static let count = Atomic<Int>(0)
  /// Milliseconds from the start of the Julian period, which SQLite counts from, to 1970-01-01.
  private static let julianOffset: Int64 = 210_866_760_000_000

  /// Nil only if SQLite has no default file system or refuses to register another.
  public init?(milliseconds: Int64) {
    guard let standard = sqlite3_vfs_find(nil) else { return nil }
    name = "latchkey-clock-\(Self.count.add(1, ordering: .relaxed).newValue)"
    let raw = UnsafeMutableRawPointer.allocate(
      byteCount: MemoryLayout<sqlite3_vfs>.stride + MemoryLayout<Int64>.stride, alignment: 16)
    let vfs = raw.bindMemory(to: sqlite3_vfs.self, capacity: 1)
    let time = (raw + MemoryLayout<sqlite3_vfs>.stride).bindMemory(to: Int64.self, capacity: 1)
    let bytes = Array(name.utf8CString)
    let cName = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
    cName.initialize(from: bytes, count: bytes.count)
    time.initialize(to: milliseconds + Self.julianOffset)
    vfs.initialize(to: standard.pointee)
    vfs.pointee.zName = UnsafePointer(cName)
    vfs.pointee.pNext = nil
    vfs.pointee.xCurrentTimeInt64 = { vfs, out in
      guard let vfs, let out else { return SQLITE_ERROR }
      let time = UnsafeRawPointer(vfs) + MemoryLayout<sqlite3_vfs>.stride
      out.pointee = time.load(as: Int64.self)
      return SQLITE_OK
    }
    block = Block(vfs: vfs, name: cName, time: time)
    guard sqlite3_vfs_register(vfs, 0) == SQLITE_OK else { return nil }
  }

  /// The time, in milliseconds since 1970-01-01 UTC. Set it from the thread that uses the connections.
  public var milliseconds: Int64 {
    get { block.time.pointee - Self.julianOffset }
    set { block.time.pointee = newValue + Self.julianOffset }
  }

  deinit {
    sqlite3_vfs_unregister(block.vfs)
    block.name.deallocate()
    UnsafeMutableRawPointer(block.vfs).deallocate()
  }
}
