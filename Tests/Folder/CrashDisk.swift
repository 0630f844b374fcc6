import Glibc
import LatchkeyFolder
import Synchronization

/// Files in memory on a disk that can lose its power: what was not forced onto the medium may be there or not, in any
/// combination.
///
/// The model is that of ALICE (Pillai et al., OSDI 2014) with fsync failing as on ext4 and btrfs (Rebello et al., ATC
/// 2020): content that was not synced may be missing, half written, zeros or whole; each entry of a directory that was
/// not synced may be there or not, whatever the order of the calls; a sync that failed leaves its pages marked clean,
/// so that the next one, if nothing is written in between, succeeds over nothing.
final class CrashDisk: FileOperations {
  /// A file or directory.
  struct Node: Sendable {
    var isDirectory: Bool
    /// What programs see.
    var content: [UInt8] = []
    var entries: [String: Int] = [:]
    /// What is on the medium.
    var durableContent: [UInt8] = []
    var durableEntries: [String: Int] = [:]
    /// What the next sync would write.
    var isDirty = false
    var dirtyNames: Set<String> = []
  }

  struct State: Sendable {
    var nodes: [Int: Node] = [0: Node(isDirectory: true)]
    var open: [Descriptor: Int] = [:]
    var lastNode = 0
    var lastFile: Descriptor = 100
    var calls = 0
    /// The power fails before the call of this number.
    var crashAt: Int?
    /// The sync of this number (of files or directories) fails, and drops what it had to write.
    var failSyncAt: Int?
    var syncs = 0
  }

  private let state: Mutex<State>

  init(_ state: State = State()) { self.state = Mutex(state) }

  var current: State { state.withLock { $0 } }
  var syncs: Int { current.syncs }
  var calls: Int { current.calls }

  func crash(at call: Int?) {
    state.withLock {
      $0.crashAt = call
      $0.calls = 0
    }
  }

  func failSync(at sync: Int?) {
    state.withLock {
      $0.failSyncAt = sync
      $0.syncs = 0
    }
  }

  /// Every state in which the disk may be found after the power is back.
  func afterPowerCut() -> [CrashDisk] {
    var states = [current.nodes]
    for id in current.nodes.keys.sorted() {
      guard let node = current.nodes[id] else { continue }
      if node.content != node.durableContent, !node.isDirectory {
        let (whole, count) = (node.content, node.content.count)
        let possible = [
          node.durableContent, whole, Array(whole.prefix(count / 2)), [UInt8](repeating: 0, count: count),
          Array(whole.prefix(count / 2)) + [UInt8](repeating: 0, count: count - count / 2),
        ]
        states = states.flatMap { state in
          possible.map { content in
            var state = state
            state[id]?.content = content
            return state
          }
        }
      }
      let names = Set(node.entries.keys).union(node.durableEntries.keys).sorted()
      for name in names where node.entries[name] != node.durableEntries[name] {
        states = states.flatMap { state in
          [node.durableEntries[name], node.entries[name]].map { entry in
            var state = state
            state[id]?.entries[name] = entry
            return state
          }
        }
      }
    }
    return states.map { nodes in
      var state = State()
      state.lastNode = current.lastNode
      state.nodes = nodes.mapValues { node in
        var node = node
        (node.durableContent, node.durableEntries) = (node.content, node.entries)
        (node.isDirty, node.dirtyNames) = (false, [])
        return node
      }
      return CrashDisk(state)
    }
  }

  // MARK: FileOperations

  private func step<T: Sendable>(
    _ body: (inout State) throws(SystemCallError) -> T
  ) throws(SystemCallError) -> T {
    let result: Result<T, SystemCallError> = state.withLock { state in
      if let crashAt = state.crashAt, state.calls >= crashAt { return .failure(SystemCallError(EIO)) }
      state.calls += 1
      do throws(SystemCallError) { return .success(try body(&state)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  func status(_ path: String, following: Bool) throws(SystemCallError) -> FileStatus {
    try step { state throws(SystemCallError) in try state.status(try state.find(path)) }
  }
  func status(_ file: Descriptor) throws(SystemCallError) -> FileStatus {
    try step { state throws(SystemCallError) in try state.status(try state.node(file)) }
  }
  func entries(_ path: String) throws(SystemCallError) -> [DirectoryEntry] {
    try step { state throws(SystemCallError) in
      let node = state.nodes[try state.find(path)]
      return (node?.entries.keys.sorted() ?? []).map { DirectoryEntry(name: $0, kind: nil) }
    }
  }
  func create(_ path: String) throws(SystemCallError) -> Descriptor {
    try step { state throws(SystemCallError) in
      let id = try state.add(path, Node(isDirectory: false))
      return state.open(id)
    }
  }
  func open(_ path: String) throws(SystemCallError) -> Descriptor {
    try step { state throws(SystemCallError) in state.open(try state.find(path)) }
  }
  func write(_ file: Descriptor, _ bytes: ArraySlice<UInt8>) throws(SystemCallError) -> Int {
    // In two calls at least, so that a crash falls between them.
    let piece = bytes.prefix(max(1, bytes.count / 2))
    return try step { state throws(SystemCallError) in
      let id = try state.node(file)
      state.nodes[id]?.content += piece
      state.nodes[id]?.isDirty = true
      return piece.count
    }
  }
  func read(_ file: Descriptor, at offset: Int, count: Int) throws(SystemCallError) -> [UInt8] {
    try step { state throws(SystemCallError) in
      Array((state.nodes[try state.node(file)]?.content ?? []).dropFirst(offset).prefix(count))
    }
  }
  func sync(_ file: Descriptor) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      let id = try state.node(file)
      let isDirty = state.nodes[id]?.isDirty ?? false
      state.nodes[id]?.isDirty = false
      try state.countSync()
      if isDirty, let content = state.nodes[id]?.content { state.nodes[id]?.durableContent = content }
    }
  }
  func close(_ file: Descriptor) throws(SystemCallError) {
    try step { state throws(SystemCallError) in state.open[file] = nil }
  }
  func syncDirectory(_ path: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      let id = try state.find(path)
      let names = state.nodes[id]?.dirtyNames ?? []
      state.nodes[id]?.dirtyNames = []
      try state.countSync()
      guard var node = state.nodes[id] else { return }
      for name in names { node.durableEntries[name] = node.entries[name] }
      state.nodes[id] = node
    }
  }
  func link(_ path: String, _ new: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      let id = try state.find(path)
      try state.set(new, id, replacing: false)
    }
  }
  func rename(_ path: String, _ new: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      let id = try state.find(path)
      try state.set(new, id, replacing: true)
      try state.set(path, nil, replacing: true)
    }
  }
  func unlink(_ path: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      _ = try state.find(path)
      try state.set(path, nil, replacing: true)
    }
  }
  func makeDirectory(_ path: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in _ = try state.add(path, Node(isDirectory: true)) }
  }
  func removeDirectory(_ path: String) throws(SystemCallError) {
    try step { state throws(SystemCallError) in
      guard state.nodes[try state.find(path)]?.entries.isEmpty ?? false else { throw SystemCallError(ENOTEMPTY) }
      try state.set(path, nil, replacing: true)
    }
  }
  func now() -> Int { 1_000_000 }
}

extension CrashDisk.State {
  fileprivate func find(_ path: String) throws(SystemCallError) -> Int {
    var id = 0
    for part in path.split(separator: "/") {
      guard nodes[id]?.isDirectory ?? false else { throw SystemCallError(ENOTDIR) }
      guard let next = nodes[id]?.entries[String(part)] else { throw SystemCallError(ENOENT) }
      id = next
    }
    return id
  }

  fileprivate func node(_ file: Descriptor) throws(SystemCallError) -> Int {
    guard let id = open[file] else { throw SystemCallError(EBADF) }
    return id
  }

  fileprivate func status(_ id: Int) throws(SystemCallError) -> FileStatus {
    guard let node = nodes[id] else { throw SystemCallError(ENOENT) }
    return FileStatus(
      kind: node.isDirectory ? .directory : .regular, size: node.content.count, blocks: 1, device: 1, modified: 999_999)
  }

  fileprivate mutating func open(_ id: Int) -> Descriptor {
    lastFile += 1
    open[lastFile] = id
    return lastFile
  }

  fileprivate mutating func add(_ path: String, _ node: CrashDisk.Node) throws(SystemCallError) -> Int {
    let id = lastNode + 1
    try set(path, id, replacing: false)
    lastNode = id
    nodes[id] = node
    return id
  }

  fileprivate mutating func set(_ path: String, _ id: Int?, replacing: Bool) throws(SystemCallError) {
    let parts = path.split(separator: "/").map(String.init)
    let parent = try find(parts.dropLast().joined(separator: "/"))
    guard let name = parts.last else { throw SystemCallError(EINVAL) }
    guard replacing || nodes[parent]?.entries[name] == nil else { throw SystemCallError(EEXIST) }
    nodes[parent]?.entries[name] = id
    nodes[parent]?.dirtyNames.insert(name)
  }

  fileprivate mutating func countSync() throws(SystemCallError) {
    syncs += 1
    if failSyncAt == syncs - 1 { throw SystemCallError(EIO) }
  }
}
